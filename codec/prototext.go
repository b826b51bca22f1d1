package codec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoSchema returns the schema of a file: its text, or one that is made of its
// descriptor, with the files that it imports.
func protoSchema(file protoreflect.FileDescriptor, text string) (*Schema, error) {
	return protoFiles{}.of(file, text)
}

// protoFiles are the schemas of files by their paths.
type protoFiles map[string]*Schema

func (files protoFiles) of(file protoreflect.FileDescriptor, text string) (*Schema, error) {
	s := &Schema{Format: FormatProtobuf, Text: text}
	files[file.Path()] = s
	w := protoWriter{file: file, used: map[string]protoreflect.FileDescriptor{}}
	if text == "" {
		if s.Text = w.text(); w.err != nil {
			return nil, w.err
		}
	} else {
		for i := range file.Imports().Len() {
			w.used[file.Imports().Get(i).Path()] = file.Imports().Get(i).FileDescriptor
		}
	}
	for _, path := range sortedKeys(w.used) {
		if strings.HasPrefix(path, "google/protobuf/") {
			continue // registries have them
		}
		imported := files[path]
		if imported == nil {
			var err error
			if imported, err = files.of(w.used[path], ""); err != nil {
				return nil, err
			}
		}
		s.References = append(s.References, Reference{Name: path, Schema: imported})
	}
	return s, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// protoWriter writes what of a file counts for the encoding.
type protoWriter struct {
	file protoreflect.FileDescriptor
	body strings.Builder
	used map[string]protoreflect.FileDescriptor // that its types stand in
	err  error
}

func (w *protoWriter) fail(d protoreflect.Descriptor, why string) {
	if w.err == nil {
		w.err = fmt.Errorf("%s in file %s: %s; codec.ProtoText takes the file's own text", d.FullName(), w.file.Path(), why)
	}
}

func (w *protoWriter) line(depth int, format string, args ...any) {
	w.body.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&w.body, format, args...)
	w.body.WriteByte('\n')
}

func (w *protoWriter) text() string {
	if syntax := w.file.Syntax(); syntax != protoreflect.Proto2 && syntax != protoreflect.Proto3 {
		w.fail(w.file, "no text can be made of a file of an edition")
		return ""
	}
	w.enums(0, w.file.Enums())
	w.messages(0, w.file.Messages())
	var head strings.Builder
	fmt.Fprintf(&head, "syntax = %q;\n", w.file.Syntax().String())
	if p := w.file.Package(); p != "" {
		fmt.Fprintf(&head, "package %s;\n", p)
	}
	for _, path := range sortedKeys(w.used) {
		fmt.Fprintf(&head, "import %q;\n", path)
	}
	return head.String() + w.body.String()
}

func (w *protoWriter) messages(depth int, all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		if m := all.Get(i); !m.IsMapEntry() {
			w.message(depth, m)
		}
	}
}

func (w *protoWriter) message(depth int, m protoreflect.MessageDescriptor) {
	w.line(depth, "message %s {", m.Name())
	w.reserved(depth+1, m.ReservedNames(), m.ReservedRanges().Len(), func(i int) (lo, hi int64, max bool) {
		r := m.ReservedRanges().Get(i)
		return int64(r[0]), int64(r[1]) - 1, r[1] > protoreflect.FieldNumber(maxFieldNumber)
	})
	for i := range m.ExtensionRanges().Len() {
		r := m.ExtensionRanges().Get(i)
		w.line(depth+1, "extensions %s;", protoRange(int64(r[0]), int64(r[1])-1, r[1] > maxFieldNumber))
	}
	w.enums(depth+1, m.Enums())
	w.messages(depth+1, m.Messages())
	written := map[protoreflect.FullName]bool{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		o := f.ContainingOneof()
		switch {
		case o == nil || o.IsSynthetic():
			w.field(depth+1, f)
		case !written[o.FullName()]:
			written[o.FullName()] = true
			w.line(depth+1, "oneof %s {", o.Name())
			for j := range o.Fields().Len() {
				w.field(depth+2, o.Fields().Get(j))
			}
			w.line(depth+1, "}")
		}
	}
	w.line(depth, "}")
}

const maxFieldNumber = 1<<29 - 1

func (w *protoWriter) reserved(depth int, names protoreflect.Names, ranges int, at func(i int) (lo, hi int64, max bool)) {
	for i := range ranges {
		w.line(depth, "reserved %s;", protoRange(at(i)))
	}
	for i := range names.Len() {
		w.line(depth, "reserved %q;", string(names.Get(i)))
	}
}

func protoRange(lo, hi int64, max bool) string {
	switch {
	case max:
		return fmt.Sprintf("%d to max", lo)
	case lo == hi:
		return strconv.FormatInt(lo, 10)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

func (w *protoWriter) enums(depth int, all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		e := all.Get(i)
		w.line(depth, "enum %s {", e.Name())
		numbers := map[protoreflect.EnumNumber]bool{}
		for j := range e.Values().Len() {
			numbers[e.Values().Get(j).Number()] = true
		}
		if len(numbers) < e.Values().Len() {
			w.line(depth+1, "option allow_alias = true;")
		}
		w.reserved(depth+1, e.ReservedNames(), e.ReservedRanges().Len(), func(i int) (lo, hi int64, max bool) {
			r := e.ReservedRanges().Get(i)
			return int64(r[0]), int64(r[1]), r[1] == math.MaxInt32
		})
		for j := range e.Values().Len() {
			w.line(depth+1, "%s = %d;", e.Values().Get(j).Name(), e.Values().Get(j).Number())
		}
		w.line(depth, "}")
	}
}

func (w *protoWriter) field(depth int, f protoreflect.FieldDescriptor) {
	label := ""
	switch {
	case f.IsMap():
	case f.IsList():
		label = "repeated "
	case f.Cardinality() == protoreflect.Required:
		label = "required "
	case f.HasOptionalKeyword():
		label = "optional "
	}
	kind := ""
	if f.IsMap() {
		kind = "map<" + w.typeOf(f.MapKey()) + ", " + w.typeOf(f.MapValue()) + ">"
	} else {
		kind = w.typeOf(f)
	}
	options := ""
	if o := w.fieldOptions(f); len(o) > 0 {
		options = " [" + strings.Join(o, ", ") + "]"
	}
	w.line(depth, "%s%s %s = %d%s;", label, kind, f.Name(), f.Number(), options)
}

// typeOf is the name of a field's type, and notes the file that it stands in.
func (w *protoWriter) typeOf(f protoreflect.FieldDescriptor) string {
	var named protoreflect.Descriptor
	switch f.Kind() {
	case protoreflect.GroupKind:
		w.fail(f, "no text is made of a group")
		return ""
	case protoreflect.MessageKind:
		named = f.Message()
	case protoreflect.EnumKind:
		named = f.Enum()
	default:
		return f.Kind().String()
	}
	if in := named.ParentFile(); in.Path() != w.file.Path() {
		w.used[in.Path()] = in
	}
	return "." + string(named.FullName())
}

func (w *protoWriter) fieldOptions(f protoreflect.FieldDescriptor) (options []string) {
	if f.HasDefault() {
		options = append(options, "default = "+protoDefault(f))
	}
	if f.IsList() && packable(f.Kind()) && f.IsPacked() != (w.file.Syntax() == protoreflect.Proto3) {
		options = append(options, fmt.Sprintf("packed = %t", f.IsPacked()))
	}
	if f.JSONName() != jsonNameOf(string(f.Name())) {
		options = append(options, fmt.Sprintf("json_name = %s", protoString(f.JSONName())))
	}
	return options
}

func packable(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return true
}

func protoDefault(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.EnumKind:
		return string(f.DefaultEnumValue().Name())
	case protoreflect.StringKind:
		return protoString(f.Default().String())
	case protoreflect.BytesKind:
		return protoString(string(f.Default().Bytes()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		switch v := f.Default().Float(); {
		case math.IsNaN(v):
			return "nan"
		case math.IsInf(v, 0):
			return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
		default:
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return f.Default().String()
}

// protoString quotes a text, byte for byte.
func protoString(text string) string {
	out := []byte{'"'}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c > '~':
			out = fmt.Appendf(out, "\\%03o", c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// jsonNameOf is the name that a field has in JSON unless it says otherwise.
func jsonNameOf(name string) string {
	var out []byte
	for i := range len(name) {
		c := name[i]
		if c == '_' {
			continue
		}
		if i > 0 && name[i-1] == '_' && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}
