package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// ReplayRange says what is to be replayed.
type ReplayRange struct {
	// After is the epoch whose state it starts from, and To the last epoch; 0:
	// the branch's head.
	After, To epoch.Epoch
}

// Replayed is what a replay has found.
type Replayed struct {
	// Epochs and Records count what was replayed.
	Epochs, Records int64
	// Differences has one text for each object that came out otherwise.
	Differences []string
}

// Replay processes epochs of the live branch once more, in the recorded order
// of reading and with the recorded clocks, and compares what comes of them with
// what was written, byte for byte. It changes nothing.
func Replay(ctx context.Context, o Options, what ReplayRange) (Replayed, error) {
	r := &runner{o: o, skip: map[engine.RecordID]*engine.RecordError{}}
	var out Replayed
	job, err := epoch.FindJob(ctx, o.Env, o.Store, o.Job)
	if err != nil {
		return out, err
	}
	r.job = job
	branch, err := r.liveBranch(ctx)
	if err != nil {
		return out, err
	}
	if what.To == 0 {
		head, err := job.Head(ctx, branch, epoch.FirstTask)
		if err != nil {
			return out, err
		}
		what.To = head.Manifest.Epoch
	}
	base, err := job.Manifest(ctx, branch, epoch.FirstTask, what.After)
	if err != nil {
		return out, err
	}
	if r.stored, err = r.compare(ctx, base); err != nil {
		return out, err
	}
	for {
		out, err := r.replay(ctx, base, what.To)
		var failed *engine.RecordError
		if err == nil || !errors.As(err, &failed) || !r.sidestep(failed) {
			return out, err
		}
	}
}

func (r *runner) liveBranch(ctx context.Context) (string, error) {
	live, ok, err := r.job.Live(ctx)
	if err != nil || !ok {
		return epoch.MainBranch, err
	}
	return live.Branch, nil
}

func (r *runner) replay(ctx context.Context, base epoch.Manifest, to epoch.Epoch) (out Replayed, err error) {
	eo := r.o.engineOptions()
	eo.Offsets, eo.Now, eo.EpochEvery = offsets(base.Sources), base.Now, 0
	eo.JobID, eo.TransactionPrefix = r.job.ID(), r.job.TransactionPrefix()
	eo.Skip, eo.Watermarks, eo.Windows = maps.Clone(r.skip), base.Watermarks, base.Windows
	run, err := engine.NewRun(r.o.Graph, eo)
	if err != nil {
		return out, err
	}
	defer run.Close()
	if err := r.load(ctx, run, base); err != nil {
		return out, err
	}
	expected := make(chan epoch.Manifest, epochsInFlight)
	if err := run.StartReplay(ctx, r.recorded(ctx, base, to, expected)); err != nil {
		return out, err
	}
	scratch := &scratch{runner: r, store: store.NewMemory(), windows: base.Windows}
	for e := range run.Epochs() {
		select {
		case <-e.Done:
		case <-run.Quit():
			return out, run.Close()
		}
		differences, err := scratch.compare(ctx, e, run.Watermarks(e), <-expected)
		if err != nil {
			return out, err
		}
		out.Epochs++
		out.Records += e.Records.Load()
		out.Differences = append(out.Differences, differences...)
		run.Release(e)
	}
	return out, run.Close()
}

// recorded are the data epochs behind base, each of which is also sent to be
// compared with.
func (r *runner) recorded(ctx context.Context, base epoch.Manifest, to epoch.Epoch, expected chan<- epoch.Manifest) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		before := base
		for m, err := range r.job.Manifests(ctx, base.Branch, base.Task, base.Epoch+1, to) {
			if err != nil {
				yield(engine.Recorded{}, err)
				return
			}
			prior := before
			before = m
			if m.Kind != epoch.Data {
				continue
			}
			if m.Version != base.Version && base.Epoch > 0 {
				yield(engine.Recorded{}, fmt.Errorf("%s: epoch %d is another version's; replay from there", r.o.Job, m.Epoch))
				return
			}
			rewritten, err := r.rewritten(ctx, prior, m)
			if err != nil {
				yield(engine.Recorded{}, err)
				return
			}
			select {
			case expected <- m:
			case <-ctx.Done():
				return
			}
			e := engine.Recorded{Now: m.Now, Edits: m.Edits, Runs: m.Runs, Steps: m.Steps, Idle: m.Idle, Found: partitions(prior.Sources), Advanced: m.Advanced, Rewritten: rewritten}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// partitions are the names of all partitions of sources.
func partitions(sources map[string]epoch.SourceState) (names []string) {
	for source, at := range sources {
		for partition := range at.Partitions {
			names = append(names, epoch.PartitionName(source, partition))
		}
	}
	slices.Sort(names) // so that they have the same numbers in each replay
	return names
}

// rewritten is what an epoch wrote anew of a sink, behind the one before it.
func (r *runner) rewritten(ctx context.Context, before, m epoch.Manifest) (*engine.Rewriting, error) {
	for i, spec := range r.o.Graph.Sinks() {
		wrote := m.Sinks[spec.Name].Rewrote
		if wrote == nil {
			continue
		}
		ended, err := r.openEnded(ctx, spec, before.Sinks[spec.Name].Rewrite.Ends())
		if err != nil {
			return nil, fmt.Errorf("%s: epoch %d has written sink %s anew, and can't be replayed: %w", r.o.Job, m.Epoch, spec.Name, err)
		}
		defer ended.close()
		keys, err := ended.keys(ctx, wrote.Slots)
		return &engine.Rewriting{Sink: i, Slots: wrote.Slots, Ended: keys}, err
	}
	return nil, nil
}

// scratch is where a replay writes what is then compared and thrown away.
type scratch struct {
	runner *runner
	store  *store.Memory
	names  int

	windows map[string]epoch.Windows // as of the epoch before
}

// compare writes an epoch once more and tells what differs from the manifest.
func (s *scratch) compare(ctx context.Context, e *engine.Epoch, watermarks map[string]epoch.EventTime, m epoch.Manifest) (differences []string, err error) {
	r := s.runner
	differs := func(what string, recorded, now string) {
		if recorded != now {
			differences = append(differences, fmt.Sprintf("epoch %d: %s: sha256 %.12s was written, %.12s came of the replay", m.Epoch, what, recorded, now))
		}
	}
	if !reflect.DeepEqual(m.Watermarks, watermarks) {
		differences = append(differences, fmt.Sprintf("epoch %d: watermarks: %v were written, %v came of the replay", m.Epoch, m.Watermarks, watermarks))
	}
	if windows := e.Windows(s.windows, watermarks); !reflect.DeepEqual(m.Windows, windows) {
		differences = append(differences, fmt.Sprintf("epoch %d: windows: %v were written, %v came of the replay", m.Epoch, m.Windows, windows))
	}
	s.windows = m.Windows
	for i, spec := range r.o.Graph.States() {
		segment := epoch.Segment{}
		if rows(e.Changes(i)) > 0 {
			path := s.path()
			if segment, err = state.Write(ctx, s.store, r.o.Job, path, spec.Form, e.Changes(i), 0); err != nil {
				return nil, err
			}
			if err := s.store.Delete(ctx, r.o.Job+"/"+path); err != nil {
				return nil, err
			}
		}
		differs("state "+spec.Name, ownSegment(m, spec.Name), segment.SHA256)
	}
	for i, spec := range r.o.Graph.Sinks() {
		var objects []epoch.Object
		if batches := e.Rows(i); len(batches) > 0 {
			form, err := r.outboxForm(spec)
			if err != nil {
				return nil, err
			}
			path := func() (string, error) { return s.path(), nil }
			if objects, err = outbox.Write(ctx, s.store, r.o.Job, form, batches, path); err != nil {
				return nil, err
			}
			for _, o := range objects {
				if err := s.store.Delete(ctx, r.o.Job+"/"+o.Path); err != nil {
					return nil, err
				}
			}
		}
		recorded := m.Sinks[spec.Name].Outbox
		for n := range max(len(objects), len(recorded)) {
			differs("sink "+spec.Name, hashAt(recorded, n), hashAt(objects, n))
		}
	}
	return differences, nil
}

// hashAt is the hash of part n of an outbox, if it has so many.
func hashAt(outbox []epoch.Object, n int) string {
	if n >= len(outbox) {
		return ""
	}
	return outbox[n].SHA256
}

func (s *scratch) path() string {
	s.names++
	return fmt.Sprintf("replay/%d", s.names)
}

func rows(changes []*state.Changes) (n int) {
	for _, c := range changes {
		n += len(c.Index)
	}
	return n
}

// ownSegment is the hash of the segment that an epoch itself has added to a
// state, if it has: the last one.
func ownSegment(m epoch.Manifest, name string) string {
	segments := m.State[name].Segments
	if m.Counts[stateCount(name)] == 0 || len(segments) == 0 {
		return ""
	}
	return segments[len(segments)-1].SHA256
}
