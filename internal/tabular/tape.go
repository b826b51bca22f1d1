package tabular

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"
)

// tape is a JSON value, taken apart once: its parts in the order in which they
// stand, so that a value's parts can be found in any order.
type tape struct {
	parts []jsonPart
	texts []byte // of strings, unescaped, and of numbers
	open  []int32
	// places are where the fields of the records in hand stand.
	places []int32
}

// jsonPart is a value, or a member's name.
type jsonPart struct {
	kind       jsontext.Kind // 'n', 't', 'f', '"', '0', '[' or '{'
	start, end int32         // in texts
	next       int32         // behind the value's parts
}

// maxJSONDepth bounds the nesting of what is read: deeper than what a state's
// value can be.
const maxJSONDepth = 2000

// parse takes one JSON value apart.
func (t *tape) parse(data []byte) error {
	t.parts, t.texts, t.open = t.parts[:0], t.texts[:0], t.open[:0]
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		kind := d.PeekKind()
		switch kind {
		case '{', '[':
			if len(t.open) == maxJSONDepth {
				return &misfit{"", "JSON", fmt.Sprintf("some that is nested more than %d deep", maxJSONDepth)}
			}
			if _, err := d.ReadToken(); err != nil {
				return notJSON(err)
			}
			t.open = append(t.open, int32(len(t.parts)))
			t.parts = append(t.parts, jsonPart{kind: kind})
			continue
		case '}', ']':
			if _, err := d.ReadToken(); err != nil {
				return notJSON(err)
			}
			last := len(t.open) - 1
			t.parts[t.open[last]].next = int32(len(t.parts))
			t.open = t.open[:last]
		default:
			raw, err := d.ReadValue()
			if err != nil {
				return notJSON(err)
			}
			start := len(t.texts)
			switch kind {
			case '"':
				if t.texts, err = jsontext.AppendUnquote(t.texts, raw); err != nil {
					return notJSON(err)
				}
			case '0':
				t.texts = append(t.texts, raw...)
			}
			t.parts = append(t.parts, jsonPart{kind, int32(start), int32(len(t.texts)), int32(len(t.parts) + 1)})
		}
		if len(t.open) == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return &misfit{"", "one JSON value", "more behind it"}
	}
	return nil
}

// notJSON says why something is none.
func notJSON(err error) error {
	text := err.Error()
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		text = "the end of it in the middle of a value"
	}
	return &misfit{"", "JSON", text}
}

func (t *tape) text(p jsonPart) []byte { return t.texts[p.start:p.end] }

// show is a part as an error repeats it.
func (t *tape) show(p jsonPart) string {
	switch p.kind {
	case 'n':
		return "null"
	case 't':
		return "true"
	case 'f':
		return "false"
	case '0':
		return string(t.text(p)[:min(int(p.end-p.start), shownBytes)])
	case '"':
		return "the string " + shown(t.text(p))
	case '[':
		return "an array"
	}
	return "an object"
}
