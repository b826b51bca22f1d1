// Package deliver brings outboxes to sinks: in order, each once, whatever
// happens between the sink and the epoch log.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/store"
)

// Owed is an epoch's outbox for one sink, to be delivered.
type Owed struct {
	From, To epoch.Position // [epoch.Owed]'s, as are Part and Gap
	Part     int
	Gap      epoch.Position
	Live     epoch.Generation
	Branch   string
	Epoch    epoch.Epoch
	Manifest string // sha256
	Outbox   []epoch.Object
	Parted   bool // each object is delivered by itself
	// SkipEqual asks the sink to leave rows out that it has.
	SkipEqual bool
	Filling   bool // [connector.Delivery]'s
	Sources   map[string]epoch.SourceState
}

// Offsets are a source's offsets, as connectors have them.
func Offsets(s epoch.SourceState) map[string]connector.Offset {
	out := make(map[string]connector.Offset, len(s.Partitions))
	for part, at := range s.Partitions {
		out[part] = connector.Offset{Next: at.Next, LeaderEpoch: at.LeaderEpoch, Identity: at.Identity}
	}
	return out
}

// Options say what a deliverer delivers, and where.
type Options struct {
	Env   *env.Env
	Log   *slog.Logger
	Store store.Store
	Job   string
	Task  string
	// Name is the sink's, Sink what delivers, Target where to.
	Name   string
	Sink   connector.Sink
	Target connector.Target
	// Record is the id of the sink's record by the newest manifest, Confirmed the
	// position delivered by that, Span where its rows stand then, and Fill how far it has
	// been filled.
	Record    string
	Confirmed epoch.Position
	Span      *epoch.Span
	Fill      epoch.Fill
	// Newer tells, by reading the log anew, whether another owner explains what
	// can't be explained otherwise: its error is then what stops the delivery. disagrees
	// says that it is what the sink holds.
	Newer func(ctx context.Context, disagrees bool) error
	// Groups names, by source, the groups whose offsets are told with the rows.
	Groups map[string]string
	// Hold, if not nil, is called before anything is delivered, or with Filling before the
	// first delivery that does not fill the sink: it may wait.
	Hold    func(ctx context.Context)
	Filling bool
	// Delivered, if not nil, is called after each delivery.
	Delivered func()
}

// Deliverer delivers one sink's outboxes. What is owed is added in order.
type Deliverer struct {
	o Options

	ceased context.Context // ends with Cease
	cease  context.CancelFunc

	mu        sync.Mutex
	owed      []Owed
	confirmed epoch.Position
	span      *epoch.Span   // as of confirmed
	fill      epoch.Fill    // Delivered and Through
	head      Owed          // the newest that was added and does not fill
	changed   chan struct{} // closed and replaced at each change
	failing   string        // the error of the last try, while it is being tried again
}

// The pauses between two tries of a delivery. They grow up to a bound; the
// number of tries has none, since a sink that is away for a day is no reason to
// stop: the bound is that on undelivered epochs, at which the reading waits.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	// Of failures that follow one another few are told, ever more rarely.
	firstSilence, lastSilence = 10 * time.Second, 5 * time.Minute
)

// New returns a deliverer.
func New(o Options) *Deliverer {
	d := &Deliverer{o: o, confirmed: o.Confirmed, span: o.Span, fill: o.Fill, changed: make(chan struct{})}
	d.ceased, d.cease = context.WithCancel(context.Background())
	return d
}

// Cease has nothing begun any more: Run ends behind the delivery that is under way,
// whatever becomes of that.
func (d *Deliverer) Cease() { d.cease() }

// Add adds what is owed next.
func (d *Deliverer) Add(o Owed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owed = append(d.owed, o)
	if o.fills() {
		d.head.To = max(d.head.To, o.To)
	} else {
		d.head = o
	}
	d.notify()
}

func (d *Deliverer) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Confirmed is the position up to which the sink has everything.
func (d *Deliverer) Confirmed() epoch.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed
}

// Filled is how many parts the sink has of what fills it, and through which epoch; the
// number of all parts is not known here.
func (d *Deliverer) Filled() (delivered int, through epoch.Epoch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fill.Delivered, d.fill.Through
}

// Reached is the position up to which the sink has everything, and where its rows stand
// then; nil if its system has no offsets.
func (d *Deliverer) Reached() (epoch.Position, *epoch.Span) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed, d.span
}

// SpanOf is where the rows stand of the record that a target's last call has found or
// written; nil if its system has no offsets.
func SpanOf(t connector.Target) *epoch.Span {
	if t, ok := t.(connector.SpanTarget); ok {
		span := epoch.Span(t.Span())
		return &span
	}
	return nil
}

// Pending is the number of epochs that are owed.
func (d *Deliverer) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.owed)
}

// Failing is the error of the last try while a delivery is being tried again.
func (d *Deliverer) Failing() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failing
}

// Wait waits until at most n epochs are owed.
func (d *Deliverer) Wait(ctx context.Context, n int) error {
	for {
		d.mu.Lock()
		pending, changed := len(d.owed), d.changed
		d.mu.Unlock()
		if pending <= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run delivers until ctx ends, or it is to cease. Its error is what a person must decide
// about.
func (d *Deliverer) Run(ctx context.Context) error {
	between, end := context.WithCancel(ctx) // what holds while nothing is being delivered
	defer end()
	defer context.AfterFunc(d.ceased, end)()
	pause := firstPause
	var told complaint
	held := d.o.Hold == nil
	if !held && !d.o.Filling {
		d.o.Hold(between)
		held = true
	}
	for {
		next, ok := d.next(between)
		if !ok {
			return nil
		}
		if !held && !next.fills() {
			d.o.Hold(between)
			if held = true; d.ceased.Err() != nil {
				return nil
			}
		}
		err := d.deliver(ctx, next)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			pause, told = firstPause, complaint{}
			d.done(next)
		case stops(err):
			return err
		case d.ceased.Err() != nil:
			return nil
		default:
			d.fails(err)
			// Whoever was fenced by a newer owner must not fence that one (D7).
			if newer := d.o.Newer(ctx, false); newer != nil && stops(newer) {
				return newer
			}
			if told.due(d.o.Env.Clock.Now()) {
				d.o.Log.Warn("delivery failed, trying again", "sink", d.o.Name, "position", next.To, "pause", pause, "error", err)
			}
			if env.Pause(between, d.o.Env.Clock, pause) != nil {
				return nil
			}
			pause = min(2*pause, lastPause)
		}
	}
}

// complaint is about a delivery that fails again and again.
type complaint struct {
	next    time.Time
	silence time.Duration
}

// due tells whether a failure is to be told.
func (c *complaint) due(now time.Time) bool {
	if now.Before(c.next) {
		return false
	}
	c.silence = min(max(firstSilence, 2*c.silence), lastSilence)
	c.next = now.Add(c.silence)
	return true
}

// next waits for something that is owed.
func (d *Deliverer) next(ctx context.Context) (Owed, bool) {
	for {
		d.mu.Lock()
		changed := d.changed
		if d.ceased.Err() != nil {
			d.mu.Unlock()
			return Owed{}, false
		}
		if len(d.owed) > 0 {
			next := d.owed[0]
			d.mu.Unlock()
			return next, true
		}
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Owed{}, false
		}
	}
}

func (d *Deliverer) done(o Owed) {
	span := SpanOf(d.o.Target)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owed = d.owed[1:]
	d.confirmed, d.span = o.To, span
	if o.fills() {
		d.fill.Delivered, d.fill.Through = o.Part+o.parts(), o.Epoch
	}
	d.failing = ""
	d.notify()
	if d.o.Delivered != nil {
		d.o.Delivered()
	}
}

func (d *Deliverer) fails(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = err.Error()
}

// stops tells whether trying again can't help.
func stops(err error) bool {
	var disagrees *DisagreeError
	var rejected *RejectedError
	var damaged *epoch.DamagedError
	var fenced *epoch.FencedError
	var sealed *epoch.SealedError
	return errors.As(err, &disagrees) || errors.As(err, &rejected) || errors.As(err, &damaged) || errors.As(err, &fenced) || errors.As(err, &sealed)
}

// part is a piece of what is owed that is delivered by itself.
type part struct {
	Owed
	from, to epoch.Place
	outbox   []epoch.Object
	last     bool
}

// fills tells whether what is owed fills the sink before a cut: it is parts of the
// position that the sink stands at.
func (o Owed) fills() bool { return o.From == o.To }

// parts is the number of pieces that are delivered by themselves.
func (o Owed) parts() int {
	if o.Parted {
		return len(o.Outbox)
	}
	return 1
}

// parts cuts up what is owed where that was settled when it was frozen (D9).
func parts(o Owed) []part {
	out := make([]part, o.parts())
	for i := range out {
		from, to := epoch.Place{Position: o.From, Part: o.Part + i}, epoch.Place{Position: o.From, Part: o.Part + i + 1}
		last := i == len(out)-1 && !o.fills()
		if last {
			to = epoch.Place{Position: o.To}
		}
		box := o.Outbox
		if o.Parted {
			box = o.Outbox[i : i+1]
		}
		out[i] = part{o, from, to, box, last}
	}
	return out
}

// errCeased says that the rest of a delivery is left to others.
var errCeased = errors.New("nothing is delivered any more")

// deliver delivers what is owed, part by part.
func (d *Deliverer) deliver(ctx context.Context, o Owed) error {
	for i, p := range parts(o) {
		if i > 0 && d.ceased.Err() != nil {
			return errCeased
		}
		if err := d.deliverPart(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// deliverPart is rules D3 to D5 for one delivery.
func (d *Deliverer) deliverPart(ctx context.Context, p part) error {
	box, err := outbox.Open(ctx, d.o.Store, d.o.Job, p.outbox)
	if err != nil {
		return err
	}
	reason := "what stands there under this position is not what is to be delivered"
	verdict, found, err := d.o.Target.Deliver(ctx, &connector.Delivery{
		Record: d.record(p), Key: box.Key, Schema: box.Row, Rows: box.Rows(ctx), SkipEqual: p.SkipEqual, Offsets: d.groupOffsets(p), Filling: p.Filling,
		Decide: func(found *connector.SinkRecord) connector.Verdict {
			step, why := epoch.DecideDelivery(d.view(p, found))
			if step == epoch.Disagree {
				reason = why
			}
			return verdicts[step]
		},
	})
	switch {
	case errors.Is(err, connector.ErrRejected):
		if newer := d.o.Newer(ctx, false); newer != nil {
			return newer
		}
		return &RejectedError{
			At:   epoch.At{Job: d.o.Job, Branch: p.Branch, Task: d.o.Task, Epoch: p.Epoch},
			Sink: d.o.Name, Position: p.To, Cause: err,
		}
	case errors.Is(err, connector.ErrRecord):
		reason = err.Error()
	case err != nil || verdict != connector.Disagree:
		return err
	}
	if err := d.o.Newer(ctx, true); err != nil {
		return err
	}
	return &DisagreeError{
		At:     epoch.At{Job: d.o.Job, Branch: p.Branch, Task: d.o.Task, Epoch: p.Epoch},
		Sink:   d.o.Name,
		Record: found, Position: p.To, Reason: reason,
	}
}

// groupOffsets are told with the last part: only then has the sink all that comes
// of them.
func (d *Deliverer) groupOffsets(p part) (out []connector.GroupOffsets) {
	if !p.last {
		return nil
	}
	for _, source := range slices.Sorted(maps.Keys(d.o.Groups)) {
		out = append(out, connector.GroupOffsets{Group: d.o.Groups[source], Offsets: Offsets(p.Sources[source])})
	}
	return out
}

// verdicts are the connector's words for the steps.
var verdicts = [...]connector.Verdict{epoch.Apply: connector.Apply, epoch.Skip: connector.Skip, epoch.Disagree: connector.Disagree}

func (d *Deliverer) record(o part) connector.SinkRecord {
	return connector.SinkRecord{
		Position: connector.Position(o.to.Position), Part: o.to.Part, ID: d.o.Record, Job: d.o.Job, Target: d.o.Sink.Describe().Target,
		Live: uint64(o.Live), Branch: o.Branch, Epoch: uint64(o.Epoch), Manifest: o.Manifest,
	}
}

func (d *Deliverer) view(o part, found *connector.SinkRecord) epoch.DeliveryView {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := epoch.DeliveryView{
		From: o.from, To: o.to, Gap: o.Gap, Manifest: o.Manifest,
		ID: d.o.Record, Confirmed: d.confirmed, Head: d.head.To, HeadManifest: d.head.Manifest,
	}
	if found != nil {
		v.Record = &epoch.SinkRecord{
			Place: epoch.Place{Position: epoch.Position(found.Position), Part: found.Part}, ID: found.ID, Manifest: found.Manifest,
		}
	}
	return v
}

// RejectedError says that a sink refuses a row for what it holds, or the job's user.
// Nothing of the delivery was written, and it stays owed. A restart comes to the same
// end.
type RejectedError struct {
	epoch.At
	// Sink is the sink's name, Position that of the delivery.
	Sink     string
	Position epoch.Position
	// Cause says which row, and why.
	Cause error
}

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s: sink %s refuses what it is to get at position %d, of which nothing was written or lost: %v",
		e.At, e.Sink, e.Position, e.Cause)
}

// Unwrap returns the cause.
func (e *RejectedError) Unwrap() error { return e.Cause }

// ExitCode is the exit code of the command line.
func (e *RejectedError) ExitCode() int { return 15 }

// DisagreeError says that a sink and the epoch log disagree about what has been
// delivered (rule D4). Nothing was written.
type DisagreeError struct {
	epoch.At
	// Sink is the sink's name, Record what it remembers (nil: nothing).
	Sink   string
	Record *connector.SinkRecord
	// Position is that of the delivery, Reason what does not fit.
	Position epoch.Position
	Reason   string
}

// Error implements error.
func (e *DisagreeError) Error() string {
	return fmt.Sprintf("%s: sink %s disagrees at position %d: %s. Nothing was written. Restore the sink's record, or give the sink a new name and let it begin anew.",
		e.At, e.Sink, e.Position, e.Reason)
}

// ExitCode is the exit code of the command line.
func (e *DisagreeError) ExitCode() int { return 15 }
