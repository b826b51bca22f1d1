package epoch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicestream/sluice/env"
)

// Standby is how a start waits for an owner that lives (T5).
type Standby struct {
	// Branch is the branch to be taken. Defaults to the live one of the moment.
	Branch string
	// Lease is how long neither head nor heartbeat may have changed before the
	// owner is taken for gone; an owner's longer lease counts instead.
	Lease time.Duration
	// TakeOver says that a person wants the branch now.
	TakeOver bool
	// Me is this process, its build with its version: one that was replaced
	// need not wait.
	Me Identity
	// Known is the newest request from before this process: later ones ask it.
	Known uint64
	// Waiting, if set, is told whom this process stands by for: once, and again
	// when that changes.
	Waiting func(head Manifest)
}

// RequestedError says that a process was asked to stop while it stood by.
type RequestedError struct{ Request Request }

// Error implements error.
func (e *RequestedError) Error() string {
	return fmt.Sprintf("asked to stop by %s (request %d)", orUnknown(e.Request.By), e.Request.N)
}

// looksPerLease is how often a start looks at an owner during a lease, and
// slowestLook the longest time between two looks. Whether a process of this
// machine has ended is asked every nearLook: that costs the store nothing.
const (
	looksPerLease = 20
	slowestLook   = 500 * time.Millisecond
	nearLook      = 10 * time.Millisecond
)

// AwaitOwner waits until a task of a branch may be taken (T5). Time is
// counted in pauses between two looks that saw the same, so that neither a clock
// that steps nor a pause of this very process makes an owner look dead.
//
// It returns the head that it has decided on, which may be gone on from
// ([Identity].Awaited): a zero one if the job has never run.
//
// The error is a [SupersededError] if this build was replaced, by the head of the
// moment, and a [RequestedError] if the job was asked to stop meanwhile.
func (j *Job) AwaitOwner(ctx context.Context, task string, s Standby) (Head, error) {
	w := standing{job: j, task: task, s: s}
	pause := min(s.Lease/looksPerLease, slowestLook)
	for {
		head, take, err := w.look(ctx)
		if err != nil || take {
			return head, err
		}
		if err := w.pause(ctx, pause); err != nil {
			return Head{}, err
		}
		w.still += pause
	}
}

// Watch looks again and again whether the owner of a branch gives a sign of life, for
// one who waits otherwise. It is used by one goroutine.
type Watch struct{ w standing }

// Watch watches for a task of the live branch.
func (j *Job) Watch(task string, s Standby) *Watch {
	return &Watch{standing{job: j, task: task, s: s}}
}

// Look looks once, and tells whether the branch may be taken (T5). waited is for how
// long this process has paused since the look before. Requests to stop are for others
// to see. A branch that was sealed may not.
func (w *Watch) Look(ctx context.Context, waited time.Duration) (gone bool, err error) {
	w.w.still += waited
	head, gone, err := w.w.see(ctx)
	return gone && !head.Sealed(), err // one that was sealed goes to whoever did that
}

// pause waits until the next look: as long as it is told, or until the owner, if
// it is near, has ended.
func (w *standing) pause(ctx context.Context, d time.Duration) error {
	near, slice := w.writer.near(), d
	if near {
		slice = min(d, nearLook)
	}
	for left := d; left > 0; left -= slice {
		if err := env.Pause(ctx, w.job.env.Clock, min(slice, left)); err != nil {
			return err
		}
		if near && w.writer.ended() {
			return nil
		}
	}
	return nil
}

// standing is a start that stands by.
type standing struct {
	job  *Job
	task string
	s    Standby

	branch string
	hash   string // of the head last seen
	writer Writer // and who wrote that
	owner  string // who was last told to Waiting
	epoch  Epoch
	beat   string // owner and count of the heartbeat last seen
	still  time.Duration
}

// look looks once, and decides.
func (w *standing) look(ctx context.Context) (head Head, take bool, err error) {
	if err := w.requests(ctx); err != nil {
		return head, false, err
	}
	return w.see(ctx)
}

// see is look, without requests.
func (w *standing) see(ctx context.Context) (head Head, take bool, err error) {
	live, ok, err := w.job.Live(ctx)
	if err != nil {
		return head, false, err
	}
	branch := MainBranch
	if ok {
		branch = live.Branch
	}
	if w.s.Branch != "" {
		branch = w.s.Branch
	}
	if branch != w.branch {
		w.branch, w.epoch, w.still = branch, 0, 0
	}
	beat, there, err := w.job.Heartbeat(ctx, branch, w.task)
	if damaged := (*DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
		return head, false, err // one that is damaged decides nothing either; its owner writes the next
	}
	head, err = w.job.headFrom(ctx, branch, w.task, w.epoch)
	if none := (*NoLogError)(nil); errors.As(err, &none) && !ok {
		return Head{}, true, nil // the job has never run
	}
	if err != nil {
		return head, false, w.job.lostLog(ctx, err, ok)
	}
	take, err = w.decide(head, beat, there)
	return head, take, err
}

func (w *standing) decide(head Head, beat Heartbeat, there bool) (bool, error) {
	w.writer = head.Manifest.Writer
	pulse := fmt.Sprintf("%s %d", beat.Owner, beat.Beat)
	if head.Hash != w.hash || pulse != w.beat {
		w.hash, w.beat, w.epoch, w.still = head.Hash, pulse, head.Manifest.Epoch, 0
	}
	view := StandbyView{Head: head, Still: w.still.Microseconds(), TakeOver: w.s.TakeOver, Gone: head.Manifest.Writer.Gone()}
	if there {
		view.Beat = &beat
	}
	view.Lease = LeaseOf(w.s.Lease.Microseconds(), view.Beat)
	if DecideStandby(view) {
		return true, nil
	}
	at := At{w.job.name, w.branch, w.task, head.Manifest.Epoch}
	if DecideTake(TakeView{Head: head, Me: w.s.Me.Build, Replace: w.s.Me.Replace}) == RefuseSuperseded {
		return false, &SupersededError{At: at, Build: w.s.Me.Build, Now: head.Manifest.Build}
	}
	if w.s.Waiting != nil && head.Manifest.Owner != w.owner {
		w.owner = head.Manifest.Owner
		w.s.Waiting(head.Manifest)
	}
	return false, nil
}

// requests looks whether the job was asked to stop since this process began.
func (w *standing) requests(ctx context.Context) error {
	found, err := w.job.RequestsAfter(ctx, w.s.Known)
	if err != nil {
		return err
	}
	for _, r := range found {
		w.s.Known = r.N
		if r.Kind.Stops() {
			return &RequestedError{Request: r}
		}
	}
	return nil
}
