package schema

import (
	"math/big"
	"reflect"
	"unsafe"
)

// decodeNull reads null, which takes no bytes, into what is zero already.
func decodeNull(_ []byte, pos int, _ unsafe.Pointer, _ int) (int, error) { return pos, nil }

// branches returns what reads each branch of what was written as n: one if that
// was no union. read compiles a branch that is a value; null, and what n can't
// hold, end up as errors, but for null where nullable.
func (c *decodeCompiler) branches(w *Schema, n *node, nullable bool, read func(b *Schema) decodeFunc) decodeFunc {
	if w.kind != KindUnion {
		if w.kind == KindNull {
			return decodeNull
		}
		return read(w)
	}
	branches := make([]decodeFunc, len(w.branches))
	alone := len(w.valued()) == 1
	for i, b := range w.branches {
		switch {
		case b.kind == KindNull && nullable:
			branches[i] = decodeNull
		case b.kind == KindNull:
			branches[i] = cantHold(n, "null")
		case alone || c.takes(b, n):
			branches[i] = read(b)
		default:
			branches[i] = cantHold(n, b.Word())
		}
	}
	return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
		i, pos, err := readIndex(src, pos, len(branches), errBranch)
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		return branches[i](src, pos, p, depth)
	}
}

// cantHold refuses a branch.
func cantHold(n *node, what string) decodeFunc {
	err := valueError(n.path, "%s was written where %s is read", what, n.schema.Word())
	return func([]byte, int, unsafe.Pointer, int) (int, error) { return 0, err }
}

// takes tells whether one of a union's several branches is read as n, as
// [Differences] has it; by consent also one that narrows.
func (c *decodeCompiler) takes(b *Schema, n *node) bool {
	inner, _ := n.schema.NonNull()
	compare := comparison{open: map[[2]*Schema]bool{}}
	resolves, narrows, _ := compare.weigh("", b, inner)
	return resolves || narrows && c.allow != nil && c.allow(c.pathOf(n))
}

// required reads a union as what can't be null.
func (c *decodeCompiler) required(w *Schema, n *node) decodeFunc {
	return c.branches(w, n, false, func(b *Schema) decodeFunc { return c.value(b, n) })
}

func (c *decodeCompiler) pointer(w *Schema, n *node) decodeFunc {
	typ := n.element.typ
	return c.branches(w, n, true, func(b *Schema) decodeFunc {
		value := c.value(b, n.element)
		return func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
			to := reflect.New(typ).UnsafePointer()
			*(*unsafe.Pointer)(p) = to
			return value(src, pos, to, depth)
		}
	})
}

// decimal reads a [big.Rat], or a pointer to one.
func (c *decodeCompiler) decimal(w *Schema, n *node) decodeFunc {
	return c.branches(w, n, n.typ == ratPointer, func(b *Schema) decodeFunc {
		value := decodeDecimal(b, n)
		if n.typ == ratType {
			return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
				return value(src, pos, (*big.Rat)(p))
			}
		}
		return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
			r := new(big.Rat)
			*(**big.Rat)(p) = r
			return value(src, pos, r)
		}
	})
}

// decodeDecimal reads one decimal into a zero r. What n may be too small for is
// looked at.
func decodeDecimal(w *Schema, n *node) func(src []byte, pos int, r *big.Rat) (int, error) {
	holds, _ := n.schema.NonNull()
	narrows := decimalVerdict(w, holds).narrows
	return func(src []byte, pos int, r *big.Rat) (end int, err error) {
		length, start := w.size, pos
		if w.kind == KindBytes {
			length, start, err = readLength(src, pos)
		} else if len(src)-pos < length {
			err = errShort
		}
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		end = start + length
		v, err := readUnscaled(w, src[start:end])
		if err == nil {
			r.SetFrac(v, powerOfTen(w.scale))
			if narrows {
				_, err = unscaled(holds, r)
			}
		}
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		return end, nil
	}
}
