package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// stored is the state that a head holds, against what this build expects.
type stored struct {
	changed []string // states whose schemas differ, and can be resolved
	dropped []string // states that this build lacks, by consent
}

// check holds the live branch's head against this build, before anything of it
// is taken: a build that can't go on from there changes nothing.
func (r *runner) check(ctx context.Context) error {
	m, begun, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	if !begun {
		return r.checkConsents(ctx, nil)
	}
	if _, err = r.compare(ctx, m); err != nil {
		return err
	}
	return memory.Admit(epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, needs(m), r.o.Limit)
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

// compare finds every difference between what a manifest holds and what this
// build expects.
func (r *runner) compare(ctx context.Context, m epoch.Manifest) (*stored, error) {
	s := &stored{}
	var reasons, drops []string
	for _, spec := range r.o.Graph.States() {
		entry, ok := m.State[spec.Name]
		if !ok {
			continue
		}
		form, err := state.FormOf(spec.Name, entry)
		if err != nil {
			return nil, err
		}
		refused, dropping := differences(spec, form)
		reasons, drops = append(reasons, refused...), append(drops, dropping...)
		if !sameForm(form, spec.Form) {
			s.changed = append(s.changed, spec.Name)
		}
	}
	for name := range m.State {
		if r.stateSpec(name) == nil {
			s.dropped = append(s.dropped, name)
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
	moved, err := r.movedSinks(ctx, m)
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, moved...)
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
func (r *runner) movedSinks(ctx context.Context, m epoch.Manifest) (reasons []string, err error) {
	if m.Version == r.o.Build.Version || m.Version == "" {
		return nil, nil
	}
	before, err := r.job.Version(ctx, m.Version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &epoch.DamagedError{
			At:     epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch},
			Object: r.job.Object(epoch.VersionPath(m.Version)), Expected: "the description of the epoch's version", Found: "nothing",
		}
	}
	if err != nil {
		return nil, err
	}
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
	return reasons, nil
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

// differences tells, of one state, what can't be carried over, and what would
// be dropped.
func differences(spec *engine.StateSpec, form state.Form) (refused, drops []string) {
	say := func(what string, old, new *schema.Schema) {
		switch {
		case old == nil && new == nil:
		case old == nil || new == nil:
			refused = append(refused, fmt.Sprintf("%s: a state of another kind: its %s is new or gone", spec.Name, what))
		default:
			for _, d := range schema.Differences(old, new) {
				refused = append(refused, fmt.Sprintf("%s, %s: %s; stored keys can't be carried over", spec.Name, what, d))
			}
		}
	}
	say("key", form.Key, spec.Form.Key)
	say("element", form.Element, spec.Form.Element)
	for _, d := range schema.Differences(form.Value, spec.Form.Value) {
		path := join(spec.Name, d.Path)
		switch {
		case !d.Resolves:
			refused = append(refused, join(spec.Name, d.String())+": can't be carried over")
		case d.Drops:
			drops = append(drops, path)
		}
	}
	if len(refused) == 0 {
		if err := spec.Check(form.Value); err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", spec.Name, err))
		}
	}
	return refused, drops
}

// join puts a state's name in front of a path in it.
func join(name, path string) string {
	if path == "" || path[0] == ':' || path[0] == '[' || path[0] == '{' {
		return name + path
	}
	return name + "." + path
}

func sameForm(a, b state.Form) bool {
	same := func(a, b *schema.Schema) bool {
		if a == nil || b == nil {
			return a == b
		}
		return a.Equal(b)
	}
	return same(a.Key, b.Key) && same(a.Element, b.Element) && same(a.Value, b.Value)
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

// adopt makes a branch whose head is another version's one of this version: the
// states whose schemas have changed are written anew, and an opening says so,
// before any record is read.
func (r *runner) adopt(ctx context.Context, run *engine.Run) error {
	head, _ := r.owner.Head()
	if head.Version == r.o.Build.Version && len(r.stored.changed) == 0 && len(r.stored.dropped) == 0 {
		return nil
	}
	next := carry(head)
	next.Kind, next.Version, next.Build = epoch.Open, r.o.Build.Version, r.o.Build
	for _, name := range r.stored.dropped {
		delete(next.State, name)
	}
	r.adoptSinks(next)
	for i, spec := range r.o.Graph.States() {
		if !slices.Contains(r.stored.changed, spec.Name) {
			continue
		}
		entry, err := r.rewrite(ctx, run, i, spec)
		if err != nil {
			return err
		}
		next.State[spec.Name] = entry
	}
	if _, err := r.commit(ctx, next); err != nil {
		return err
	}
	r.stored.changed, r.stored.dropped = nil, nil
	r.o.Log.Info("adopted a new version", "version", r.o.Build.Version, "before", head.Version)
	return nil
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

// rewrite writes all of a state in this build's schemas.
func (r *runner) rewrite(ctx context.Context, run *engine.Run, number int, spec *engine.StateSpec) (epoch.StateEntry, error) {
	entry := entryOf(spec)
	changes, err := run.Dump(number)
	if err != nil {
		return entry, err
	}
	segment, err := r.writeState(ctx, spec, changes)
	if err != nil {
		return entry, err
	}
	if segment.Rows > 0 {
		entry.Segments = []epoch.Segment{segment}
	}
	return entry, nil
}

func entryOf(spec *engine.StateSpec) epoch.StateEntry {
	e := epoch.StateEntry{Key: spec.Form.Key.String(), Value: spec.Form.Value.String()}
	if spec.Form.Element != nil {
		e.Element = spec.Form.Element.String()
	}
	return e
}
