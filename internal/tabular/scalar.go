package tabular

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/twos"
	"github.com/sluicestream/sluice/schema"
)

// Logical types of Avro to which package schema gives no meaning.
const (
	logicalDate   = "date"
	logicalMillis = "timestamp-millis"
	logicalNanos  = "timestamp-nanos"
	logicalUUID   = "uuid"
)

// scalar tells whether a schema's values hold no others.
func scalar(s *schema.Schema) bool {
	switch s.Kind() {
	case schema.KindRecord, schema.KindArray, schema.KindMap, schema.KindUnion:
		return false
	}
	return true
}

// appendScalar appends the encoding of a value that is written as schema.JSON and
// schema.Text write it, without quotes.
func appendScalar(dst []byte, s *schema.Schema, text string) ([]byte, error) {
	wrong := func() ([]byte, error) {
		return dst, &misfit{"", s.Word(), shown([]byte(text))}
	}
	switch s.Logical() {
	case schema.LogicalTimestamp, logicalMillis, logicalNanos:
		at, ok := parseMoment(text, s.Logical())
		if !ok {
			return dst, &misfit{"", s.Word() + " such as 2026-01-31T12:00:00Z", shown([]byte(text))}
		}
		return binary.AppendVarint(dst, at), nil
	case logicalDate:
		day, err := time.Parse(time.DateOnly, text)
		if s.Kind() != schema.KindInt {
			break
		}
		if err != nil {
			return dst, &misfit{"", "date such as 2026-01-31", shown([]byte(text))}
		}
		return binary.AppendVarint(dst, day.Unix()/secondsPerDay), nil
	case schema.LogicalDuration:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return binary.AppendVarint(dst, n), nil
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return dst, &misfit{"", "duration such as 1h30m", shown([]byte(text))}
		}
		return binary.AppendVarint(dst, int64(d)), nil
	case schema.LogicalDecimal:
		raw, err := parseDecimal(s, text)
		if err != nil {
			return dst, err
		}
		return appendSized(dst, s, raw)
	case logicalUUID:
		if s.Kind() == schema.KindFixed && len(text) == uuidText {
			raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
			if err != nil || len(raw) != s.Size() {
				return wrong()
			}
			return append(dst, raw...), nil
		}
	}
	switch s.Kind() {
	case schema.KindNull:
		if text != "" && text != "null" {
			return wrong()
		}
		return dst, nil
	case schema.KindBoolean:
		switch {
		case strings.EqualFold(text, "true"):
			return append(dst, 1), nil
		case strings.EqualFold(text, "false"):
			return append(dst, 0), nil
		}
		return wrong()
	case schema.KindInt, schema.KindLong:
		bits, signed := s.Integer()
		if bits == 0 { // a logical type without a meaning here
			if bits, signed = 64, true; s.Kind() == schema.KindInt {
				bits = 32
			}
		}
		n, err := parseInteger(text, bits, signed)
		if err != nil {
			return wrong()
		}
		return binary.AppendVarint(dst, n), nil
	case schema.KindFloat:
		f, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return wrong()
		}
		return appendFloat32(dst, float32(f)), nil
	case schema.KindDouble:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return wrong()
		}
		return appendFloat64(dst, f), nil
	case schema.KindString:
		return appendText(dst, text), nil
	case schema.KindEnum:
		i := slices.Index(s.Symbols(), text)
		if i < 0 {
			return dst, &misfit{"", fmt.Sprintf("one of %.*q", mostSymbols, s.Symbols()), shown([]byte(text))}
		}
		return binary.AppendVarint(dst, int64(i)), nil
	case schema.KindFixed:
		if s.Logical() == schema.LogicalUint64 {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return wrong()
			}
			return binary.BigEndian.AppendUint64(dst, n), nil
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != s.Size() {
			return dst, &misfit{"", fmt.Sprintf("%d bytes in base64", s.Size()), shown([]byte(text))}
		}
		return append(dst, raw...), nil
	case schema.KindBytes:
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return dst, &misfit{"", "bytes in base64", shown([]byte(text))}
		}
		return appendText(dst, raw), nil
	}
	return wrong()
}

const (
	secondsPerDay = 24 * 60 * 60
	uuidText      = 36 // characters
	mostSymbols   = 60 // characters of each symbol that an error lists
)

func appendText[B string | []byte](dst []byte, text B) []byte {
	return append(binary.AppendVarint(dst, int64(len(text))), text...)
}

func appendFloat32(dst []byte, f float32) []byte {
	if f != f {
		f = float32(math.NaN())
	}
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
}

func appendFloat64(dst []byte, f float64) []byte {
	if f != f {
		f = math.NaN()
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// parseInteger reads a whole number of a width; one without a sign fits an int64
// too, since none is wider than 32 bits here.
func parseInteger(text string, bits int, signed bool) (int64, error) {
	if signed {
		return strconv.ParseInt(text, 10, bits)
	}
	n, err := strconv.ParseUint(text, 10, bits)
	return int64(n), err
}

// parseMoment reads a time in RFC 3339's form, or with a space instead of the T,
// or as the number that is stored.
func parseMoment(text, logical string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	const date = len(time.DateOnly)
	if len(text) > date && text[date] == ' ' {
		text = text[:date] + "T" + text[date+1:]
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	switch logical {
	case logicalMillis:
		return at.UnixMilli(), true
	case logicalNanos:
		return at.UnixNano(), true
	}
	return at.UnixMicro(), true
}

// parseDecimal reads a decimal's exact digits and returns its unscaled value in
// two's complement, in the fewest bytes.
func parseDecimal(s *schema.Schema, text string) ([]byte, error) {
	wrong := &misfit{"", s.Word(), shown([]byte(text))}
	digits, sign := strings.CutPrefix(text, "-")
	if !sign {
		digits = strings.TrimPrefix(digits, "+")
	}
	whole, part, _ := strings.Cut(digits, ".")
	part = strings.TrimRight(part, "0")
	if whole == "" || len(part) > s.Scale() || len(whole) > s.Precision()+s.Scale()+1 {
		return nil, wrong
	}
	all := whole + part + strings.Repeat("0", s.Scale()-len(part))
	if strings.Trim(all, "0123456789") != "" {
		return nil, wrong
	}
	v, ok := new(big.Int).SetString(all, 10)
	if !ok || len(strings.TrimLeft(all, "0")) > s.Precision() {
		return nil, wrong
	}
	if sign {
		v.Neg(v)
	}
	return twos.Append(nil, v), nil
}

// appendSized appends what is bytes, or a fixed that a number in two's complement
// is to fill.
func appendSized(dst []byte, s *schema.Schema, raw []byte) ([]byte, error) {
	if s.Kind() != schema.KindFixed {
		return appendText(dst, raw), nil
	}
	if len(raw) > s.Size() {
		return dst, &misfit{"", fmt.Sprintf("a number of %d bytes", s.Size()), fmt.Sprintf("one of %d", len(raw))}
	}
	fill := byte(0)
	if len(raw) > 0 && raw[0] >= 0x80 {
		fill = 0xff
	}
	for range s.Size() - len(raw) {
		dst = append(dst, fill)
	}
	return append(dst, raw...), nil
}
