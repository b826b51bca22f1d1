package file

import (
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// renderer writes rows as lines, by the schemas that they were frozen with.
type renderer interface {
	// header appends what stands before the rows.
	header(dst []byte) []byte
	// row appends a row.
	row(dst []byte, r *connector.Row) ([]byte, error)
}

func newRenderer(d *connector.Delivery, csv bool) (renderer, error) {
	if d.Schema == nil {
		return nil, errors.New("the delivery has no schema for its rows")
	}
	if csv {
		return newCSVRenderer(d), nil
	}
	j := &jsonRenderer{value: schema.JSON(d.Schema)}
	if d.Key != nil {
		j.key = schema.JSON(d.Key)
	}
	return j, nil
}

// transcoder appends the text of the value that src begins with.
type transcoder = func(dst, src []byte) (out, rest []byte, err error)

// errLeftOver tells that a row has more bytes than its schema says.
var errLeftOver = errors.New("bytes are left over behind the value")

// whole transcodes a value that takes all of src.
func whole(t transcoder, dst, src []byte) ([]byte, error) {
	out, rest, err := t(dst, src)
	if err == nil && len(rest) > 0 {
		err = errLeftOver
	}
	return out, err
}

// jsonRenderer writes JSON lines: a stream's row as it is, a table's with its
// key and what happened.
type jsonRenderer struct {
	key   transcoder // nil: a stream
	value transcoder
}

func (j *jsonRenderer) header(dst []byte) []byte { return dst }

func (j *jsonRenderer) row(dst []byte, r *connector.Row) (_ []byte, err error) {
	if j.key == nil {
		if r.Op != connector.Append {
			return nil, fmt.Errorf("a stream's row says %s", r.Op)
		}
		dst, err = whole(j.value, dst, r.Row)
		return append(dst, '\n'), err
	}
	switch r.Op {
	case connector.Put:
		dst = append(dst, `{"op":"put","key":`...)
	case connector.Delete:
		dst = append(dst, `{"op":"delete","key":`...)
	default:
		return nil, fmt.Errorf("a table's row says %s", r.Op)
	}
	if dst, err = whole(j.key, dst, r.Key); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if r.Op == connector.Put {
		dst = append(dst, `,"row":`...)
		if dst, err = whole(j.value, dst, r.Row); err != nil {
			return nil, err
		}
	}
	return append(dst, "}\n"...), nil
}
