package fsck

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// file is a segment of a state, or a part of an outbox.
type file struct {
	path        string
	rows, bytes int64
	sha256      string

	name    string // of the state or sink
	state   *epoch.StateEntry
	segment epoch.Segment
	outbox  epoch.Object
	version string // of an outbox: the one whose sink it is for
}

// filesOf are the files that a manifest refers to.
func (c *checker) filesOf(m epoch.Manifest) (files []file) {
	for name, entry := range m.State {
		for _, s := range entry.Segments {
			files = append(files, file{path: s.Path, rows: s.Rows, bytes: s.Bytes, sha256: s.SHA256, name: name, state: &entry, segment: s})
		}
	}
	for name, sink := range m.Sinks {
		for _, o := range sink.Outbox {
			files = append(files, file{path: o.Path, rows: o.Rows, bytes: o.Bytes, sha256: o.SHA256, name: name, outbox: o, version: m.Version})
		}
	}
	return files
}

// fault is what is wrong with a file.
type fault struct{ expected, found string }

// checkFile holds a file against the manifest. Whether what is wrong with it is
// damage is decided later: clean-up may have removed it with all its manifests.
func (c *checker) checkFile(ctx context.Context, f file) {
	read, wrong := c.compare(ctx, f)
	if wrong == nil && !c.o.Shallow {
		wrong = c.decodeFile(ctx, f)
	}
	if wrong != nil && ctx.Err() == nil {
		c.mu.Lock()
		c.suspects[f.path] = Finding{Object: c.object(f.path), Expected: wrong.expected, Found: wrong.found}
		c.mu.Unlock()
	}
	c.counted(1, read)
}

// piece is how much of a file is read at once.
const piece = 256 << 10

// compare holds a file's length and hash against what the manifest says. It
// returns how many bytes it has read.
func (c *checker) compare(ctx context.Context, f file) (read int64, wrong *fault) {
	if name, ok := epoch.ParsePath(f.path); !ok || name.Kind != epoch.DataObject {
		return 0, &fault{"the name of a data object in the manifest", fmt.Sprintf("%q", f.path)}
	}
	in, err := c.store.Open(ctx, c.object(f.path))
	if errors.Is(err, store.ErrNotFound) {
		return 0, &fault{fmt.Sprintf("a file of %d bytes", f.bytes), "none"}
	}
	if err != nil {
		return 0, &fault{"a file that can be read", err.Error()}
	}
	defer in.Close()
	if in.Size() != f.bytes {
		return 0, &fault{fmt.Sprintf("%d bytes", f.bytes), fmt.Sprint(in.Size())}
	}
	sum := sha256.New()
	if err := copyAll(ctx, sum, in); err != nil {
		return 0, &fault{"a file that can be read", err.Error()}
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != f.sha256 {
		return f.bytes, &fault{"sha256 " + f.sha256, found}
	}
	return f.bytes, nil
}

// copyAll copies an object, and ends early with the context.
func copyAll(ctx context.Context, to io.Writer, from store.Object) error {
	all := io.NewSectionReader(from, 0, from.Size())
	for ctx.Err() == nil {
		if _, err := io.CopyN(to, all, piece); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// decodeFile reads a file's records, whose bytes are as they were written.
func (c *checker) decodeFile(ctx context.Context, f file) *fault {
	var err error
	if f.state != nil {
		err = c.decodeSegment(ctx, f)
	} else {
		err = c.decodeOutbox(ctx, f)
	}
	if err == nil {
		return nil
	}
	if d, ok := errors.AsType[*epoch.DamagedError](err); ok {
		return &fault{d.Expected, d.Found}
	}
	return &fault{"records that can be read, in order", err.Error()}
}

// decodeSegment reads a segment's entries and checks their order and slots.
func (c *checker) decodeSegment(ctx context.Context, f file) error {
	form, err := state.FormOf(f.name, *f.state)
	if err != nil {
		return err
	}
	row := schema.Record("sluice.row", schema.Field{Name: "key", Type: form.Key})
	if form.Element != nil {
		row = schema.Record("sluice.row", schema.Field{Name: "key", Type: form.Key}, schema.Field{Name: "element", Type: form.Element})
	}
	compare, err := schema.Comparer(row)
	if err != nil {
		return err
	}
	order := ordering{compare: compare, strict: true}
	check := func(e *state.Entry) error {
		if e.Slot < f.segment.Slots.First || e.Slot > f.segment.Slots.Last {
			return fmt.Errorf("a record of slot %d, which is none of the segment's", e.Slot)
		}
		if slot := epoch.Slot(xxhash.Sum64(e.Key) >> 48); e.Slot != slot {
			return fmt.Errorf("a record of slot %d, whose key has slot %d", e.Slot, slot)
		}
		return order.next(e.Slot, e.Key, e.Element)
	}
	whole := []epoch.Slots{epoch.AllSlots}
	return state.Restore(ctx, c.store, c.job, form, []epoch.Segment{f.segment}, whole, func(int) func(*state.Entry) error { return check })
}

// ordering checks that records come in the order of slots and keys.
type ordering struct {
	compare func(a, b []byte) int
	strict  bool // no two are equal
	begun   bool
	slot    epoch.Slot
	row     []byte
	own     []byte
}

func (o *ordering) next(slot epoch.Slot, parts ...[]byte) error {
	o.own = o.own[:0]
	for _, p := range parts {
		o.own = append(o.own, p...)
	}
	order := -1
	if o.begun {
		order = cmp.Compare(o.slot, slot)
		if order == 0 {
			order = o.compare(o.row, o.own)
		}
	}
	if order > 0 || order == 0 && o.strict {
		return fmt.Errorf("a record of slot %d behind one of slot %d, which comes later or is the same", slot, o.slot)
	}
	o.begun, o.slot = true, slot
	o.row, o.own = o.own, o.row
	return nil
}

// decodeOutbox reads an outbox's rows, and checks their number, their order and
// their schemas.
func (c *checker) decodeOutbox(ctx context.Context, f file) error {
	box, err := outbox.Open(ctx, c.store, c.job, []epoch.Object{f.outbox})
	if err != nil {
		return err
	}
	if err := c.checkSchemas(f, box); err != nil {
		return err
	}
	var order *ordering
	if box.Key != nil {
		compare, err := schema.Comparer(box.Key)
		if err != nil {
			return err
		}
		order = &ordering{compare: compare}
	}
	rows := int64(0)
	for row, err := range box.Rows(ctx) {
		if err != nil {
			return err
		}
		rows++
		if order == nil {
			continue
		}
		if err := order.next(epoch.Slot(row.Slot), row.Key); err != nil {
			return err
		}
	}
	if rows != f.rows {
		return fmt.Errorf("%d rows, the manifest says %d", rows, f.rows)
	}
	return nil
}

// checkSchemas holds an outbox's schemas against those that its version has for
// the sink, if that is known.
func (c *checker) checkSchemas(f file, box *outbox.Box) error {
	v := c.records.versions[f.version]
	if v == nil {
		return nil
	}
	sink, ok := v.Sinks[f.name]
	if !ok {
		return nil
	}
	for role, found := range map[string]*schema.Schema{"key": box.Key, "row": box.Row} {
		told := sink.Schemas[role]
		if told == "" && found == nil {
			continue
		}
		expected, err := schema.Parse([]byte(told))
		if err != nil {
			return fmt.Errorf("the %s's schema in the version %.12s: %w", role, f.version, err)
		}
		if found == nil || !found.Equal(expected) {
			return fmt.Errorf("%ss of another schema than the version's, %s", role, told)
		}
	}
	return nil
}
