package schema_test

import (
	"bytes"
	"encoding/json/jsontext"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// FuzzDecode reads any bytes: what can be read can be written, as one form.
func FuzzDecode(f *testing.F) {
	wides := must(schema.Of[wide]("wide"))
	skip, toJSON := schema.Skipper(wides.Schema()), schema.JSON(wides.Schema())
	for seed := range 20 {
		v := genWide(1).Example(seed)
		f.Add(must(wides.Append(nil, &v)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v wide
		rest, err := wides.Decode(data, &v)
		n, skipErr := skip(data)
		text, jsonRest, jsonErr := toJSON(nil, data)
		if jsonErr == nil && (!jsontext.Value(text).IsValid() || len(jsonRest) != len(data)-n) && unique(text) {
			t.Fatalf("JSON %s, %d left", text, len(jsonRest))
		}
		if err != nil {
			return
		}
		if skipErr != nil || len(rest) != len(data)-n {
			t.Fatalf("decoding left %d of %d bytes, skipping stopped at %d: %v", len(rest), len(data), n, skipErr)
		}
		again, err := wides.Append(nil, &v)
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		var w wide
		if _, err := wides.Decode(again, &w); err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if once := must(wides.Append(nil, &w)); !bytes.Equal(once, again) {
			t.Fatalf("two forms of one value:\n%x\n%x", once, again)
		}
	})
}

// unique tells whether JSON is valid but for names that stand twice in an
// object, as keys can in hostile maps.
func unique(text []byte) bool {
	return !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

// FuzzParse reads any schema: it has one form, and whatever is built from it
// takes any bytes without a panic.
func FuzzParse(f *testing.F) {
	wides := must(schema.Of[wide]("wide"))
	f.Add(wides.Schema().String(), []byte("\x02\x00"))
	f.Add(must(schema.Of[crossOld]("wide")).Schema().String(), []byte("\x02\x00"))
	f.Add(`{"type":"record","name":"n.r","fields":[{"name":"f","type":["null","r"],"default":null,"order":"ignore"}]}`, []byte("\x02\x02\x00"))
	f.Add(`{"type":"array","items":{"type":"map","values":["null","int",{"type":"fixed","name":"f","size":2}]}}`, []byte("\x02\x02\x02a\x02\x02\x00\x00"))
	f.Add(`{"type":"enum","name":"e","symbols":["_","A"],"sluice.zero":"_"}`, []byte("\x02"))
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			return
		}
		again, err := schema.Parse([]byte(s.String()))
		if err != nil || !again.Equal(s) {
			t.Fatalf("%s\nis read back as %v (%v)", s, again, err)
		}
		if d := schema.Differences(s, again); len(d) > 0 {
			t.Fatalf("%s differs from itself: %v", s, d)
		}
		n, err := schema.Skipper(s)(data)
		out, rest, jsonErr := schema.JSON(s)(nil, data)
		if jsonErr == nil && (err != nil || len(rest) != len(data)-n) {
			t.Fatalf("JSON %s leaves %d of %d bytes, skipping stops at %d (%v)", out, len(rest), len(data), n, err)
		}
		if compare, cmpErr := schema.Comparer(s); cmpErr == nil {
			if compare(data, data) != 0 {
				t.Fatalf("%s: %x isn't equal to itself", s, data)
			}
			_ = compare(data, data[:len(data)/2])
		}
		if r, err := wides.Reader(s); err == nil {
			var v wide
			_, _ = r.Decode(data, &v)
		}
	})
}
