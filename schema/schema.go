package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind is one of Avro's types.
type Kind uint8

// The kinds of schemas.
const (
	KindNull Kind = iota
	KindBoolean
	KindInt
	KindLong
	KindFloat
	KindDouble
	KindBytes
	KindString
	KindRecord
	KindEnum
	KindArray
	KindMap
	KindUnion
	KindFixed
)

var kindNames = [...]string{
	"null", "boolean", "int", "long", "float", "double", "bytes", "string",
	"record", "enum", "array", "map", "union", "fixed",
}

// String returns Avro's word for the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// The logical types that this package gives a meaning. Any other is kept with
// the schema and changes nothing.
const (
	// LogicalTimestamp is a long of microseconds since 1970 UTC: [time.Time] and
	// [Instant].
	LogicalTimestamp = "timestamp-micros"
	// LogicalDecimal is bytes that hold a decimal of a precision and a scale:
	// [math/big.Rat].
	LogicalDecimal = "decimal"
	// LogicalDuration is a long of nanoseconds: [time.Duration].
	LogicalDuration = "sluice.duration-nanos"
	// LogicalUint64 is a fixed(8) that holds an unsigned number, big-endian.
	LogicalUint64 = "sluice.uint64"
	// LogicalMap is an array of records {key, value}, ordered by key: a Go map
	// whose keys aren't strings.
	LogicalMap = "map"
)

// Schema is an Avro schema: an immutable tree, or a graph where a type is
// recursive. Make one with [Parse], [Of], [KeyOf] or the constructors.
type Schema struct {
	kind     Kind
	name     string // full name of a record, an enum or a fixed
	aliases  []string
	fields   []Field
	element  *Schema   // of an array's items or a map's values
	branches []*Schema // of a union
	symbols  []string  // of an enum; "" stands for Go's zero string
	fallback int       // of an enum, its default: the symbol's index + 1; else 0
	size     int       // of a fixed

	logical          string
	precision, scale int  // of a decimal
	bits             int8 // 8, 16, 32: a Go integer narrower than its Avro type; else 0
	unsigned         bool
	length           int // of an array that is a Go array: its length + 1; else 0

	once sync.Once
	text string
}

// Field is a field of a record.
type Field struct {
	// Name is the field's name.
	Name string
	// Type is the field's schema.
	Type *Schema
	// Default is the default value in Avro's JSON form; "" means none.
	Default string
	// Aliases are earlier names of the field.
	Aliases []string

	order   fieldOrder
	implied bool // Default is a Go type's zero value, which no tag gives
}

// Implied tells whether the default is the zero value of the field's Go type, rather
// than what a tag gives. That is known of a schema that was made of a Go type; of one
// that was parsed it is false.
func (f Field) Implied() bool { return f.implied }

// fieldOrder says how a field counts in a record's sort order.
type fieldOrder uint8

const (
	ascending fieldOrder = iota
	descending
	ignored
)

var primitives = func() (p [KindString + 1]*Schema) {
	for k := range p {
		p[k] = &Schema{kind: Kind(k)}
	}
	return p
}()

// Null returns the schema of no value.
func Null() *Schema { return primitives[KindNull] }

// Boolean returns the schema of a truth value.
func Boolean() *Schema { return primitives[KindBoolean] }

// Int returns the schema of a 32-bit integer.
func Int() *Schema { return primitives[KindInt] }

// Long returns the schema of a 64-bit integer.
func Long() *Schema { return primitives[KindLong] }

// Float returns the schema of a 32-bit floating-point number.
func Float() *Schema { return primitives[KindFloat] }

// Double returns the schema of a 64-bit floating-point number.
func Double() *Schema { return primitives[KindDouble] }

// Bytes returns the schema of a sequence of bytes.
func Bytes() *Schema { return primitives[KindBytes] }

// String returns the schema of a string.
func String() *Schema { return primitives[KindString] }

// Timestamp returns the schema of a moment: microseconds since 1970 UTC.
func Timestamp() *Schema { return &Schema{kind: KindLong, logical: LogicalTimestamp} }

// Duration returns the schema of a duration: nanoseconds.
func Duration() *Schema { return &Schema{kind: KindLong, logical: LogicalDuration} }

// Uint64 returns the schema of an unsigned 64-bit integer.
func Uint64() *Schema {
	return &Schema{kind: KindFixed, name: "sluice.uint64", size: 8, logical: LogicalUint64}
}

// Decimal returns the schema of a decimal of precision digits, scale of which
// stand behind the point. It panics if 0 <= scale <= precision or
// 1 <= precision does not hold.
func Decimal(precision, scale int) *Schema {
	if !validDecimal(precision, scale) {
		panic(fmt.Sprintf("schema: a decimal of precision %d and scale %d", precision, scale))
	}
	return &Schema{kind: KindBytes, logical: LogicalDecimal, precision: precision, scale: scale}
}

// maxPrecision bounds what a decimal costs to compute with and print.
const maxPrecision = 1000

func validDecimal(precision, scale int) bool {
	return precision >= 1 && precision <= maxPrecision && scale >= 0 && scale <= precision
}

// Fixed returns the schema of size bytes. It panics if the name isn't valid;
// see [CheckName].
func Fixed(name string, size int) *Schema {
	mustName(name)
	if size < 0 || size > maxFixed {
		panic(fmt.Sprintf("schema: fixed %s of %d bytes", name, size))
	}
	return &Schema{kind: KindFixed, name: name, size: size}
}

// maxFixed bounds the size of a fixed: a value of one is held in memory.
const maxFixed = 1 << 24

// Enum returns the schema of one of some symbols. It panics if the name or a
// symbol isn't valid (see [CheckName]), or if a symbol stands twice.
func Enum(name string, symbols ...string) *Schema {
	mustName(name)
	if err := checkSymbols(symbols); err != nil {
		panic(fmt.Sprintf("schema: enum %s: %v", name, err))
	}
	return &Schema{kind: KindEnum, name: name, symbols: slices.Clone(symbols)}
}

// Array returns the schema of a sequence of items.
func Array(items *Schema) *Schema { return &Schema{kind: KindArray, element: items} }

// Map returns the schema of a map from strings to values.
func Map(values *Schema) *Schema { return &Schema{kind: KindMap, element: values} }

// Nullable returns the schema of null or a value of s: ["null", s]. What is
// nullable is returned as it is.
func Nullable(s *Schema) *Schema {
	switch {
	case s.kind == KindNull:
		return s
	case s.kind != KindUnion:
		return &Schema{kind: KindUnion, branches: []*Schema{Null(), s}}
	case slices.ContainsFunc(s.branches, func(b *Schema) bool { return b.kind == KindNull }):
		return s
	default:
		return &Schema{kind: KindUnion, branches: append([]*Schema{Null()}, s.branches...)}
	}
}

// Record returns the schema of a record. It panics if the name or that of a
// field isn't valid (see [CheckName]), or if two fields have one name.
//
// Two different types of one name may stand in one tree: [Schema.String] gives
// the later one another name for the sake of other readers, and [Parse]
// restores it.
func Record(name string, fields ...Field) *Schema {
	mustName(name)
	seen := map[string]bool{}
	for _, f := range fields {
		if err := checkSimpleName(f.Name); err != nil {
			panic(fmt.Sprintf("schema: record %s: field %q: %v", name, f.Name, err))
		}
		if f.Type == nil || seen[f.Name] {
			panic(fmt.Sprintf("schema: record %s: field %s has no type, or stands twice", name, f.Name))
		}
		seen[f.Name] = true
	}
	return &Schema{kind: KindRecord, name: name, fields: slices.Clone(fields)}
}

// Kind returns which of Avro's types s is.
func (s *Schema) Kind() Kind { return s.kind }

// Name returns the full name of a record, an enum or a fixed; else "".
func (s *Schema) Name() string { return s.name }

// Fields returns the fields of a record; else nil.
func (s *Schema) Fields() []Field { return slices.Clone(s.fields) }

// Element returns the schema of an array's items or of a map's values; else nil.
func (s *Schema) Element() *Schema { return s.element }

// Branches returns the branches of a union; else nil.
func (s *Schema) Branches() []*Schema { return slices.Clone(s.branches) }

// Symbols returns the symbols of an enum; else nil. The symbol "" stands for
// Go's zero string, which is written "_".
func (s *Schema) Symbols() []string { return slices.Clone(s.symbols) }

// DefaultSymbol returns the symbol of an enum that stands for those that it
// doesn't know, and whether there is one.
func (s *Schema) DefaultSymbol() (symbol string, ok bool) {
	if s.fallback == 0 {
		return "", false
	}
	return s.symbols[s.fallback-1], true
}

// Size returns the number of bytes of a fixed; else 0.
func (s *Schema) Size() int { return s.size }

// Logical returns the logical type; "" means none.
func (s *Schema) Logical() string { return s.logical }

// Precision returns the number of digits of a decimal; else 0.
func (s *Schema) Precision() int { return s.precision }

// Scale returns how many digits of a decimal stand behind the point; else 0.
func (s *Schema) Scale() int { return s.scale }

// Integer tells how wide a Go integer is that s stands for (8, 16, 32 or 64
// bits) and whether it has a sign. bits is 0 for what isn't a plain integer.
func (s *Schema) Integer() (bits int, signed bool) {
	switch {
	case s.logical == LogicalUint64:
		return 64, false
	case s.meaning() != "":
		return 0, false
	case s.bits != 0:
		return int(s.bits), !s.unsigned
	case s.kind == KindInt:
		return 32, true
	case s.kind == KindLong:
		return 64, true
	}
	return 0, false
}

// NonNull returns what s is when it isn't null, and whether it can be null.
// For a union of several other branches it returns s itself.
func (s *Schema) NonNull() (inner *Schema, nullable bool) {
	if s.kind != KindUnion {
		return s, s.kind == KindNull
	}
	null := s.nullBranch()
	if len(s.branches) == 2 && null >= 0 {
		return s.branches[1-null], true
	}
	return s, null >= 0
}

// nullBranch returns the index of a union's null, or -1.
func (s *Schema) nullBranch() int {
	return slices.IndexFunc(s.branches, func(b *Schema) bool { return b.kind == KindNull })
}

// Equal tells whether s and o are the same schema in everything that
// [Schema.String] keeps.
func (s *Schema) Equal(o *Schema) bool {
	if s == o || s == nil || o == nil {
		return s == o
	}
	return s.String() == o.String()
}

// Word returns a few words that name the type to a person: "long", "int16",
// "nullable timestamp", "array of record", "decimal(12,2)".
func (s *Schema) Word() string { return s.word(maxWordDepth) }

// maxWordDepth bounds "array of array of ...".
const maxWordDepth = 8

func (s *Schema) word(depth int) string {
	if depth == 0 {
		return "..."
	}
	switch s.logical {
	case LogicalTimestamp:
		return "timestamp"
	case LogicalDecimal:
		if s.kind == KindFixed {
			return fmt.Sprintf("decimal(%d,%d) in fixed(%d)", s.precision, s.scale, s.size)
		}
		return fmt.Sprintf("decimal(%d,%d)", s.precision, s.scale)
	case LogicalDuration:
		return "duration"
	case LogicalUint64:
		return "uint64"
	case LogicalMap:
		key, value := s.entry()
		return "map from " + key.word(depth-1) + " to " + value.word(depth-1)
	}
	switch s.kind {
	case KindInt, KindLong:
		if s.meaning() != "" {
			return s.logical
		}
		if s.bits != 0 {
			if s.unsigned {
				return fmt.Sprintf("uint%d", s.bits)
			}
			return fmt.Sprintf("int%d", s.bits)
		}
	case KindArray:
		if s.length > 0 {
			return fmt.Sprintf("array of %d %s", s.length-1, s.element.word(depth-1))
		}
		return "array of " + s.element.word(depth-1)
	case KindMap:
		return "map of " + s.element.word(depth-1)
	case KindString:
		if s.logical == logicalUUID {
			return logicalUUID
		}
	case KindFixed:
		if s.logical == logicalUUID {
			return "uuid in fixed(16)"
		}
		return fmt.Sprintf("fixed(%d)", s.size)
	case KindUnion:
		if inner, nullable := s.NonNull(); nullable && inner != s {
			return "nullable " + inner.word(depth-1)
		}
		return s.branchWords(depth - 1)
	}
	return s.kind.String()
}

// maxWordBranches bounds "int or string or ...".
const maxWordBranches = 8

// branchWords names a union's branches.
func (s *Schema) branchWords(depth int) string {
	var words []string
	for i, b := range s.branches {
		if i == maxWordBranches {
			words = append(words, "...")
			break
		}
		words = append(words, b.word(depth))
	}
	return strings.Join(words, " or ")
}

// entry returns the key and the value of a LogicalMap's records.
func (s *Schema) entry() (key, value *Schema) {
	return s.element.fields[0].Type, s.element.fields[1].Type
}

// isEntry tells whether s is a record that a LogicalMap can be made of.
func (s *Schema) isEntry() bool {
	return s.kind == KindRecord && len(s.fields) == 2 && s.fields[0].Name == "key" && s.fields[1].Name == "value"
}
