package postgres

import (
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/schema"
)

// cell is what is done with one field of a row.
type cell struct {
	column string
	encode encodeFunc                    // nil: the field is passed over
	skip   func(src []byte) (int, error) // else
}

// rowPlan turns rows of a schema into columns.
type rowPlan []cell

// append appends the columns of a row to dst.
func (p rowPlan) append(dst, src []byte) ([]byte, error) {
	return p.run(dst, src, true)
}

func (p rowPlan) run(dst, src []byte, whole bool) (_ []byte, err error) {
	pos := 0
	for i := range p {
		c := &p[i]
		if c.encode != nil {
			if dst, pos, err = c.encode(dst, src, pos); err != nil {
				return dst, &cellError{c.column, err}
			}
			continue
		}
		n, err := c.skip(src[min(pos, len(src)):])
		if err != nil {
			return dst, &cellError{c.column, err}
		}
		pos += n
	}
	if whole && pos != len(src) {
		return dst, errBehind
	}
	return dst, nil
}

// cellError says which column's value is at fault.
type cellError struct {
	column string
	cause  error
}

// Error implements error.
func (e *cellError) Error() string { return fmt.Sprintf("column %s: %s", e.column, e.cause.Error()) }

// Unwrap returns the cause.
func (e *cellError) Unwrap() error { return e.cause }

// isMisfit tells whether a value is whole, and a column can't take it.
func isMisfit(err error) bool {
	_, ok := errors.AsType[misfit](err)
	return ok
}

// checker looks whether a row's columns can take its values. It is used by one
// goroutine.
type checker struct {
	table   string
	plan    rowPlan // up to the last column that refuses values
	scratch []byte
	// most bounds the bytes of all columns together; 0: no bound.
	most int
}

// newChecker makes the checker of columns, whose types have been tried before.
func newChecker(table string, columns []column, most int) (*checker, error) {
	k := &checker{table: table, most: most}
	last := 0
	for i, c := range columns {
		e, err := newEncoder(c.schema, c.want)
		if err != nil {
			return nil, err
		}
		next := cell{column: c.name, encode: e.encode}
		if e.refuses && !c.ignored {
			last = i + 1
		} else {
			next.encode, next.skip = nil, schema.Skipper(c.schema)
		}
		k.plan = append(k.plan, next)
	}
	k.plan = k.plan[:last]
	return k, nil
}

// check returns a [*ValueError] for what a column can't take.
func (k *checker) check(row []byte) (err error) {
	if len(k.plan) == 0 {
		return nil
	}
	if k.scratch, err = k.plan.run(k.scratch[:0], row, false); err != nil {
		if bad, ok := errors.AsType[*cellError](err); ok {
			return &ValueError{Table: k.table, Column: bad.column, Reason: bad.cause.Error()}
		}
		return err
	}
	if k.most > 0 && len(k.scratch) > k.most {
		return &ValueError{Table: k.table, Column: k.plan[0].column, Reason: fmt.Sprintf("a key of %d bytes is longer than the %d that an index takes", len(k.scratch), k.most)}
	}
	return nil
}
