package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/sluicestream/sluice/schema"
)

// encodeFunc appends the value at pos of an Avro encoding as COPY's binary form
// has it, with its length before it, and returns the position behind it.
type encodeFunc func(dst, src []byte, pos int) ([]byte, int, error)

// encoder writes the values of a schema to a column.
type encoder struct {
	encode encodeFunc
	// refuses tells that there are values which the column can't take: encode
	// returns a misfit then.
	refuses bool
}

// misfit says why a column can't take a value.
type misfit string

// Error implements error.
func (m misfit) Error() string { return string(m) }

func misfitf(format string, args ...any) error { return misfit(fmt.Sprintf(format, args...)) }

// newEncoder compiles what writes values of s to a column of type t. The error
// says that no such values can stand there.
func newEncoder(s *schema.Schema, t columnType) (encoder, error) {
	inner, nullable := s.NonNull()
	if inner.Kind() == schema.KindUnion || inner.Kind() == schema.KindNull {
		return encoder{}, fmt.Errorf("%s has no column's type", s.Word())
	}
	e, ok := newValueEncoder(inner, t)
	if !ok {
		return encoder{}, fmt.Errorf("%s can't be written to %s", inner.Word(), t.sql)
	}
	if nullable {
		e.encode = nullableEncoder(s, e.encode)
	}
	return e, nil
}

func nullableEncoder(s *schema.Schema, value encodeFunc) encodeFunc {
	nullBranch := slices.IndexFunc(s.Branches(), func(b *schema.Schema) bool { return b.Kind() == schema.KindNull })
	return func(dst, src []byte, pos int) ([]byte, int, error) {
		i, pos, err := readIndex(src, pos, 2)
		if err != nil {
			return dst, 0, err
		}
		if i == nullBranch {
			return appendNull(dst), pos, nil
		}
		return value(dst, src, pos)
	}
}

func newValueEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	switch t.kind {
	case jsonKind, jsonbKind:
		return jsonEncoder(s, t.kind == jsonbKind)
	case arrayKind:
		return arrayEncoder(s, t)
	}
	switch s.Logical() {
	case schema.LogicalTimestamp:
		return timestampEncoder(t)
	case schema.LogicalDuration:
		return durationEncoder(t)
	case schema.LogicalDecimal:
		return decimalEncoder(s, t)
	case schema.LogicalUint64:
		return uint64Encoder(t)
	}
	switch s.Kind() {
	case schema.KindBoolean:
		return encoder{encodeBoolean, false}, t.kind == booleanKind
	case schema.KindInt, schema.KindLong:
		return integerEncoder(s, t)
	case schema.KindFloat:
		return floatEncoder(t)
	case schema.KindDouble:
		return encoder{encodeDouble, false}, t.kind == doubleKind
	case schema.KindString:
		return stringEncoder(t)
	case schema.KindEnum:
		return enumEncoder(s, t)
	case schema.KindBytes:
		return encoder{encodeBytes, true}, t.kind == byteaKind
	case schema.KindFixed:
		return fixedEncoder(s, t)
	}
	return encoder{}, false
}

func encodeBoolean(dst, src []byte, pos int) ([]byte, int, error) {
	if pos >= len(src) {
		return dst, 0, errShort
	}
	if src[pos] > 1 {
		return dst, 0, errIndex
	}
	return append(dst, 0, 0, 0, 1, src[pos]), pos + 1, nil
}

// appendInteger appends a whole number for each kind of integer.
func appendInteger(k kind) func(dst []byte, v int64) []byte {
	switch k {
	case smallintKind:
		return func(dst []byte, v int64) []byte { return appendInt16(dst, int16(v)) }
	case integerKind:
		return func(dst []byte, v int64) []byte { return appendInt32(dst, int32(v)) }
	case bigintKind:
		return appendInt64
	}
	return appendNumericInt
}

func integerRange(k kind) (least, most int64) {
	switch k {
	case smallintKind:
		return math.MinInt16, math.MaxInt16
	case integerKind:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// powersOfTen bounds what a numeric of few digits takes.
func powerOfTen(n int) (p int64) {
	p = 1
	for range n {
		p *= 10
	}
	return p
}

func integerEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	if !isInteger(t.kind) && t.kind != numericKind {
		return encoder{}, false
	}
	own := integerFor(s)
	put := appendInteger(t.kind)
	least, most := integerRange(t.kind)
	if whole := t.precision - t.scale; t.kind == numericKind && t.precision > 0 && whole < integerDigits(bigintKind) {
		most = powerOfTen(whole) - 1
		least = -most
	}
	fits := t.holds(plain(own))
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		v, pos, err := readLong(src, pos)
		if err != nil {
			return dst, 0, err
		}
		if v < least || v > most {
			return dst, 0, misfitf("%d is out of range for %s", v, t.sql)
		}
		return put(dst, v), pos, nil
	}, !fits}, true
}

func uint64Encoder(t columnType) (encoder, bool) {
	wide := t.kind == numericKind && (t.precision == 0 || t.precision-t.scale >= most64)
	if !wide && t.kind != bigintKind {
		return encoder{}, false
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		raw, pos, err := readFixed(src, pos, 8)
		if err != nil {
			return dst, 0, err
		}
		v := binary.BigEndian.Uint64(raw)
		switch {
		case wide:
			return appendNumericUint(dst, v), pos, nil
		case v > math.MaxInt64:
			return dst, 0, misfitf("%d is out of range for %s", v, t.sql)
		}
		return appendInt64(dst, int64(v)), pos, nil
	}, !wide}, true
}

func decimalEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	scale := s.Scale()
	if !t.holds(numeric(s.Precision(), scale)) {
		return encoder{}, false
	}
	read := readBytes
	if s.Kind() == schema.KindFixed {
		read = func(src []byte, pos int) ([]byte, int, error) { return readFixed(src, pos, s.Size()) }
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		raw, pos, err := read(src, pos)
		if err != nil {
			return dst, 0, err
		}
		return appendDecimal(dst, raw, scale), pos, nil
	}, false}, true
}

func floatEncoder(t columnType) (encoder, bool) {
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		raw, pos, err := readFixed(src, pos, 4)
		if err != nil {
			return dst, 0, err
		}
		bits := binary.LittleEndian.Uint32(raw)
		if t.kind == doubleKind {
			return appendInt64(dst, int64(math.Float64bits(float64(math.Float32frombits(bits))))), pos, nil
		}
		return appendInt32(dst, int32(bits)), pos, nil
	}, false}, t.kind == realKind || t.kind == doubleKind
}

func encodeDouble(dst, src []byte, pos int) ([]byte, int, error) {
	raw, pos, err := readFixed(src, pos, 8)
	if err != nil {
		return dst, 0, err
	}
	return appendInt64(dst, int64(binary.LittleEndian.Uint64(raw))), pos, nil
}

// maxValue bounds a value: PostgreSQL takes less than 1 GiB for a whole row on
// its way, and 256 MiB for a text in jsonb.
const maxValue = 255 << 20

func checkSize(n int) error {
	if n > maxValue {
		return misfitf("a value of %d bytes is larger than the %d that are sent", n, maxValue)
	}
	return nil
}

func encodeBytes(dst, src []byte, pos int) ([]byte, int, error) {
	raw, pos, err := readBytes(src, pos)
	if err != nil {
		return dst, 0, err
	}
	return appendValue(dst, raw), pos, checkSize(len(raw))
}

// checkText tells whether PostgreSQL takes a text.
func checkText(text []byte, length int) error {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return misfitf("a text of PostgreSQL can't hold the character NUL, which stands at byte %d", i)
	}
	if !utf8.Valid(text) {
		return misfit("a text of PostgreSQL has to be UTF-8, and this one isn't; a field of type []byte takes any bytes")
	}
	if length > 0 && len(text) > length && utf8.RuneCount(text) > length {
		return misfitf("a text of %d characters is longer than the column's %d", utf8.RuneCount(text), length)
	}
	return checkSize(len(text))
}

func stringEncoder(t columnType) (encoder, bool) {
	if t.kind != textKind && t.kind != uuidKind {
		return encoder{}, false
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		text, pos, err := readBytes(src, pos)
		if err != nil {
			return dst, 0, err
		}
		if t.kind == uuidKind {
			dst, err = appendUUID(dst, text)
			return dst, pos, err
		}
		return appendValue(dst, text), pos, checkText(text, t.length)
	}, true}, true
}

// appendUUID appends a uuid in its usual form: 32 small hexadecimal digits in
// five groups. Other forms would make two texts one uuid.
func appendUUID(dst, text []byte) ([]byte, error) {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	dst, start := begin(dst)
	half, high := false, byte(0)
	if len(text) != len(form) {
		return dst, misfitf("a uuid has the form %s, found %q", form, text[:min(len(text), len(form))])
	}
	for i, c := range text {
		digit := byte(0)
		switch {
		case form[i] == '-' && c == '-':
			continue
		case c >= '0' && c <= '9':
			digit = c - '0'
		case c >= 'a' && c <= 'f':
			digit = c - 'a' + 10
		default:
			return dst, misfitf("a uuid has the form %s in small letters, found %q", form, text)
		}
		if form[i] == '-' {
			return dst, misfitf("a uuid has the form %s, found %q", form, text)
		}
		if half = !half; half {
			high = digit << 4
		} else {
			dst = append(dst, high|digit)
		}
	}
	return end(dst, start), nil
}

func enumEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	symbols := make([][]byte, len(s.Symbols()))
	for i, symbol := range s.Symbols() {
		symbols[i] = []byte(symbol)
		if t.labels != nil && !slices.Contains(t.labels, symbol) || t.length > 0 && utf8.RuneCountInString(symbol) > t.length {
			return encoder{}, false
		}
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		i, pos, err := readIndex(src, pos, len(symbols))
		if err != nil {
			return dst, 0, err
		}
		return appendValue(dst, symbols[i]), pos, nil
	}, false}, t.kind == textKind || t.kind == enumKind
}

func fixedEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	size := s.Size()
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		raw, pos, err := readFixed(src, pos, size)
		if err != nil {
			return dst, 0, err
		}
		return appendValue(dst, raw), pos, nil
	}, false}, t.kind == byteaKind || t.kind == uuidKind && size == uuidBytes
}
