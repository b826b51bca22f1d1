package runner

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// What one epoch writes anew of a sink, as far as can be told from the sizes of the
// state's segments: one slot at the least.
const (
	rewrittenRows  = 50_000
	rewrittenBytes = 64 << 20
)

// RewriteError says that a sink can't be written anew as a person wants it.
type RewriteError struct {
	Job, Sink string
	Reason    string
}

// Error implements error.
func (e *RewriteError) Error() string {
	return fmt.Sprintf("%s: refused: sink %s can't be written anew, and nothing was changed: %s.", e.Job, e.Sink, e.Reason)
}

// ExitCode is the exit code of the command line.
func (e *RewriteError) ExitCode() int { return 13 }

// checkRewrite refuses what is asked for of sinks that can't do it.
func (r *runner) checkRewrite() error {
	var tables []string
	for _, s := range r.o.Graph.Sinks() {
		if s.Key != nil {
			tables = append(tables, s.Name)
		}
	}
	slices.Sort(tables)
	for _, name := range slices.Sorted(maps.Keys(r.o.Rewrite)) {
		if !slices.Contains(tables, name) {
			return &ConsentError{Job: r.o.Job, Flag: "rewrite", Name: name, Names: tables}
		}
		switch mode := r.o.Rewrite[name]; mode {
		case epoch.RewriteTouched, epoch.RewriteAll:
		case epoch.RewriteChanged:
			if _, skips := r.sinkSpec(name).Sink.(connector.EqualSkipper); !skips {
				return &RewriteError{r.o.Job, name, "changed leaves out rows that the sink has already, and this one can't see what it has; use all, or touched"}
			}
		default:
			return &RewriteError{r.o.Job, name, fmt.Sprintf("%q is none of the modes; use touched, changed or all", mode)}
		}
	}
	return nil
}

// rewrites has each table's sink, with what is to be written anew of it at a change:
// what was asked for, and all of a rollback and of a branch that has begun with a state
// of its own. A build that goes on where it stood has
// nothing to write anew.
func (r *runner) rewrites() map[string]epoch.RewriteMode {
	kind := epoch.Upgrade
	if r.o.Follow != nil {
		kind = r.o.Follow.Kind
	}
	modes := map[string]epoch.RewriteMode{}
	for _, s := range r.o.Graph.Sinks() {
		if s.Key == nil {
			continue
		}
		mode, said := r.o.Rewrite[s.Name]
		switch {
		case kind == epoch.Resume, kind == epoch.Failover:
			mode = ""
		case !said && (kind == epoch.Rollback || kind == epoch.Fresh || r.begins()):
			mode = epoch.RewriteAll
		}
		modes[s.Name] = mode
	}
	return modes
}

// sinkSpec is the sink of a name in this build; nil: there is none.
func (r *runner) sinkSpec(name string) *engine.SinkSpec {
	for _, s := range r.o.Graph.Sinks() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// rewriteFrom notes in a rollback's base what its sinks' rows may be of: the keys that
// the ends of all generations since then have, the base among them. The one that is
// live comes with the cut.
func (r *runner) rewriteFrom(ctx context.Context, base *epoch.Manifest, from epoch.Head) error {
	if r.o.Follow.Kind != epoch.Rollback {
		return nil
	}
	f := from.Manifest
	ends, gone, err := r.job.EndsSince(ctx, f.Task, epoch.Point{Branch: f.Branch, Tasks: map[string]epoch.Epoch{f.Task: f.Epoch}})
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		r.o.Log.Warn("generations that were live in between have been cleaned away: rows that only these have written stay in the sinks", "branches", gone)
	}
	for name, mode := range r.rewrites() {
		s, known := base.Sinks[name]
		if !known {
			continue
		}
		for _, end := range slices.Concat(ends, []epoch.LogEnd{epoch.EndOf(from)}) {
			s.Rewrite = epoch.Rewriting(mode, s.Rewrite, nil, end)
		}
		base.Sinks[name] = s
	}
	return nil
}

// rewriteInPlace notes, in the opening of another version, what is to be written anew
// of sinks behind the epoch before it.
func (r *runner) rewriteInPlace(next epoch.Manifest, before epoch.Head) {
	modes := r.rewrites()
	for name, s := range next.Sinks {
		s.Rewrite = nil
		if mode, table := modes[name]; table {
			s.Rewrite = epoch.Rewriting(mode, nil, before.Manifest.Sinks[name].Rewrite, epoch.EndOf(before))
		}
		next.Sinks[name] = s
	}
}

// rewriting writes tables' sinks anew (D11): one after the other, each by slots, one
// part with an epoch. What comes next is read when that is committed.
type rewriting struct {
	r      *runner
	run    *engine.Run
	failed chan error // has room for one
	ended  *endedKeys // of the sink in hand

	prepared bool // a part is being prepared, or waits for its epoch
}

// rewrite begins to write anew what the head says: once the branch is live, and before
// that of sinks that it fills.
func (c *committer) rewrite(ctx context.Context, run *engine.Run) {
	if c.rewriting == nil {
		c.rewriting = &rewriting{r: c.r, run: run, failed: make(chan error, 1)}
	}
	if !c.rewriting.prepared {
		c.rewriteOn(context.WithoutCancel(ctx))
	}
}

// rewriteOn prepares the part that follows the head, if anything is left to do, and
// hands it to the run. It waits for nothing.
func (c *committer) rewriteOn(ctx context.Context) {
	w := c.rewriting
	head, _ := c.r.owner.Head()
	for i, spec := range c.r.o.Graph.Sinks() {
		left := head.Sinks[spec.Name].Rewrite
		if left == nil || c.r.following.Load() && !c.r.filling[spec.Name] {
			continue
		}
		w.prepared = true
		w.run.RewriteOn(true)
		c.writing.Go(func() {
			part, err := w.part(ctx, head, spec, left)
			if err != nil {
				w.failed <- err
				return
			}
			part.Sink = i
			w.run.Rewrite(part)
		})
		return
	}
	w.letGo()
	w.run.RewriteOn(false)
}

// rewritingFailed gives the error that ends the rewriting.
func (c *committer) rewritingFailed() <-chan error {
	if c.rewriting == nil {
		return nil
	}
	return c.rewriting.failed
}

func (w *rewriting) letGo() {
	if w.ended != nil {
		w.ended.close()
		w.ended = nil
	}
}

// part is what comes next of a sink.
func (w *rewriting) part(ctx context.Context, head epoch.Manifest, spec *engine.SinkSpec, rewrite *epoch.Rewrite) (engine.Rewriting, error) {
	if w.ended == nil || w.ended.sink != spec.Name || !slices.Equal(w.ended.ends, rewrite.Ends()) {
		w.letGo()
		ended, err := w.r.openEnded(ctx, spec, rewrite.Ends())
		if err != nil {
			return engine.Rewriting{}, err
		}
		w.ended = ended
	}
	rows, size := w.ended.rows, w.ended.bytes
	for _, s := range head.State[spec.State].Segments {
		rows, size = rows+s.Rows, size+max(s.Memory, s.Bytes)
	}
	slots := partOf(rewrite.Cursor, rows, size, min(rewrittenBytes, w.r.o.EpochBytes))
	keys, err := w.ended.keys(ctx, slots)
	return engine.Rewriting{Slots: slots, Ended: keys}, err
}

// partOf is the range of slots that an epoch writes anew, by the number of rows and
// bytes in all slots: hashes lie evenly in them.
func partOf(cursor epoch.Slot, rows, bytes, bytesAtMost int64) epoch.Slots {
	const slots = int64(1) << 16
	n := min(rewrittenRows*slots/max(rows, 1), bytesAtMost*slots/max(bytes, 1))
	last := min(int64(cursor)+max(n, 1)-1, int64(epoch.AllSlots.Last))
	return epoch.Slots{First: cursor, Last: epoch.Slot(last)}
}

// rewrote notes in an epoch's manifest what it has written anew.
func rewrote(m *epoch.Manifest, sink string, slots epoch.Slots) {
	s := m.Sinks[sink]
	if s.Rewrite == nil {
		return
	}
	s.Rewrote = &epoch.Rewrote{Mode: s.Rewrite.Mode, Slots: slots}
	s.Rewrite = s.Rewrite.Passed(slots.Last)
	m.Sinks[sink] = s
}

// endedKeys are the keys that a sink may have rows of, by the ends of logs.
type endedKeys struct {
	sink        string
	ends        []epoch.LogEnd
	rows, bytes int64
	states      []*state.Seeker
}

// openEnded opens the states that ends of logs wrote a sink's rows of.
func (r *runner) openEnded(ctx context.Context, spec *engine.SinkSpec, ends []epoch.LogEnd) (*endedKeys, error) {
	k := &endedKeys{sink: spec.Name, ends: ends}
	for _, end := range ends {
		if err := k.open(ctx, r, spec, end); err != nil {
			k.close()
			return nil, err
		}
	}
	return k, nil
}

// open opens those of one end: of an operator with several states all that may be the
// sink's table, since no row of a key that the table lacks is to stay.
func (k *endedKeys) open(ctx context.Context, r *runner, spec *engine.SinkSpec, end epoch.LogEnd) error {
	m, err := r.job.EndedManifest(ctx, end)
	if err != nil {
		return err
	}
	v, err := r.job.Version(ctx, m.Version)
	if err != nil {
		return err
	}
	sink, had := v.Sinks[spec.Name]
	if !had || sink.Schemas["key"] == "" {
		return nil
	}
	key, err := schema.Parse([]byte(sink.Schemas["key"]))
	if err != nil {
		return err
	}
	if !carry.SameEncoding(key, spec.Key) {
		return &RewriteError{r.o.Job, spec.Name, fmt.Sprintf("its keys were %s in version %.12s and are %s, so that its rows can't be found; give the sink a new name and target", key.Word(), m.Version, spec.Key.Word())}
	}
	for name, entry := range m.State {
		of := v.States[name]
		if of.Kind != "" || of.Key != sink.Schemas["key"] || !slices.Contains(sink.Inputs, of.Operator) {
			continue
		}
		form, err := state.FormOf(name, entry)
		if err != nil {
			return err
		}
		seeker, err := state.OpenSeeker(ctx, r.o.Store, r.o.Job, form, entry.Segments)
		if err != nil {
			return err
		}
		k.states = append(k.states, seeker)
		for _, s := range entry.Segments {
			k.rows, k.bytes = k.rows+s.Rows, k.bytes+max(s.Memory, s.Bytes)
		}
	}
	return nil
}

func (k *endedKeys) close() {
	for _, s := range k.states {
		s.Close()
	}
}

// keys reads the keys in a range of slots, each once.
func (k *endedKeys) keys(ctx context.Context, slots epoch.Slots) (keys [][]byte, err error) {
	for _, s := range k.states {
		for e, err := range s.Reader().Read(ctx, slots) {
			if err != nil {
				return nil, err
			}
			keys = append(keys, bytes.Clone(e.Key))
		}
	}
	if len(k.states) > 1 {
		slices.SortFunc(keys, bytes.Compare)
		keys = slices.CompactFunc(keys, bytes.Equal)
	}
	return keys, nil
}
