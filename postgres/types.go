package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicestream/sluice/schema"
)

// kind is what a column's type is, as far as its binary form goes.
type kind uint8

const (
	otherKind kind = iota
	booleanKind
	smallintKind
	integerKind
	bigintKind
	realKind
	doubleKind
	numericKind
	textKind
	byteaKind
	timestamptzKind
	timestampKind
	dateKind
	intervalKind
	uuidKind
	jsonKind
	jsonbKind
	enumKind
	arrayKind
)

// columnType is the type of a column.
type columnType struct {
	kind kind
	// sql is how it is written.
	sql string
	// precision and scale are a numeric's; precision 0: any.
	precision, scale int
	// length is the most characters of a text; 0: any.
	length int
	// rounds tells that parts of a second are cut off.
	rounds bool
	// folds tells that texts that differ may be equal.
	folds bool
	// element is an array's, of elementOID in the database.
	element    *columnType
	elementOID uint32
	// labels are an enum's, where they are known.
	labels []string
}

// plainTypes are the types without parameters, by every name that PostgreSQL
// has for them; the first is the one that is shown.
var plainTypes = []struct {
	kind  kind
	names []string
}{
	{booleanKind, []string{"boolean", "bool"}},
	{smallintKind, []string{"smallint", "int2"}},
	{integerKind, []string{"integer", "int", "int4"}},
	{bigintKind, []string{"bigint", "int8"}},
	{realKind, []string{"real", "float4"}},
	{doubleKind, []string{"double precision", "float8"}},
	{numericKind, []string{"numeric", "decimal"}},
	{textKind, []string{"text", "varchar", "character varying"}},
	{byteaKind, []string{"bytea"}},
	{timestamptzKind, []string{"timestamp with time zone", "timestamptz"}},
	{timestampKind, []string{"timestamp without time zone", "timestamp"}},
	{dateKind, []string{"date"}},
	{intervalKind, []string{"interval"}},
	{uuidKind, []string{"uuid"}},
	{jsonKind, []string{"json"}},
	{jsonbKind, []string{"jsonb"}},
}

// plain is the type of a kind that needs no parameters.
func plain(k kind) columnType {
	for _, p := range plainTypes {
		if p.kind == k {
			return columnType{kind: k, sql: p.names[0]}
		}
	}
	return columnType{sql: "unknown"}
}

func numeric(precision, scale int) columnType {
	return columnType{kind: numericKind, sql: fmt.Sprintf("numeric(%d,%d)", precision, scale), precision: precision, scale: scale}
}

func varchar(length int) columnType {
	return columnType{kind: textKind, sql: fmt.Sprintf("character varying(%d)", length), length: length}
}

func arrayOf(element columnType) columnType {
	return columnType{kind: arrayKind, sql: element.sql + "[]", element: &element}
}

// The bounds that PostgreSQL sets.
const (
	maxPrecision = 1000
	maxVarchar   = 10485760
	maxName      = 63
)

// parseType reads a type as a tag names it. A name that is none of
// PostgreSQL's own is taken for an enum's.
func parseType(text string) (columnType, error) {
	text = strings.Join(strings.Fields(text), " ")
	if element, ok := strings.CutSuffix(text, "[]"); ok {
		t, err := parseType(element)
		if err == nil && t.kind == arrayKind {
			err = fmt.Errorf("type=%s: arrays of arrays are kept as jsonb", text)
		}
		return arrayOf(t), err
	}
	name, parameters, has := strings.Cut(text, "(")
	name = strings.ToLower(strings.TrimSpace(name))
	for _, p := range plainTypes {
		for _, n := range p.names {
			if n != name {
				continue
			}
			if !has {
				return plain(p.kind), nil
			}
			return withParameters(p.kind, text, parameters)
		}
	}
	if has || !isTypeName(text) {
		return columnType{}, fmt.Errorf("type=%s is no type that is known here; there are boolean, smallint, integer, bigint, real, double precision, numeric(p,s), text, varchar(n), bytea, timestamptz, timestamp, date, interval, uuid, json, jsonb, arrays of these such as integer[], and the names of enums", text)
	}
	return columnType{kind: enumKind, sql: text}, nil
}

// isTypeName tells whether a text is the name of a type, with its schema's
// before it or not.
func isTypeName(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if checkName(part) != nil {
			return false
		}
	}
	return true
}

func withParameters(k kind, text, parameters string) (columnType, error) {
	inner, closed := strings.CutSuffix(parameters, ")")
	var numbers []int
	for p := range strings.SplitSeq(inner, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		closed = closed && err == nil
		numbers = append(numbers, n)
	}
	switch {
	case !closed:
	case k == numericKind && len(numbers) == 1:
		numbers = append(numbers, 0)
		fallthrough
	case k == numericKind && len(numbers) == 2:
		if p, s := numbers[0], numbers[1]; p >= 1 && p <= maxPrecision && s >= 0 && s <= p {
			return numeric(p, s), nil
		}
	case k == textKind && len(numbers) == 1 && numbers[0] >= 1 && numbers[0] <= maxVarchar:
		return varchar(numbers[0]), nil
	}
	return columnType{}, fmt.Errorf("type=%s has parameters that don't fit: numeric(20,4) has up to %d digits, varchar(20) up to %d characters, the others none", text, maxPrecision, maxVarchar)
}

// defaultType is the type that a column gets by the schema of its values.
func defaultType(s *schema.Schema) columnType {
	s, _ = s.NonNull()
	switch s.Logical() {
	case schema.LogicalTimestamp:
		return plain(timestamptzKind)
	case schema.LogicalDuration:
		return plain(intervalKind)
	case schema.LogicalDecimal:
		return numeric(s.Precision(), s.Scale())
	case schema.LogicalUint64:
		return numeric(20, 0)
	}
	switch s.Kind() {
	case schema.KindBoolean:
		return plain(booleanKind)
	case schema.KindInt, schema.KindLong:
		return plain(integerFor(s))
	case schema.KindFloat:
		return plain(realKind)
	case schema.KindDouble:
		return plain(doubleKind)
	case schema.KindString, schema.KindEnum:
		return plain(textKind)
	case schema.KindBytes:
		return plain(byteaKind)
	case schema.KindFixed:
		if s.Size() == uuidBytes {
			return plain(uuidKind)
		}
		return plain(byteaKind)
	case schema.KindArray:
		if s.Logical() == "" && isScalar(s.Element()) {
			return arrayOf(defaultType(s.Element()))
		}
	}
	return plain(jsonbKind)
}

const uuidBytes = 16

// integerFor is the smallest type that holds every value of an integer.
func integerFor(s *schema.Schema) kind {
	bits, signed := s.Integer()
	if !signed {
		bits++ // one more for the sign
	}
	switch {
	case bits <= 16:
		return smallintKind
	case bits <= 32:
		return integerKind
	}
	return bigintKind
}

// isScalar tells whether values of s have columns of a type of their own.
func isScalar(s *schema.Schema) bool {
	s, _ = s.NonNull()
	switch s.Kind() {
	case schema.KindRecord, schema.KindArray, schema.KindMap, schema.KindUnion, schema.KindNull:
		return false
	}
	return true
}

// integerDigits are the digits that an integer type's values have.
func integerDigits(k kind) int {
	switch k {
	case smallintKind:
		return 5
	case integerKind:
		return 10
	}
	return 19
}

func isInteger(k kind) bool { return k >= smallintKind && k <= bigintKind }

// holds tells whether a column of type t takes every value of a type w that is
// wanted, without loss.
func (t columnType) holds(w columnType) bool {
	switch {
	case t.kind == numericKind && isInteger(w.kind):
		return t.precision == 0 || t.precision-t.scale >= integerDigits(w.kind)
	case t.kind == numericKind && w.kind == numericKind:
		return t.precision == 0 || w.precision != 0 && t.scale >= w.scale && t.precision-t.scale >= w.precision-w.scale
	case isInteger(t.kind) && isInteger(w.kind), t.kind == doubleKind && w.kind == realKind:
		return t.kind >= w.kind
	case t.kind == jsonKind && w.kind == jsonbKind:
		return true
	case t.kind != w.kind || t.rounds:
		return false
	case t.kind == textKind:
		return t.length == 0 || w.length != 0 && t.length >= w.length
	case t.kind == enumKind:
		return true // by its labels, which the encoder is made with
	case t.kind == arrayKind:
		return t.element.holds(*w.element)
	}
	return t.kind != otherKind
}
