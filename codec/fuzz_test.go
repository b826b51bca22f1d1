package codec_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// bounded runs a decoder of hostile bytes: what is wrong with them is their own
// fault, said in short, and memory is taken in proportion to them.
func bounded(t *testing.T, size int, decode func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := decode()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+400*uint64(size) {
		t.Fatalf("%d bytes were allocated for %d", took, size)
	}
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*connector.DecodeError](err); !ok || errors.Is(err, connector.ErrUnavailable) {
		t.Fatalf("%v is no *connector.DecodeError", err)
	}
	if text := err.Error(); len(text) > 2000 || !utf8.ValidString(text) {
		t.Fatalf("the error has %d bytes: %.300q", len(text), text)
	}
	return err
}

// FuzzAvroFramed feeds any bytes behind a frame. What can be read can be written,
// and read again as the same.
func FuzzAvroFramed(f *testing.F) {
	_, bytes := byHand()
	reg := avroShelf(map[uint32]string{1: newest, 2: record(`{"name":"old","type":["null","long",{"type":"map","values":"string"}]},{"name":"title","type":"bytes"}`)})
	decode, encode := codec.Avro[purchase](codec.Registered(reg)).NewDecoder(), codec.Avro[purchase]().NewEncoder()
	plain := codec.Avro[purchase]().NewDecoder()
	f.Add([]byte("\x00\x00\x00\x00\x01" + bytes))
	f.Add([]byte("\x00\x00\x00\x00\x02\x04\x02\x02k\x02v\x00\x04hi"))
	f.Add([]byte("\x00\x00\x00\x00\x03"))
	f.Add([]byte("\x00\x00\x00\x00\x01\x05\x06ann\x01\x02\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var v, again purchase
		if bounded(t, len(src), func() error { return decode(src, &v) }) != nil {
			return
		}
		written, err := encode(nil, &v)
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		// Through the encoding, for NaN isn't equal to itself.
		if err := plain(written, &again); err != nil {
			t.Fatal(err)
		}
		if twice, err := encode(nil, &again); err != nil || string(twice) != string(written) {
			t.Fatalf("written as %x, then as %x: %v", written, twice, err)
		}
	})
}

// FuzzAvroSchema reads by any schema that a registry could have.
func FuzzAvroSchema(f *testing.F) {
	f.Add(newest, `{"type":"record","name":"m.M","fields":[]}`, []byte("\x02"))
	f.Add(record(`{"name":"name","type":"m.M"}`), `{"type":"fixed","name":"m.M","size":3}`, []byte("abc"))
	f.Add(`m.M`, `{"type":"record","name":"M","namespace":"m","fields":[{"name":"ID","type":"int"}]}`, []byte("\x02"))
	f.Fuzz(func(t *testing.T, text, other string, src []byte) {
		reg := &shelf{}
		reg.put(1, &codec.Schema{Format: codec.FormatAvro, Text: text, References: []codec.Reference{{Name: "m.M", Schema: &codec.Schema{Format: codec.FormatAvro, Text: other}}}})
		decode := codec.Avro[purchase](codec.Registered(reg)).NewDecoder()
		var v purchase
		_ = decode(append([]byte("\x00\x00\x00\x00\x01"), src...), &v)
		// The schema's reader is made by now.
		_ = bounded(t, len(src), func() error { return decode(append([]byte("\x00\x00\x00\x00\x01"), src...), &v) })
	})
}

// tree is the depth and number of values in a structpb.Value.
type tree struct{ Depth, Values int }

func treeFrom(m *structpb.Value, v *tree) error {
	v.Values++
	deepest := 0
	for _, inner := range m.GetListValue().GetValues() {
		var of tree
		if err := treeFrom(inner, &of); err != nil {
			return err
		}
		v.Values += of.Values
		deepest = max(deepest, of.Depth)
	}
	v.Depth = deepest + 1
	return nil
}

// FuzzProtobufFramed feeds any bytes behind a frame, to messages that nest.
func FuzzProtobufFramed(f *testing.F) {
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: `syntax = "proto3"; package google.protobuf; message Struct {} message Value {} message ListValue {}`})
	decode := codec.Protobuf(treeFrom, nil, codec.Registered(reg)).NewDecoder()
	const front = "\x00\x00\x00\x00\x01\x02\x02"
	f.Add([]byte(front + "\x32\x04\x0a\x00\x0a\x00"))
	f.Add([]byte(front + strings.Repeat("\x32\x02\x0a\x00", 50)))
	f.Add([]byte("\x00\x00\x00\x00\x01\x00"))
	f.Add([]byte("\x00\x00\x00\x00\x01\xc8\x01" + strings.Repeat("\x00", 100)))
	f.Fuzz(func(t *testing.T, src []byte) {
		var v tree
		if err := bounded(t, len(src), func() error { return decode(src, &v) }); err == nil && v.Values > len(src) {
			t.Fatalf("%d values of %d bytes", v.Values, len(src))
		}
	})
}

// FuzzProtobufSchema reads by any schema that a registry could have.
func FuzzProtobufSchema(f *testing.F) {
	f.Add(typeProto, []byte("\x02\x02"+columnBytes))
	f.Add(`message A { message B {`, []byte("\x04\x00\x00"))
	f.Add("CgphLnByb3Rv", []byte("\x00"))
	f.Fuzz(func(t *testing.T, text string, src []byte) {
		reg := &shelf{}
		reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: text})
		decode := columns(codec.Registered(reg)).NewDecoder()
		var v column
		framed := append([]byte("\x00\x00\x00\x00\x01"), src...)
		_ = bounded(t, len(text)+len(src), func() error { return decode(framed, &v) })
	})
}

// TestHostileSchemas: schemas of any size or depth cost what they weigh.
func TestHostileSchemas(t *testing.T) {
	deep := strings.Repeat("message A { ", 100_000)
	many := "syntax = \"proto3\";" + strings.Repeat("message A {}", 100_000)
	for name, text := range map[string]string{"deep": deep, "many": many, "an open string": `message "` + strings.Repeat("x", 1<<20), "an open comment": "/*" + strings.Repeat("x", 1<<20)} {
		reg := &shelf{}
		reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: text})
		decode := columns(codec.Registered(reg)).NewDecoder()
		var v column
		if err := bounded(t, len(text), func() error { return decode([]byte("\x00\x00\x00\x00\x01\x02\x02"), &v) }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	nested := `{"type":"array","items":`
	avros := map[string]string{
		"deep":          strings.Repeat(nested, 100_000) + `"long"` + strings.Repeat("}", 100_000),
		"many branches": `["null"` + strings.Repeat(`,"long"`, 100_000) + `]`,
		"a long type":   fmt.Sprintf("%q", strings.Repeat("n", 1_000_000)),
		"a long name":   fmt.Sprintf(`{"type":"fixed","size":1,"name":%q}`, strings.Repeat("n", 1_000_000)),
	}
	for name, text := range avros {
		decode := codec.Avro[purchase](codec.Registered(avroShelf(map[uint32]string{1: text}))).NewDecoder()
		var v purchase
		if err := bounded(t, len(text), func() error { return decode([]byte("\x00\x00\x00\x00\x01"), &v) }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var v tree
	deepValue := []byte{}
	for range 1200 {
		deepValue = protoBytes(1, deepValue) // of ListValue
		deepValue = protoBytes(6, deepValue) // of Value
	}
	if err := bounded(t, len(deepValue), func() error { return codec.Protobuf(treeFrom, nil).NewDecoder()(deepValue, &v) }); err == nil {
		t.Error("a message of any depth was read")
	}
}

// protoBytes is a field that holds bytes.
func protoBytes(field byte, value []byte) []byte {
	out := []byte{field<<3 | 2}
	n := len(value)
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(append(out, byte(n)), value...)
}
