package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

const (
	// importRunBytes is the memory that entries take which are sorted at once, with
	// what finds them and the copy that is written.
	importRunBytes = 128 << 20
	// importItemBytes is what an entry takes besides two times its own bytes: its
	// place, the way to it by its hash, and its places in the order.
	importItemBytes = 96
	// importRunsAtOnce bounds the runs that are merged at once: each is an open file
	// with a buffer. More are merged in several passes.
	importRunsAtOnce = 64
)

// importRuns sorts entries into one segment: those that fit into memory are a run,
// and the runs are merged.
type importRuns struct {
	*importer
	spec *engine.StateSpec
	runs []epoch.Segment

	buf   []byte
	items []importItem
	index map[uint64]uint32 // by the hash of key and element: where in items
}

// importItem is an entry in buf.
type importItem struct {
	start, element, row, end uint32 // where the key begins, the element, the value, and the end
	slot                     epoch.Slot
}

// twiceError says that two rows are of one entry.
type twiceError struct {
	key, element []byte
	shown        string
	places       []string
}

func (e *twiceError) Error() string {
	return fmt.Sprintf("the key %s comes twice: expected one row for each, found %s", e.shown, strings.Join(e.places, " and "))
}

// full tells whether the entries in hand take the memory that they may.
func (r *importRuns) full() bool { return 2*len(r.buf)+importItemBytes*len(r.items) >= r.runBytes }

// rowOf is an entry's key and element.
func (r *importRuns) rowOf(it importItem) []byte { return r.buf[it.start:it.row] }

// add takes an entry.
func (r *importRuns) add(e *state.Entry) error {
	if size := len(r.buf) + len(e.Key) + len(e.Element) + len(e.Value); size > math.MaxInt32 {
		return fmt.Errorf("an entry of %d bytes: expected one that fits into 2 GiB with those before it", size-len(r.buf))
	}
	start := uint32(len(r.buf))
	r.buf = append(append(r.buf, e.Key...), e.Element...)
	it := importItem{start: start, element: start + uint32(len(e.Key)), row: uint32(len(r.buf)), slot: e.Slot}
	if r.index == nil {
		r.index = map[uint64]uint32{}
	}
	hash := xxhash.Sum64(r.rowOf(it))
	for ; ; hash++ { // other entries may have the hash
		at, ok := r.index[hash]
		if !ok {
			break
		}
		have := &r.items[at]
		if !bytes.Equal(r.rowOf(*have), r.rowOf(it)) {
			continue
		}
		return r.merge(have, it, e.Value)
	}
	r.buf = append(r.buf, e.Value...)
	it.end = uint32(len(r.buf))
	r.index[hash] = uint32(len(r.items))
	r.items = append(r.items, it)
	return nil
}

// merge makes one entry of two.
func (r *importRuns) merge(have *importItem, it importItem, value []byte) error {
	if r.spec.Intake.Merge == nil {
		return r.twice(r.buf[it.start:it.element], r.buf[it.element:it.row])
	}
	merged, err := r.spec.Intake.Merge(r.buf[have.row:have.end], value)
	if err != nil {
		return err
	}
	r.buf = append(r.buf, merged...)
	it.end = uint32(len(r.buf))
	*have = it
	return nil
}

// shownKeyBytes bounds how much of a key an error repeats.
const shownKeyBytes = 200

func cutKey(shown []byte) string {
	if len(shown) <= shownKeyBytes {
		return string(shown)
	}
	return strings.ToValidUTF8(string(shown[:shownKeyBytes]), "") + "…"
}

func (r *importRuns) twice(key, element []byte) error {
	shown, _, err := schema.JSON(r.spec.Form.Key)(nil, key)
	if err != nil {
		return err
	}
	if r.spec.Form.Element != nil {
		shown = append(shown, ' ')
		if shown, _, err = schema.JSON(r.spec.Form.Element)(shown, element); err != nil {
			return err
		}
	}
	return &twiceError{key: bytes.Clone(key), element: bytes.Clone(element), shown: cutKey(shown)}
}

// recordHead is the most that a record has besides its entry: a slot, and the
// value's branch.
const recordHead = 4

// flush writes what is in hand as a run.
func (r *importRuns) flush(ctx context.Context) error {
	if len(r.items) == 0 {
		return nil
	}
	r.index = nil // it is not needed any more, and the copy takes its place
	size := 0
	for _, it := range r.items {
		size += int(it.end-it.start) + recordHead
	}
	c := state.Changes{Buf: make([]byte, 0, size), Index: make([]state.Ref, 0, len(r.items))}
	for _, it := range r.items {
		c.Begin(it.slot)
		c.Buf = append(c.Buf, r.buf[it.start:it.element]...)
		c.Element()
		c.Buf = append(c.Buf, r.buf[it.element:it.row]...)
		c.Value()
		c.Buf = append(append(c.Buf, 2), r.buf[it.row:it.end]...)
		c.End()
	}
	memory := int64(len(r.items))*int64(r.spec.EntrySize()) + int64(len(c.Buf))
	r.buf, r.items = r.buf[:0], r.items[:0]
	path, err := r.newName(r.spec.Name)
	if err != nil {
		return err
	}
	segment, err := state.Write(ctx, r.o.Store, r.o.Job, path, r.spec.Form, []*state.Changes{&c}, memory)
	r.runs = append(r.runs, segment)
	return err
}

// finish makes one segment of the runs; it has no rows if there are no entries.
func (r *importRuns) finish(ctx context.Context) (epoch.Segment, error) {
	if err := r.flush(ctx); err != nil || len(r.runs) == 0 {
		return epoch.Segment{}, err
	}
	return inPasses(r.runs, func(runs []epoch.Segment) (epoch.Segment, error) {
		r.runs = nil
		if err := r.compare(ctx, runs); err != nil {
			return epoch.Segment{}, err
		}
		if err := r.flush(ctx); err != nil {
			return epoch.Segment{}, err
		}
		// What compare has merged is newer than all that it was merged of.
		return inPasses(append(slices.Clone(runs), r.runs...), func(runs []epoch.Segment) (epoch.Segment, error) {
			path, err := r.newName(r.spec.Name)
			if err != nil {
				return epoch.Segment{}, err
			}
			return state.Merge(ctx, r.o.Store, r.o.Job, path, r.spec.Form, runs, true)
		})
	})
}

// limit makes a segment without what is behind the limit of a sorted state, if there
// is anything.
func (r *importRuns) limit(ctx context.Context, whole epoch.Segment) (epoch.Segment, error) {
	if r.spec.Limit.Entries == 0 || whole.Rows <= int64(r.spec.Limit.Entries) {
		return whole, nil
	}
	path, err := r.newName(r.spec.Name)
	if err != nil {
		return epoch.Segment{}, err
	}
	w, err := state.NewWriter(ctx, r.o.Store, r.o.Job, path, r.spec.Form, whole.Bytes)
	if err != nil {
		return epoch.Segment{}, err
	}
	defer w.Abort()
	var memory int64
	limited := state.NewLimited(r.spec.Limit, func(slot epoch.Slot, key, element, value []byte) error {
		memory += int64(r.spec.EntrySize() + len(key) + len(element) + len(value))
		return w.Put(slot, key, element, value)
	})
	for e, err := range state.Read(ctx, r.o.Store, r.o.Job, r.spec.Form, []epoch.Segment{whole}, epoch.AllSlots) {
		if err == nil {
			err = limited.Put(e.Slot, e.Key, e.Element, e.Value)
		}
		if err != nil {
			return epoch.Segment{}, err
		}
	}
	if err := limited.End(); err != nil || limited.Dropped() == 0 {
		return whole, err
	}
	r.o.Log.Info("entries are behind the limit of their keys: they are left out", "state", r.spec.Name, "limit", r.spec.Limit.Entries, "entries", limited.Dropped())
	return w.Commit(ctx, memory)
}

// inPasses makes one of several runs, the oldest first, of which only so many may be
// merged at once.
func inPasses(runs []epoch.Segment, merge func(runs []epoch.Segment) (epoch.Segment, error)) (epoch.Segment, error) {
	for len(runs) > 1 {
		var merged []epoch.Segment
		for some := range slices.Chunk(runs, importRunsAtOnce) {
			one, err := some[0], error(nil)
			if len(some) > 1 {
				one, err = merge(some)
			}
			if err != nil {
				return epoch.Segment{}, err
			}
			merged = append(merged, one)
		}
		runs = merged
	}
	return runs[0], nil
}

// compare goes through runs side by side, for entries that several have. What they
// are merged to becomes further runs.
func (r *importRuns) compare(ctx context.Context, runs []epoch.Segment) error {
	order, err := r.order()
	if err != nil {
		return err
	}
	var cursors []*importCursor
	for n, run := range runs {
		pull, stop := iter.Pull2(state.Read(ctx, r.o.Store, r.o.Job, r.spec.Form, []epoch.Segment{run}, epoch.AllSlots))
		defer stop()
		c := &importCursor{age: n, pull: pull}
		if err := c.next(); err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	before := func(a, b *importCursor) bool {
		switch by := order(a.entry, b.entry); {
		case a.entry == nil:
			return false
		case b.entry == nil:
			return true
		case by != 0:
			return by < 0
		}
		return a.age < b.age
	}
	heapify(cursors, before)
	for cursors[0].entry != nil {
		first := state.Entry{Slot: cursors[0].entry.Slot, Key: bytes.Clone(cursors[0].entry.Key), Element: bytes.Clone(cursors[0].entry.Element), Value: bytes.Clone(cursors[0].entry.Value)}
		if err := advance(cursors, before); err != nil {
			return err
		}
		several := false
		for cursors[0].entry != nil && order(&first, cursors[0].entry) == 0 {
			if r.spec.Intake.Merge == nil {
				return r.twice(first.Key, first.Element)
			}
			if first.Value, err = r.spec.Intake.Merge(first.Value, cursors[0].entry.Value); err != nil {
				return err
			}
			several = true
			if err := advance(cursors, before); err != nil {
				return err
			}
		}
		if several {
			if err := r.add(&first); err != nil {
				return err
			}
			if r.full() {
				if err := r.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// importCursor stands at an entry of a run; nil: at its end.
type importCursor struct {
	age   int
	pull  func() (*state.Entry, error, bool)
	entry *state.Entry
}

func (c *importCursor) next() error {
	e, err, ok := c.pull()
	if c.entry = e; !ok {
		c.entry = nil
	}
	return err
}

func advance(h []*importCursor, before func(a, b *importCursor) bool) error {
	err := h[0].next()
	sinkCursor(h, 0, before)
	return err
}

func heapify(h []*importCursor, before func(a, b *importCursor) bool) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sinkCursor(h, i, before)
	}
}

func sinkCursor(h []*importCursor, i int, before func(a, b *importCursor) bool) {
	for {
		least := i
		for child := 2*i + 1; child <= min(2*i+2, len(h)-1); child++ {
			if before(h[child], h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// order compares the places of two entries.
func (r *importRuns) order() (func(a, b *state.Entry) int, error) {
	keys, err := schema.Comparer(r.spec.Form.Key)
	if err != nil {
		return nil, err
	}
	elements := func(a, b []byte) int { return 0 }
	if r.spec.Form.Element != nil {
		if elements, err = schema.Comparer(r.spec.Form.Element); err != nil {
			return nil, err
		}
	}
	return func(a, b *state.Entry) int {
		switch {
		case a == nil || b == nil:
			return 0
		case a.Slot != b.Slot:
			return int(a.Slot) - int(b.Slot)
		}
		if by := keys(a.Key, b.Key); by != 0 {
			return by
		}
		return elements(a.Element, b.Element)
	}, nil
}

// errFound ends a search.
var errFound = errors.New("found")

// placesOf reads a file once more, to tell which rows are of one entry.
func (i *importer) placesOf(spec *engine.StateSpec, file ImportFile, twice *twiceError) (places []string, err error) {
	rows, err := file.Open(layoutOf(spec))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	take := spec.Intake.New()
	for {
		row, err := rows.Next()
		if err == io.EOF {
			return append(places, "another that is not there any more"), nil
		}
		if err != nil {
			return nil, err
		}
		err = take(row, func(e *state.Entry) error {
			if bytes.Equal(e.Key, twice.key) && bytes.Equal(e.Element, twice.element) {
				if places = append(places, rows.Place()); len(places) == 2 {
					return errFound
				}
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return places, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
