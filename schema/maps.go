package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// mapScratch is what reading or writing one map needs beside it, kept from
// being allocated by being used again and again.
type mapScratch struct {
	key, value     reflect.Value // one of each
	keyAt, valueAt unsafe.Pointer
	entries        []mapEntry
	moved          []byte
}

// mapEntry is where an encoded entry stands, and its key within it.
type mapEntry struct{ start, keyEnd, end int }

type mapPool struct{ pool sync.Pool }

func newMapPool(t reflect.Type) *mapPool {
	m := &mapPool{}
	m.pool.New = func() any {
		key, value := reflect.New(t.Key()), reflect.New(t.Elem())
		return &mapScratch{key: key.Elem(), value: value.Elem(), keyAt: key.UnsafePointer(), valueAt: value.UnsafePointer()}
	}
	return m
}

func (m *mapPool) get() *mapScratch { return m.pool.Get().(*mapScratch) }

// put gives the scratch back, without what the map held.
func (m *mapPool) put(s *mapScratch) {
	s.key.SetZero()
	s.value.SetZero()
	m.pool.Put(s)
}

// mapping writes a map: one block of entries, ordered by their keys.
func (c *encodeCompiler) mapping(n *node) encodeFunc {
	appendKey := func(dst []byte, p unsafe.Pointer) []byte { return appendString(dst, *(*string)(p)) }
	compare := compareStrings
	if n.form == formEntries {
		ops := newKeyEncoder(n.key)
		appendKey = ops.append
		compare = mustComparer(n.key.schema)
	}
	run := c.value(n.element)
	access := accessTo(n.typ)
	return func(dst []byte, p unsafe.Pointer, depth int) (_ []byte, err error) {
		length := access.length(p)
		dst = appendLong(dst, int64(length))
		if length == 0 {
			return dst, nil
		}
		s := access.pool.get()
		defer access.pool.put(s)
		s.entries = s.entries[:0]
		start := len(dst)
		err = access.each(p, s, func(key, value unsafe.Pointer) (err error) {
			e := mapEntry{start: len(dst)}
			dst = appendKey(dst, key)
			e.keyEnd = len(dst)
			dst, err = run(dst, value, depth)
			e.end = len(dst)
			s.entries = append(s.entries, e)
			return err
		})
		if err != nil {
			return dst, err
		}
		s.sort(dst, start, compare)
		return append(dst, 0), nil
	}
}

// sort puts the entries that stand in dst from start on in the order of their
// keys.
func (s *mapScratch) sort(dst []byte, start int, compare func(a, b []byte) int) {
	byKey := func(a, b mapEntry) int { return compare(dst[a.start:a.keyEnd], dst[b.start:b.keyEnd]) }
	if slices.IsSortedFunc(s.entries, byKey) {
		return
	}
	slices.SortFunc(s.entries, byKey)
	s.moved = s.moved[:0]
	for _, e := range s.entries {
		s.moved = append(s.moved, dst[e.start:e.end]...)
	}
	copy(dst[start:], s.moved)
}

// mapping reads a map into a new one, which is never nil: what wrote to an
// emptied map before it was stored can write to it afterwards.
func (c *decodeCompiler) mapping(w *Schema, n *node) decodeFunc {
	readKey := func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		length, pos, err := readLength(src, pos)
		if err != nil {
			return 0, &ValueError{Path: n.path + "{key}", Reason: err.Error()}
		}
		*(*string)(p) = string(src[pos : pos+length])
		return pos + length, nil
	}
	least := 1
	wValue := w.element
	if n.form == formEntries {
		wKey, wv := w.entry()
		readKey, wValue = c.value(wKey, n.key), wv
		least = max(c.least.of(w.element), 1)
	}
	readValue := c.value(wValue, n.element)
	access := accessTo(n.typ)
	return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
		count, pos, err := block(src, pos, least, n)
		if err != nil {
			return 0, err
		}
		s := access.pool.get()
		defer access.pool.put(s)
		err = access.fill(p, s, room(count, access.size, len(src)-pos), func(key, value unsafe.Pointer) (more bool, err error) {
			if count == 0 {
				return false, nil
			}
			if pos, err = readKey(src, pos, key, depth); err != nil {
				return false, err
			}
			if pos, err = readValue(src, pos, value, depth); err != nil {
				return false, err
			}
			if count--; count == 0 {
				count, pos, err = block(src, pos, least, n)
			}
			return true, err
		})
		return pos, err
	}
}

// compareStrings compares two encoded strings bytewise.
func compareStrings(a, b []byte) int {
	na, pa, errA := readLength(a, 0)
	nb, pb, errB := readLength(b, 0)
	if errA != nil || errB != nil {
		return slices.Compare(a, b)
	}
	return cmp.Compare(string(a[pa:pa+na]), string(b[pb:pb+nb]))
}

// mustComparer returns the order of keys, all of which have one.
func mustComparer(s *Schema) func(a, b []byte) int {
	compare, err := Comparer(s)
	if err != nil {
		panic(fmt.Sprintf("schema: keys without an order: %v", err))
	}
	return compare
}
