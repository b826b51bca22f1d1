package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// Rest is what a sink was owed that the live branch's build lacks.
type Rest struct {
	Sink string
	// Delivered and Pending count deliveries: those that were made now, and those that the
	// sink is owed still.
	Delivered, Pending int
	// Lacks says that this build lacks the sink as well, so that nothing was tried.
	Lacks bool
}

// DeliverRest delivers what sinks are owed that the live branch's build lacks and this one
// has (D6): the process that was to do so has died. It owns no branch and reads nothing.
// The sink's record lets each delivery in once, so that it may be ended anywhere, or run
// twice at once. If ctx ends, what is left stays owed.
func DeliverRest(ctx context.Context, o Options) (all []Rest, err error) {
	r, look := &runner{o: o}, context.WithoutCancel(ctx) // what is owed is told in any case
	if r.job, err = epoch.FindJob(look, o.Env, o.Store, o.Job); err != nil {
		return nil, err
	}
	head, _, err := r.liveHead(look)
	if err != nil {
		return nil, err
	}
	ended := ""
	for _, name := range slices.Sorted(maps.Keys(head.Sinks)) {
		if head.Sinks[name].Dropped != epoch.ToDrain {
			continue
		}
		owed, err := r.job.DroppedSink(look, head, name)
		if err != nil {
			return all, err
		}
		if owed.Pending == 0 || owed.GivenUp {
			continue
		}
		if !r.hasSink(name) {
			all = append(all, Rest{Sink: name, Pending: int(owed.Pending), Lacks: true})
			continue
		}
		if owed.Ended != ended { // whose owner all of its sinks have in common
			if err := r.awaitEnded(ctx, owed.Ended); err != nil && ctx.Err() == nil {
				return all, err
			}
			ended = owed.Ended
		}
		if ctx.Err() != nil {
			all = append(all, Rest{Sink: name, Pending: int(owed.Pending)})
			continue
		}
		rest, err := r.deliverRest(ctx, head, name, owed.Live)
		if all = append(all, rest); err != nil {
			return all, err
		}
	}
	return all, ctx.Err()
}

// awaitEnded waits for a lease if the last owner of an ended branch may be there still: it
// delivers the same, and the two would only be in each other's way.
func (r *runner) awaitEnded(ctx context.Context, branch string) error {
	head, err := r.job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return err
	}
	beat, ok, err := r.job.Heartbeat(ctx, branch, epoch.FirstTask)
	if err != nil || ok && beat.Released || head.Manifest.Writer.Gone() {
		return err
	}
	r.o.Log.Info("the process that was to deliver the rest may do so still: waiting for a lease", "branch", branch, "writer", head.Manifest.Writer.String(), "lease", r.o.Lease.String())
	return env.Pause(ctx, r.o.Env.Clock, r.o.Lease)
}

// deliverRest delivers what a sink is owed that generation n has dropped.
func (r *runner) deliverRest(ctx context.Context, head epoch.Manifest, name string, n epoch.Generation) (rest Rest, err error) {
	rest.Sink = name
	at := head.Sinks[name]
	if at.Record == "" {
		return rest, fmt.Errorf("%s: sink %s: expected a record that an epoch has noted, found none, so that nothing was delivered yet; go back to this build with `rollback`, which makes one", r.o.Job, name)
	}
	specs := r.o.Graph.Sinks()
	s, err := r.openSink(ctx, specs[slices.IndexFunc(specs, func(s *engine.SinkSpec) bool { return s.Name == name })], true)
	if errors.Is(err, connector.ErrRecord) {
		return rest, &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: name, Position: at.Confirmed, Reason: err.Error()}
	}
	if err != nil {
		return rest, err
	}
	defer s.target.Close()
	owed, err := r.job.OwedTo(ctx, head, []string{name})
	if err != nil {
		return rest, err
	}
	if len(owed[name]) == 0 {
		return rest, nil // another process has brought it meanwhile
	}
	o := deliver.Options{
		Env: r.o.Env, Log: r.o.Log, Store: r.o.Store, Job: r.o.Job, Task: epoch.FirstTask,
		Name: name, Sink: s.spec.Sink, Target: s.target, Confirmed: at.Confirmed, Span: at.Span, Record: at.Record,
		Newer: func(ctx context.Context, _ bool) error { return r.stillLacks(ctx, head) },
	}
	if at.Fill != nil {
		o.Fill = *at.Fill
	}
	d := deliver.New(o)
	for _, owes := range owed[name] {
		hash, err := hashOf(owes.Manifest)
		if err != nil {
			return rest, err
		}
		d.Add(r.deliveryOf(owes, hash, name, n-1)) // whose generation that one has ended
	}
	delivering, end := context.WithCancel(ctx)
	defer end()
	ran := make(chan error, 1)
	go func() { ran <- d.Run(delivering); end() }()
	waited := d.Wait(delivering, 0)
	d.Cease()
	err = <-ran
	rest.Pending = d.Pending()
	rest.Delivered = len(owed[name]) - rest.Pending
	if err != nil || waited != nil {
		return rest, err
	}
	_, span := d.Reached()
	r.o.Log.Info("delivered the rest of a sink that the next build lacks", "sink", name)
	return rest, r.job.PutDrained(ctx, n, epoch.FirstTask, name, span)
}

// stillLacks tells whether another branch is live by now, which may have the sinks again.
func (r *runner) stillLacks(ctx context.Context, head epoch.Manifest) error {
	live, _, err := r.job.Live(ctx)
	if err == nil && live.Branch != head.Branch {
		err = &epoch.SealedError{At: epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch}, Next: live.Branch}
	}
	return err
}
