package schema

import (
	"maps"
	"reflect"
	"unsafe"
)

// mapAccess reaches the maps of one Go type.
type mapAccess struct {
	typ  reflect.Type
	size uintptr // of a key and a value in memory
	pool *mapPool
	// each calls f for every entry of the map at p, with places that hold for
	// the call.
	each func(p unsafe.Pointer, s *mapScratch, f func(key, value unsafe.Pointer) error) error
	// fill puts a new map at p, with room for some entries, and adds those that
	// next reads until it says that there are no more. The places that next
	// gets are zero.
	fill func(p unsafe.Pointer, s *mapScratch, room int, next func(key, value unsafe.Pointer) (more bool, err error)) error
	// clone puts a copy of the map at p in its place; nil: no such short way.
	clone func(p unsafe.Pointer)
}

// accessTo returns the way to reach maps of a type: the common ones directly,
// since a map's layout depends on what its keys and values are made of and not
// on their names; others by reflection.
func accessTo(t reflect.Type) *mapAccess {
	a := &mapAccess{typ: t, size: t.Key().Size() + t.Elem().Size(), pool: newMapPool(t), each: eachByReflection(t), fill: fillByReflection(t)}
	if t.Key().Kind() != reflect.String {
		return a
	}
	switch t.Elem().Kind() {
	case reflect.Int64:
		direct[int64](a)
	case reflect.Int:
		direct[int](a)
	case reflect.Int32:
		direct[int32](a)
	case reflect.Float64:
		direct[float64](a)
	case reflect.String:
		direct[string](a)
	case reflect.Bool:
		direct[bool](a)
	}
	return a
}

// direct makes a reach maps from strings to V without reflection.
func direct[V any](a *mapAccess) {
	a.each = func(p unsafe.Pointer, s *mapScratch, f func(key, value unsafe.Pointer) error) error {
		key, value := (*string)(s.keyAt), (*V)(s.valueAt)
		for *key, *value = range *(*map[string]V)(p) {
			if err := f(s.keyAt, s.valueAt); err != nil {
				return err
			}
		}
		return nil
	}
	a.fill = func(p unsafe.Pointer, s *mapScratch, room int, next func(key, value unsafe.Pointer) (bool, error)) error {
		key, value := (*string)(s.keyAt), (*V)(s.valueAt)
		m := make(map[string]V, room)
		*(*map[string]V)(p) = m
		var zero V
		for {
			*key, *value = "", zero
			more, err := next(s.keyAt, s.valueAt)
			if !more || err != nil {
				return err
			}
			m[*key] = *value
		}
	}
	a.clone = func(p unsafe.Pointer) {
		m := (*map[string]V)(p)
		*m = maps.Clone(*m)
	}
}

func eachByReflection(t reflect.Type) func(unsafe.Pointer, *mapScratch, func(key, value unsafe.Pointer) error) error {
	return func(p unsafe.Pointer, s *mapScratch, f func(key, value unsafe.Pointer) error) error {
		for iter := reflect.NewAt(t, p).Elem().MapRange(); iter.Next(); {
			s.key.SetIterKey(iter)
			s.value.SetIterValue(iter)
			if err := f(s.keyAt, s.valueAt); err != nil {
				return err
			}
		}
		return nil
	}
}

func fillByReflection(t reflect.Type) func(unsafe.Pointer, *mapScratch, int, func(key, value unsafe.Pointer) (bool, error)) error {
	return func(p unsafe.Pointer, s *mapScratch, room int, next func(key, value unsafe.Pointer) (bool, error)) error {
		m := reflect.MakeMapWithSize(t, room)
		reflect.NewAt(t, p).Elem().Set(m)
		for {
			s.key.SetZero()
			s.value.SetZero()
			more, err := next(s.keyAt, s.valueAt)
			if !more || err != nil {
				return err
			}
			m.SetMapIndex(s.key, s.value)
		}
	}
}

// length returns how many entries the map at p has.
func (a *mapAccess) length(p unsafe.Pointer) int { return reflect.NewAt(a.typ, p).Elem().Len() }
