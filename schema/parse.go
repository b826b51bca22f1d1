package schema

import (
	"fmt"
	"slices"
	"strings"
)

// The bounds on a schema that is parsed or derived from a Go type.
const (
	maxSchemaBytes = 4 << 20
	maxNesting     = 200 // types within types
)

// The properties beside Avro's own that a schema keeps.
const (
	propName     = "sluice.name"     // a type's name, where it had to be written with another
	propZero     = "sluice.zero"     // the symbol that stands for the empty string
	propWidth    = "sluice.width"    // bits of a Go integer narrower than its Avro type
	propUnsigned = "sluice.unsigned" // such an integer has no sign
	propLength   = "sluice.length"   // length of a Go array
)

// Parse reads an Avro schema. It takes any valid one, with names, aliases,
// defaults and logical types; documentation and unknown properties are dropped.
// A schema of more than 4 MiB, with types nested more than 200 deep, or whose
// types hold more than 65,536 others in all, is an error.
func Parse(json []byte) (*Schema, error) {
	if len(json) > maxSchemaBytes {
		return nil, fmt.Errorf("avro schema: %d bytes, the most is %d", len(json), maxSchemaBytes)
	}
	t, err := readTree(json)
	if err != nil {
		return nil, fmt.Errorf("avro schema: %w", err)
	}
	p := parser{types: map[string]*Schema{}}
	s, err := p.schema(t, "", 0)
	if err == nil {
		err = p.defaults()
	}
	if err == nil && (weights{}).of(s) > maxWeight {
		err = fmt.Errorf("more than %d types within types", maxWeight)
	}
	if err != nil {
		return nil, fmt.Errorf("avro schema: %w", err)
	}
	return s, nil
}

type parser struct {
	types map[string]*Schema // by the full name they are written with
	later []pendingDefault
}

// pendingDefault is a default value that can be checked once every type is
// known.
type pendingDefault struct {
	record *Schema
	field  int
	value  *tree
}

func (p *parser) schema(t *tree, ns string, depth int) (*Schema, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("types nested more than %d deep", maxNesting)
	}
	switch t.kind {
	case '"':
		return p.named(t.text, ns)
	case '[':
		return p.union(t, ns, depth)
	case '{':
		return p.object(t, ns, depth)
	}
	return nil, fmt.Errorf("a type is a string, an array or an object, not %s", t.kind)
}

// named finds a primitive, or a type that stands before: in the namespace
// around it first, then without one.
func (p *parser) named(name, ns string) (*Schema, error) {
	if k := slices.Index(kindNames[:KindString+1], name); k >= 0 {
		return primitives[k], nil
	}
	if !strings.Contains(name, ".") && ns != "" {
		if s := p.types[ns+"."+name]; s != nil {
			return s, nil
		}
	}
	if s := p.types[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("unknown type %q", name)
}

func (p *parser) union(t *tree, ns string, depth int) (*Schema, error) {
	u := &Schema{kind: KindUnion}
	seen := map[string]bool{}
	for _, item := range t.items {
		b, err := p.schema(item, ns, depth+1)
		if err != nil {
			return nil, err
		}
		name := b.kind.String()
		if b.name != "" {
			name = b.name
		}
		if b.kind == KindUnion || seen[name] {
			return nil, fmt.Errorf("a union holds a union, or %s twice", name)
		}
		seen[name] = true
		u.branches = append(u.branches, b)
	}
	if len(u.branches) == 0 {
		return nil, fmt.Errorf("a union has no branches")
	}
	return u, nil
}

func (p *parser) object(t *tree, ns string, depth int) (s *Schema, err error) {
	kind := t.get("type")
	if kind == nil {
		return nil, fmt.Errorf("an object has no \"type\"")
	}
	if kind.kind != '"' {
		return p.schema(kind, ns, depth+1)
	}
	switch kind.text {
	case "record", "error":
		return p.record(t, ns, depth)
	case "enum":
		return p.enum(t, ns)
	case "fixed":
		s, err = p.fixed(t, ns)
	case "array":
		s, err = p.container(KindArray, t, "items", ns, depth)
	case "map":
		s, err = p.container(KindMap, t, "values", ns, depth)
	default:
		s, err = p.named(kind.text, ns)
		if err == nil && s.kind > KindString {
			return s, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return withProperties(s, t), nil
}

// withProperties returns s with the logical type and the integer's width that
// t gives it; what doesn't fit the type is left out, as Avro has it.
func withProperties(s *Schema, t *tree) *Schema {
	logical, bits := t.str("logicalType"), t.integer(propWidth, 0)
	if !logicalFits(s, logical, t) {
		logical = ""
	}
	unsigned := t.get(propUnsigned) != nil && t.get(propUnsigned).kind == 't'
	fits := bits == 8 || bits == 16 || bits == 32 && unsigned
	if s.kind != KindInt && s.kind != KindLong || (bits == 32) != (s.kind == KindLong) || !fits || logical != "" {
		bits, unsigned = 0, false
	}
	if logical == "" && bits == 0 {
		return s
	}
	if s.kind <= KindString {
		s = &Schema{kind: s.kind}
	}
	s.logical, s.bits, s.unsigned = logical, int8(bits), unsigned
	if logical == LogicalDecimal {
		s.precision, s.scale = t.integer("precision", 0), t.integer("scale", 0)
	}
	return s
}

func logicalFits(s *Schema, logical string, t *tree) bool {
	switch logical {
	case LogicalDecimal:
		precision := t.integer("precision", 0)
		return validDecimal(precision, t.integer("scale", 0)) && (s.kind == KindBytes || s.kind == KindFixed && fixedHolds(s.size, precision))
	case LogicalTimestamp, LogicalDuration, logicalMillis, logicalNanos, logicalLocalMillis, logicalLocalMicros, logicalLocalNanos, logicalTimeMicros:
		return s.kind == KindLong
	case logicalDate, logicalTimeMillis:
		return s.kind == KindInt
	case logicalUUID:
		return s.kind == KindString || s.kind == KindFixed && s.size == uuidSize
	case LogicalUint64:
		return s.kind == KindFixed && s.size == 8
	case LogicalMap:
		return s.kind == KindArray && s.length == 0 && s.element.isEntry()
	}
	return true
}

// define reads the names of a type and enters it, so that what stands in it
// and behind it can refer to it.
func (p *parser) define(s *Schema, t *tree, ns string) (inner string, err error) {
	full := t.str("name")
	if own := t.get("namespace"); own != nil && own.kind == '"' {
		ns = own.text
	}
	if !strings.Contains(full, ".") && ns != "" {
		full = ns + "." + full
	}
	if err := CheckName(full); err != nil {
		return "", fmt.Errorf("%s: %w", s.kind, err)
	}
	if slices.Contains(kindNames[:KindString+1], full) {
		return "", fmt.Errorf("a type is named %s, as one of Avro's own", full)
	}
	if p.types[full] != nil {
		return "", fmt.Errorf("%s is defined twice", full)
	}
	p.types[full] = s
	s.name = full
	if given := t.str(propName); given != "" && CheckName(given) == nil {
		s.name = given
	}
	s.aliases, err = t.strings("aliases")
	for i, a := range s.aliases {
		if err := CheckName(a); err != nil {
			return "", fmt.Errorf("%s: alias: %w", full, err)
		}
		if !strings.Contains(a, ".") && namespace(full) != "" {
			s.aliases[i] = namespace(full) + "." + a
		}
	}
	return namespace(full), err
}

func (p *parser) record(t *tree, ns string, depth int) (*Schema, error) {
	s := &Schema{kind: KindRecord}
	ns, err := p.define(s, t, ns)
	if err != nil {
		return nil, err
	}
	fields := t.get("fields")
	if fields == nil || fields.kind != '[' {
		return nil, fmt.Errorf("record %s has no array of fields", s.name)
	}
	seen := map[string]bool{}
	for i, ft := range fields.items {
		f, err := p.field(ft, ns, depth)
		if err != nil {
			return nil, fmt.Errorf("record %s: field %d: %w", s.name, i, err)
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("record %s: two fields are named %s", s.name, f.Name)
		}
		seen[f.Name] = true
		s.fields = append(s.fields, f)
		if def := ft.get("default"); def != nil {
			p.later = append(p.later, pendingDefault{s, i, def})
		}
	}
	return s, nil
}

func (p *parser) field(t *tree, ns string, depth int) (f Field, err error) {
	if t.kind != '{' || t.get("type") == nil {
		return f, fmt.Errorf("not an object with a \"type\"")
	}
	f.Name = t.str("name")
	if err := checkSimpleName(f.Name); err != nil {
		return f, err
	}
	if f.Aliases, err = t.strings("aliases"); err != nil {
		return f, err
	}
	for _, a := range f.Aliases {
		if err := checkSimpleName(a); err != nil {
			return f, fmt.Errorf("alias: %w", err)
		}
	}
	switch t.str("order") {
	case "descending":
		f.order = descending
	case "ignore":
		f.order = ignored
	}
	f.Type, err = p.schema(t.get("type"), ns, depth+1)
	return f, err
}

func (p *parser) enum(t *tree, ns string) (*Schema, error) {
	s := &Schema{kind: KindEnum}
	_, err := p.define(s, t, ns)
	if err != nil {
		return nil, err
	}
	if s.symbols, err = t.strings("symbols"); err != nil {
		return nil, fmt.Errorf("enum %s: %w", s.name, err)
	}
	if zero := t.str(propZero); zero == zeroSymbol {
		for i, symbol := range s.symbols {
			if symbol == zero {
				s.symbols[i] = ""
			}
		}
	}
	if err := checkSymbols(s.symbols); err != nil {
		return nil, fmt.Errorf("enum %s: %w", s.name, err)
	}
	if def := t.get("default"); def != nil {
		i := slices.IndexFunc(s.symbols, func(symbol string) bool { return writtenSymbol(symbol) == def.text })
		if def.kind != '"' || i < 0 {
			return nil, fmt.Errorf("enum %s: its default is none of the symbols", s.name)
		}
		s.fallback = i + 1
	}
	return s, nil
}

func (p *parser) fixed(t *tree, ns string) (*Schema, error) {
	s := &Schema{kind: KindFixed, size: t.integer("size", -1)}
	if _, err := p.define(s, t, ns); err != nil {
		return nil, err
	}
	if s.size < 0 || s.size > maxFixed {
		return nil, fmt.Errorf("fixed %s: its size is no integer from 0 to %d", s.name, maxFixed)
	}
	return s, nil
}

func (p *parser) container(kind Kind, t *tree, of, ns string, depth int) (*Schema, error) {
	if t.get(of) == nil {
		return nil, fmt.Errorf("%s has no %q", kind, of)
	}
	element, err := p.schema(t.get(of), ns, depth+1)
	if err != nil {
		return nil, err
	}
	s := &Schema{kind: kind, element: element}
	if kind == KindArray {
		s.length = max(t.integer(propLength, -1), -1) + 1
	}
	return s, nil
}

// defaults checks the default values and brings them to their one form.
func (p *parser) defaults() error {
	for _, d := range p.later {
		f := &d.record.fields[d.field]
		text, err := appendDefault(nil, f.Type, d.value)
		if err != nil {
			return fmt.Errorf("record %s: field %s: default: %w", d.record.name, f.Name, err)
		}
		f.Default = string(text)
	}
	return nil
}
