package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
)

// Turn is what a run that follows does next.
type Turn int

// The turns of a run that follows.
const (
	Cover  Turn = iota // work through an epoch of the other branch
	Commit             // close the epoch that covers what was worked through
	Fill               // write the part of a sink anew that waits, in an epoch that covers nothing
	Reach              // read, in epochs of its own, up to where an epoch of the other branch ends
	Lead               // read on by itself, from here
)

// Timetable tells a run that follows what comes next. It is called by one goroutine,
// which waits meanwhile; open tells whether an epoch is open, which Commit would
// close. The manifests of a Cover are a data epoch, and the openings behind it. ctx
// ends when the run is to stop.
type Timetable func(ctx context.Context, open bool) (Turn, []epoch.Manifest, error)

const (
	// coveredAtMost bounds the epochs that are covered in one, and runsAtMost their
	// runs, which stand in one manifest.
	coveredAtMost = 1000
	runsAtMost    = 20000
	// ownBatches bounds what is read in one epoch of each partition of a source that
	// the followed branch does not have.
	ownBatches = 16
)

// Follow begins to work through another branch's epochs, after Open: each in its
// recorded order of reading, with its own clock, and its tables' changes put out at
// its end. Epochs that come out of [Run.Epochs] cover one or more of them. A source
// that the other branch does not have is read as far as there is anything. Once the
// timetable says so, the run reads on by itself, as after [Run.Start].
func (r *Run) Follow(ctx context.Context, next Timetable) {
	r.startProcessing()
	r.goes(func() error {
		defer close(r.epochs)
		f := &following{sequencer: r.newSequencer(ctx), next: next}
		lead, err := f.loop(ctx)
		if err != nil || !lead {
			return err
		}
		f.paceAt = f.nextDue()
		f.to = nil
		return f.readOn()
	})
}

// Follows notes which sources the branch has that is followed, of the epoch that is
// covered next. It is called by the timetable.
func (r *Run) Follows(sources map[string]bool) { r.o.Followed = sources }

// Discover finds the partitions that have come up, as a branch that leads does all the
// time. It is called by the timetable, before [Run.Takeover].
func (r *Run) Discover(ctx context.Context) error {
	for _, s := range r.input.sources {
		if _, err := r.input.discover(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Takeover tells of the partitions that no epoch has noted, which a branch that leads
// reads as well, where they begin. It is called by the timetable, before it says Lead.
func (r *Run) Takeover() (found map[string]map[string]connector.Offset) {
	found = map[string]map[string]connector.Offset{}
	for _, src := range r.input.sources {
		name := src.spec.name
		for part, p := range src.parts {
			if _, noted := r.following.offsets[name][part]; noted || p.from == (connector.Offset{}) {
				continue
			}
			if found[name] == nil {
				found[name] = map[string]connector.Offset{}
			}
			found[name][part] = p.from
			r.following.note(name, part, p.from)
		}
	}
	return found
}

// following is a sequencer that is told what comes next.
type following struct {
	*sequencer
	next   Timetable
	opened time.Time
	seen   time.Time // when the epoch that was covered last had come
	runs   int       // of the epoch covered last, where they begin
}

// nextDue is when the branch that was followed would have ended its next epoch, about:
// whoever reads on from there keeps the pace, so that a cut makes no longer epoch.
func (f *following) nextDue() time.Time {
	if f.seen.IsZero() {
		return time.Time{}
	}
	return f.seen.Add(f.run.o.EpochEvery)
}

// loop tells whether the run is to read on by itself.
func (f *following) loop(ctx context.Context) (lead bool, err error) {
	f.run.following = f.sequencer
	ctx, cancel := f.run.whileReading(ctx)
	defer cancel()
	for {
		turn, covered, err := f.next(ctx, f.epoch != nil)
		switch {
		case ctx.Err() != nil:
			if f.epoch != nil {
				f.end(ctx)
			}
			return false, nil
		case err != nil:
			return false, err
		case turn == Commit:
			err = f.end(ctx)
		case turn == Cover:
			err = f.cover(ctx, covered)
		case turn == Fill:
			err = f.fill(ctx)
		case turn == Reach:
			err = f.reach(ctx, covered[0])
		default:
			return true, nil
		}
		if ctx.Err() != nil || errors.Is(err, errEnded) {
			return false, nil // what is half done is dropped
		}
		if err != nil {
			return false, err
		}
	}
}

// cover works through one epoch of the other branch.
func (f *following) cover(ctx context.Context, covered []epoch.Manifest) error {
	m := covered[0]
	f.seen = f.run.o.Env.Clock.Now()
	if f.epoch != nil && (len(m.Edits) > 0 || f.full()) {
		if err := f.end(ctx); err != nil {
			return err
		}
	}
	if f.epoch == nil {
		f.idle, f.to = m.Idle, m.Advanced
		if !f.openFollowing(ctx, m.Now) {
			return cmp.Or(ctx.Err(), errEnded)
		}
		f.opened, f.runs = f.run.o.Env.Clock.Now(), 0
	} else {
		if !f.endStep() {
			return errEnded
		}
		f.last = max(f.last, m.Now)
		f.epoch.Now, f.idle, f.to = f.last, m.Idle, m.Advanced
		if !f.passTime() {
			return errEnded
		}
	}
	f.epoch.Covered = append(f.epoch.Covered, covered...)
	if len(m.Edits) > 0 && !f.delete(m.Edits) {
		return errEnded
	}
	f.epoch.Edits = append(f.epoch.Edits, m.Edits...)
	for _, run := range m.Runs {
		if f.source(run.Source) == nil {
			continue // the other build's alone
		}
		if err := f.replayRun(ctx, run); err != nil {
			return err
		}
	}
	for _, m := range covered {
		if err := f.beginnings(ctx, m); err != nil {
			return err
		}
	}
	f.epoch.Steps = append(f.epoch.Steps, epoch.Step{Now: f.last, Runs: len(f.epoch.Runs) - f.runs, Idle: f.idle, Found: f.know(), Advanced: f.to})
	f.runs = len(f.epoch.Runs)
	return nil
}

// reach reads up to where an epoch of the other branch ends, in epochs of its own; the
// last ends exactly there.
func (f *following) reach(ctx context.Context, m epoch.Manifest) error {
	for more := true; more; {
		more = false
		for _, source := range slices.Sorted(maps.Keys(m.Sources)) {
			if f.source(source) == nil {
				continue
			}
			for _, part := range slices.Sorted(maps.Keys(m.Sources[source].Partitions)) {
				run := epoch.Run{Source: source, Partition: part, Next: m.Sources[source].Partitions[part].Next}
				p, err := f.partition(ctx, run)
				if err != nil {
					return err
				}
				if p.read.Load() >= run.Next {
					continue
				}
				if err := f.openOwn(ctx); err != nil {
					return err
				}
				if err := f.replayBatch(ctx, p, run.Next); err != nil {
					return err
				}
				more = more || p.read.Load() < run.Next
			}
		}
		if more && f.epoch != nil && f.full() {
			f.close()
		}
	}
	if err := f.openOwn(ctx); err != nil {
		return err
	}
	f.epoch.Reached = &m
	if err := f.beginnings(ctx, m); err != nil {
		return err
	}
	return f.end(ctx)
}

// fill has an epoch that reads nothing write a part of a sink anew. It is at the time of
// the last that was covered.
func (f *following) fill(ctx context.Context) error {
	f.idle, f.to = nil, nil
	if !f.openFollowing(ctx, f.last) {
		return cmp.Or(ctx.Err(), errEnded)
	}
	f.runs = 0
	f.close()
	return nil
}

// openOwn opens an epoch by this process's clock, unless one is open.
func (f *following) openOwn(ctx context.Context) error {
	if f.epoch != nil {
		return nil
	}
	now := f.run.o.Env.Clock.Now()
	f.idle, f.to = nil, nil
	if !f.openFollowing(ctx, now.UnixMicro()) {
		return cmp.Or(ctx.Err(), errEnded)
	}
	f.opened, f.runs = now, 0
	return nil
}

// beginnings notes the partitions that an epoch has found, and not read yet.
func (f *following) beginnings(ctx context.Context, m epoch.Manifest) error {
	for source, state := range m.Sources {
		if f.source(source) == nil {
			continue
		}
		for part, at := range state.Partitions {
			if _, known := f.offsets[source][part]; known {
				continue
			}
			from := connector.Offset{Next: at.Next, LeaderEpoch: at.LeaderEpoch, Identity: at.Identity}
			if err := f.run.input.beginAt(ctx, f.source(source), part, from); err != nil {
				return err
			}
			f.note(source, part, from)
		}
	}
	return nil
}

// endStep ends one of the epochs that are covered, and tells whether the run goes on.
func (f *following) endStep() bool {
	f.expect(f.epoch)
	return f.tell(&batch{epoch: f.epoch, stepEnd: true})
}

// full tells whether the open epoch covers as much as one may.
func (f *following) full() bool {
	o := &f.run.o
	return f.bytes >= o.EpochBytes || f.epoch.frozen.Load() >= o.EpochBytes ||
		len(f.epoch.Covered) >= coveredAtMost || len(f.epoch.Runs) >= runsAtMost ||
		o.Env.Clock.Now().Sub(f.opened) >= o.EpochEvery
}

// end closes the open epoch, behind what sources of this build alone have.
func (f *following) end(ctx context.Context) error {
	for _, src := range f.run.input.sources {
		if f.run.o.Followed[src.spec.name] {
			continue
		}
		for _, p := range src.parts {
			if err := f.readOwn(ctx, p); err != nil {
				return err
			}
		}
	}
	if n := len(f.epoch.Steps); n > 0 {
		f.epoch.Steps[n-1].Runs += len(f.epoch.Runs) - f.runs
	}
	if len(f.epoch.Steps) < 2 {
		f.epoch.Steps = nil
	}
	f.close()
	return nil
}

// readOwn reads what a partition has, and does not wait for more.
func (f *following) readOwn(ctx context.Context, p *openPartition) error {
	until := p.part.End()
	for n := 0; n < ownBatches && p.read.Load() < until; n++ {
		if err := f.replayBatch(ctx, p, until); err != nil {
			return err
		}
	}
	return nil
}

// openFollowing opens the epoch that covers what comes. It tells whether the run goes
// on.
func (f *following) openFollowing(ctx context.Context, now int64) bool {
	r := f.run
	select {
	case r.open <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if r.o.Admit != nil {
		if err := r.o.Admit(ctx); err != nil {
			<-r.open
			if ctx.Err() == nil {
				r.abort(err)
			}
			return false
		}
	}
	return f.begin(max(f.last, now))
}

// source is an open source by its name, or nil.
func (s *sequencer) source(name string) *openSource {
	for _, src := range s.run.input.sources {
		if src.spec.name == name {
			return src
		}
	}
	return nil
}

// replayRun reads what one batch held when it was first read.
func (s *sequencer) replayRun(ctx context.Context, run epoch.Run) error {
	p, err := s.partition(ctx, run)
	if err != nil {
		return err
	}
	for p.read.Load() < run.Next {
		if err := s.replayBatch(ctx, p, run.Next); err != nil {
			return err
		}
	}
	return nil
}

// replayBatch reads one batch of a partition, up to an offset.
func (s *sequencer) replayBatch(ctx context.Context, p *openPartition, until int64) error {
	source := p.source.spec.name
	b := s.run.newBatch(p.name)
	err := p.part.Next(ctx, b, until)
	if errors.Is(err, io.EOF) {
		return &SourceError{source, p.name, fmt.Errorf("offset %d, which was read once, is not there any more: it ends at %d", until, p.read.Load())}
	}
	if err != nil {
		return &SourceError{source, p.name, err}
	}
	p.read.Store(b.To.Next)
	s.record(source, p.name, b.To, b.To.Next >= until)
	s.bytes += valueBytes(b)
	if !s.dispatch(p, b, b.To.Next >= until) {
		return errEnded
	}
	return nil
}

// errEnded says that the run has ended meanwhile; nobody gets to see it.
var errEnded = errors.New("the run has ended")
