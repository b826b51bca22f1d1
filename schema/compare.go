package schema

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// Comparer returns a function that compares two encodings in Avro's order:
// records field by field, numbers by value, strings and bytes bytewise, enums
// by the index of the symbol, unions by the branch first. A schema with a map
// in it has no order and is an error. Bytes that are no values of s are
// compared bytewise.
func Comparer(s *Schema) (func(a, b []byte) int, error) {
	c := compareCompiler{records: map[*Schema]*recordOrder{}, skips: newSkipCompiler()}
	compare, err := c.value(s)
	if err != nil {
		return nil, err
	}
	switch {
	case s.kind == KindString || s.kind == KindBytes:
		return compareStrings, nil
	case s.kind == KindInt || s.kind == KindLong:
		return compareLongs, nil
	}
	return func(a, b []byte) int {
		order, _, _, err := compare(a, b, 0, 0, 0)
		if err != nil {
			return bytes.Compare(a, b)
		}
		return order
	}, nil
}

func compareLongs(a, b []byte) int {
	va, endA := readLong(a, 0)
	vb, endB := readLong(b, 0)
	if endA < 0 || endB < 0 {
		return bytes.Compare(a, b)
	}
	return cmp.Compare(va, vb)
}

// compareFunc compares the values at pa and pb. If they are equal, endA and
// endB are the positions behind them.
type compareFunc func(a, b []byte, pa, pb, depth int) (order, endA, endB int, err error)

type compareCompiler struct {
	records map[*Schema]*recordOrder
	skips   *skipCompiler
}

type recordOrder struct{ fields []compareFunc }

func (c *compareCompiler) value(s *Schema) (compareFunc, error) {
	switch s.kind {
	case KindNull:
		return func(_, _ []byte, pa, pb, _ int) (int, int, int, error) { return 0, pa, pb, nil }, nil
	case KindBoolean:
		return fixedOrder(1, bytes.Compare), nil
	case KindFixed:
		return fixedOrder(s.size, bytes.Compare), nil
	case KindFloat:
		return fixedOrder(4, func(a, b []byte) int {
			return compareFloats(float64(math.Float32frombits(binary.LittleEndian.Uint32(a))), float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}), nil
	case KindDouble:
		return fixedOrder(8, func(a, b []byte) int {
			return compareFloats(math.Float64frombits(binary.LittleEndian.Uint64(a)), math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}), nil
	case KindInt, KindLong, KindEnum:
		return longOrder, nil
	case KindBytes, KindString:
		return stringOrder, nil
	case KindRecord:
		return c.record(s)
	case KindUnion:
		return c.union(s)
	case KindArray:
		return c.array(s)
	}
	return nil, fmt.Errorf("values of a %s have no order", s.kind)
}

func longOrder(a, b []byte, pa, pb, _ int) (order, endA, endB int, err error) {
	va, endA := readLong(a, pa)
	vb, endB := readLong(b, pb)
	if endA < 0 || endB < 0 {
		return 0, 0, 0, errShort
	}
	return cmp.Compare(va, vb), endA, endB, nil
}

func stringOrder(a, b []byte, pa, pb, _ int) (order, endA, endB int, err error) {
	na, pa, err := readLength(a, pa)
	if err != nil {
		return 0, 0, 0, err
	}
	nb, pb, err := readLength(b, pb)
	if err != nil {
		return 0, 0, 0, err
	}
	return bytes.Compare(a[pa:pa+na], b[pb:pb+nb]), pa + na, pb + nb, nil
}

func fixedOrder(size int, compare func(a, b []byte) int) compareFunc {
	return func(a, b []byte, pa, pb, _ int) (order, endA, endB int, err error) {
		endA, endB = pa+size, pb+size
		if endA > len(a) || endB > len(b) {
			return 0, 0, 0, errShort
		}
		return compare(a[pa:endA], b[pb:endB]), endA, endB, nil
	}
}

// compareFloats puts NaN last and -0 before 0.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return cmp.Compare(int64(canonical64(a)), int64(canonical64(b)))
}

func (c *compareCompiler) record(s *Schema) (compareFunc, error) {
	r := c.records[s]
	if r == nil {
		r = &recordOrder{}
		c.records[s] = r
		for _, f := range s.fields {
			compare, err := c.field(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			r.fields = append(r.fields, compare)
		}
	}
	return func(a, b []byte, pa, pb, depth int) (order int, _, _ int, err error) {
		if depth >= maxOrderDepth {
			return 0, 0, 0, errDeep
		}
		for _, compare := range r.fields {
			if order, pa, pb, err = compare(a, b, pa, pb, depth+1); order != 0 || err != nil {
				return order, 0, 0, err
			}
		}
		return 0, pa, pb, nil
	}, nil
}

// maxOrderDepth bounds how deep records are compared, each level of a schema
// and each turn of a recursive type counting as one.
const maxOrderDepth = maxWalk * 2

func (c *compareCompiler) field(f Field) (compareFunc, error) {
	if f.order == ignored {
		skip := c.skips.root(f.Type)
		return func(a, b []byte, pa, pb, depth int) (_, endA, endB int, err error) {
			if endA, err = skip(a, pa, depth); err != nil {
				return 0, 0, 0, err
			}
			endB, err = skip(b, pb, depth)
			return 0, endA, endB, err
		}, nil
	}
	compare, err := c.value(f.Type)
	if f.order != descending || err != nil {
		return compare, err
	}
	return func(a, b []byte, pa, pb, depth int) (order, endA, endB int, err error) {
		order, endA, endB, err = compare(a, b, pa, pb, depth)
		return -order, endA, endB, err
	}, nil
}

func (c *compareCompiler) union(s *Schema) (compareFunc, error) {
	branches := make([]compareFunc, len(s.branches))
	for i, b := range s.branches {
		var err error
		if branches[i], err = c.value(b); err != nil {
			return nil, err
		}
	}
	return func(a, b []byte, pa, pb, depth int) (order, _, _ int, err error) {
		ia, pa, err := readIndex(a, pa, len(branches), errBranch)
		if err != nil {
			return 0, 0, 0, err
		}
		ib, pb, err := readIndex(b, pb, len(branches), errBranch)
		if ia != ib || err != nil {
			return cmp.Compare(ia, ib), 0, 0, err
		}
		return branches[ia](a, b, pa, pb, depth)
	}, nil
}

func (c *compareCompiler) array(s *Schema) (compareFunc, error) {
	item, err := c.value(s.element)
	if err != nil {
		return nil, err
	}
	least := leastSizes{}.of(s.element)
	return func(a, b []byte, pa, pb, depth int) (order, _, _ int, err error) {
		var leftA, leftB int // items of the block in hand
		for {
			if leftA == 0 {
				if leftA, _, pa, err = readBlock(a, pa, least); err != nil {
					return 0, 0, 0, err
				}
			}
			if leftB == 0 {
				if leftB, _, pb, err = readBlock(b, pb, least); err != nil {
					return 0, 0, 0, err
				}
			}
			if leftA == 0 || leftB == 0 {
				return cmp.Compare(leftA, leftB), pa, pb, nil
			}
			if order, pa, pb, err = item(a, b, pa, pb, depth); order != 0 || err != nil {
				return order, 0, 0, err
			}
			leftA--
			leftB--
		}
	}, nil
}
