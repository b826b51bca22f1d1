package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// awaitedGroup is a group of consumers that changes over from sinks that the build lacks
// to those that are new.
type awaitedGroup struct {
	name   string // empty: none
	within time.Duration
}

// groupEvery is the time between two looks how far the group is.
const groupEvery = 250 * time.Millisecond

// AwaitGroupError says that a group of consumers can't be awaited.
type AwaitGroupError struct {
	Job, Group string
	// Expected and Found say what the wait needs and what there is.
	Expected, Found string
}

// Error implements error.
func (e *AwaitGroupError) Error() string {
	return fmt.Sprintf("%s: group %s can't be awaited: expected %s, found %s. Nothing was begun; leave --wait-group out.", e.Job, e.Group, e.Expected, e.Found)
}

// ExitCode is the exit code of the command line.
func (e *AwaitGroupError) ExitCode() int { return 2 }

// checkAwaited refuses, before a branch is begun, to await a group where nothing would
// wait for it, or nothing could tell of it.
func (r *runner) checkAwaited(ctx context.Context) error {
	if r.awaited.name == "" {
		return nil
	}
	live, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	refuse := func(expected, found string) error {
		return &AwaitGroupError{r.o.Job, r.awaited.name, expected, found}
	}
	left := r.leaves(live)
	untold := func(s epoch.SinkState) bool { return s.Record != "" && s.Span == nil } // one without a record may yet tell
	names := strings.Join(slices.Sorted(maps.Keys(left)), ", ")
	switch {
	case len(r.o.Follow.starts) == 0:
		return refuse("a sink of a new name, which waits", "none")
	case len(left) == 0:
		return refuse("a sink that this build lacks, which the group reads to its end", "none")
	case !slices.ContainsFunc(slices.Collect(maps.Values(left)), func(s epoch.SinkState) bool { return !untold(s) }):
		return refuse("a sink that this build lacks in a system that has groups of consumers, such as Kafka", "sink "+names)
	}
	tells := false
	for _, spec := range r.o.Graph.Sinks() {
		if _, starts := r.o.Follow.starts[spec.Name]; !starts {
			continue
		}
		told, err := r.askAwaited(ctx, spec, left)
		if err != nil {
			return err
		}
		tells = tells || told
	}
	if !tells {
		return refuse("a new sink in a system that has groups of consumers, such as Kafka", "sink "+strings.Join(slices.Sorted(maps.Keys(r.o.Follow.starts)), ", "))
	}
	return nil
}

// leaves are the sinks that another build has and this one lacks.
func (r *runner) leaves(other epoch.Manifest) map[string]epoch.SinkState {
	left := maps.Clone(other.Sinks)
	maps.DeleteFunc(left, func(name string, s epoch.SinkState) bool { return s.Dropped != "" || r.hasSink(name) })
	return left
}

// askAwaited asks the system of a new sink how far the awaited group is; tells is false if
// it has no groups. A group that has read nothing of the sinks that are left may begin
// later, or be misspelt: that is told.
func (r *runner) askAwaited(ctx context.Context, spec *engine.SinkSpec, left map[string]epoch.SinkState) (tells bool, err error) {
	s, err := r.openSink(ctx, spec, false)
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, s.target.Close()) }()
	t, tells := s.target.(connector.CommittedTarget)
	if !tells {
		return false, nil
	}
	committed, err := t.CommittedOffsets(ctx, r.awaited.name)
	if err != nil {
		return true, fmt.Errorf("%s: sink %s: group %s can't be awaited: %w", r.o.Job, spec.Name, r.awaited.name, err)
	}
	ends := map[string]epoch.DroppedSink{}
	for name, state := range left {
		ends[name] = epoch.DroppedSink{Span: state.Span}
	}
	if unread(ends, committed) == readsNone {
		r.o.Log.Warn("the group of consumers that new sinks are to wait for has committed no offset of the sinks that this build lacks", "sink", spec.Name, "group", r.awaited.name)
	}
	return true, nil
}

// readsNone says that a group has none of the sinks that have ended.
const readsNone = "the group has committed no offset of them"

// holdBack waits, before the first delivery to a sink that is new since the cut by which
// the branch is live, until the awaited group has read all of the sinks that it lacks, for
// at most the time that was given. That begins anew with each start.
func (r *runner) holdBack(ctx context.Context, s *sink) {
	t, tells := s.target.(connector.CommittedTarget)
	if r.awaited.name == "" || !tells {
		return
	}
	head, _ := r.owner.Head()
	waiting, cancel := env.Within(ctx, r.o.Env.Clock, r.awaited.within)
	defer cancel()
	log := r.o.Log.With("sink", s.spec.Name, "group", r.awaited.name)
	told := false
	for {
		waits, why, err := r.behind(waiting, t, s.spec.Name, head)
		switch {
		case err != nil:
			why = err.Error()
		case !waits:
			return
		case why == "":
			log.Info("the group of consumers has read all of the sinks that this build lacks: the new sink gets its rows")
			return
		}
		if !told {
			told = true
			log.Info("a new sink waits for a group of consumers to read all of the sinks that this build lacks", "waits_for", why, "at_most", r.awaited.within.String())
		}
		if env.Pause(waiting, r.o.Env.Clock, groupEvery) == nil {
			continue
		}
		if ctx.Err() == nil {
			log.Warn("the group of consumers has not read all of the sinks that this build lacks in time: the new sink gets its rows all the same", "waits_for", why, "at_most", r.awaited.within.String())
		}
		return
	}
}

// behind says what the awaited group has not read yet; waits is false for a sink that
// need not wait for it.
func (r *runner) behind(ctx context.Context, t connector.CommittedTarget, sink string, head epoch.Manifest) (waits bool, why string, err error) {
	live, ok, err := r.job.Live(ctx)
	if err != nil || !ok || live.Ends == nil || live.Branch != head.Branch || live.Sinks[sink].Start == "" {
		return err != nil, "", err
	}
	if head.Sinks[sink].Confirmed > live.Ends.Tasks[head.Task].Position {
		return false, "", nil // it has got its first
	}
	committed, err := t.CommittedOffsets(ctx, r.awaited.name)
	if err != nil {
		return true, "", err
	}
	ends := map[string]epoch.DroppedSink{}
	for name, said := range live.Sinks {
		if said.Dropped == "" {
			continue
		}
		if ends[name], err = r.job.DroppedSink(ctx, head, name); err != nil {
			return true, "", err
		}
	}
	return true, unread(ends, committed), nil
}

// unread says what of sinks that have ended a group has not read yet; empty: nothing. A
// sink of which the group has committed no offset, while it has of others, is none that it
// reads.
func unread(ends map[string]epoch.DroppedSink, committed map[string]connector.Offset) string {
	reads, rows := false, false
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		ended := ends[name]
		if ended.Span == nil {
			continue // in a system without offsets
		}
		if ended.Pending > 0 && !ended.GivenUp {
			return fmt.Sprintf("sink %s has not got all that it is owed yet", name)
		}
		rows = rows || len(ended.Span.Ends) > 0
		var behind string
		own := false
		for _, partition := range slices.Sorted(maps.Keys(ended.Span.Ends)) {
			at, has := committed[partition]
			own = own || has
			if end := ended.Span.Ends[partition]; at.Next < end && behind == "" {
				behind = fmt.Sprintf("partition %s: the group is at offset %d, the last row is before %d", partition, at.Next, end)
			}
		}
		if own && behind != "" {
			return behind
		}
		reads = reads || own
	}
	if rows && !reads {
		return readsNone
	}
	return ""
}
