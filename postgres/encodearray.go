package postgres

import (
	"encoding/binary"

	"github.com/sluicestream/sluice/schema"
)

// arrayEncoder writes arrays of scalars as arrays of one dimension.
func arrayEncoder(s *schema.Schema, t columnType) (encoder, bool) {
	if s.Kind() != schema.KindArray || s.Logical() != "" || !isScalar(s.Element()) {
		return encoder{}, false
	}
	item, err := newEncoder(s.Element(), *t.element)
	if err != nil {
		return encoder{}, false
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		dst, start := begin(dst)
		// Dimensions, whether there are nulls, the element's type; then the
		// length, and the first index, which is 1.
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint32(dst, t.elementOID)
		head := len(dst)
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 1)
		items, nulls := 0, false
		for {
			count, next, err := readBlock(src, pos)
			if err != nil {
				return dst, 0, err
			}
			if pos = next; count == 0 {
				break
			}
			for range count {
				at := len(dst)
				if dst, pos, err = item.encode(dst, src, pos); err != nil {
					return dst, 0, err
				}
				nulls = nulls || binary.BigEndian.Uint32(dst[at:]) == null
				items++
			}
			if err := checkSize(len(dst) - start); err != nil {
				return dst, 0, err
			}
		}
		if items == 0 {
			return end(dst[:head], start), pos, nil // no dimensions: '{}'
		}
		dst[start+7] = 1
		if nulls {
			dst[start+11] = 1
		}
		binary.BigEndian.PutUint32(dst[head:], uint32(items))
		return end(dst, start), pos, nil
	}, true}, true
}
