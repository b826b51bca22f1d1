package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
)

const (
	// beatsPerLease is how often an owner says that it lives during a lease.
	beatsPerLease = 3
	// objectionsAtMost and objectionBytes bound what a heartbeat says of what objects to
	// the cut: a person's command may say anything.
	objectionsAtMost = 16
	objectionBytes   = 512
)

// pulse is the owner's heartbeat; with each beat it looks for requests.
type pulse struct {
	r      *runner
	known  atomic.Uint64 // newest request that was seen, and done as far as it is for this process
	forgot uint64        // the newest that was known when requests to forget were looked for
	asked  atomic.Uint64 // newest request that is being done
	drain  chan struct{} // has room for one; asks the committer to read to the end
	lost   chan error    // has room for one: why the branch is another's
	soon   chan struct{} // has room for one: the next beat comes at once

	drainTo chan epoch.Request // has room for some; asks the committer to read up to offsets

	cutover chan struct{} // has room for one; this branch is to go live

	objections atomic.Pointer[[]string] // to that; nil: none

	forgets forgetting

	stop   context.CancelFunc
	ending sync.WaitGroup
}

// startPulse begins to beat for the runner's owner.
func (r *runner) startPulse(ctx context.Context) {
	ctx, r.pulse.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.pulse.ending.Go(func() { r.pulse.loop(ctx) })
}

func (p *pulse) loop(ctx context.Context) {
	every := p.r.o.Lease / beatsPerLease
	timer := p.r.o.Env.Clock.NewTimer(every)
	defer timer.Stop()
	for {
		// An owner that commits nothing would not find out otherwise.
		if err := p.r.lost(ctx); fencedBy(err) {
			p.lost <- err
			return
		}
		p.beat(ctx, false)
		p.requests(ctx)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			timer.Reset(every)
		case <-p.soon:
		}
	}
}

// end stops the beating. An owner that lets go says so, so that nobody waits
// for it.
func (p *pulse) end(ctx context.Context, released bool) {
	if p.stop == nil {
		return
	}
	p.stop()
	p.ending.Wait()
	if released {
		p.beat(context.WithoutCancel(ctx), true)
	}
}

// beat overwrites the heartbeat. It decides nothing, so that a beat which fails
// is no reason to stop: a standby may take over, and then this owner is fenced.
func (p *pulse) beat(ctx context.Context, released bool) {
	s := p.r.o.Board.Snapshot()
	h := epoch.Heartbeat{
		Lease: p.r.o.Lease.Microseconds(), Keep: p.r.o.Keep.Microseconds(), KeepEpochs: p.r.o.KeepEpochs, Released: released, Role: string(s.Role),
		RecordsPerSecond: int64(s.RecordsPerSecond),
		Sources:          map[string]map[string]epoch.Reach{}, Pending: map[string]int64{},
	}
	for _, part := range s.Partitions {
		if h.Sources[part.Source] == nil {
			h.Sources[part.Source] = map[string]epoch.Reach{}
		}
		h.Sources[part.Source][part.Partition.Partition] = epoch.Reach{Next: part.Next, End: part.End, Start: part.Start}
	}
	for _, sink := range s.Sinks {
		if sink.Pending > 0 {
			h.Pending[sink.Name] = int64(sink.Pending)
		}
	}
	if objections := p.objections.Load(); objections != nil && !released {
		h.Objections = *objections
	}
	if err := p.r.owner.Beat(ctx, h); err != nil && ctx.Err() == nil {
		p.r.o.Log.Warn("the heartbeat could not be written; a standby may take over", "error", err)
	}
}

// object notes what speaks against the cut.
func (p *pulse) object(objections []string) {
	told := slices.Clone(objections[:min(len(objections), objectionsAtMost)])
	for i, text := range told {
		told[i] = strings.ToValidUTF8(text[:min(len(text), objectionBytes)], "")
	}
	if before := p.objections.Swap(&told); len(told) > 0 == (before != nil && len(*before) > 0) {
		return
	}
	select {
	case p.soon <- struct{}{}: // whoever waits for the cut is told why at once
	default: // it is about to beat
	}
}

// requests does what was asked of this process since it began.
func (p *pulse) requests(ctx context.Context) {
	found, err := p.r.job.RequestsAfter(ctx, p.known.Load())
	if err == nil {
		err = p.forgetsUpTo(ctx, found)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.r.o.Log.Warn("requests could not be read", "error", err)
		}
		return // and looks again with the next beat
	}
	for _, request := range found {
		switch request.Kind {
		case epoch.ForgetRequest:
			p.r.o.Log.Info("asked to forget", "request", request.N, "entries", len(request.Edits), "by", request.By)
		case epoch.GiveUpRequest: // is for a start
		case epoch.StopRequest:
			p.done(request)
			p.r.halt()
		case epoch.DrainRequest:
			p.done(request)
			select {
			case p.drain <- struct{}{}:
			default: // it drains already
			}
		case epoch.DrainToRequest:
			p.drainsTo(request)
		case epoch.CutoverRequest:
			if request.Branch != p.r.owner.Branch() {
				break
			}
			select {
			case p.cutover <- struct{}{}:
			default: // it was asked already
			}
		default:
			p.r.o.Log.Warn("a request that this release can't do", "request", request.N, "kind", request.Kind, "by", request.By)
		}
		p.known.Store(request.N)
	}
}

// stops tells whether the job's processes were asked to stop, as of now and not as of the
// last beat. The next beat, which does it, comes at once then.
func (p *pulse) stops(ctx context.Context) (bool, error) {
	found, err := p.r.job.RequestsAfter(ctx, p.known.Load())
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(found, func(r epoch.Request) bool { return r.Kind.Stops() }) {
		select {
		case p.soon <- struct{}{}:
		default: // it is about to beat
		}
		return true, nil
	}
	return p.asked.Load() != 0, nil
}

// forgetsUpTo finds the requests to forget among all that are there, before any other is
// done: from that moment on the next manifest may call it done, and with it all before it.
// While this one follows, requests to forget are the live branch's. They are found in
// their order, from what a manifest calls done.
func (p *pulse) forgetsUpTo(ctx context.Context, found []epoch.Request) error {
	newest := p.known.Load()
	if len(found) > 0 {
		newest = found[len(found)-1].N
	}
	if p.r.following.Load() || !p.forgets.hasRoom() && newest == p.forgot {
		return nil
	}
	if err := p.r.findForgets(ctx); err != nil {
		return err
	}
	p.forgot = newest
	return nil
}

// done notes a request, for the next manifest.
func (p *pulse) done(request epoch.Request) {
	p.r.o.Log.Info("asked to stop", "request", request.N, "kind", request.Kind, "by", request.By)
	p.asked.Store(request.N)
	if p.r.o.Asked != nil {
		p.r.o.Asked(string(request.Kind), request.By)
	}
}

// sampleEvery is the time between two looks at how the job is.
const sampleEvery = time.Second
