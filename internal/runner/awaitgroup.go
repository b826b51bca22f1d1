package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
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

// checkAwaited refuses to await a group where no sink could tell of it.
func (r *runner) checkAwaited() error {
	tells := func(s *sink) bool {
		_, ok := s.target.(connector.CommittedTarget)
		return ok
	}
	if r.awaited.name == "" || slices.ContainsFunc(r.sinks, tells) {
		return nil
	}
	return fmt.Errorf("%s: group %s can't be awaited: expected a sink in a system that has groups of consumers, such as Kafka, found none; leave the group out", r.o.Job, r.awaited.name)
}

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
		return "the group has committed no offset of them"
	}
	return ""
}
