package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// openSinks opens what the job writes to, as head has it. Those whose records are
// noted come first: where the place of these is gone, a sink that is new must not have
// made it anew by then.
func (r *runner) openSinks(ctx context.Context, head epoch.Manifest) error {
	begun := func(s *engine.SinkSpec) bool { return head.Sinks[s.Name].Record != "" }
	fresh := func(s *engine.SinkSpec) bool { return !begun(s) }
	all := r.o.Graph.Sinks()
	specs := slices.Concat(slices.DeleteFunc(slices.Clone(all), fresh), slices.DeleteFunc(slices.Clone(all), begun))
	for _, spec := range specs {
		opening := connector.Opening{
			Env: r.o.Env, Log: r.o.Log, Job: r.o.Job, JobID: r.job.ID(), Name: spec.Name,
			Begun: begun(spec), TransactionPrefix: r.job.TransactionPrefix(),
		}
		key := connector.RecordKey{JobID: r.job.ID(), Task: epoch.FirstTask, Sink: spec.Name}
		target, err := spec.Sink.Open(ctx, opening, key)
		if errors.Is(err, connector.ErrRecord) {
			return &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: spec.Name, Position: head.Sinks[spec.Name].Confirmed, Reason: err.Error()}
		}
		if err != nil {
			return fmt.Errorf("%s: sink %s: %w", r.o.Job, spec.Name, err)
		}
		r.sinks = append(r.sinks, &sink{spec: spec, target: target})
	}
	return nil
}

// closeWithin is how long a delivery that was told to end may take for that: one
// that doesn't listen must not keep the process.
const closeWithin = 5 * time.Second

func (r *runner) closeSinks() {
	if r.stop != nil {
		r.stop()
		ended := make(chan struct{})
		go func() {
			r.delivering.Wait()
			close(ended)
		}()
		late := r.o.Env.Clock.NewTimer(closeWithin)
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C():
			r.o.Log.Warn("a sink does not end its delivery; it is left alone, and the next run makes it again")
			return
		}
	}
	for _, s := range r.sinks {
		if err := s.target.Close(); err != nil {
			r.o.Log.Warn("closing a sink failed", "sink", s.spec.Name, "error", err)
		}
	}
}

// startDeliveries makes the records that sinks lack, notes them, and begins to
// deliver: first what earlier owners have left.
func (r *runner) startDeliveries(ctx context.Context) error {
	if r.started {
		return nil
	}
	if err := r.makeRecords(ctx); err != nil {
		return err
	}
	head, _ := r.owner.Head()
	owed, err := r.backlog(ctx, head)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop, r.failed, r.started = stop, make(chan error, len(r.sinks)), true
	for _, s := range r.sinks {
		at := head.Sinks[s.spec.Name]
		s.deliver = deliver.New(deliver.Options{
			Env: r.o.Env, Log: r.o.Log, Store: r.o.Store, Job: r.o.Job, Task: epoch.FirstTask,
			Name: s.spec.Name, Sink: s.spec.Sink, Target: s.target,
			Confirmed: at.Confirmed, Record: at.Record, Newer: r.newer,
			Groups: r.told, Delivered: r.someDelivered,
		})
		for _, o := range owed[s.spec.Name] {
			s.deliver.Add(o)
		}
		r.delivering.Go(func() {
			if err := s.deliver.Run(running); err != nil {
				r.failed <- err
			}
		})
	}
	return nil
}

// newer tells whether another owner has taken the branch.
func (r *runner) newer(ctx context.Context) error {
	own, _ := r.owner.Head()
	head, err := r.job.HeadNear(ctx, own.Branch, own.Task, own.Epoch)
	if err != nil {
		return err
	}
	at := epoch.At{Job: r.o.Job, Branch: r.owner.Branch(), Task: epoch.FirstTask, Epoch: head.Manifest.Epoch}
	if head.Sealed() {
		return &epoch.SealedError{At: at, By: head.Seal.By}
	}
	if head.Manifest.Owner != r.owner.ID() {
		return &epoch.FencedError{At: at, Owner: head.Manifest.Owner, Writer: head.Manifest.Writer}
	}
	return nil
}

// makeRecords is rule D2: a sink's record is made, without overwriting, only if
// no manifest names one, and is noted before anything is delivered.
func (r *runner) makeRecords(ctx context.Context) error {
	head, _ := r.owner.Head()
	next := carried(head)
	next.Kind = epoch.Open
	made := false
	for _, s := range r.sinks {
		at, known := next.Sinks[s.spec.Name]
		if at.Record != "" {
			continue
		}
		if !known {
			at.Start, at.Confirmed = head.Position, head.Position
		}
		id, err := r.makeRecord(ctx, s, at.Start)
		if err != nil {
			return err
		}
		at.Record, made = id, true
		next.Sinks[s.spec.Name] = at
	}
	if !made {
		return nil
	}
	_, err := r.commit(ctx, next)
	return err
}

// makeRecord makes a sink's first record and returns the id of the one that
// stands there: an owner before this one may have made it and died.
func (r *runner) makeRecord(ctx context.Context, s *sink, start epoch.Position) (string, error) {
	id, err := r.o.Env.ID()
	if err != nil {
		return "", err
	}
	first := connector.SinkRecord{
		Position: connector.Position(start), ID: id, Job: r.o.Job, Target: s.spec.Sink.Describe().Target, Branch: r.owner.Branch(),
	}
	stands, err := s.target.Make(ctx, first)
	if errors.Is(err, connector.ErrRecord) {
		return "", &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: s.spec.Name, Position: start, Reason: err.Error()}
	}
	if err != nil {
		return "", fmt.Errorf("%s: sink %s: %w", r.o.Job, s.spec.Name, err)
	}
	if stands.Position != first.Position {
		return "", &deliver.DisagreeError{
			At: epoch.At{Job: r.o.Job}, Sink: s.spec.Name, Record: &stands, Position: start,
			Reason: fmt.Sprintf("it has position %d already, and no epoch of this job has delivered to it", stands.Position),
		}
	}
	return stands.ID, nil
}

// backlog finds what earlier owners have committed and not delivered.
func (r *runner) backlog(ctx context.Context, head epoch.Manifest) (map[string][]deliver.Owed, error) {
	oldest := head.Position
	for _, s := range r.sinks {
		at := head.Sinks[s.spec.Name]
		oldest = min(oldest, max(at.Start, at.Confirmed)) // between the two is a gap
	}
	owed := map[string][]deliver.Owed{}
	var back []epoch.Manifest
	for m := head; m.Position > oldest && m.Epoch > 0; {
		if m.Kind == epoch.Data && m.Live != nil {
			back = append(back, m)
		}
		var err error
		if m, err = r.job.Manifest(ctx, m.Branch, m.Task, m.Epoch-1); err != nil {
			return nil, err
		}
	}
	slices.Reverse(back)
	for _, s := range r.sinks {
		found, err := epoch.Backlog(back, s.spec.Name, head.Sinks[s.spec.Name].Confirmed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; `sluice fsck %s` tells more", r.o.Job, err, r.o.Job)
		}
		for _, o := range found {
			hash, err := hashOf(o.Manifest)
			if err != nil {
				return nil, err
			}
			owed[s.spec.Name] = append(owed[s.spec.Name], deliveryOf(o, hash, s.spec.Name))
		}
	}
	return owed, nil
}

func hashOf(m epoch.Manifest) (string, error) {
	data, err := m.Encode()
	if err != nil {
		return "", err
	}
	return epoch.Hash(data), nil
}

// deliveryOf is what is owed, as the deliverer takes it.
func deliveryOf(o epoch.Owed, hash, sink string) deliver.Owed {
	m := o.Manifest
	s := m.Sinks[sink]
	return deliver.Owed{
		From: o.From, To: o.To, Live: *m.Live, Branch: m.Branch,
		Epoch: m.Epoch, Manifest: hash, Outbox: s.Outbox, Parted: len(s.Parts) > 0, Sources: m.Sources,
	}
}

// carried is the manifest that follows m if nothing happens.
func carried(m epoch.Manifest) epoch.Manifest {
	next := epoch.Manifest{
		Now: m.Now, Sources: maps.Clone(m.Sources), Watermarks: m.Watermarks,
		State: maps.Clone(m.State), Partial: m.Partial, Request: m.Request, Unmet: m.Unmet, Sinks: map[string]epoch.SinkState{},
	}
	if next.State == nil {
		next.State = map[string]epoch.StateEntry{}
	}
	if next.Sources == nil {
		next.Sources = map[string]epoch.SourceState{}
	}
	for name, s := range m.Sinks {
		s.Outbox, s.Parts = nil, nil
		next.Sinks[name] = s
	}
	return next
}
