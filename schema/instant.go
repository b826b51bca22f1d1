package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Instant is a moment: microseconds since the beginning of 1970 UTC, negative
// before it. Unlike [time.Time] it can be a key: equal moments are equal.
type Instant int64

// InstantOf returns the microsecond that t falls in; parts of a microsecond are
// cut off towards the past. A moment that an Instant can't hold (some 292,000
// years from now) becomes the nearest that it can.
func InstantOf(t time.Time) Instant {
	micros, ok := microsOf(t)
	if !ok && t.Unix() < 0 {
		return math.MinInt64
	}
	if !ok {
		return math.MaxInt64
	}
	return Instant(micros)
}

// Time returns the moment as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// String returns the moment in RFC 3339's form, with up to six digits of a
// second's parts.
func (i Instant) String() string { return string(appendTime(nil, i.Time())) }

// microsOf returns t in microseconds since 1970, and false if it doesn't fit.
func microsOf(t time.Time) (int64, bool) {
	seconds := t.Unix()
	const most = math.MaxInt64/1_000_000 - 1
	if seconds > most || seconds < -most {
		return 0, false
	}
	return seconds*1e6 + int64(t.Nanosecond())/1e3, true
}

// appendTime appends a time in RFC 3339's form, zeros at the end cut off.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999999Z07:00")
}

// UnmarshalJSON implements [json.Unmarshaler]: a text as String has it, in any zone, which
// is what sinks write for people, or a whole number of microseconds since 1970 UTC, which
// is how an Instant is encoded otherwise. Null leaves it as it is.
func (i *Instant) UnmarshalJSON(src []byte) error {
	text := string(src)
	if text == "null" {
		return nil
	}
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		t, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(quoted, `"`))
		if err != nil {
			return fmt.Errorf("%s is no time: expected one as 2006-01-02T15:04:05.999999Z", text)
		}
		*i = InstantOf(t)
		return nil
	}
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is no time: expected a text as 2006-01-02T15:04:05.999999Z, or microseconds since 1970", text)
	}
	*i = Instant(micros)
	return nil
}
