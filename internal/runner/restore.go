package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/plan"
	"github.com/sluicestream/sluice/internal/state"
)

// stored is the state that a head holds, against what this build expects.
type stored struct {
	ways    map[string]*carry.Way // of this build's states
	dropped []string              // states that this build lacks, by consent or because others have taken them over
	partial map[string]epoch.Partial
	windows map[string]epoch.Windows
}

// rewrites tells whether anything has to be written anew.
func (s *stored) rewrites() bool {
	for _, w := range s.ways {
		if w.Rewrites() {
			return true
		}
	}
	return len(s.dropped) > 0
}

// check holds the live branch's head against this build, before anything of it
// is taken: a build that can't go on from there changes nothing.
func (r *runner) check(ctx context.Context) error {
	m, begun, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	if !begun {
		return r.checkFirst()
	}
	if err := r.replaced(m); err != nil {
		return err
	}
	found, err := r.compare(ctx, m)
	if err != nil {
		return err
	}
	if err := r.awaitForgetting(ctx, m, found); err != nil {
		return err
	}
	return memory.Admit(epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, needs(m), r.o.Limit)
}

// replaced tells whether another build has replaced this one, as the live branch's head
// says. It is asked before the plan is made: whether this build fits what its successor
// has made of the state does not matter then, and a supervisor is to be told why it is
// of no use to start it again.
func (r *runner) replaced(m epoch.Manifest) error {
	if r.wanted() || r.o.Follow != nil && r.o.Follow.Kind == epoch.Rollback || !slices.Contains(m.Superseded, r.o.Build) {
		return nil
	}
	return &epoch.SupersededError{At: epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, Build: r.o.Build, Now: m.Build}
}

// wanted tells whether a person wants this build although another one has replaced it.
func (r *runner) wanted() bool {
	f := r.o.Follow
	return r.o.Replace || f != nil && f.Kind == epoch.Upgrade && f.Again
}

// liveHead is the newest manifest of the live branch; begun tells whether there is one.
func (r *runner) liveHead(ctx context.Context) (m epoch.Manifest, begun bool, err error) {
	live, ok, err := r.job.Live(ctx)
	if err != nil {
		return m, false, err
	}
	branch := epoch.MainBranch
	if ok {
		branch = live.Branch
	}
	head, err := r.job.Head(ctx, branch, epoch.FirstTask)
	var none *epoch.NoLogError
	if errors.As(err, &none) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	return head.Manifest, true, nil
}

// RefusedError says that this build can't go on from where the job stands.
type RefusedError struct {
	epoch.At
	// Reasons has one line for each difference.
	Reasons []string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: refused: this build does not fit what is stored: %s. Nothing was changed. Mend the build, or run the one that the job ran before; `sluice state list %s` shows what is stored.",
		e.At, strings.Join(e.Reasons, "; "), e.Job)
}

// Summary is what the error says without the reasons, and Details are these: for
// those who show them as a list.
func (e *RefusedError) Summary() string {
	return fmt.Sprintf("%s: refused: this build does not fit what is stored. Nothing was changed. Mend the build, or run the one that the job ran before; `sluice state list %s` shows what is stored.", e.At, e.Job)
}

// Details has one line for each difference.
func (e *RefusedError) Details() []string { return e.Reasons }

// ExitCode is the exit code of the command line.
func (e *RefusedError) ExitCode() int { return 13 }

// compare makes the plan for a manifest, and refuses what it refuses.
func (r *runner) compare(ctx context.Context, m epoch.Manifest) (*stored, error) {
	in, err := plan.Gather(ctx, r.job, m, plan.Build{Version: r.o.Version, Ways: r.o.Graph.Ways, Drop: r.o.Drop, Gap: r.o.Gap, Follows: r.o.Follow != nil})
	if err != nil {
		return nil, err
	}
	p := plan.Compare(in)
	if p.Refuses() {
		return nil, &RefusedError{p.At, p.Refusals()}
	}
	s := &stored{ways: in.Ways, partial: p.Partial(), windows: p.Windows()}
	for name := range m.State {
		if r.stateSpec(name) == nil {
			s.dropped = append(s.dropped, name)
		}
	}
	slices.Sort(s.dropped)
	return s, nil
}

func (r *runner) hasSink(name string) bool {
	return slices.ContainsFunc(r.o.Graph.Sinks(), func(s *engine.SinkSpec) bool { return s.Name == name })
}

// stateSpec is this build's state of a name, or nil.
func (r *runner) stateSpec(name string) *engine.StateSpec {
	for _, s := range r.o.Graph.States() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// restore loads what the head holds.
func (r *runner) restore(ctx context.Context, run *engine.Run) error {
	head, _ := r.owner.Head()
	return r.load(ctx, run, head)
}

// load puts a manifest's state into a run's tables.
func (r *runner) load(ctx context.Context, run *engine.Run, m epoch.Manifest) error {
	for i, spec := range r.o.Graph.States() {
		entry, ok := m.State[spec.Name]
		if !ok {
			continue
		}
		form, err := state.FormOf(spec.Name, entry)
		if err != nil {
			return err
		}
		var rows int64
		for _, s := range entry.Segments {
			rows += s.Rows
		}
		load, err := run.Load(i, form, rows)
		if err != nil {
			return err
		}
		load = r.guarded(m, spec.Name, rows, load)
		if err := state.Restore(ctx, r.o.Store, r.o.Job, form, entry.Segments, run.Slots(), load); err != nil {
			return err
		}
		run.Loaded(i)
	}
	return nil
}

// looksWhileLoading is the number of rows between two looks at the memory.
const looksWhileLoading = 1 << 14

// guarded is a load that gives up when the memory does not suffice, before the
// kernel ends the process for that, again at each restart.
func (r *runner) guarded(m epoch.Manifest, name string, rows int64, load func(part int) func(*state.Entry) error) func(part int) func(*state.Entry) error {
	if r.guard == nil {
		return load
	}
	at := epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}
	var loaded atomic.Int64
	return func(part int) func(*state.Entry) error {
		put, n := load(part), 0
		return func(e *state.Entry) error {
			if n++; n%looksWhileLoading == 0 {
				if err := r.guard.Loading(at, name, loaded.Add(looksWhileLoading), rows); err != nil {
					return err
				}
				r.o.Board.Alive()
			}
			return put(e)
		}
	}
}

// adoptSinks notes which sinks this build lacks, all of whose deliveries are
// done, and lets those that are back go on: from the record that they have, over
// the gap, to which a person has consented.
func (r *runner) adoptSinks(next epoch.Manifest) {
	head, _ := r.owner.Head()
	for name, s := range next.Sinks {
		switch {
		case !r.hasSink(name):
			s.Dropped = "consented"
		case s.Dropped != "":
			s.Dropped, s.Start = "", head.Position
		}
		next.Sinks[name] = s
	}
}

func entryOf(spec *engine.StateSpec) epoch.StateEntry {
	e := epoch.StateEntry{Key: spec.Form.Key.String(), Value: spec.Form.Value.String()}
	if spec.Form.Element != nil {
		e.Element = spec.Form.Element.String()
	}
	return e
}
