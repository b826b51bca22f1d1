package schema

import (
	"fmt"
	"math/big"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"time"
)

// form is how a Go value is laid out in memory.
type form uint8

const (
	formBool    form = iota
	formInt          // signed, of node.bits
	formUint         // unsigned, of node.bits, up to 32
	formUint64       // written as fixed(8)
	formFloat32      //
	formFloat64      //
	formString       //
	formBytes        // a slice of bytes
	formFixed        // an array of bytes
	formSlice        // any other slice
	formArray        // any other array
	formMap          // a map with strings as keys
	formEntries      // any other map
	formPointer      //
	formStruct       //
	formTime         // time.Time
	formDecimal      // big.Rat, or a pointer to one
	formEnum         // a string with Symbols
)

// node ties a Go type to its schema: what the codecs are compiled from.
type node struct {
	form      form
	typ       reflect.Type
	schema    *Schema
	path      string // in errors
	bits      int
	fields    []nodeField // of a struct, those of embedded structs included
	element   *node       // of a slice, an array, a map or a pointer
	key       *node       // of formEntries
	recursive bool        // a struct that stands in itself
}

type nodeField struct {
	offset uintptr
	node   *node
	def    []byte // what default= says, encoded; nil: the zero value
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	instantType  = reflect.TypeFor[Instant]()
	ratType      = reflect.TypeFor[big.Rat]()
	ratPointer   = reflect.TypeFor[*big.Rat]()
	enumType     = reflect.TypeFor[interface{ Symbols() []string }]()
)

// fallbackEnum is an enum that has a symbol for those that it doesn't know.
type fallbackEnum interface{ DefaultSymbol() string }

// maxNodes bounds a type's parts: types that hold each other twice over double
// with every level.
const maxNodes = 10_000

// builder derives nodes from Go types.
type builder struct {
	name   string
	key    bool // only what can be a key
	faults []Fault
	nodes  int
	open   map[reflect.Type]*node // the structs that are being built
	bare   []reflect.Type         // the other types that are, since the last struct
}

// place is where a type stands.
type place struct {
	path  string // "Tags[].Name"
	name  string // of a named Avro type there: "spend.Tags.Name"
	depth int
}

func (p place) under(path, name string) place {
	p.path += path
	p.name += name
	p.depth++
	return p
}

// field returns the place of a struct's field.
func (p place) field(name string) place {
	p.name += "." + name
	p.path = join(p.path, name)
	p.depth++
	return p
}

// build derives the node of a whole type.
func build(t reflect.Type, name string, key bool) (*node, error) {
	b := builder{name: name, key: key, open: map[reflect.Type]*node{}}
	if err := CheckName(name); err != nil {
		b.fault(place{}, "%v", err)
		return nil, b.err()
	}
	at := place{name: name}
	var n *node
	if t.Kind() == reflect.Pointer && !key {
		b.fault(at, "the type as a whole is a pointer: use %s", t.Elem())
	} else {
		n = b.build(t, at, &tag{})
	}
	if len(b.faults) == 0 && len(n.schema.String()) > maxSchemaBytes/2 {
		b.fault(at, "the schema takes more than %d bytes", maxSchemaBytes/2)
	}
	return n, b.err()
}

func (b *builder) err() error {
	if len(b.faults) == 0 {
		return nil
	}
	return &UnsupportedError{Name: b.name, Faults: b.faults}
}

// fault notes what is wrong and returns no node.
func (b *builder) fault(at place, format string, args ...any) *node {
	b.faults = append(b.faults, Fault{Path: at.path, Reason: fmt.Sprintf(format, args...)})
	return nil
}

// build derives the node of one type; nil after a fault.
func (b *builder) build(t reflect.Type, at place, tg *tag) *node {
	if b.nodes++; b.nodes > maxNodes || at.depth > maxNesting/2 {
		if b.nodes <= maxNodes+1 {
			b.nodes = maxNodes + 1 // said once
			return b.fault(at, "the type has more than %d parts, or is nested more than %d deep", maxNodes, maxNesting/2)
		}
		return nil
	}
	n := &node{typ: t, path: join(b.name, at.path)}
	if b.key {
		if reason := noKey(t); reason != "" {
			return b.fault(at, "%s", reason)
		}
	}
	switch {
	case t == timeType:
		return n.as(formTime, Timestamp(), 0)
	case t == instantType:
		return n.as(formInt, Timestamp(), 64)
	case t == durationType:
		return n.as(formInt, Duration(), 64)
	case t == ratType || t == ratPointer:
		return b.decimal(n, at, tg)
	case t.Kind() == reflect.String && !b.key && (t.Implements(enumType) || reflect.PointerTo(t).Implements(enumType)):
		return b.enum(n, at)
	}
	if n.scalar() {
		return n
	}
	return b.composite(n, at, tg)
}

func (n *node) as(f form, s *Schema, bits int) *node {
	n.form, n.schema, n.bits = f, s, bits
	return n
}

// scalar fills in what needs no other type.
func (n *node) scalar() bool {
	switch t := n.typ; t.Kind() {
	case reflect.Bool:
		n.as(formBool, Boolean(), 0)
	case reflect.Int8, reflect.Int16:
		n.as(formInt, &Schema{kind: KindInt, bits: int8(t.Bits())}, t.Bits())
	case reflect.Int32:
		n.as(formInt, Int(), 32)
	case reflect.Int, reflect.Int64:
		n.as(formInt, Long(), t.Bits())
	case reflect.Uint8, reflect.Uint16:
		n.as(formUint, &Schema{kind: KindInt, bits: int8(t.Bits()), unsigned: true}, t.Bits())
	case reflect.Uint32:
		n.as(formUint, &Schema{kind: KindLong, bits: 32, unsigned: true}, 32)
	case reflect.Uint, reflect.Uint64:
		n.as(formUint64, Uint64(), t.Bits())
	case reflect.Float32:
		n.as(formFloat32, Float(), 32)
	case reflect.Float64:
		n.as(formFloat64, Double(), 64)
	case reflect.String:
		n.as(formString, String(), 0)
	default:
		return false
	}
	return true
}

// composite derives a type that holds others.
func (b *builder) composite(n *node, at place, tg *tag) *node {
	t := n.typ
	if outer := b.open[t]; outer != nil {
		outer.recursive = true
		return outer
	}
	if slices.Contains(b.bare, t) {
		return b.fault(at, "%s holds itself without a struct between, which Avro has no form for", t)
	}
	defer func(bare []reflect.Type) { b.bare = bare }(b.bare)
	if t.Kind() == reflect.Struct {
		b.open[t], b.bare = n, nil
		defer delete(b.open, t)
	} else {
		b.bare = append(b.bare[:len(b.bare):len(b.bare)], t)
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return n.as(formBytes, Bytes(), 0)
		}
		return b.sequence(n, formSlice, at, tg)
	case reflect.Array:
		if t.Len() > maxArray {
			return b.fault(at, "an array of %d items, the most is %d: use a slice", t.Len(), maxArray)
		}
		if t.Elem().Kind() == reflect.Uint8 {
			return n.as(formFixed, &Schema{kind: KindFixed, name: at.name, size: t.Len()}, 0)
		}
		return b.sequence(n, formArray, at, tg)
	case reflect.Map:
		return b.mapping(n, at, tg)
	case reflect.Pointer:
		return b.pointer(n, at, tg)
	case reflect.Struct:
		n.as(formStruct, &Schema{kind: KindRecord, name: at.name}, 0)
		b.structFields(n, t, 0, at)
		return n
	}
	return b.fault(at, "%s", noForm(t))
}

// maxArray bounds Go arrays: their zero value stands in the schema.
const maxArray = 1 << 16

func (b *builder) sequence(n *node, f form, at place, tg *tag) *node {
	n.form = f
	n.element = b.build(n.typ.Elem(), at.under("[]", ""), tg)
	if n.element == nil {
		return nil
	}
	n.schema = Array(n.element.schema)
	if f == formArray {
		n.schema.length = n.typ.Len() + 1
	}
	return n
}

func (b *builder) mapping(n *node, at place, tg *tag) *node {
	if n.typ.Key().Kind() == reflect.String {
		n.form = formMap
		if n.element = b.build(n.typ.Elem(), at.under("{}", ""), tg); n.element == nil {
			return nil
		}
		n.schema = Map(n.element.schema)
		return n
	}
	n.form = formEntries
	keys := *b
	keys.key = true
	n.key = keys.build(n.typ.Key(), at.under("{key}", ".key"), &tag{})
	b.faults, b.nodes = keys.faults, keys.nodes
	n.element = b.build(n.typ.Elem(), at.under("{}", ".value"), tg)
	if n.key == nil || n.element == nil {
		return nil
	}
	n.schema = Array(Record(at.name, Field{Name: "key", Type: n.key.schema}, Field{Name: "value", Type: n.element.schema}))
	n.schema.logical = LogicalMap
	return n
}

func (b *builder) pointer(n *node, at place, tg *tag) *node {
	n.form = formPointer
	if n.typ.Elem().Kind() == reflect.Pointer {
		return b.fault(at, "%s is a pointer to a pointer: null can't tell which of them is nil", n.typ)
	}
	if n.element = b.build(n.typ.Elem(), at.under("", ""), tg); n.element == nil {
		return nil
	}
	n.schema = Nullable(n.element.schema)
	return n
}

func (b *builder) decimal(n *node, at place, tg *tag) *node {
	if !tg.decimal {
		return b.fault(at, "big.Rat needs a tag such as `avro:\",precision=12,scale=2\"`")
	}
	tg.decimalUsed = true
	s := Decimal(tg.precision, tg.scale)
	if n.typ == ratPointer {
		s = Nullable(s)
	}
	return n.as(formDecimal, s, 0)
}

func (b *builder) enum(n *node, at place) *node {
	v := reflect.New(n.typ)
	var symbols []string
	if e, ok := v.Interface().(interface{ Symbols() []string }); ok {
		symbols = e.Symbols()
	}
	if err := checkSymbols(symbols); err != nil {
		return b.fault(at, "the Symbols of %s: %v", n.typ, err)
	}
	s := &Schema{kind: KindEnum, name: at.name, symbols: append([]string(nil), symbols...)}
	if e, ok := v.Interface().(fallbackEnum); ok {
		if s.fallback = slices.Index(symbols, e.DefaultSymbol()) + 1; s.fallback == 0 {
			return b.fault(at, "the DefaultSymbol of %s, %q, is none of its Symbols", n.typ, e.DefaultSymbol())
		}
	}
	return n.as(formEnum, s, 0)
}

// structFields adds the fields of a struct that stands at an offset of n.
func (b *builder) structFields(n *node, t reflect.Type, base uintptr, at place) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue // padding holds no data
		}
		b.structField(n, f, base+f.Offset, at)
	}
}

func (b *builder) structField(n *node, f reflect.StructField, offset uintptr, at place) {
	here := at.field(f.Name)
	tg, err := parseTag(f.Tag.Get("avro"))
	if err != nil {
		b.fault(here, "%v", err)
		return
	}
	switch {
	case tg.skip && b.key:
		b.fault(here, "a key can't leave out a field: keys that differ in it would become one")
		return
	case tg.skip:
		return
	case f.Anonymous && tg.name == "" && flattens(f.Type):
		b.structFields(n, f.Type, offset, at)
		return
	case f.Anonymous && tg.name == "" && f.Type.Kind() == reflect.Pointer && flattens(f.Type.Elem()):
		b.fault(here, "an embedded pointer: embed %s itself, or give the field a name", f.Type.Elem())
		return
	case !f.IsExported():
		b.fault(here, "unexported: export it, or tag it `avro:\"-\"` if it need not be kept")
		return
	}
	if tg.name == "" {
		tg.name = f.Name
	}
	b.namedField(n, f.Type, offset, at.field(tg.name), tg)
}

// flattens tells whether an embedded type's fields count as those of the struct
// around it.
func flattens(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType && t != ratType
}

func (b *builder) namedField(n *node, t reflect.Type, offset uintptr, here place, tg *tag) {
	if err := checkSimpleName(tg.name); err != nil {
		b.fault(here, "%v; a tag such as `avro:\"name\"` gives it another", err)
		return
	}
	for _, f := range n.schema.fields {
		if f.Name == tg.name {
			b.fault(here, "two fields are named %s: a tag such as `avro:\"name\"` gives one another", tg.name)
			return
		}
	}
	fn := b.build(t, here, tg)
	if fn == nil {
		// The name is taken all the same, so that every fault is found.
		n.schema.fields = append(n.schema.fields, Field{Name: tg.name, Type: Null()})
		return
	}
	if tg.decimal && !tg.decimalUsed {
		b.fault(here, "a precision or a scale, but no big.Rat")
	}
	f := Field{Name: tg.name, Type: fn.schema, Aliases: tg.aliases}
	nf := nodeField{offset: offset, node: fn}
	if tg.hasDefault {
		var err error
		if nf.def, f.Default, err = fn.parseDefault(tg.def); err != nil {
			b.fault(here, "default=%s: %v", tg.def, err)
		}
	} else {
		f.Default, f.implied = fn.zeroJSON(), true
	}
	n.schema.fields = append(n.schema.fields, f)
	n.fields = append(n.fields, nf)
}

// zeroJSON returns the default of a field of n that has none of its own.
func (n *node) zeroJSON() string {
	switch n.form {
	case formBool:
		return "false"
	case formInt, formUint, formFloat32, formFloat64:
		return "0"
	case formUint64, formFixed:
		return string(appendQuoted(nil, strings.Repeat("\x00", n.schema.size)))
	case formString, formBytes:
		return `""`
	case formSlice, formEntries:
		return "[]"
	case formMap:
		return "{}"
	case formArray:
		zero := n.element.zeroJSON()
		return "[" + strings.TrimSuffix(strings.Repeat(zero+",", n.typ.Len()), ",") + "]"
	case formTime:
		return fmt.Sprint(time.Time{}.UnixMicro())
	case formEnum:
		return string(appendQuoted(nil, writtenSymbol(n.schema.symbols[n.zeroSymbol()])))
	case formDecimal:
		if n.typ == ratType {
			return string(appendQuoted(nil, "\x00"))
		}
	case formStruct:
		var out []byte
		for i, f := range n.schema.fields {
			out = append(appendQuoted(comma(out, i), f.Name), ':')
			out = append(out, f.Default...)
		}
		return "{" + string(out) + "}"
	}
	return "null"
}

// zeroSymbol returns the index of the symbol that an enum has where nothing was
// stored: the empty one if it is a symbol, else the first.
func (n *node) zeroSymbol() int {
	for i, s := range n.schema.symbols {
		if s == "" {
			return i
		}
	}
	return 0
}

// noKey says why a type is no key, or "".
func noKey(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "a floating-point number is no key: NaN isn't equal to itself, and -0 is equal to 0"
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("%s is no key: it is equal only to itself, not to what it points to", t)
	case reflect.Interface:
		return fmt.Sprintf("%s is no key: an interface's type isn't known beforehand", t)
	case reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			return fmt.Sprintf("%s is no key: of the arrays, those of bytes are", t)
		}
	}
	switch t {
	case timeType:
		return "time.Time is no key: equal moments can differ in their zone; use Instant"
	case ratType:
		return "big.Rat is no key"
	}
	return ""
}

// noForm says why a type has no schema.
func noForm(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Interface:
		return fmt.Sprintf("%s is an interface: name a type", t)
	case reflect.Complex64, reflect.Complex128, reflect.Uintptr:
		return fmt.Sprintf("%s has no form in Avro", t)
	}
	return fmt.Sprintf("%s can't be stored", t)
}

// widthIndex counts the widths of integers: 8, 16, 32 and 64 bits are 0 to 3.
func widthIndex(n int) int { return bits.TrailingZeros(uint(n)) - 3 }
