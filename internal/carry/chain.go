package carry

import (
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Chain is an author's functions from older types of a value to T, one after the
// other. What is stored may enter it at any type. It is immutable.
type Chain[T any] struct{ steps []step[T] } // the oldest first

// step is a type of a chain, with all that follows it.
type step[T any] struct {
	meaning   int
	meant     bool     // the author said which meaning it reads
	functions []string // from this type on
	open      func(name string) (opened[T], error)
}

// opened is a step whose type has a schema.
type opened[T any] struct {
	schema *schema.Schema
	// reader opens readers of stored values, each of one goroutine.
	reader func(stored *schema.Schema) (func() func(src []byte, t *T) error, error)
}

// First begins a chain.
func First[A, T any](f func(A) (T, error)) Chain[T] {
	return Chain[T]{[]step[T]{stepOf(f)}}
}

// Then goes on with another function.
func Then[T, U any](c Chain[T], f func(T) (U, error)) Chain[U] {
	var out Chain[U]
	name := FunctionName(f)
	for _, s := range c.steps {
		out.steps = append(out.steps, step[U]{
			meaning: s.meaning, meant: s.meant,
			functions: append(s.functions[:len(s.functions):len(s.functions)], name),
			open: func(state string) (opened[U], error) {
				o, err := s.open(state)
				if err != nil {
					return opened[U]{}, err
				}
				return opened[U]{o.schema, func(stored *schema.Schema) (func() func([]byte, *U) error, error) {
					open, err := o.reader(stored)
					if err != nil {
						return nil, err
					}
					return func() func([]byte, *U) error {
						read, t := open(), new(T)
						return func(src []byte, u *U) error {
							if err := read(src, t); err != nil {
								return err
							}
							return call(name, f, t, u)
						}
					}, nil
				}}, nil
			},
		})
	}
	out.steps = append(out.steps, stepOf(f))
	return out
}

// From says which meaning version the values have that the newest function
// reads.
func (c Chain[T]) From(meaning int) Chain[T] {
	steps := append([]step[T](nil), c.steps...)
	last := &steps[len(steps)-1]
	last.meaning, last.meant = meaning, true
	return Chain[T]{steps}
}

// Empty tells whether there is no function.
func (c Chain[T]) Empty() bool { return len(c.steps) == 0 }

func stepOf[A, T any](f func(A) (T, error)) step[T] {
	name := FunctionName(f)
	return step[T]{functions: []string{name}, open: func(state string) (opened[T], error) {
		typ, err := schema.Of[A](state)
		if err != nil {
			return opened[T]{}, fmt.Errorf("what %s takes: %w", name, err)
		}
		return opened[T]{typ.Schema(), func(stored *schema.Schema) (func() func([]byte, *T) error, error) {
			read, err := readerOf(typ, stored)
			if err != nil {
				return nil, err
			}
			return func() func([]byte, *T) error {
				a := new(A) // is overwritten by each value; the function gets a copy
				return func(src []byte, t *T) error {
					if err := readAll(read, src, a); err != nil {
						return err
					}
					return call(name, f, a, t)
				}
			}, nil
		}}, nil
	}}
}

// readerOf reads stored values of a schema into the type. What narrows is among
// the way's drops, so that it is read by consent.
func readerOf[A any](typ *schema.Type[A], stored *schema.Schema) (func(src []byte, v *A) ([]byte, error), error) {
	if stored.Equal(typ.Schema()) {
		return typ.Decode, nil
	}
	r, err := typ.Narrowing(stored, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	return r.Decode, nil
}

func readAll[A any](read func(src []byte, v *A) ([]byte, error), src []byte, v *A) error {
	rest, err := read(src, v)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the value", len(rest))
	}
	return err
}

// functionError is an error of an author's function.
type functionError struct {
	function string
	cause    error
}

func (e *functionError) Error() string { return e.function + ": " + e.cause.Error() }
func (e *functionError) Unwrap() error { return e.cause }

// call calls an author's function, whose panics are errors.
func call[A, T any](name string, f func(A) (T, error), a *A, t *T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &functionError{name, fmt.Errorf("panic: %v", p)}
		}
	}()
	if *t, err = f(*a); err != nil {
		err = &functionError{name, err}
	}
	return err
}

// FunctionName names an author's function for people.
func FunctionName(f any) string {
	if name := connector.FunctionName(f); name != "" {
		return name
	}
	return "a function without a name"
}
