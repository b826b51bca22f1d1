package registrytest

import (
	"context"
	"fmt"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// parseProtobuf compiles the text of a .proto file, given those that it imports.
func parseProtobuf(text string, imports map[string]string) (protoreflect.FileDescriptor, error) {
	const name = "registered.proto"
	sources := map[string]string{name: text}
	for path, imported := range imports {
		sources[path] = imported
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)})}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// protobufCanRead returns what keeps a reader from reading what a writer wrote:
// messages are told apart by name, fields by number.
func protobufCanRead(reader, writer protoreflect.FileDescriptor) (messages []string) {
	messagesCanRead(reader.Messages(), writer.Messages(), &messages)
	return messages
}

func messagesCanRead(reader, writer protoreflect.MessageDescriptors, faults *[]string) {
	for i := range writer.Len() {
		w := writer.Get(i)
		if r := reader.ByName(w.Name()); r != nil {
			messageCanRead(r, w, faults)
		} else if !w.IsMapEntry() {
			*faults = append(*faults, fmt.Sprintf("MESSAGE_REMOVED: message %s", w.FullName()))
		}
	}
}

func messageCanRead(reader, writer protoreflect.MessageDescriptor, faults *[]string) {
	fault := func(kind string, f protoreflect.FieldDescriptor) {
		*faults = append(*faults, fmt.Sprintf("%s: field %d (%s) of message %s", kind, f.Number(), f.Name(), writer.FullName()))
	}
	for i := range writer.Fields().Len() {
		w := writer.Fields().Get(i)
		r := reader.Fields().ByNumber(w.Number())
		switch {
		case r == nil && w.Cardinality() == protoreflect.Required:
			fault("REQUIRED_FIELD_REMOVED", w)
		case r == nil && w.ContainingOneof() != nil && !w.ContainingOneof().IsSynthetic():
			fault("ONEOF_FIELD_REMOVED", w)
		case r == nil:
		case wire(r.Kind()) != wire(w.Kind()):
			fault("FIELD_SCALAR_KIND_CHANGED", w)
		case r.IsMap() != w.IsMap():
			fault("FIELD_KIND_CHANGED", w)
		case r.IsMap():
			messageCanRead(r.Message(), w.Message(), faults)
		case r.Message() != nil && r.Message().Name() != w.Message().Name():
			fault("FIELD_NAMED_TYPE_CHANGED", w)
		case r.IsList() != w.IsList() && wire(w.Kind()) != "length":
			fault("FIELD_NUMERIC_LABEL_CHANGED", w)
		}
	}
	for i := range reader.Fields().Len() {
		if r := reader.Fields().Get(i); r.Cardinality() == protoreflect.Required && writer.Fields().ByNumber(r.Number()) == nil {
			fault("REQUIRED_FIELD_ADDED", r)
		}
	}
	messagesCanRead(reader.Messages(), writer.Messages(), faults)
}

// wire groups the kinds of fields that can be read as each other.
func wire(k protoreflect.Kind) string {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.BoolKind, protoreflect.EnumKind:
		return "varint"
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return "zigzag"
	case protoreflect.StringKind, protoreflect.BytesKind:
		return "length"
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return "32 bits"
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "64 bits"
	}
	return k.String()
}

type judgedProtobuf struct{ protoreflect.FileDescriptor }

func (p judgedProtobuf) reads(writer judged) []string {
	w, ok := writer.(judgedProtobuf)
	if !ok {
		return []string{"another format"}
	}
	return protobufCanRead(p.FileDescriptor, w.FileDescriptor)
}
