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
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// stored is the state that a head holds, against what this build expects.
type stored struct {
	ways    map[string]*carry.Way // of this build's states
	dropped []string              // states that this build lacks, by consent or because others have taken them over
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
	live, ok, err := r.job.Live(ctx)
	if err != nil {
		return err
	}
	branch := epoch.MainBranch
	if ok {
		branch = live.Branch
	}
	head, err := r.job.Head(ctx, branch, epoch.FirstTask)
	var none *epoch.NoLogError
	if errors.As(err, &none) {
		return r.checkConsents(ctx, nil)
	}
	if err != nil {
		return err
	}
	if _, err = r.compare(ctx, head.Manifest); err != nil {
		return err
	}
	m := head.Manifest
	return memory.Admit(epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, needs(m), r.o.Limit)
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

// compare finds every difference between what a manifest holds and what this
// build expects.
func (r *runner) compare(ctx context.Context, m epoch.Manifest) (*stored, error) {
	s := &stored{ways: map[string]*carry.Way{}}
	var reasons, drops []string
	version, err := r.versionOf(ctx, m)
	if err != nil {
		return nil, err
	}
	before, err := storedStates(m, version)
	if err != nil {
		return nil, err
	}
	var taken []string
	for _, spec := range r.o.Graph.States() {
		w := spec.Carrier.Find(func(name string) *carry.Stored { return before[name] })
		s.ways[spec.Name] = w
		reasons, drops = append(reasons, w.Refusals...), append(drops, w.Drops...)
		for _, source := range w.Sources {
			taken = append(taken, source.Stored.Name)
		}
	}
	for name := range m.State {
		if r.stateSpec(name) != nil {
			continue
		}
		s.dropped = append(s.dropped, name)
		if !slices.Contains(taken, name) {
			drops = append(drops, name)
		}
	}
	slices.Sort(s.dropped)
	for _, name := range drops {
		if !slices.Contains(r.o.Drop, name) {
			reasons = append(reasons, fmt.Sprintf("%s: would be dropped; allow it with --drop %s", name, name))
		}
	}
	for name, sk := range m.Sinks {
		switch present := r.hasSink(name); {
		case present && sk.Dropped != "" && sk.Confirmed < m.Position && !slices.Contains(r.o.Gap, name):
			reasons = append(reasons, fmt.Sprintf("sink %s: back after an absence, in which it did not get positions %d to %d; allow that with --gap %s, or give it a new name and target", name, sk.Confirmed+1, m.Position, name))
		case !present && sk.Dropped == "" && sk.Record != "" && sk.Confirmed < m.Position:
			reasons = append(reasons, fmt.Sprintf("sink %s: removed while positions %d to %d are to be delivered; run the build that has it until it is stopped with nothing pending", name, sk.Confirmed+1, m.Position))
		}
	}
	reasons = append(reasons, r.movedSinks(m, version)...)
	for _, name := range r.o.Gap {
		if _, known := m.Sinks[name]; !known && !r.hasSink(name) {
			reasons = append(reasons, fmt.Sprintf("sink %s: --gap names it, and there never was such a sink", name))
		}
	}
	if err := r.checkConsents(ctx, drops); err != nil {
		var wrong *ConsentError
		if !errors.As(err, &wrong) {
			return nil, err
		}
		reasons = append(reasons, err.Error())
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		return nil, &RefusedError{epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, reasons}
	}
	return s, nil
}

// filesKind begins the kinds of sinks whose records lie beside what they write, so
// that a folder may have another path on another machine.
const filesKind = "file."

// movedSinks are the sinks of this build that write to another place than they have
// written to, or under other keys: what stands there already would be told apart
// by nobody.
func (r *runner) movedSinks(m epoch.Manifest, before epoch.Version) (reasons []string) {
	for name, sk := range m.Sinks {
		was, known := before.Sinks[name]
		is, present := r.o.Version.Sinks[name]
		if !known || !present || sk.Record == "" || strings.HasPrefix(was.Kind, filesKind) && strings.HasPrefix(is.Kind, filesKind) {
			continue
		}
		say := func(what, was, is string) {
			reasons = append(reasons, fmt.Sprintf("sink %s: its %s is %q, and was %q for what it has written; give it a new name, under which it begins anew", name, what, is, was))
		}
		if was.Kind != is.Kind {
			say("connector", was.Kind, is.Kind)
			continue
		}
		for _, what := range []string{"target", "mode", "key"} {
			if w, i := was.Parameters[what], is.Parameters[what]; w != i {
				say(what, w, i)
			}
		}
	}
	return reasons
}

// versionOf is the version that a manifest is of; that of an empty log is empty.
func (r *runner) versionOf(ctx context.Context, m epoch.Manifest) (epoch.Version, error) {
	if m.Version == "" {
		return epoch.Version{}, nil
	}
	v, err := r.job.Version(ctx, m.Version)
	if errors.Is(err, store.ErrNotFound) {
		return v, &epoch.DamagedError{
			At:     epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch},
			Object: r.job.Object(epoch.VersionPath(m.Version)), Expected: "the description of the epoch's version", Found: "nothing",
		}
	}
	return v, err
}

// storedStates are the states that a manifest holds, as its version had them.
func storedStates(m epoch.Manifest, v epoch.Version) (map[string]*carry.Stored, error) {
	out := map[string]*carry.Stored{}
	for name, entry := range m.State {
		form, err := state.FormOf(name, entry)
		if err != nil {
			return nil, err
		}
		had := v.States[name]
		kind := had.Kind
		if kind == "" {
			kind = "value"
		}
		out[name] = &carry.Stored{Name: name, Kind: kind, Meaning: had.Meaning, KeyMeaning: had.KeyMeaning, Form: form}
	}
	return out, nil
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

// join puts a state's name in front of a path in it.
func join(name, path string) string {
	if path == "" || path[0] == ':' || path[0] == '[' || path[0] == '{' {
		return name + path
	}
	return name + "." + path
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
