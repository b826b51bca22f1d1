package operate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// node is a piece of YAML: a text, a list or a map.
type node struct {
	line  int
	text  string
	items []*node
	keys  map[string]*node
}

// at walks down maps, by names with dots between them, and lists, by "0" and so
// on; nil if there is nothing.
func (n *node) at(path string) *node {
	for step := range strings.SplitSeq(path, ".") {
		switch {
		case n == nil:
			return nil
		case n.items != nil:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(n.items) {
				return nil
			}
			n = n.items[i]
		default:
			n = n.keys[step]
		}
	}
	return n
}

// is tells whether there is this text at a path.
func (n *node) is(path, text string) bool {
	found := n.at(path)
	return found != nil && found.text == text
}

// yamlLine is a line that isn't empty and no comment.
type yamlLine struct {
	number, indent int
	text           string
}

// parseYAML reads the part of YAML that the files of this repository keep to:
// maps and lists by indentation, texts of one line, plain or in quotes.
func parseYAML(text string) (documents []*node, err error) {
	var lines []yamlLine
	flush := func() error {
		if len(lines) == 0 {
			return nil
		}
		root, rest, err := parseBlock(lines, lines[0].indent)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("line %d: indented as nothing before it", rest[0].number)
		}
		documents, lines = append(documents, root), nil
		return err
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case strings.Contains(line, "\t"), strings.TrimRight(line, " ") != line:
			return nil, fmt.Errorf("line %d: a tab, or a space at its end", i+1)
		case trimmed == "---":
			if err := flush(); err != nil {
				return nil, err
			}
		case trimmed != "" && trimmed[0] != '#':
			lines = append(lines, yamlLine{i + 1, len(line) - len(trimmed), trimmed})
		}
	}
	return documents, flush()
}

// parseBlock reads a map or a list whose lines stand at an indent.
func parseBlock(lines []yamlLine, indent int) (n *node, rest []yamlLine, err error) {
	n = &node{line: lines[0].number}
	for len(lines) > 0 && lines[0].indent == indent {
		line := lines[0]
		var child *node
		if item, ok := strings.CutPrefix(line.text, "- "); ok {
			if n.keys != nil {
				return nil, nil, fmt.Errorf("line %d: an item in a map", line.number)
			}
			// What follows the dash is a block of its own, two further in.
			lines[0] = yamlLine{line.number, indent + 2, item}
			if _, _, isMap := cutKey(item); isMap {
				child, lines, err = parseBlock(lines, indent+2)
			} else {
				child, err = parseText(line.number, item)
				lines = lines[1:]
			}
			if err != nil {
				return nil, nil, err
			}
			n.items = append(n.items, child)
			continue
		}
		key, value, ok := cutKey(line.text)
		if !ok || n.items != nil || n.keys[key] != nil {
			return nil, nil, fmt.Errorf("line %d: no key, or one that is there twice: %s", line.number, line.text)
		}
		lines = lines[1:]
		switch {
		case value != "":
			child, err = parseText(line.number, value)
		case len(lines) > 0 && lines[0].indent > indent:
			child, lines, err = parseBlock(lines, lines[0].indent)
		default:
			err = fmt.Errorf("line %d: nothing below %s", line.number, key)
		}
		if err != nil {
			return nil, nil, err
		}
		if n.keys == nil {
			n.keys = map[string]*node{}
		}
		n.keys[key] = child
	}
	if n.keys == nil && n.items == nil {
		return nil, nil, fmt.Errorf("line %d: indented as nothing before it", n.line)
	}
	return n, lines, nil
}

func cutKey(line string) (key, value string, ok bool) {
	if strings.HasPrefix(line, `"`) {
		return "", "", false
	}
	if key, ok := strings.CutSuffix(line, ":"); ok {
		return key, "", true
	}
	key, value, ok = strings.Cut(line, ": ")
	return key, strings.TrimLeft(value, " "), ok
}

func parseText(line int, text string) (*node, error) {
	switch {
	case strings.HasPrefix(text, `"`):
		if len(text) < 2 || !strings.HasSuffix(text, `"`) || strings.ContainsAny(text[1:len(text)-1], `"\`) {
			return nil, fmt.Errorf("line %d: quotes that don't end, or hold what must be escaped", line)
		}
		text = text[1 : len(text)-1]
	case strings.ContainsAny(text[:1], "[]{}&*!|>'%@`,?"), strings.Contains(text, ": "), strings.Contains(text, " #"):
		return nil, fmt.Errorf("line %d: %s is to be in quotes", line, text)
	}
	return &node{line: line, text: text}, nil
}

func TestParseYAML(t *testing.T) {
	got, err := parseYAML("# c\na: 1\nb:\n  - x: \"y: z\"\n    w:\n      v: u\n  - 2\n---\n- q\n")
	if err != nil || len(got) != 2 || !got[0].is("a", "1") || !got[0].is("b.0.x", "y: z") || !got[0].is("b.0.w.v", "u") || !got[0].is("b.1", "2") || !got[1].is("0", "q") {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"a: 1\na: 2", "a: 1\n  b: 2", "a:\n", "a: 1\n- b", "a: \"x", "a: b: c", "a: [1]", "a:\tb", "a: 1 ", "just text", "a:\n    b: 1\n  c: 2"} {
		if got, err := parseYAML(bad); err == nil {
			t.Errorf("%q is read as %v", bad, reflect.ValueOf(got))
		}
	}
}
