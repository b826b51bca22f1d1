package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
)

// Begin is how a branch begins that does not take over the state of the one that it
// follows.
type Begin struct {
	// Given is where the sources begin; Latest begins where the followed branch stands.
	Given  engine.Given
	Latest bool
	// Import is what the state holds; without files it begins empty.
	Import Import
	// What says it in a word or two, for people.
	What string
}

// begins tells whether the branch begins with a state of its own.
func (r *runner) begins() bool { return r.o.Follow != nil && r.o.Follow.Begin != nil }

// beginAnew makes of a base that stands for another branch's epoch one of a branch that
// begins elsewhere: with an empty state, or an imported one, at the offsets that were
// asked for. Those are cut to what the followed branch has read, but for a branch that
// takes over at once.
func (r *runner) beginAnew(ctx context.Context, from epoch.Manifest, base *epoch.Manifest) error {
	b := r.o.Follow.Begin
	sources, err := r.beginSources(ctx, from)
	if err != nil {
		return err
	}
	fresh := r.o.Follow.Kind == epoch.Fresh
	if !fresh {
		cutTo(sources, from.Sources)
	}
	base.Sources, base.State, base.Watermarks, base.Windows = sources, map[string]epoch.StateEntry{}, nil, nil
	base.Partial = map[string]epoch.Partial{}
	for _, spec := range r.o.Graph.States() {
		base.Partial[spec.Name] = epoch.Partial{Why: "began empty, " + b.What}
	}
	if !fresh {
		at, err := r.job.NewestWithin(ctx, from.Branch, epoch.FirstTask, sources)
		if err != nil {
			return err
		}
		base.Position, base.Covers = at, map[string]epoch.Position{from.Task: at}
	}
	if len(b.Import.Files) == 0 {
		if b.Given.Earliest && whole(sources) {
			clear(base.Partial) // it sees all inputs that there ever were
		}
		return nil
	}
	return r.importInto(ctx, b.Import, base)
}

// whole tells whether all partitions begin with the first record that they ever had.
func whole(sources map[string]epoch.SourceState) bool {
	for _, s := range sources {
		for _, at := range s.Partitions {
			if at.Next > 0 {
				return false
			}
		}
	}
	return true
}

// beginSources are the offsets at which the branch begins.
func (r *runner) beginSources(ctx context.Context, from epoch.Manifest) (map[string]epoch.SourceState, error) {
	sources := map[string]epoch.SourceState{}
	if r.o.Follow.Begin.Latest {
		for _, s := range r.o.Graph.Sources() {
			if at, ok := from.Sources[s.Name]; ok {
				sources[s.Name] = at
			}
		}
		return sources, nil
	}
	eo := r.o.engineOptions()
	eo.JobID, eo.TransactionPrefix = r.job.ID(), r.job.TransactionPrefix()
	located, err := r.o.Graph.Locate(ctx, eo, r.o.Follow.Begin.Given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.o.Job, err)
	}
	for name, parts := range located {
		sources[name] = sourceState(parts)
	}
	if len(r.o.Follow.Begin.Import.Files) > 0 {
		return sources, r.readSoFar(sources, from.Sources)
	}
	return sources, nil
}

// readSoFar refuses offsets that another branch has not come to: the state that stands
// for them would see what lies between again.
func (r *runner) readSoFar(sources, other map[string]epoch.SourceState) error {
	for name, s := range sources {
		theirs, both := other[name]
		for partition, at := range s.Partitions {
			if limit := theirs.Partitions[partition].Next; both && at.Next > limit {
				return &FromError{r.o.Job, "an imported state", fmt.Sprintf("source %s, partition %s: it stands for what comes before offset %d, and the live branch has read to %d: wait until that is there", name, partition, at.Next, limit)}
			}
		}
	}
	return nil
}

// cutTo takes offsets back to those of another branch: a follower never runs ahead. A
// partition that the other has not noted is left out.
func cutTo(sources, other map[string]epoch.SourceState) {
	for name, s := range sources {
		theirs, both := other[name]
		if !both {
			continue // this build's alone
		}
		for partition, at := range s.Partitions {
			limit, noted := theirs.Partitions[partition]
			switch {
			case !noted:
				delete(s.Partitions, partition)
			case at.Next > limit.Next:
				s.Partitions[partition] = limit
			}
		}
	}
}

// importInto puts what files hold into a base.
func (r *runner) importInto(ctx context.Context, im Import, base *epoch.Manifest) error {
	specs, err := importedStates(r.o, im)
	if err != nil {
		return err
	}
	i := &importer{o: r.o, owner: r.owner, read: im.Read, runBytes: importRunBytes}
	defer i.cleanUp(ctx)
	base.Counts = map[string]int64{}
	for n, file := range im.Files {
		entry := entryOf(specs[n])
		done, err := i.state(ctx, specs[n], file)
		if err != nil {
			return err
		}
		if done.segment.Rows > 0 {
			entry.Segments = []epoch.Segment{done.segment}
		}
		base.State[file.State] = entry
		base.Counts[stateCount(file.State)] = done.segment.Rows
		delete(base.Partial, file.State)
	}
	i.made()
	return nil
}

// comparePlaces makes the plan of a branch that begins with a state of its own: only
// sources, sinks and flags can refuse it, and what the caller has found besides.
func (r *runner) comparePlaces(ctx context.Context, m epoch.Manifest, besides ...string) error {
	in, err := plan.Gather(ctx, r.job, m, plan.Build{Version: r.o.Version, Ways: r.o.Graph.Ways, Drop: r.o.Drop, Gap: r.o.Gap, Follows: true})
	if err != nil {
		return err
	}
	reasons := besides
	for _, l := range plan.Compare(in).Lines {
		if l.Part == plan.SourcePart || l.Part == plan.SinkPart {
			for _, refusal := range l.Refusals {
				reasons = append(reasons, string(l.Part)+" "+refusal)
			}
		}
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		return &RefusedError{epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, reasons}
	}
	return nil
}

// repeats are the sinks that would get outputs again which they have, and can't replace
// them, if a branch began at these offsets; and those that are back after an absence.
func (r *runner) repeats(m epoch.Manifest, begins map[string]epoch.SourceState) []string {
	reasons := r.absent(m)
	again := slices.ContainsFunc(r.o.Graph.Sources(), func(s engine.SourceInfo) bool {
		return readsAgain(begins[s.Name], m.Sources[s.Name])
	})
	for _, s := range r.o.Graph.Sinks() {
		at, has := m.Sinks[s.Name]
		if again && has && at.Dropped == "" && s.Key == nil && !slices.Contains(r.o.Follow.RepeatOutputs, s.Name) {
			reasons = append(reasons, fmt.Sprintf("sink %s: it is appended to, and would get outputs again that it has; give it a new name, or allow that with --repeat-outputs %s", s.Name, s.Name))
		}
	}
	return reasons
}

// absent are the sinks that the live build lacks, so that they get nothing of what it
// puts out, and which nobody has allowed to lack that.
func (r *runner) absent(live epoch.Manifest) (reasons []string) {
	settled := r.cutting().Settled
	for _, s := range r.o.Graph.Sinks() {
		if live.Sinks[s.Name].Dropped != "" && settled[s.Name].Gap == "" {
			reasons = append(reasons, fmt.Sprintf("sink %s: it is back after an absence; allow that it lacks what came meanwhile with --gap %s, or give it a new name", s.Name, s.Name))
		}
	}
	return reasons
}

// readsAgain tells whether a source that begins somewhere may give what it, or one of
// another name, has given before it stood elsewhere. A partition without a place begins
// with its first record, whenever it is found.
func readsAgain(begins, stood epoch.SourceState) bool {
	if stood.Partitions == nil {
		return true
	}
	for partition, at := range stood.Partitions {
		if begins.Partitions[partition].Next < at.Next {
			return true
		}
	}
	return false
}

// begunAnew tells whether this build runs the job and has begun it anew before: a
// supervisor repeats the command, which must not undo what came of it since.
func (r *runner) begunAnew(ctx context.Context, m epoch.Manifest) (bool, error) {
	if m.Build != r.o.Build {
		return false, nil
	}
	records, err := r.job.LiveRecords(ctx, nil)
	if err != nil {
		return false, err
	}
	for _, record := range records {
		if record.Kind != epoch.Fresh {
			continue
		}
		file, err := r.job.BranchFile(ctx, record.Branch)
		if err != nil || file.Build == r.o.Build {
			return err == nil, err
		}
	}
	return false, nil
}

// openFresh is a cold start: the live branch is sealed, and a branch that begins
// elsewhere is live at once.
func (r *runner) openFresh(ctx context.Context, me epoch.Identity) error {
	live, ok, err := r.job.Live(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s: the job has never run in this store: expected one to begin anew; run it", r.o.Job)
	}
	m, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	if err := r.replaced(m); err != nil {
		return err
	}
	if done, err := r.begunAnew(ctx, m); err != nil || done {
		if err == nil {
			r.o.Log.Info("this build has begun the job anew before, and goes on; `upgrade --from earliest --again` begins once more")
			r.o.Follow = nil
			err = r.take(ctx, me)
		}
		return err
	}
	if err := r.checkNames(ctx, m); err != nil {
		return err
	}
	begins, err := r.beginSources(ctx, m) // before anything is ended
	if err != nil {
		return err
	}
	if err := r.comparePlaces(ctx, m, r.repeats(m, begins)...); err != nil {
		return err
	}
	ends, err := r.job.SealBranch(ctx, live.Branch, epoch.ThisProcess(), "a cold start")
	if err != nil {
		return err
	}
	final := ends[epoch.FirstTask].Manifest
	r.o.Log.Info("sealed", "branch", live.Branch, "epoch", final.Epoch)
	if begins, err = r.beginSources(ctx, final); err != nil { // which may have read on since
		return err
	}
	if again := r.repeats(final, begins); len(again) > 0 {
		return fmt.Errorf("%s: branch %s has read on until it was ended, beyond where a cold start %s was to begin: %s. Go on behind it with `resume`; stop the job before the next try", r.o.Job, live.Branch, r.o.Follow.Begin.What, strings.Join(again, "; "))
	}
	r.o.Follow.From = &epoch.Point{Branch: final.Branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: final.Epoch}}
	if err := r.openBegun(ctx, me); err != nil {
		return err
	}
	c := r.cutting()
	c.OtherOffsets = true
	step, record, err := r.owner.GoLive(ctx, c)
	if err == nil && step != epoch.IsLive {
		err = fmt.Errorf("%s: branch %s went live meanwhile, as generation %d; nothing of this build was kept", r.o.Job, record.Branch, record.N)
	}
	r.o.Follow = nil
	return err
}
