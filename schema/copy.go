package schema

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// Copier returns a function that copies a value of any Go type in depth, and
// whether values of the type share memory when they are merely assigned, that
// is, hold slices, maps or pointers; where they don't, copying is assigning.
// Strings, [time.Time] and what [unique.Make] returns count as values. Nil
// stays nil, and empty stays empty.
//
// Interfaces, channels and functions can't be copied; the error is an
// [*UnsupportedError] that holds each of them. A value that points to itself
// can't either, and makes the function panic.
func Copier[T any]() (copyOf func(T) T, shares bool, err error) {
	t := reflect.TypeFor[T]()
	b := copyBuilder{types: map[reflect.Type]*copier{}}
	c := b.build(t, "")
	if len(b.faults) > 0 {
		return nil, false, &UnsupportedError{Name: t.String(), Faults: b.faults}
	}
	if len(c.parts) == 0 {
		return func(v T) T { return v }, false, nil
	}
	return func(v T) T {
		c.fix(noescape(unsafe.Pointer(&v)), 0)
		return v
	}, true, nil
}

// maxCopyDepth bounds how deep pointers are followed: deeper than what can be
// stored, so that only a value that points to itself gets there.
const maxCopyDepth = 100 * maxDepth

// copier makes a shallow copy of a type deep, in place.
type copier struct {
	typ   reflect.Type
	parts []copyPart
	open  bool // being built
}

type copyPart struct {
	offset uintptr
	fix    func(p unsafe.Pointer, depth int)
}

func (c *copier) fix(base unsafe.Pointer, depth int) {
	if depth > maxCopyDepth {
		panic(fmt.Sprintf("schema: a value of %s points to itself and can't be copied", c.typ))
	}
	for i := range c.parts {
		c.parts[i].fix(unsafe.Add(base, c.parts[i].offset), depth+1)
	}
}

type copyBuilder struct {
	types  map[reflect.Type]*copier
	faults []Fault
}

func (b *copyBuilder) fault(path, format string, args ...any) {
	if len(b.faults) < maxFaults {
		b.faults = append(b.faults, Fault{Path: path, Reason: fmt.Sprintf(format, args...)})
	}
}

// maxFaults bounds how many faults are listed: a faulty type that stands in
// many places is a fault in each.
const maxFaults = 1000

// build returns the copier of a type, one for each type that has no faults.
func (b *copyBuilder) build(t reflect.Type, path string) *copier {
	if c := b.types[t]; c != nil || len(b.faults) >= maxFaults {
		return c
	}
	faults := len(b.faults)
	c := &copier{typ: t, open: true}
	b.types[t] = c
	b.add(c, t, 0, path)
	c.open = false
	if len(b.faults) > faults {
		delete(b.types, t)
	}
	return c
}

var locationType = reflect.TypeFor[*time.Location]()

// immutable tells what is copied by assigning although it holds a pointer.
func immutable(t reflect.Type) bool {
	return t == timeType || t == locationType || t.PkgPath() == "unique"
}

// add adds what makes a value of t at an offset of c deep.
func (b *copyBuilder) add(c *copier, t reflect.Type, offset uintptr, path string) {
	if immutable(t) {
		return
	}
	part := copyPart{offset: offset}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			b.add(c, f.Type, offset+f.Offset, join(path, f.Name))
		}
		return
	case reflect.Array:
		b.array(c, t, offset, path)
		return
	case reflect.Pointer:
		part.fix = b.pointer(t, path)
	case reflect.Slice:
		part.fix = b.slice(t, path)
	case reflect.Map:
		part.fix = b.mapping(t, path)
	case reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		b.fault(path, "%s can't be copied, so it can't cross to another goroutine", t)
		return
	default:
		return
	}
	c.parts = append(c.parts, part)
}

func (b *copyBuilder) array(c *copier, t reflect.Type, offset uintptr, path string) {
	item := b.build(t.Elem(), path+"[]")
	if item == nil || !item.open && len(item.parts) == 0 || t.Len() == 0 {
		return
	}
	size, length := t.Elem().Size(), uintptr(t.Len())
	c.parts = append(c.parts, copyPart{offset: offset, fix: func(p unsafe.Pointer, depth int) {
		for i := range length {
			item.fix(unsafe.Add(p, i*size), depth)
		}
	}})
}

func (b *copyBuilder) pointer(t reflect.Type, path string) func(p unsafe.Pointer, depth int) {
	to := b.build(t.Elem(), path)
	return func(p unsafe.Pointer, depth int) {
		old := *(*unsafe.Pointer)(p)
		if old == nil {
			return
		}
		fresh := reflect.New(t.Elem())
		fresh.Elem().Set(reflect.NewAt(t.Elem(), old).Elem())
		*(*unsafe.Pointer)(p) = fresh.UnsafePointer()
		to.fix(fresh.UnsafePointer(), depth)
	}
}

func (b *copyBuilder) slice(t reflect.Type, path string) func(p unsafe.Pointer, depth int) {
	item, size := b.build(t.Elem(), path+"[]"), t.Elem().Size()
	return func(p unsafe.Pointer, depth int) {
		h := (*sliceHeader)(p)
		if h.data == nil {
			return
		}
		old := reflect.NewAt(t, p).Elem()
		fresh := reflect.MakeSlice(t, h.len, h.len)
		reflect.Copy(fresh, old)
		old.Set(fresh)
		if len(item.parts) == 0 {
			return
		}
		for i := range h.len {
			item.fix(unsafe.Add(h.data, uintptr(i)*size), depth)
		}
	}
}

func (b *copyBuilder) mapping(t reflect.Type, path string) func(p unsafe.Pointer, depth int) {
	key, value := b.build(t.Key(), path+"{key}"), b.build(t.Elem(), path+"{}")
	access := accessTo(t)
	return func(p unsafe.Pointer, depth int) {
		m := reflect.NewAt(t, p).Elem()
		if m.IsNil() {
			return
		}
		if access.clone != nil {
			access.clone(p)
			return
		}
		fresh := reflect.MakeMapWithSize(t, m.Len())
		s := access.pool.get()
		defer access.pool.put(s)
		for iter := m.MapRange(); iter.Next(); {
			s.key.SetIterKey(iter)
			s.value.SetIterValue(iter)
			key.fix(s.keyAt, depth)
			value.fix(s.valueAt, depth)
			fresh.SetMapIndex(s.key, s.value)
		}
		m.Set(fresh)
	}
}
