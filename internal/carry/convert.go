package carry

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// converter returns what converts the entries of a source.
func (c *carrier[R, S]) converter(w *Way, source *Source, open func() func([]byte, *S) error, rekey rekeyer[R, S]) func(e *state.Entry, put func(Row) error) error {
	x := &converting[R, S]{carrier: c, source: source, read: open(), rekey: rekey, keyText: schema.Text(source.Stored.Form.Key)}
	if rekey == nil {
		return x.inPlace
	}
	return x.rekeyed
}

// converting is a converter's memory.
type converting[R any, S any] struct {
	carrier *carrier[R, S]
	source  *Source
	read    func(src []byte, s *S) error
	rekey   rekeyer[R, S]
	keyText func(dst, src []byte) (out, rest []byte, err error)
	value   S
	buf     []byte
}

// inPlace converts an entry whose key stays.
func (x *converting[R, S]) inPlace(e *state.Entry, put func(Row) error) error {
	if err := x.read(e.Value, &x.value); err != nil {
		return x.failed(e, err)
	}
	var err error
	if x.buf, err = x.carrier.codec.Value.Append(x.buf[:0], &x.value); err != nil {
		return x.failed(e, err)
	}
	return put(Row{e.Slot, e.Key, e.Element, x.buf})
}

// rekeyed converts an entry whose key changes.
func (x *converting[R, S]) rekeyed(e *state.Entry, put func(Row) error) error {
	if err := x.read(e.Value, &x.value); err != nil {
		return x.failed(e, err)
	}
	rows, err := x.rekey(e.Key, e.Element, x.value)
	if err != nil {
		return x.failed(e, err)
	}
	failed, err := x.putAll(rows, put)
	if failed != nil {
		return x.failed(e, failed)
	}
	return err
}

// putAll puts what the author's function gives; failed is what was wrong with
// that.
func (x *converting[R, S]) putAll(rows iter.Seq2[R, S], put func(Row) error) (failed, err error) {
	defer func() {
		if p := recover(); p != nil {
			failed = &functionError{x.source.Keys, fmt.Errorf("panic: %v", p)}
		}
	}()
	codec := x.carrier.codec
	for r, s := range rows {
		x.buf = codec.AppendKey(x.buf[:0], &r)
		key := len(x.buf)
		if codec.AppendElement != nil {
			x.buf = codec.AppendElement(x.buf, &r)
		}
		element := len(x.buf)
		if x.buf, failed = codec.Value.Append(x.buf, &s); failed != nil {
			return failed, nil
		}
		row := Row{Slot: epoch.Slot(xxhash.Sum64(x.buf[:key]) >> 48), Key: x.buf[:key:key], Value: x.buf[element:]}
		if codec.AppendElement != nil {
			row.Element = x.buf[key:element:element]
		}
		if err := put(row); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// failed names the entry of an error.
func (x *converting[R, S]) failed(e *state.Entry, err error) error {
	key, _, kerr := x.keyText(nil, e.Key)
	if kerr != nil {
		key = fmt.Appendf(nil, "% x", e.Key)
	}
	out := &EntryError{State: x.source.Stored.Name, Key: string(key), Cause: err}
	var f *functionError
	if errors.As(err, &f) {
		out.Function, out.Cause = f.function, f.cause
	}
	return out
}
