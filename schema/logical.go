package schema

import (
	"fmt"
	"math"
	"math/big"
	"time"
	"unsafe"
)

// Logical types that others write. They are read into Go's types, and never
// derived from one.
const (
	logicalMillis      = "timestamp-millis"
	logicalNanos       = "timestamp-nanos"
	logicalLocalMillis = "local-timestamp-millis"
	logicalLocalMicros = "local-timestamp-micros"
	logicalLocalNanos  = "local-timestamp-nanos"
	logicalDate        = "date"
	logicalTimeMillis  = "time-millis"
	logicalTimeMicros  = "time-micros"
	logicalUUID        = "uuid"
)

// meaning returns the logical type if it changes what the values mean.
func (s *Schema) meaning() string {
	switch s.logical {
	case LogicalTimestamp, LogicalDecimal, LogicalDuration, LogicalUint64, LogicalMap,
		logicalMillis, logicalNanos, logicalLocalMillis, logicalLocalMicros, logicalLocalNanos,
		logicalDate, logicalTimeMillis, logicalTimeMicros:
		return s.logical
	}
	return ""
}

// ratio turns a count of one unit into a count of another.
type ratio struct{ times, over int64 }

// of returns v in the other unit, and false if that is no whole number of 64
// bits.
func (r ratio) of(v int64) (int64, bool) {
	if r.over > 1 {
		return v / r.over, v%r.over == 0
	}
	if v > math.MaxInt64/r.times || v < math.MinInt64/r.times {
		return 0, false
	}
	return v * r.times, true
}

const microsPerDay = 24 * 60 * 60 * 1_000_000

// moment tells how a moment is counted: in how many microseconds.
func (s *Schema) moment() (toMicros ratio, ok bool) {
	switch s.logical {
	case LogicalTimestamp, logicalLocalMicros:
		return ratio{1, 1}, true
	case logicalMillis, logicalLocalMillis:
		return ratio{1000, 1}, true
	case logicalNanos, logicalLocalNanos:
		return ratio{1, 1000}, true
	case logicalDate:
		return ratio{microsPerDay, 1}, true
	}
	return ratio{}, false
}

// timeOfDay tells how a time since midnight is counted: in how many nanoseconds.
func (s *Schema) timeOfDay() (toNanos ratio, ok bool) {
	switch s.logical {
	case logicalTimeMillis:
		return ratio{1_000_000, 1}, true
	case logicalTimeMicros:
		return ratio{1000, 1}, true
	}
	return ratio{}, false
}

// logicalVerdict compares types of which one has a logical type that others
// write; ok is false if there is nothing of that kind to say.
func logicalVerdict(old, now *Schema) (v verdict, ok bool) {
	if old.logical == now.logical && old.logical != LogicalDecimal {
		return verdict{}, false
	}
	if r, is := old.moment(); is && now.logical == LogicalTimestamp {
		switch {
		case r.over > 1: // what has parts of a microsecond
			return verdict{change: Narrowed, resolves: true, mayFail: true}, true
		case r.times > 1: // what is too far away
			return verdict{change: Retyped, resolves: true, mayFail: true}, true
		}
		return verdict{change: Retyped, resolves: true}, true
	}
	if _, is := old.timeOfDay(); is && now.logical == LogicalDuration {
		return verdict{change: Retyped, resolves: true, mayFail: old.kind == KindLong}, true
	}
	switch {
	case old.logical == LogicalDecimal && now.logical == LogicalDecimal:
		return decimalVerdict(old, now), true
	case old.isUUID(KindFixed) && now.kind == KindString && now.meaning() == "":
		return verdict{change: Retyped, resolves: true}, true
	case old.isUUID(KindString) && now.kind == KindFixed && now.size == uuidSize && now.meaning() == "":
		return verdict{change: Retyped, resolves: true, mayFail: true}, true
	}
	return verdict{}, false
}

func (s *Schema) isUUID(k Kind) bool { return s.kind == k && s.logical == logicalUUID }

// decimalVerdict compares two decimals: what has at least as many digits before
// and behind the point holds every value.
func decimalVerdict(old, now *Schema) verdict {
	if now.scale < old.scale || now.precision-now.scale < old.precision-old.scale {
		return verdict{change: Narrowed, narrows: true}
	}
	switch {
	case now.scale != old.scale || now.precision != old.precision:
		return verdict{change: Widened, resolves: true}
	case now.kind != old.kind || now.size != old.size:
		return verdict{change: Retyped, resolves: true}
	}
	return verdict{}
}

// fixedHolds tells whether every decimal of a precision fits into size bytes.
func fixedHolds(size, precision int) bool {
	// So many bytes hold any decimal that there can be.
	return size > maxPrecision || new(big.Int).Sub(powerOfTen(precision), big.NewInt(1)).BitLen() < 8*size
}

// decodeMoment reads a moment of another unit: a [time.Time], or an [Instant].
func decodeMoment(w *Schema, n *node) decodeFunc {
	r, _ := w.moment()
	set := func(p unsafe.Pointer, micros int64) { *(*int64)(p) = micros }
	if n.form == formTime {
		if r.over > 1 {
			return decodeNanos(n) // which a time.Time holds
		}
		set = func(p unsafe.Pointer, micros int64) { *(*time.Time)(p) = time.UnixMicro(micros).UTC() }
	}
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		v, end := readLong(src, pos)
		if end < 0 {
			return 0, &ValueError{Path: n.path, Reason: varintError(end).Error()}
		}
		micros, ok := r.of(v)
		switch {
		case !ok && r.over > 1:
			return 0, valueError(n.path, "%s has parts of a microsecond, which an Instant can't hold: use time.Time", appendTime(nil, time.Unix(0, v)))
		case !ok:
			return 0, valueError(n.path, "the %s %d is out of range: 64 bits of microseconds reach some 292,000 years from 1970", w.logical, v)
		}
		set(p, micros)
		return end, nil
	}
}

func decodeNanos(n *node) decodeFunc {
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		v, end := readLong(src, pos)
		if end < 0 {
			return 0, &ValueError{Path: n.path, Reason: varintError(end).Error()}
		}
		*(*time.Time)(p) = time.Unix(0, v).UTC()
		return end, nil
	}
}

// decodeTimeOfDay reads a time since midnight as a [time.Duration].
func decodeTimeOfDay(w *Schema, n *node) decodeFunc {
	r, _ := w.timeOfDay()
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		v, end := readLong(src, pos)
		if end < 0 {
			return 0, &ValueError{Path: n.path, Reason: varintError(end).Error()}
		}
		nanos, ok := r.of(v)
		if !ok {
			return 0, valueError(n.path, "the %s %d is out of range: a Duration reaches some 292 years", w.logical, v)
		}
		*(*int64)(p) = nanos
		return end, nil
	}
}

const uuidSize = 16

// uuidText is the form of a UUID as text.
const uuidText = "00000000-0000-0000-0000-000000000000"

// decodeUUIDText reads the sixteen bytes of a UUID as its text.
func decodeUUIDText(n *node) decodeFunc {
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		if len(src)-pos < uuidSize {
			return 0, &ValueError{Path: n.path, Reason: errShort.Error()}
		}
		b := src[pos : pos+uuidSize]
		*(*string)(p) = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		return pos + uuidSize, nil
	}
}

// decodeUUIDBytes reads the text of a UUID as its sixteen bytes.
func decodeUUIDBytes(n *node) decodeFunc {
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		length, start, err := readLength(src, pos)
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		text := src[start : start+length]
		if !parseUUID((*[uuidSize]byte)(p), text) {
			return 0, valueError(n.path, "%.50q is no UUID such as %s", text, uuidText)
		}
		return start + length, nil
	}
}

func parseUUID(out *[uuidSize]byte, text []byte) bool {
	if len(text) != len(uuidText) {
		return false
	}
	digits := 0
	for i, c := range text {
		if uuidText[i] == '-' {
			if c != '-' {
				return false
			}
			continue
		}
		d := hexDigit(c)
		if d < 0 {
			return false
		}
		out[digits/2] = out[digits/2]<<4 | byte(d)
		digits++
	}
	return true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
