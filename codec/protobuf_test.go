package codec_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// column is what a job holds of a google.protobuf.Field, the second message of
// google/protobuf/type.proto.
type column struct {
	Name   string
	Number int32
	Tags   []string
}

func columnFrom(m *typepb.Field, v *column) error {
	if m.GetNumber() < 0 {
		return errors.New("number: expected 0 or more, found less")
	}
	v.Name, v.Number = m.GetName(), m.GetNumber()
	for _, o := range m.GetOptions() {
		v.Tags = append(v.Tags, o.GetName())
	}
	return nil
}

func columnTo(v *column, m *typepb.Field) error {
	if v.Name == "none" {
		return errors.New("a column has no name")
	}
	m.Name, m.Number = v.Name, v.Number
	for _, t := range v.Tags {
		m.Options = append(m.Options, &typepb.Option{Name: t})
	}
	return nil
}

func columns(opts ...codec.ProtobufOption) codec.Codec[column] {
	return codec.Protobuf(columnFrom, columnTo, opts...)
}

// columnBytes is a column by Protobuf's encoding: number is field 3, name 4,
// options 9 with name 1.
const columnBytes = "\x18\xac\x02" + "\x22\x03abc" + "\x4a\x03\x0a\x01x" + "\x4a\x03\x0a\x01y"

// typeProto is where a column's message stands, as somebody else would write it.
const typeProto = `syntax = "proto3"; // message Comment {
/* message Another { */
package google.protobuf;
option java_package = "message Option {";
message Type { string message = 1; message Inner {} oneof o { string oneof = 2; } }
message Field { string name = 4; }`

func TestProtobuf(t *testing.T) {
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: typeProto})
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto((&typepb.Field{}).ProtoReflect().Descriptor().ParentFile()))
	if err != nil {
		t.Fatal(err)
	}
	reg.put(2, &codec.Schema{Format: codec.FormatProtobuf, Text: base64.StdEncoding.EncodeToString(raw)})
	want := column{Name: "abc", Number: 300, Tags: []string{"x", "y"}}
	framed := columns(codec.Registered(reg))
	for name, c := range map[string]struct {
		codec codec.Codec[column]
		front string
	}{
		"plain":                 {columns(), ""},
		"registered":            {framed, "\x00\x00\x00\x00\x01\x02\x02"}, // one index, which is 1
		"its descriptor is":     {framed, "\x00\x00\x00\x00\x02\x02\x02"},
		"an index in two bytes": {framed, "\x00\x00\x00\x00\x01\x02\x82\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			decode := c.codec.NewDecoder()
			var all []column
			for range 3 {
				src := []byte(c.front + columnBytes + "\xfa\x01\x01?") // a field 31 that it doesn't know
				var v column
				if err := decode(src, &v); err != nil {
					t.Fatal(err)
				}
				clear(src)
				all = append(all, v)
			}
			for _, v := range all {
				if !reflect.DeepEqual(v, want) {
					t.Errorf("decoded %+v, expected %+v", v, want)
				}
			}
		})
	}
	if out, err := columns().NewEncoder()([]byte(">"), &want); err != nil || string(out) != ">"+columnBytes {
		t.Errorf("encoded %q, %v", out, err)
	}
	encode := codec.For(framed, codec.Use{Topic: "columns"}).NewEncoder()
	for range 2 {
		if out, err := encode([]byte(">"), &want); err != nil || string(out) != ">\x00\x00\x00\x00\x03\x02\x02"+columnBytes {
			t.Errorf("encoded %q, %v", out, err)
		}
	}
	if out, err := encode([]byte("kept"), &column{Name: "none"}); err == nil || string(out) != "kept" || errors.Is(err, connector.ErrUnavailable) {
		t.Errorf("%q, %v", out, err)
	}
	if strings.Join(reg.enrolls, " ") != "columns-value" {
		t.Errorf("enrolled %q", reg.enrolls)
	}
}

// TestProtobufIndexes: what stands before a message says which of its file's it
// is.
func TestProtobufIndexes(t *testing.T) {
	first := codec.Protobuf(nil, func(v *string, m *structpb.Struct) error { return nil }, codec.Registered(&shelf{}, codec.ByRecord()))
	text := ""
	if out, err := first.NewEncoder()(nil, &text); err != nil || string(out) != "\x00\x00\x00\x00\x01\x00" {
		t.Errorf("the first message of a file: %q, %v", out, err)
	}
	// DescriptorProto is the third message of its file, ReservedRange its second.
	within := codec.Protobuf(nil, func(v *string, m *descriptorpb.DescriptorProto_ReservedRange) error { return nil }, codec.Registered(&shelf{}, codec.ByRecord()))
	if out, err := within.NewEncoder()(nil, &text); err != nil || string(out) != "\x00\x00\x00\x00\x01\x04\x04\x02" {
		t.Errorf("a message in another: %q, %v", out, err)
	}
}

func TestProtobufBadRecords(t *testing.T) {
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: typeProto})
	reg.put(2, &codec.Schema{Format: codec.FormatProtobuf, Text: `syntax = "proto3"; package other; message Type {} message Field {}`})
	reg.put(3, &codec.Schema{Format: codec.FormatAvro, Text: `"long"`})
	reg.put(4, &codec.Schema{Format: codec.FormatProtobuf, Text: ``})
	for name, c := range map[string]struct {
		bytes string
		at    int64
		says  string
	}{
		"nothing":          {"", 0, "found 0 bytes"},
		"no magic byte":    {"\x01\x00\x00\x00\x01", 0, "found 0x01"},
		"no indexes":       {"\x00\x00\x00\x00\x01", 5, "cut short"},
		"half of them":     {"\x00\x00\x00\x00\x01\x04\x02", 5, "cut short"},
		"less than none":   {"\x00\x00\x00\x00\x01\x01", 5, "expected up to 100 indexes, found -1"},
		"too many":         {"\x00\x00\x00\x00\x01\xfe\xff\xff\xff\x0f", 5, "expected up to 100 indexes, found 2147483647"},
		"an index below 0": {"\x00\x00\x00\x00\x01\x02\x01", 5, "an index that can't be"},
		"another message":  {"\x00\x00\x00\x00\x01\x00", 1, "schema 1: expected a message google.protobuf.Field, found google.protobuf.Type, whose place in the file is [0]"},
		"one within":       {"\x00\x00\x00\x00\x01\x04\x00\x00", 1, "found google.protobuf.Type.Inner, whose place in the file is [0 0]"},
		"none":             {"\x00\x00\x00\x00\x01\x02\x08", 1, "found none"},
		"another package":  {"\x00\x00\x00\x00\x02\x02\x02", 1, "found other.Field"},
		"another format":   {"\x00\x00\x00\x00\x03\x02\x02", 1, "expected a schema of PROTOBUF, found one of AVRO"},
		"an empty schema":  {"\x00\x00\x00\x00\x04\x02\x02", 1, "found none"},
		"an unknown id":    {"\x00\x00\x00\x00\x09\x02\x02", 1, "the registry knows no schema of this id"},
		"no message":       {"\x00\x00\x00\x00\x01\x02\x02\x22\x05abc", -1, "no message google.protobuf.Field: "},
		"no UTF-8":         {"\x00\x00\x00\x00\x01\x02\x02\x22\x01\xff", -1, "invalid UTF-8"},
		"refused by from":  {"\x00\x00\x00\x00\x01\x02\x02\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1, "message google.protobuf.Field: number: expected 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, columns(codec.Registered(reg)), c.bytes)
			bad, ok := errors.AsType[*connector.DecodeError](err)
			if !ok || bad.At != c.at || !strings.Contains(bad.Error(), c.says) || strings.Contains(err.Error(), "\u00a0") || errors.Is(err, connector.ErrUnavailable) {
				t.Errorf("%v; expected at %d: %s", err, c.at, c.says)
			}
		})
	}
	reg.fails = errors.New("down")
	if _, err := decode(t, columns(codec.Registered(reg)), "\x00\x00\x00\x00\x01\x02\x02"); !errors.Is(err, connector.ErrUnavailable) {
		t.Errorf("a registry that is down: %v", err)
	}
}

// TestProtobufSwitches: records of several schemas and messages may alternate.
func TestProtobufSwitches(t *testing.T) {
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: typeProto})
	reg.put(2, &codec.Schema{Format: codec.FormatProtobuf, Text: `syntax = "proto3"; package google.protobuf; message Field {}`})
	reg.put(3, &codec.Schema{Format: codec.FormatProtobuf, Text: `syntax = "proto3"; package google.protobuf; message Field {} message Type {}`})
	decode := columns(codec.Registered(reg)).NewDecoder()
	same := "\x00\x00\x00\x00\x03\x02\x02" // the same place, another message
	good, other, wrong := "\x00\x00\x00\x00\x01\x02\x02"+columnBytes, "\x00\x00\x00\x00\x02\x00"+columnBytes, "\x00\x00\x00\x00\x01\x00"+columnBytes
	for i, src := range []string{good, other, wrong, good, same, wrong, other, "\x00\x00\x00\x00\x02\x02\x00" + columnBytes} {
		var v column
		if err := decode([]byte(src), &v); (err != nil) != (src == wrong || src == same) {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if len(reg.fetched) != 3 {
		t.Errorf("fetched %v", reg.fetched)
	}
}

func TestProtobufOfNoUse(t *testing.T) {
	var v column
	if err := codec.Protobuf(nil, columnTo).NewDecoder()(nil, &v); err == nil || !errors.Is(err, connector.ErrUnavailable) || !strings.Contains(err.Error(), "function from") {
		t.Errorf("%v", err)
	}
	if _, err := codec.Protobuf(columnFrom, nil).NewEncoder()(nil, &v); err == nil || !strings.Contains(err.Error(), "function to") {
		t.Errorf("%v", err)
	}
	if err := codec.Check(columns(codec.Registered(nil))); err == nil {
		t.Error("no registry")
	}
	if err := codec.Check(columns(codec.Registered(&shelf{}), codec.ProtoText(`message Field {}`))); err == nil || !strings.Contains(err.Error(), "expected message google.protobuf.Field in the place that it has in its file, found none") {
		t.Errorf("%v", err)
	}
	reg := &shelf{}
	c := columns(codec.Registered(reg, codec.Subject("s")), codec.ProtoText(typeProto))
	if err := c.(codec.Preparer).Prepare(t.Context(), codec.Use{}); err != nil || reg.schemas[1].Text != typeProto || len(reg.schemas[1].References) != 0 {
		t.Errorf("%v, %+v", err, reg.schemas)
	}
	if got := fmt.Sprint(c.Name(), c.Parameters()); got != "protobuf[{message google.protobuf.Field} {framing registry} {subject s}]" {
		t.Error(got)
	}
}

// TestProtobufKeeps: what from takes out of a message stays as it was when the
// message is used for the next record.
func TestProtobufKeeps(t *testing.T) {
	c := codec.Protobuf(func(m *wrapperspb.BytesValue, v *[]byte) error { *v = m.Value; return nil }, nil)
	decode := c.NewDecoder()
	var a, b []byte
	for text, v := range map[string]*[]byte{"\x0a\x02aa": &a, "\x0a\x02bb": &b} {
		src := []byte(text)
		if err := decode(src, v); err != nil {
			t.Fatal(err)
		}
		clear(src)
	}
	if string(a) != "aa" || string(b) != "bb" {
		t.Errorf("%q %q", a, b)
	}
}
