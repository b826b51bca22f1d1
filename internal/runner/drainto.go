package runner

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// drainingTo is a request to read up to offsets and nothing behind them, and to stop.
type drainingTo struct {
	request epoch.Request
	again   []epoch.Request         // for just the same: who asked before may be gone
	told    <-chan engine.ReadUntil // until the run has said whether it does
	until   engine.Until            // nil: it hasn't yet
	// closing is to where watermarks move so that windows close, by event time; nil: they
	// stay where they are.
	closing  map[string]epoch.Moment
	closings int // runs that have done so
}

// maxClosings bounds the runs that close windows: one for each operator whose windows get
// what those of others come to.
const maxClosings = 100

// maxDrainsTo bounds the requests to stop at offsets that wait for the committer.
const maxDrainsTo = 64

// errClosing ends a run behind which another one closes windows.
var errClosing = errors.New("windows are to be closed")

// advance is to where a run that begins moves watermarks behind all that it reads.
func (d *drainingTo) advance() map[string]epoch.Moment {
	if d == nil {
		return nil
	}
	return d.closing
}

// offsets are those up to which a run that begins reads; nil: there are none.
func (d *drainingTo) offsets() engine.Until {
	if d == nil {
		return nil
	}
	return d.until
}

// answer is where the run tells what came of asking it; nil if it was not asked.
func (d *drainingTo) answer() <-chan engine.ReadUntil {
	if d == nil {
		return nil
	}
	return d.told
}

// drainsTo has the owner do what was asked; another process of the job just stops.
func (p *pulse) drainsTo(request epoch.Request) {
	if p.r.following.Load() {
		p.done(request)
		p.r.halt()
		return
	}
	p.r.o.Log.Info("asked to read up to offsets, and to stop then", "request", request.N, "by", request.By)
	select {
	case p.drainTo <- request:
	default:
		p.r.o.Log.Warn("too many requests to stop at offsets in a moment: this one is left out, ask again", "request", request.N)
	}
}

// askDrainTo asks the run, unless it was asked already.
func (c *committer) askDrainTo(ctx context.Context, run *engine.Run, request epoch.Request) error {
	switch d := c.r.drainingTo; {
	case d != nil && d.means(request):
		d.again = append(d.again, request)
		c.r.o.Log.Info("asked for the same offsets once more: it stops there as well", "request", request.N)
		return nil
	case d != nil:
		return c.notMet(ctx, "the job is about to stop at other offsets already", request)
	}
	c.r.drainingTo = &drainingTo{request: request, told: run.ReadUntil(request.To)}
	return nil
}

// means tells whether a request is for just the same. Where the sources end is another
// place each time.
func (d *drainingTo) means(other epoch.Request) bool {
	return len(other.To) > 0 && maps.Equal(d.request.To, other.To) && d.request.CloseWindows == other.CloseWindows
}

// requests are all that are met together.
func (d *drainingTo) requests() []epoch.Request {
	return append([]epoch.Request{d.request}, d.again...)
}

// askedAgain hands a request on which a run that was given up has not answered to the next
// one.
func (r *runner) askedAgain() {
	if d := r.drainingTo; d != nil && d.until == nil {
		r.drainingTo = nil
		for _, request := range d.requests() {
			r.pulse.drainsTo(request)
		}
	}
}

// drainTo goes by what the run has told of being asked.
func (c *committer) drainTo(ctx context.Context, told engine.ReadUntil) error {
	d := c.r.drainingTo
	d.told, d.until = nil, told.Until
	if told.Refused == nil {
		c.r.o.Log.Info("nothing behind the offsets is read, and the job stops there", "request", d.request.N)
		return nil
	}
	c.r.drainingTo = nil
	c.r.o.Log.Warn("a request to read up to offsets, and to stop then, can't be met: the job goes on", "request", d.request.N, "error", told.Refused)
	return c.notMet(ctx, told.Refused.Error(), d.requests()...)
}

// notMet notes that requests were not met.
func (c *committer) notMet(ctx context.Context, why string, requests ...epoch.Request) error {
	head, _ := c.r.owner.Head()
	m := carried(head)
	m.Kind, m.Unmet = epoch.Open, slices.Clip(m.Unmet)
	for _, request := range requests {
		c.r.pulse.asked.Store(max(c.r.pulse.asked.Load(), request.N))
		m.Unmet = append(m.Unmet, epoch.Unmet{Request: request.N, Why: why})
	}
	m.Request = c.r.pulse.forgets.noted(m.Request, 0, c.r.pulse.asked.Load())
	m.Unmet = m.Unmet[max(0, len(m.Unmet)-epoch.MaxUnmet):]
	_, err := c.r.commit(ctx, m)
	return err
}

// reached tells whether all was read that the request asks for.
func (c *committer) reached() bool {
	d := c.r.drainingTo
	if d == nil || d.until == nil {
		return false
	}
	head, _ := c.r.owner.Head()
	for source, parts := range d.until {
		for partition, to := range parts {
			if head.Sources[source].Partitions[partition].Next < to {
				return false // it was stopped before
			}
		}
	}
	return true
}

// closesWindows tells whether another run is to close windows, behind one that has read
// all that the request asks for. What they come to may be in windows of operators behind
// them, which are closed by the next run, and so on.
func (c *committer) closesWindows(ctx context.Context) bool {
	if ctx.Err() != nil || !c.reached() { // who is told to stop closes nothing any more
		return false
	}
	d, to := c.r.drainingTo, c.open()
	if len(to) == 0 || d.closings == maxClosings {
		return false
	}
	d.closing = to
	d.closings++
	c.r.o.Log.Info("all input is read, and windows close", "request", d.request.N)
	return true
}

// open is to where watermarks are to move, by event time, so that no window is open that
// the request has closed; empty: none is.
func (c *committer) open() map[string]epoch.Moment {
	if !c.r.drainingTo.request.CloseWindows {
		return nil
	}
	head, _ := c.r.owner.Head()
	return c.r.o.Graph.Beyond(head.Windows, head.Watermarks)
}

// drainedTo calls the request done behind a run that has ended, if all was read that it
// asks for: the job stops then as it does when it is told to.
func (c *committer) drainedTo() {
	if !c.reached() || len(c.open()) > 0 {
		return
	}
	d := c.r.drainingTo
	c.r.drainingTo = nil
	requests := d.requests()
	c.r.pulse.done(requests[len(requests)-1])
	c.r.halt()
}
