package tabular

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/sluicestream/sluice/internal/twos"
	"github.com/sluicestream/sluice/schema"
)

// leaf compiles what reads a column's values as those of a schema.
func (a *assembly) leaf(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	convert, err := leafConvert(c, want, ignore)
	if err != nil {
		return nil, err
	}
	cursor, err := a.cursor(c)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, _ int) ([]byte, error) {
		v, err := a.value(cursor)
		if err != nil {
			return dst, err
		}
		a.at[cursor]++
		if v.IsNull() {
			return dst, &misfit{"", want.Word(), "null"}
		}
		return convert(dst, v)
	}, nil
}

// leafValue appends the encoding that a value becomes.
type leafValue func(dst []byte, v *parquet.Value) ([]byte, error)

// leafConvert finds how a column's values become those of a schema; the error says
// that they don't.
func leafConvert(c *parquet.Column, want *schema.Schema, ignore bool) (leafValue, error) {
	t := c.Type()
	kind := t.Kind()
	integers := kind == parquet.Int32 || kind == parquet.Int64
	byteArrays := kind == parquet.ByteArray || kind == parquet.FixedLenByteArray
	if isJSON(c) && (!scalar(want) || want.Kind() == schema.KindNull) {
		return jsonLeaf(want, ignore)
	}
	switch want.Logical() {
	case schema.LogicalTimestamp, logicalMillis, logicalNanos:
		if unit := unitOf(t); unit > 0 {
			return momentLeaf(unit, want), nil
		}
		if kind == parquet.Int96 {
			return int96Leaf(want), nil
		}
		return nil, &misfit{"", want.Word(), wordOf(c)}
	case schema.LogicalDecimal:
		if scale, ok := scaleOf(t); ok {
			return decimalLeaf(kind, scale, want), nil
		}
		return nil, &misfit{"", want.Word(), wordOf(c)}
	case logicalUUID:
		if kind == parquet.FixedLenByteArray && t.Length() == 16 && want.Kind() == schema.KindString {
			return uuidLeaf, nil
		}
	}
	if unitOf(t) > 0 || logicalOf[*format.DecimalType](t) != nil { // what means something else
		return nil, &misfit{"", want.Word(), wordOf(c)}
	}
	switch want.Kind() {
	case schema.KindBoolean:
		if kind == parquet.Boolean {
			return func(dst []byte, v *parquet.Value) ([]byte, error) {
				if v.Boolean() {
					return append(dst, 1), nil
				}
				return append(dst, 0), nil
			}, nil
		}
	case schema.KindInt, schema.KindLong:
		if integers {
			return integerColumn(t, want), nil
		}
	case schema.KindFloat, schema.KindDouble:
		if kind == parquet.Float || integers || kind == parquet.Double && want.Kind() == schema.KindDouble {
			return floatColumn(t, want), nil
		}
	case schema.KindString:
		if byteArrays {
			return func(dst []byte, v *parquet.Value) ([]byte, error) { return appendText(dst, v.ByteArray()), nil }, nil
		}
	case schema.KindBytes:
		if byteArrays {
			return func(dst []byte, v *parquet.Value) ([]byte, error) { return appendText(dst, v.ByteArray()), nil }, nil
		}
	case schema.KindEnum:
		if byteArrays {
			return enumColumn(want), nil
		}
	case schema.KindFixed:
		return fixedColumn(c, want)
	}
	return nil, &misfit{"", want.Word(), wordOf(c)}
}

func fixedColumn(c *parquet.Column, want *schema.Schema) (leafValue, error) {
	kind := c.Type().Kind()
	switch {
	case want.Logical() == schema.LogicalUint64 && (kind == parquet.Int64 || kind == parquet.Int32):
		read := integerOf(c.Type())
		unsigned := unsignedInt(c.Type())
		return func(dst []byte, v *parquet.Value) ([]byte, error) {
			n := read(v)
			if n < 0 && !unsigned {
				return dst, &misfit{"", want.Word(), fmt.Sprint(n)}
			}
			return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
		}, nil
	case kind == parquet.FixedLenByteArray && c.Type().Length() == want.Size(), kind == parquet.ByteArray:
		return func(dst []byte, v *parquet.Value) ([]byte, error) {
			raw := v.ByteArray()
			if len(raw) != want.Size() {
				return dst, &misfit{"", fmt.Sprintf("%d bytes", want.Size()), fmt.Sprint(len(raw))}
			}
			return append(dst, raw...), nil
		}, nil
	}
	return nil, &misfit{"", want.Word(), wordOf(c)}
}

// jsonLeaf reads JSON in a column.
func jsonLeaf(want *schema.Schema, ignore bool) (leafValue, error) {
	read, err := newJSONCompiler(ignore).value(want)
	t := new(tape)
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		if err := t.parse(v.ByteArray()); err != nil {
			return dst, err
		}
		return read(dst, t, 0)
	}, err
}

// integerOf reads a column's integers: one of 64 bits without a sign may come out
// negative.
func integerOf(t parquet.Type) func(v *parquet.Value) int64 {
	switch {
	case t.Kind() == parquet.Int64:
		return func(v *parquet.Value) int64 { return v.Int64() }
	case unsignedInt(t):
		return func(v *parquet.Value) int64 { return int64(v.Uint32()) }
	}
	return func(v *parquet.Value) int64 { return int64(v.Int32()) }
}

func integerColumn(t parquet.Type, want *schema.Schema) leafValue {
	read := integerOf(t)
	large := t.Kind() == parquet.Int64 && unsignedInt(t)
	bits, signed := want.Integer()
	if bits == 0 {
		if bits, signed = 64, true; want.Kind() == schema.KindInt {
			bits = 32
		}
	}
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		n := read(v)
		if large && n < 0 || !fitsInteger(n, bits, signed) {
			found := strconv.FormatInt(n, 10)
			if large {
				found = strconv.FormatUint(uint64(n), 10)
			}
			return dst, &misfit{"", want.Word(), found}
		}
		return binary.AppendVarint(dst, n), nil
	}
}

func floatColumn(t parquet.Type, want *schema.Schema) leafValue {
	var read func(v *parquet.Value) float64
	switch t.Kind() {
	case parquet.Float:
		read = func(v *parquet.Value) float64 { return float64(v.Float()) }
	case parquet.Double:
		read = func(v *parquet.Value) float64 { return v.Double() }
	default:
		whole := integerOf(t)
		large := t.Kind() == parquet.Int64 && unsignedInt(t)
		read = func(v *parquet.Value) float64 {
			if n := whole(v); large {
				return float64(uint64(n))
			} else {
				return float64(n)
			}
		}
	}
	if want.Kind() == schema.KindFloat {
		return func(dst []byte, v *parquet.Value) ([]byte, error) { return appendFloat32(dst, float32(read(v))), nil }
	}
	return func(dst []byte, v *parquet.Value) ([]byte, error) { return appendFloat64(dst, read(v)), nil }
}

func enumColumn(want *schema.Schema) leafValue {
	symbols := want.Symbols()
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		i := slices.Index(symbols, string(v.ByteArray()))
		if i < 0 {
			return dst, &misfit{"", fmt.Sprintf("one of %.*q", mostSymbols, symbols), shown(v.ByteArray())}
		}
		return binary.AppendVarint(dst, int64(i)), nil
	}
}

// momentLeaf reads times of a unit, in nanoseconds. What a unit can't hold is cut
// off towards the past.
func momentLeaf(unit int64, want *schema.Schema) leafValue {
	own := unitOfLogical(want)
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		n := v.Int64()
		switch {
		case unit > own:
			factor := unit / own
			if n > math.MaxInt64/factor || n < math.MinInt64/factor {
				return dst, &misfit{"", want.Word(), fmt.Sprint(n)}
			}
			n *= factor
		case unit < own:
			n = floorDivide(n, own/unit)
		}
		return binary.AppendVarint(dst, n), nil
	}
}

func floorDivide(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// The units of times, in nanoseconds.
const (
	nanosecond  = 1
	microsecond = 1_000
	millisecond = 1_000_000
)

func unitOfLogical(want *schema.Schema) int64 {
	switch want.Logical() {
	case logicalMillis:
		return millisecond
	case logicalNanos:
		return nanosecond
	}
	return microsecond
}

// int96Leaf reads the times that older writers, Spark's among them, put down as a
// Julian day and the nanoseconds in it.
func int96Leaf(want *schema.Schema) leafValue {
	const (
		epochDay    = 2_440_588 // of 1970-01-01
		nanosPerDay = int64(secondsPerDay) * 1_000_000_000
	)
	own := unitOfLogical(want)
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		raw := v.Int96()
		day := int64(raw[2]) - epochDay
		nanos := int64(uint64(raw[1])<<32 | uint64(raw[0]))
		perDay := nanosPerDay / own
		if nanos < 0 || nanos > 2*nanosPerDay || day > math.MaxInt64/perDay-2 || day < math.MinInt64/perDay+2 {
			return dst, &misfit{"", want.Word(), fmt.Sprintf("day %d and %d nanoseconds", raw[2], nanos)}
		}
		return binary.AppendVarint(dst, day*perDay+nanos/own), nil
	}
}

// decimalLeaf reads decimals of a scale. Digits that the schema has no room for are
// an error.
func decimalLeaf(kind parquet.Kind, scale int, want *schema.Schema) leafValue {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(want.Precision())), nil)
	shift := want.Scale() - scale
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	return func(dst []byte, v *parquet.Value) ([]byte, error) {
		var n *big.Int
		switch kind {
		case parquet.Int32:
			n = big.NewInt(int64(v.Int32()))
		case parquet.Int64:
			n = big.NewInt(v.Int64())
		default:
			if len(v.ByteArray()) > mostDecimalBytes {
				return dst, &misfit{"", want.Word(), fmt.Sprintf("a number of %d bytes", len(v.ByteArray()))}
			}
			n = twos.Int(v.ByteArray())
		}
		found := n
		if shift >= 0 {
			n = new(big.Int).Mul(n, factor)
		} else {
			rest := new(big.Int)
			n, rest = new(big.Int).QuoRem(n, factor, rest)
			if rest.Sign() != 0 {
				return dst, &misfit{"", want.Word(), fmt.Sprintf("%ve-%d", found, scale)}
			}
		}
		if n.CmpAbs(limit) >= 0 {
			return dst, &misfit{"", want.Word(), fmt.Sprintf("%ve-%d", found, scale)}
		}
		return appendSized(dst, want, twos.Append(nil, n))
	}
}

// mostDecimalBytes bounds a decimal that is read: more than a thousand digits take.
const mostDecimalBytes = 512

func uuidLeaf(dst []byte, v *parquet.Value) ([]byte, error) {
	raw := hex.EncodeToString(v.ByteArray())
	if len(raw) != 32 {
		return dst, &misfit{"", "16 bytes of a UUID", fmt.Sprint(len(raw) / 2)}
	}
	return appendText(dst, raw[:8]+"-"+raw[8:12]+"-"+raw[12:16]+"-"+raw[16:20]+"-"+raw[20:]), nil
}

// logicalOf is the logical type of a column, if it is of the kind T.
func logicalOf[T any](t parquet.Type) *T {
	if l := t.LogicalType(); l != nil {
		if v, ok := l.Value.(T); ok {
			return &v
		}
	}
	return nil
}

// converted tells whether a column has one of the older logical types.
func converted(t parquet.Type, which ...deprecated.ConvertedType) bool {
	c := t.ConvertedType()
	return c != nil && slices.Contains(which, *c)
}

// unitOf is the unit of a column of times, in nanoseconds; 0 for others.
func unitOf(t parquet.Type) int64 {
	if stamp := logicalOf[*format.TimestampType](t); stamp != nil {
		switch (*stamp).Unit.Value.(type) {
		case *format.MilliSeconds:
			return millisecond
		case *format.NanoSeconds:
			return nanosecond
		}
		return microsecond
	}
	switch {
	case t.Kind() != parquet.Int64:
	case converted(t, deprecated.TimestampMillis):
		return millisecond
	case converted(t, deprecated.TimestampMicros):
		return microsecond
	}
	return 0
}

// scaleOf is the scale of a column of decimals; a whole number has scale 0.
func scaleOf(t parquet.Type) (int, bool) {
	if d := logicalOf[*format.DecimalType](t); d != nil {
		scale := int((*d).Scale)
		return scale, scale >= 0 && scale <= 1000
	}
	integers := t.Kind() == parquet.Int32 || t.Kind() == parquet.Int64
	return 0, integers && !unsignedInt(t) && unitOf(t) == 0
}

func unsignedInt(t parquet.Type) bool {
	if i := logicalOf[*format.IntType](t); i != nil {
		return !(*i).IsSigned
	}
	return converted(t, deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64)
}

// isJSON tells whether a column holds texts that may be JSON.
func isJSON(c *parquet.Column) bool {
	return c.Leaf() && (logicalOf[*format.JsonType](c.Type()) != nil || converted(c.Type(), deprecated.Json))
}

// wordOf names a column's type to a person.
func wordOf(c *parquet.Column) string {
	if !c.Leaf() {
		return "a group"
	}
	t := c.Type()
	if l := t.LogicalType(); l != nil && l.Value != nil {
		return l.Value.String()
	}
	if text := t.Kind().String(); utf8.ValidString(text) {
		return text
	}
	return "another type"
}
