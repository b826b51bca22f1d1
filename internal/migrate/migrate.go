package migrate

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// Options are what a migration needs.
type Options struct {
	Store store.Store
	Job   string
	// Way says how the state comes from what is stored.
	Way *carry.Way
	// Stored is the state that a manifest holds, by its name.
	Stored map[string]epoch.StateEntry
	// Path is the new segment's, below the job's folder.
	Path string
	// Workers is how many goroutines convert.
	Workers int
	// Memory is what a number of entries of so many bytes take once they are loaded.
	Memory func(rows, bytes int64) int64
	// Failed, if not nil, is told of an entry that can't be carried over, in the
	// order of the entries, and lets the migration go on without it by returning
	// nil. Nil: the first one ends the migration.
	Failed func(failed *carry.EntryError, e *state.Entry) error
	// Grown, if not nil, is told from time to time how many entries are held in
	// memory, and ends the migration by an error.
	Grown func(rows int64) error
	// Progress, if not nil, counts the entries that have been read.
	Progress *atomic.Int64
}

// Report is what a migration has done.
type Report struct {
	// Read counts the entries that were read, Written those that came of them,
	// Dropped those of which the author's function made none, Merged those that met
	// another at their key, SetAside those that could not be carried over, and Behind
	// those that were behind the limit of a sorted state.
	Read, Written, Dropped, Merged, SetAside, Behind int64
}

// State migrates one state and returns its new segment, which has no rows, and
// does not exist, if nothing came of the entries. On an error nothing is left but
// what the store may keep of an upload.
//
// The error is a *[carry.EntryError] if an entry can't be carried over.
func State(ctx context.Context, o Options) (epoch.Segment, Report, error) {
	m := &migration{o: o}
	var out output = &collected{way: o.Way, rows: map[string]int{}, next: map[string]int64{}, grown: o.Grown}
	if o.Way.Ordered {
		w, err := state.NewWriter(ctx, o.Store, o.Job, o.Path, o.Way.Form, m.bytes())
		if err != nil {
			return epoch.Segment{}, m.report, err
		}
		defer w.Abort()
		out = newOrdered(w, o.Way)
	}
	for i := range o.Way.Sources {
		if err := m.source(ctx, i, out); err != nil {
			return epoch.Segment{}, m.report, err
		}
	}
	m.report.Merged = out.merged()
	segment, err := out.commit(ctx, o)
	m.report.Written, m.report.Behind = segment.Rows, out.behind()
	return segment, m.report, err
}

// entries goes through what the source of a number has stored.
func (o *Options) entries(ctx context.Context, source int) iter.Seq2[*state.Entry, error] {
	stored := o.Way.Sources[source].Stored
	return state.Read(ctx, o.Store, o.Job, stored.Form, o.Stored[stored.Name].Segments, epoch.AllSlots)
}

// migration is one at work.
type migration struct {
	o      Options
	report Report
}

func (m *migration) bytes() (n int64) {
	for _, source := range m.o.Way.Sources {
		for _, s := range m.o.Stored[source.Stored.Name].Segments {
			n += s.Bytes
		}
	}
	return n
}

// source migrates the entries of one stored state.
func (m *migration) source(ctx context.Context, number int, out output) error {
	line := newLine(ctx, m.o.Workers, func() func(*batch) { return m.converting(number) })
	defer line.end()
	go line.read(m.o.entries(line.ctx, number)) // so that the line's end ends a read that waits
	for b, err := range line.converted() {
		if err != nil {
			return err
		}
		if err := m.take(b, out); err != nil {
			return err
		}
		line.release(b)
	}
	return nil
}

// converting returns what converts batches in one goroutine.
func (m *migration) converting(number int) func(*batch) {
	convert := m.o.Way.Converter(number)
	return func(b *batch) {
		for i := range b.entries {
			e := b.entry(i)
			before := len(b.rows)
			err := convert(&e, func(r carry.Row) error {
				b.addRow(r)
				return nil
			})
			if err != nil {
				b.dropRows(before)
				b.failures = append(b.failures, failure{i, err})
				continue
			}
			if len(b.rows) == before {
				b.dropped++
			}
		}
	}
}

// take takes a converted batch, whose turn it is.
func (m *migration) take(b *batch, out output) error {
	m.report.Read += int64(len(b.entries))
	if m.o.Progress != nil {
		m.o.Progress.Add(int64(len(b.entries)))
	}
	m.report.Dropped += b.dropped
	for _, f := range b.failures {
		var failed *carry.EntryError
		if m.o.Failed == nil || !errors.As(f.err, &failed) {
			return f.err
		}
		e := b.entry(f.entry)
		if err := m.o.Failed(failed, &e); err != nil {
			return err
		}
		m.report.SetAside++
	}
	for i := range b.rows {
		if err := out.put(b.row(i)); err != nil {
			return err
		}
	}
	return nil
}
