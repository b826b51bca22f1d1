package schema

import (
	"fmt"
	"reflect"
	"unsafe"
)

func valueRange[N int64 | uint64 | float64](v N, what string) error {
	return fmt.Errorf("%v doesn't fit %s", v, what)
}

// nested reads a recursive struct, and bounds how deep it goes.
func (c *decodeCompiler) nested(w *Schema, n *node) decodeFunc {
	d := c.record(w, n)
	return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
		if depth >= maxDepth {
			return 0, &ValueError{Path: n.path, Reason: errDeep.Error()}
		}
		return d.run(src, pos, p, depth+1)
	}
}

// block reads the head of a block of an array or a map. The size in bytes that
// a writer may tell is of no use here.
func block(src []byte, pos, least int, n *node) (count, start int, err error) {
	count, _, start, err = readBlock(src, pos, least)
	if err != nil {
		err = &ValueError{Path: n.path, Reason: err.Error()}
	}
	return count, start, err
}

// room returns for how many of count items, each of a size in memory, space is
// made at once when left bytes are left to read: a count alone costs nothing.
func room(count int, size uintptr, left int) int {
	const perByte, least = 32, 1024
	return min(count, (left*perByte+least)/int(max(size, 1))+1)
}

func (c *decodeCompiler) slice(w *Schema, n *node) decodeFunc {
	value, size := c.value(w.element, n.element), n.element.typ.Size()
	least := c.least.of(w.element)
	return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
		h := (*sliceHeader)(p)
		for {
			count, start, err := block(src, pos, least, n)
			if err != nil || count == 0 {
				return start, err
			}
			if least == 0 && h.len+count > maxEmptyItems {
				return 0, &ValueError{Path: n.path, Reason: errTooEmpty.Error()}
			}
			pos = start
			for count > 0 {
				if h.len == h.cap {
					reflect.NewAt(n.typ, p).Elem().Grow(room(count, size, len(src)-pos))
				}
				for ; count > 0 && h.len < h.cap; count-- {
					if pos, err = value(src, pos, unsafe.Add(h.data, uintptr(h.len)*size), depth); err != nil {
						return 0, err
					}
					h.len++
				}
			}
		}
	}
}

func (c *decodeCompiler) array(w *Schema, n *node) decodeFunc {
	value, size := c.value(w.element, n.element), n.element.typ.Size()
	least, length := c.least.of(w.element), n.typ.Len()
	return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
		have := 0
		for {
			count, start, err := block(src, pos, least, n)
			if err != nil {
				return 0, err
			}
			if have += count; have > length || count == 0 && have < length {
				return 0, valueError(n.path, "%d items in an array of %d", have, length)
			}
			pos = start
			if count == 0 {
				return pos, nil
			}
			for i := have - count; i < have; i++ {
				if pos, err = value(src, pos, unsafe.Add(p, uintptr(i)*size), depth); err != nil {
					return 0, err
				}
			}
		}
	}
}
