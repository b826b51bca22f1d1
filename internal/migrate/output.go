package migrate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// output is where the new entries go, in the order of the old ones.
type output interface {
	put(r carry.Row) error
	merged() int64
	behind() int64 // the limit
	commit(ctx context.Context, o Options) (epoch.Segment, error)
}

// ordered writes entries that keep their keys, and so their order.
type ordered struct {
	writer      *state.Writer
	limited     *state.Limited // of a sorted state
	rows, bytes int64
	numbered    bool   // the elements of a list: none may be missing
	last        []byte // key of the last
	next        int64  // the number of the list's next element
	number      []byte
}

func newOrdered(w *state.Writer, way *carry.Way) *ordered {
	x := &ordered{writer: w, numbered: way.Numbered}
	if way.Limit.Entries > 0 {
		x.limited = state.NewLimited(way.Limit, x.write)
	}
	return x
}

func (x *ordered) put(r carry.Row) error {
	if x.numbered {
		if err := x.renumber(&r); err != nil {
			return err
		}
	}
	if x.limited != nil {
		return x.limited.Put(r.Slot, r.Key, r.Element, r.Value)
	}
	return x.write(r.Slot, r.Key, r.Element, r.Value)
}

func (x *ordered) write(slot epoch.Slot, key, element, value []byte) error {
	x.rows++
	x.bytes += int64(len(key) + len(element) + len(value))
	return x.writer.Put(slot, key, element, value)
}

// renumber closes the gaps that entries leave which were set aside. A list may
// begin at any number.
func (x *ordered) renumber(r *carry.Row) error {
	if x.rows == 0 || !bytes.Equal(x.last, r.Key) {
		first, n := binary.Varint(r.Element)
		if n != len(r.Element) {
			return fmt.Errorf("state %s: expected the number of a list's element, found % x", x.writer.Name(), r.Element)
		}
		x.last, x.next = append(x.last[:0], r.Key...), first
	}
	x.number = binary.AppendVarint(x.number[:0], x.next)
	x.next++
	r.Element = x.number
	return nil
}

func (x *ordered) merged() int64 { return 0 }

func (x *ordered) behind() int64 {
	if x.limited == nil {
		return 0
	}
	return x.limited.Dropped()
}

func (x *ordered) commit(ctx context.Context, o Options) (epoch.Segment, error) {
	if x.limited != nil {
		if err := x.limited.End(); err != nil {
			return epoch.Segment{}, err
		}
	}
	if x.rows == 0 {
		return epoch.Segment{}, nil
	}
	return x.writer.Commit(ctx, o.Memory(x.rows, x.bytes))
}

// ErrMeet says that two entries come to one key, and nothing says what becomes of
// them.
var ErrMeet = errors.New("two entries come to this key: say with Merge, or in MigrateKeys, how their values are put together")

// collected gathers entries whose keys change, so that those that meet are put
// together.
type collected struct {
	way  *carry.Way
	rows map[string]int // by key and element: the number of the entry
	all  []entry
	next map[string]int64 // by key of a list: the number of the next element
	met  int64
	key  []byte

	dropped int64 // behind the limit

	grown func(rows int64) error
}

// looksWhileGrowing is the number of entries between two looks at the memory.
const looksWhileGrowing = 1 << 14

type entry struct {
	slot       epoch.Slot
	row, value []byte
	key        int // bytes of the row
}

func (x *collected) put(r carry.Row) error {
	if x.way.Numbered {
		n := x.next[string(r.Key)]
		x.next[string(r.Key)] = n + 1
		r.Element = binary.AppendVarint(nil, n) // a list's elements are longs
	}
	x.key = append(append(x.key[:0], r.Key...), r.Element...)
	at, met := x.rows[string(x.key)]
	if !met && x.grown != nil && len(x.all)%looksWhileGrowing == looksWhileGrowing-1 {
		if err := x.grown(int64(len(x.all))); err != nil {
			return err
		}
	}
	if !met {
		x.rows[string(x.key)] = len(x.all)
		row := append(append(make([]byte, 0, len(x.key)+len(r.Value)), x.key...), r.Value...)
		x.all = append(x.all, entry{r.Slot, row[:len(x.key):len(x.key)], row[len(x.key):], len(r.Key)})
		return nil
	}
	if x.way.Merge == nil {
		return x.failed(r, ErrMeet)
	}
	x.met++
	value, err := x.way.Merge(nil, x.all[at].value, r.Value)
	if err != nil {
		return x.failed(r, err)
	}
	x.all[at].value = value
	return nil
}

// failed names the new key of an error.
func (x *collected) failed(r carry.Row, cause error) error {
	key, _, err := schema.Text(x.way.Form.Key)(nil, r.Key)
	if err != nil {
		key = fmt.Appendf(nil, "% x", r.Key)
	}
	return &carry.EntryError{State: x.way.State, Key: string(key), Cause: cause}
}

func (x *collected) merged() int64 { return x.met }
func (x *collected) behind() int64 { return x.dropped }

func (x *collected) commit(ctx context.Context, o Options) (epoch.Segment, error) {
	if len(x.all) == 0 {
		return epoch.Segment{}, nil
	}
	var c state.Changes
	var size int64
	put := func(slot epoch.Slot, key, element, value []byte) error {
		c.Begin(slot)
		c.Buf = append(c.Buf, key...)
		c.Element()
		c.Buf = append(c.Buf, element...)
		c.Value()
		c.Buf = append(append(c.Buf, 2), value...)
		c.End()
		size += int64(len(key) + len(element) + len(value))
		return nil
	}
	if err := x.each(put); err != nil {
		return epoch.Segment{}, err
	}
	return state.Write(ctx, o.Store, o.Job, o.Path, o.Way.Form, []*state.Changes{&c}, o.Memory(int64(len(c.Index)), size))
}

// each passes the entries on that stay: those of a sorted state in their order.
func (x *collected) each(put func(slot epoch.Slot, key, element, value []byte) error) error {
	if x.way.Limit.Entries == 0 {
		for _, e := range x.all {
			if err := put(e.slot, e.row[:e.key], e.row[e.key:], e.value); err != nil {
				return err
			}
		}
		return nil
	}
	compare, err := x.way.Form.Comparer()
	if err != nil {
		return err
	}
	slices.SortFunc(x.all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.slot, b.slot), compare(a.row, b.row)) })
	limited := state.NewLimited(x.way.Limit, put)
	for _, e := range x.all {
		if err := limited.Put(e.slot, e.row[:e.key], e.row[e.key:], e.value); err != nil {
			return err
		}
	}
	err = limited.End()
	x.dropped = limited.Dropped()
	return err
}
