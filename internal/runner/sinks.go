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
		s, err := r.openSink(ctx, spec, begun(spec))
		if errors.Is(err, connector.ErrRecord) {
			return &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: spec.Name, Position: head.Sinks[spec.Name].Confirmed, Reason: err.Error()}
		}
		if err != nil {
			return err
		}
		r.sinks = append(r.sinks, s)
	}
	return nil
}

// openSink opens one of them; begun says that its record is noted.
func (r *runner) openSink(ctx context.Context, spec *engine.SinkSpec, begun bool) (*sink, error) {
	opening := connector.Opening{
		Env: r.o.Env, Log: r.o.Log, Job: r.o.Job, JobID: r.job.ID(), Name: spec.Name,
		Begun: begun, TransactionPrefix: r.job.TransactionPrefix(),
	}
	target, err := spec.Sink.Open(ctx, opening, connector.RecordKey{JobID: r.job.ID(), Task: epoch.FirstTask, Sink: spec.Name})
	if err != nil {
		return nil, fmt.Errorf("%s: sink %s: %w", r.o.Job, spec.Name, err)
	}
	return &sink{spec: spec, target: target}, nil
}

// closeWithin is how long a delivery that was told to end may take for that: one
// that doesn't listen must not keep the process.
const closeWithin = 5 * time.Second

func (r *runner) closeSinks() {
	if r.stop != nil {
		r.stop()
		if !r.deliveriesEnd(closeWithin) {
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

// deliveriesEnd waits until all deliveries have ended, for at most so long, and tells
// whether they have.
func (r *runner) deliveriesEnd(within time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		r.delivering.Wait()
		close(ended)
	}()
	late := r.o.Env.Clock.NewTimer(within)
	defer late.Stop()
	select {
	case <-ended:
		return true
	case <-late.C():
		return false
	}
}

// startDeliveries makes the records that sinks lack, notes them, and begins to
// deliver: first what earlier owners have left.
func (r *runner) startDeliveries(ctx context.Context) error {
	var waiting []*sink
	for _, s := range r.sinks {
		if s.deliver == nil {
			waiting = append(waiting, s)
		}
	}
	return r.startDelivering(ctx, waiting, r.job.OwedTo)
}

// startDelivering begins to deliver to some of the sinks.
func (r *runner) startDelivering(ctx context.Context, sinks []*sink, owedTo func(context.Context, epoch.Manifest, []string) (map[string][]epoch.Owed, error)) error {
	if err := r.makeRecords(ctx, sinks); err != nil {
		return err
	}
	head, _ := r.owner.Head()
	live, _ := r.owner.Live()
	owed, err := owedTo(ctx, head, namesOf(sinks))
	if err != nil {
		return err
	}
	if r.running == nil {
		r.running, r.stop = context.WithCancel(context.WithoutCancel(ctx))
		r.failed = make(chan error, len(r.sinks))
	}
	for _, s := range sinks {
		at := head.Sinks[s.spec.Name]
		o := deliver.Options{
			Env: r.o.Env, Log: r.o.Log, Store: r.o.Store, Job: r.o.Job, Task: epoch.FirstTask,
			Name: s.spec.Name, Sink: s.spec.Sink, Target: s.target,
			Confirmed: at.Confirmed, Span: at.Span, Record: at.Record, Newer: func(ctx context.Context, disagrees bool) error { return r.newer(ctx, s.spec.Name, disagrees) },
			Groups: r.told, Delivered: r.someDelivered, Hold: func(ctx context.Context) { r.awaitLast(ctx, s, owed[s.spec.Name]); r.holdBack(ctx, s) }, Filling: r.fillsNow(s.spec.Name),
		}
		if at.Fill != nil {
			o.Fill = *at.Fill
		}
		s.deliver = deliver.New(o)
		for _, o := range owed[s.spec.Name] {
			hash, err := hashOf(o.Manifest)
			if err != nil {
				return err
			}
			s.deliver.Add(r.deliveryOf(o, hash, s.spec.Name, live))
		}
		r.delivering.Go(func() {
			if err := s.deliver.Run(r.running); err != nil {
				r.failed <- err
			}
		})
	}
	return nil
}

func namesOf(sinks []*sink) (names []string) {
	for _, s := range sinks {
		names = append(names, s.spec.Name)
	}
	return names
}

// lost tells whether the branch is another's, or has ended.
func (r *runner) lost(ctx context.Context) error {
	head, at, err := r.look(ctx)
	if err == nil && head.Sealed() {
		err = &epoch.SealedError{At: at, By: head.Seal.By}
	}
	return err
}

// newer tells whether another owner explains what a sink holds. A branch that has ended
// is its last owner's until there is a successor (D6), and what a sink is owed that this
// one has dropped is it still then; where such a sink disagrees, the next owner has to
// tell why.
func (r *runner) newer(ctx context.Context, sink string, disagrees bool) error {
	head, at, err := r.look(ctx)
	if err != nil {
		return err
	}
	if !head.Sealed() {
		return r.stillFills(ctx, sink)
	}
	live, _, err := r.job.Live(ctx) // after the seal was seen
	if err == nil && (disagrees || live.Branch != at.Branch && live.Sinks[sink].Dropped != epoch.ToDrain) {
		err = &epoch.SealedError{At: at, By: head.Seal.By, Next: live.Branch}
	}
	return err
}

// look reads the branch's head, which another owner may have made.
func (r *runner) look(ctx context.Context) (head epoch.Head, at epoch.At, err error) {
	own, _ := r.owner.Head()
	if head, err = r.job.HeadNear(ctx, own.Branch, own.Task, own.Epoch); err != nil {
		return head, at, err
	}
	at = epoch.At{Job: r.o.Job, Branch: own.Branch, Task: own.Task, Epoch: head.Manifest.Epoch}
	if head.Manifest.Owner != r.owner.ID() {
		err = &epoch.FencedError{At: at, Owner: head.Manifest.Owner, Writer: head.Manifest.Writer}
	}
	return head, at, err
}

// makeRecords is rule D2: a sink's record is made, without overwriting, only if
// no manifest names one, and is noted before anything is delivered.
func (r *runner) makeRecords(ctx context.Context, sinks []*sink) error {
	head, _ := r.owner.Head()
	next := carried(head)
	next.Kind = epoch.Open
	made := false
	for _, s := range sinks {
		at, known := next.Sinks[s.spec.Name]
		if at.Record != "" {
			continue
		}
		if !made {
			r.endOpen(ctx)
		}
		if !known {
			at.Start, at.Confirmed = head.Position, head.Position
		}
		var err error
		at.Record, at.Takes, err = r.makeRecord(ctx, s, at.RecordAt())
		if disagrees := (*deliver.DisagreeError)(nil); errors.As(err, &disagrees) {
			if lost := r.lost(ctx); fencedBy(lost) { // another owner explains what stands there (D4)
				return lost
			}
		}
		if err != nil {
			return err
		}
		at.Span, made = deliver.SpanOf(s.target), true
		next.Sinks[s.spec.Name] = at
	}
	if made {
		if _, err := r.commit(ctx, next); err != nil {
			return err
		}
	}
	return r.replaceRecords(ctx, sinks)
}

// endOpen ends what a process that died has left open of any sink: the making of a
// record would wait for that, although only this process is to end it. One that can't
// is told of by its own delivery, which tries again.
func (r *runner) endOpen(ctx context.Context) {
	for _, s := range r.sinks {
		t, ok := s.target.(connector.OpenEndsTarget)
		if !ok {
			continue
		}
		if err := t.EndOpen(ctx); err != nil && ctx.Err() == nil {
			r.o.Log.Warn("what an earlier process may have left open of a sink could not be ended yet", "sink", s.spec.Name, "error", err)
		}
	}
}

// makeRecord makes a sink's first record and returns the id of the one that
// stands there: an owner before this one may have made it and died. One that a branch
// left which filled the sink and was never live is to be replaced by this one's.
func (r *runner) makeRecord(ctx context.Context, s *sink, start epoch.Position) (id, takes string, err error) {
	first, err := r.firstRecord(s, start)
	if err != nil {
		return "", "", err
	}
	stands, err := s.target.Make(ctx, first)
	if errors.Is(err, connector.ErrRecord) {
		return "", "", &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: s.spec.Name, Position: start, Reason: err.Error()}
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: sink %s: %w", r.o.Job, s.spec.Name, err)
	}
	if stands.ID == first.ID {
		return stands.ID, "", nil
	}
	switch step, err := r.standing(ctx, stands, start); {
	case err != nil:
		return "", "", err
	case step == epoch.AdoptRecord:
		return stands.ID, "", nil
	case step == epoch.BeingFilled:
		return "", "", &FillError{r.o.Job, s.spec.Name, fmt.Sprintf("branch %s is filling it; give that up first with `sluice branch drop %s %s`", stands.Branch, r.o.Job, stands.Branch)}
	case step == epoch.ReplaceRecord:
		if _, ok := s.target.(connector.EmptyTarget); !ok {
			return "", "", r.cantEmpty(s, "branch "+stands.Branch)
		}
		return first.ID, stands.ID, nil
	}
	return "", "", &deliver.DisagreeError{
		At: epoch.At{Job: r.o.Job}, Sink: s.spec.Name, Record: &stands, Position: start,
		Reason: fmt.Sprintf("it has position %d already, and no epoch of this job has delivered to it", stands.Position),
	}
}

// firstRecord is a sink's first record, with an id that no other has.
func (r *runner) firstRecord(s *sink, start epoch.Position) (connector.SinkRecord, error) {
	id, err := r.o.Env.ID()
	return connector.SinkRecord{
		Position: connector.Position(start), ID: id, Job: r.o.Job, Target: s.spec.Sink.Describe().Target, Branch: r.owner.Branch(),
	}, err
}

// owedBy is what a manifest of this branch owes a sink, just committed. Where its delivery
// begins behind a gap only the generations before tell: another process may have
// delivered since what the newest manifest knows.
func (r *runner) owedBy(ctx context.Context, m epoch.Manifest, sink string) (epoch.Owed, bool, error) {
	if m.Live == nil && r.filling[sink] {
		o, ok := epoch.OwedToFillBy(m, sink)
		return o, ok, nil
	}
	o, ok := epoch.OwedBy(m, sink)
	if !ok || o.From+1 == o.To {
		return o, ok, nil
	}
	owed, err := r.job.OwedTo(ctx, m, []string{sink})
	if err != nil {
		return o, false, err
	}
	i := slices.IndexFunc(owed[sink], func(o epoch.Owed) bool { return o.To == m.Position })
	if i < 0 {
		return o, false, fmt.Errorf("%s: branch %s, epoch %d: sink %s is owed position %d, and what it is owed does not end there; `sluice fsck %s` tells more", r.o.Job, m.Branch, m.Epoch, sink, m.Position, r.o.Job)
	}
	return owed[sink][i], true, nil
}

func hashOf(m epoch.Manifest) (string, error) {
	data, err := m.Encode()
	if err != nil {
		return "", err
	}
	return epoch.Hash(data), nil
}

// deliveryOf is what is owed to a sink of a generation, as the deliverer takes it.
func (r *runner) deliveryOf(o epoch.Owed, hash, sink string, live epoch.Generation) deliver.Owed {
	m := o.Manifest
	s := m.Sinks[sink]
	if m.Live != nil { // otherwise a follower wrote it, and fills the sink with it
		live = *m.Live
	}
	return deliver.Owed{
		From: o.From, To: o.To, Part: o.Part, Gap: o.Gap, Live: live, Branch: m.Branch,
		Epoch: m.Epoch, Manifest: hash, Outbox: s.Outbox, Parted: len(s.Parts) > 0, Filling: m.Live == nil || s.Rewrite != nil,
		SkipEqual: s.Rewrote != nil && s.Rewrote.Mode == epoch.RewriteChanged, Sources: m.Sources,
	}
}

// carried is the manifest that follows m if nothing happens.
func carried(m epoch.Manifest) epoch.Manifest {
	next := epoch.Manifest{
		Now: m.Now, Sources: maps.Clone(m.Sources), Watermarks: m.Watermarks, Windows: m.Windows, Idle: m.IdleAtEnd(),
		State: maps.Clone(m.State), Partial: m.Partial, Request: m.Request, Unmet: m.Unmet, Sinks: map[string]epoch.SinkState{},
	}
	if next.State == nil {
		next.State = map[string]epoch.StateEntry{}
	}
	if next.Sources == nil {
		next.Sources = map[string]epoch.SourceState{}
	}
	for name, s := range m.Sinks {
		s.Outbox, s.Parts, s.Rewrote = nil, nil, nil
		next.Sinks[name] = s
	}
	return next
}
