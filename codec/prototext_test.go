package codec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
)

func compile(t *testing.T, sources map[string]string, name string) protoreflect.FileDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)})}
	files, err := c.Compile(context.Background(), name)
	if err != nil {
		t.Fatalf("%v\n%s", err, sources[name])
	}
	return files[0]
}

const shop3 = `syntax = "proto3";
package shop.v1;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
option go_package = "x/y";
extend google.protobuf.FieldOptions { string note = 50000; }
// An order.
message Order {
  reserved 2, 4 to 6, 100 to max;
  reserved "old", "older";
  string id = 1 [(note) = "message Wrong {"];
  map<string, common.Money> prices = 3;
  message Line { string sku = 1; optional int32 qty = 2; repeated int64 codes = 3 [packed = false]; Inner.Deep deep = 4; enum State { option allow_alias = true; A = 0; B = 0; reserved 5 to max; } }
  message Inner { message Deep { Order back = 1; } map<int32, Line> lines = 1; message After {} }
  repeated Line lines = 7;
  oneof payment { string card = 8; common.Money cash = 9; }
  google.protobuf.Timestamp at = 10;
  Line.State state = 11;
  string odd_name = 12 [json_name = "odd\"One"];
  bytes message = 13;
}
message Other { Order order = 1; }
service Shop { rpc Buy(Order) returns (Other); }
`

const shop2 = `syntax = "proto2";
package old;
message Row {
  required int64 id = 1 [default = -5];
  optional string s = 2 [default = "a\"\\\001ü"];
  optional bytes b = 3 [default = "\377\000"];
  optional double d = 4 [default = -inf];
  optional float f = 5 [default = nan];
  optional double g = 10 [default = 1.5e300];
  optional bool ok = 6 [default = true];
  enum E { X = 1; Y = -2; }
  optional E e = 7 [default = Y];
  repeated int32 packed = 8 [packed = true];
  repeated int32 loose = 9;
  extensions 100 to 199, 1000 to max;
}
`

// stripped is what of a file counts for the encoding.
func stripped(t *testing.T, f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	d := protodesc.ToFileDescriptorProto(f)
	d.Name, d.Options, d.SourceCodeInfo, d.Service, d.Dependency, d.PublicDependency, d.Extension = nil, nil, nil, nil, nil, nil, nil
	var message func(m *descriptorpb.DescriptorProto)
	message = func(m *descriptorpb.DescriptorProto) {
		if !m.GetOptions().GetMapEntry() {
			m.Options = nil
		}
		for _, f := range m.Field {
			var packed *bool
			if f.Options != nil {
				packed = f.Options.Packed
			}
			f.Options = nil
			if packed != nil {
				f.Options = &descriptorpb.FieldOptions{Packed: packed}
			}
		}
		for _, n := range m.NestedType {
			message(n)
		}
		for _, r := range m.ExtensionRange {
			r.Options = nil
		}
		m.Extension = nil
		// The order of nested types has a map's entries between.
		slices.SortFunc(m.NestedType, func(a, b *descriptorpb.DescriptorProto) int {
			return boolOrder(a.GetOptions().GetMapEntry()) - boolOrder(b.GetOptions().GetMapEntry())
		})
	}
	for _, m := range d.MessageType {
		message(m)
	}
	return d
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestProtoText compiles what is written of a descriptor: it is the same file, but
// for what means nothing for the encoding.
func TestProtoText(t *testing.T) {
	sources := map[string]string{
		"shop3.proto":        shop3,
		"shop2.proto":        shop2,
		"common/money.proto": `syntax = "proto3"; package common; import public "common/cents.proto"; message Money { Cents cents = 1; }`,
		"common/cents.proto": `syntax = "proto3"; package common; message Cents { int64 cents = 1; }`,
	}
	var files []protoreflect.FileDescriptor
	for _, name := range []string{"shop3.proto", "shop2.proto"} {
		files = append(files, compile(t, sources, name))
	}
	files = append(files, (&typepb.Type{}).ProtoReflect().Descriptor().ParentFile(), (&structpb.Struct{}).ProtoReflect().Descriptor().ParentFile())
	for _, file := range files {
		s, err := protoSchema(file, "")
		if err != nil {
			t.Fatal(err)
		}
		again := map[string]string{"again.proto": s.Text}
		var imports func(s *Schema)
		imports = func(s *Schema) {
			for _, r := range s.References {
				again[r.Name] = r.Schema.Text
				imports(r.Schema)
			}
		}
		imports(s)
		back := compile(t, again, "again.proto")
		if a, b := stripped(t, file), stripped(t, back); !proto.Equal(a, b) {
			t.Errorf("%s\nwas\n%v\nis\n%v", s.Text, a, b)
		}
		if file.Path() == "shop3.proto" {
			if names := slices.Sorted(maps.Keys(again)); fmt.Sprint(names) != "[again.proto common/cents.proto common/money.proto]" {
				t.Errorf("imports %q", names)
			}
		}
	}
	for name, text := range map[string]string{
		"group.proto":   `syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }`,
		"edition.proto": `edition = "2023"; message A { int32 x = 1; }`,
	} {
		if _, err := protoSchema(compile(t, map[string]string{name: text}, name), ""); err == nil {
			t.Errorf("%s has a text", name)
		} else if s, err := protoSchema(compile(t, map[string]string{name: text}, name), text); err != nil || s.Text != text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMessagesOf finds messages in a file's text, without compiling it, where
// compiling it says that they are. Entries of maps aren't counted: in shop3,
// Inner has the entry of lines before After, and Order that of prices before
// Line.
func TestMessagesOf(t *testing.T) {
	want := map[string]string{
		"[0]": "shop.v1.Order", "[0 0]": "shop.v1.Order.Line", "[0 1]": "shop.v1.Order.Inner", "[0 1 0]": "shop.v1.Order.Inner.Deep",
		"[0 1 1]": "shop.v1.Order.Inner.After", "[1]": "shop.v1.Other",
	}
	found := map[string]string{}
	for key, name := range messagesOf(shop3) {
		path, size, err := readIndexes([]byte(key))
		if err != nil || size != len(key) {
			t.Fatal(err)
		}
		found[fmt.Sprint(path)] = name
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %v\nexpected %v", found, want)
	}
	file := compile(t, map[string]string{"shop3.proto": shop3, "common/money.proto": `syntax = "proto3"; package common; message Money {}`}, "shop3.proto")
	var check func(all protoreflect.MessageDescriptors)
	check = func(all protoreflect.MessageDescriptors) {
		for i := range all.Len() {
			m := all.Get(i)
			if m.IsMapEntry() {
				continue
			}
			if got := want[fmt.Sprint(indexesOf(m))]; got != string(m.FullName()) {
				t.Errorf("%s is at %v, where %s stands", m.FullName(), indexesOf(m), got)
			}
			check(m.Messages())
		}
	}
	check(file.Messages())
	group := `syntax = "proto2"; message A { optional group G = 1 [deprecated = true] { message In {} } oneof o { group H = 2 { } } extend A { optional group J = 9 {} } message K {} }`
	names := messagesOf(group)
	for path, name := range map[string]string{"0 0": "A.G", "0 0 0": "A.G.In", "0 1": "A.H", "0 2": "A.J", "0 3": "A.K"} {
		var indexes []int
		for _, c := range path {
			if c != ' ' {
				indexes = append(indexes, int(c-'0'))
			}
		}
		if got := names[string(appendIndexes(nil, indexes))]; got != name {
			t.Errorf("%s is %q, expected %s", path, got, name)
		}
	}
}
