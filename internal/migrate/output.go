package migrate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// output is where the new entries go, in the order of the old ones.
type output interface {
	put(r carry.Row) error
	merged() int64
	commit(ctx context.Context, o Options) (epoch.Segment, error)
}

// ordered writes entries that keep their keys, and so their order.
type ordered struct {
	writer      *state.Writer
	rows, bytes int64
	numbered    bool   // the elements of a list: none may be missing
	last        []byte // key of the last
	next        int64  // the number of the list's next element
	number      []byte
}

func (x *ordered) put(r carry.Row) error {
	if x.numbered {
		if err := x.renumber(&r); err != nil {
			return err
		}
	}
	x.rows++
	x.bytes += int64(len(r.Key) + len(r.Element) + len(r.Value))
	return x.writer.Put(r.Slot, r.Key, r.Element, r.Value)
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

func (x *ordered) commit(ctx context.Context, o Options) (epoch.Segment, error) {
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

	grown func(rows int64) error
}

// looksWhileGrowing is the number of entries between two looks at the memory.
const looksWhileGrowing = 1 << 14

type entry struct {
	slot       epoch.Slot
	row, value []byte
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
		x.all = append(x.all, entry{r.Slot, row[:len(x.key):len(x.key)], row[len(x.key):]})
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

func (x *collected) commit(ctx context.Context, o Options) (epoch.Segment, error) {
	if len(x.all) == 0 {
		return epoch.Segment{}, nil
	}
	var c state.Changes
	var size int64
	for _, e := range x.all {
		c.Begin(e.slot)
		c.Buf = append(c.Buf, e.row...)
		c.Value()
		c.Buf = append(append(c.Buf, 2), e.value...)
		c.End()
		size += int64(len(e.row) + len(e.value))
	}
	return state.Write(ctx, o.Store, o.Job, o.Path, o.Way.Form, []*state.Changes{&c}, o.Memory(int64(len(x.all)), size))
}
