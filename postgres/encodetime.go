package postgres

import (
	"encoding/binary"
	"time"
)

// PostgreSQL counts from the beginning of 2000, and begins in 4713 BC, with
// Julian day 0.
const (
	epochMicros = 946_684_800_000_000 // 2000-01-01 in microseconds since 1970
	leastMicros = -211_813_488_000_000_000
	dayMicros   = 24 * 60 * 60 * 1_000_000
)

// timestampEncoder writes microseconds since 1970.
func timestampEncoder(t columnType) (encoder, bool) {
	if t.kind == bigintKind {
		return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
			v, pos, err := readLong(src, pos)
			if err != nil {
				return dst, 0, err
			}
			return appendInt64(dst, v), pos, nil
		}, false}, true
	}
	if t.kind != timestamptzKind && t.kind != timestampKind && t.kind != dateKind {
		return encoder{}, false
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		v, pos, err := readLong(src, pos)
		if err != nil {
			return dst, 0, err
		}
		if v < leastMicros+epochMicros {
			return dst, 0, misfitf("the time %s is before 4713 BC, where %s begins", time.UnixMicro(v).UTC().Format(time.RFC3339), t.sql)
		}
		v -= epochMicros
		if t.kind == dateKind {
			return appendInt32(dst, int32(floorDiv(int(v), dayMicros))), pos, nil
		}
		return appendInt64(dst, v), pos, nil
	}, true}, true
}

// durationEncoder writes nanoseconds.
func durationEncoder(t columnType) (encoder, bool) {
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		v, pos, err := readLong(src, pos)
		switch {
		case err != nil:
			return dst, 0, err
		case t.kind == bigintKind:
			return appendInt64(dst, v), pos, nil
		case v%1000 != 0:
			return dst, 0, misfitf("the duration %v has parts of a microsecond, which an interval can't hold: round it, or use the tag type=bigint, which counts nanoseconds", time.Duration(v))
		}
		dst, start := begin(dst)
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
		binary.BigEndian.PutUint64(dst[start+4:], uint64(v/1000))
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // no days, no months
		return end(dst, start), pos, nil
	}, t.kind == intervalKind}, t.kind == intervalKind || t.kind == bigintKind
}
