package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String returns the schema in its one canonical JSON form, which keeps names,
// aliases, symbols, defaults and logical types. [Parse] reads it back to an
// equal schema; equal schemas have equal strings.
func (s *Schema) String() string {
	s.once.Do(func() {
		f := formatter{names: map[*Schema]string{}, used: map[string]*Schema{}}
		f.schema(s, "")
		s.text = string(f.buf)
	})
	return s.text
}

type formatter struct {
	buf   []byte
	names map[*Schema]string // what a definition is written with
	used  map[string]*Schema // the reverse
	order []*Schema          // definitions, as they were met
}

func (f *formatter) add(parts ...string) {
	for _, p := range parts {
		f.buf = append(f.buf, p...)
	}
}

func (f *formatter) schema(s *Schema, ns string) {
	switch s.kind {
	case KindUnion:
		f.add("[")
		for i, b := range s.branches {
			f.comma(i)
			f.schema(b, ns)
		}
		f.add("]")
	case KindArray:
		f.add(`{"type":"array","items":`)
		f.schema(s.element, ns)
		if s.length > 0 {
			f.add(`,"`, propLength, `":`, strconv.Itoa(s.length-1))
		}
		f.properties(s)
		f.add("}")
	case KindMap:
		f.add(`{"type":"map","values":`)
		f.schema(s.element, ns)
		f.properties(s)
		f.add("}")
	case KindRecord, KindEnum, KindFixed:
		if name, first := f.name(s); first {
			f.definition(s, name, ns)
		} else {
			f.add(`"`, name, `"`)
		}
	default:
		if s.logical == "" && s.bits == 0 {
			f.add(`"`, s.kind.String(), `"`)
			return
		}
		f.add(`{"type":"`, s.kind.String(), `"`)
		f.properties(s)
		f.add("}")
	}
}

func (f *formatter) comma(i int) {
	if i > 0 {
		f.add(",")
	}
}

func (f *formatter) properties(s *Schema) {
	if s.logical != "" {
		f.add(`,"logicalType":`)
		f.buf = appendQuoted(f.buf, s.logical)
	}
	if s.logical == LogicalDecimal {
		f.add(`,"precision":`, strconv.Itoa(s.precision), `,"scale":`, strconv.Itoa(s.scale))
	}
	if s.bits != 0 {
		f.add(`,"`, propWidth, `":`, strconv.Itoa(int(s.bits)))
	}
	if s.unsigned {
		f.add(`,"`, propUnsigned, `":true`)
	}
}

// name returns what to write a type with, and whether it is to be defined here.
// Another type of the same name gets a number behind it. So does one that a
// bare name, resolved in the namespace around it, could be taken for.
func (f *formatter) name(s *Schema) (name string, first bool) {
	if name, ok := f.names[s]; ok {
		return name, false
	}
	for _, d := range f.order {
		if d.name == s.name && same(d, s) {
			f.names[s] = f.names[d]
			return f.names[d], false
		}
	}
	name = s.name
	for i := 2; f.used[name] != nil || f.mistakable(name); i++ {
		name = fmt.Sprintf("%s_%d", s.name, i)
	}
	f.names[s], f.used[name] = name, s
	f.order = append(f.order, s)
	return name, true
}

func (f *formatter) mistakable(name string) bool {
	if ns := namespace(name); ns != "" {
		return f.used[name[len(ns)+1:]] != nil
	}
	for used := range f.used {
		if strings.HasSuffix(used, "."+name) {
			return true
		}
	}
	return slices.Contains(kindNames[:], name)
}

func (f *formatter) definition(s *Schema, name, ns string) {
	f.add(`{"type":"`, s.kind.String(), `","name":"`, name, `"`)
	if ns != "" && namespace(name) == "" {
		f.add(`,"namespace":""`)
	}
	if name != s.name {
		f.add(`,"`, propName, `":"`, s.name, `"`)
	}
	if len(s.aliases) > 0 {
		f.strings("aliases", s.aliases)
	}
	switch s.kind {
	case KindEnum:
		written := slices.Clone(s.symbols)
		if i := slices.Index(written, ""); i >= 0 {
			written[i] = zeroSymbol
			f.add(`,"`, propZero, `":"`, zeroSymbol, `"`)
		}
		f.strings("symbols", written)
		if s.fallback > 0 {
			f.add(`,"default":"`, written[s.fallback-1], `"`)
		}
	case KindFixed:
		f.add(`,"size":`, strconv.Itoa(s.size))
		f.properties(s)
	case KindRecord:
		f.add(`,"fields":[`)
		for i := range s.fields {
			f.comma(i)
			f.field(&s.fields[i], namespace(name))
		}
		f.add("]")
	}
	f.add("}")
}

func (f *formatter) field(fd *Field, ns string) {
	f.add(`{"name":"`, fd.Name, `","type":`)
	f.schema(fd.Type, ns)
	if fd.Default != "" {
		f.add(`,"default":`, fd.Default)
	}
	if len(fd.Aliases) > 0 {
		f.strings("aliases", fd.Aliases)
	}
	switch fd.order {
	case descending:
		f.add(`,"order":"descending"`)
	case ignored:
		f.add(`,"order":"ignore"`)
	}
	f.add("}")
}

// strings adds an array of names, none of which needs escaping.
func (f *formatter) strings(name string, values []string) {
	f.add(`,"`, name, `":["`, strings.Join(values, `","`), `"]`)
}

// same tells whether two graphs describe the same type, names and all.
func same(a, b *Schema) bool {
	c := sameness{seen: map[[2]*Schema]bool{}}
	return c.same(a, b)
}

type sameness struct{ seen map[[2]*Schema]bool }

func (c *sameness) same(a, b *Schema) bool {
	if a == b || c.seen[[2]*Schema{a, b}] {
		return true
	}
	c.seen[[2]*Schema{a, b}] = true // a pair that is met again adds nothing
	if a.kind != b.kind || a.name != b.name || a.size != b.size || a.logical != b.logical ||
		a.precision != b.precision || a.scale != b.scale || a.bits != b.bits || a.unsigned != b.unsigned ||
		a.length != b.length || a.fallback != b.fallback || !slices.Equal(a.aliases, b.aliases) || !slices.Equal(a.symbols, b.symbols) ||
		(a.element == nil) != (b.element == nil) {
		return false
	}
	return (a.element == nil || c.same(a.element, b.element)) &&
		slices.EqualFunc(a.branches, b.branches, c.same) &&
		slices.EqualFunc(a.fields, b.fields, c.sameField)
}

func (c *sameness) sameField(a, b Field) bool {
	return a.Name == b.Name && a.Default == b.Default && a.order == b.order &&
		slices.Equal(a.Aliases, b.Aliases) && c.same(a.Type, b.Type)
}
