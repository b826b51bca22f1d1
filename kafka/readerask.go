package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sluicestream/sluice/env"
)

const (
	// reachWithin bounds how long a source waits for an answer before it reads.
	reachWithin = 30 * time.Second
	// retryWithin bounds how long the client library tries by itself, in silence.
	retryWithin = 5 * time.Second
	// Pauses between tries double from the first up to the longest.
	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second
	// Log lines about one trouble come ever more rarely.
	firstSilence, longestSilence = 10 * time.Second, 5 * time.Minute
)

// final is an error that trying again won't change.
type final struct{ cause error }

func (e final) Error() string { return e.cause.Error() }
func (e final) Unwrap() error { return e.cause }

// standing is an error without the mark that it is final.
func standing(err error) error {
	if end, ok := errors.AsType[final](err); ok {
		return end.cause
	}
	return err
}

// pauseAfter is the pause after so many tries.
func pauseAfter(tries int) time.Duration {
	return min(longestPause, firstPause<<min(tries, 10))
}

// ask asks the cluster until there is an answer that stands: while the source is
// being opened for a bounded time, later until ctx ends.
func (r *reader) ask(ctx context.Context, question func(ctx context.Context) error) error {
	clock := r.opening.Env.Clock
	within := ctx
	if !r.started() {
		var cancel func()
		within, cancel = env.Within(ctx, clock, reachWithin)
		defer cancel()
	}
	var last error
	for try := 0; ; try++ {
		err := question(within)
		if err == nil {
			return nil
		}
		if end, ok := errors.AsType[final](err); ok {
			return end.cause
		}
		if within.Err() == nil || last == nil {
			last = err
		}
		if within.Err() == nil {
			if isFinal(err) {
				return err
			}
			if r.started() {
				r.complain(err)
			}
			err = env.Pause(within, clock, pauseAfter(try))
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &UnreachableError{Brokers: r.brokers, Hint: hint(last), Cause: last}
		}
	}
}

// isFinal tells whether a broker's error is one that trying again won't change.
func isFinal(err error) bool {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return false
	}
	broker, ok := errors.AsType[*kerr.Error](err)
	return ok && !broker.Retriable
}

// complaint is a trouble that is being told.
type complaint struct {
	about   string
	next    time.Time
	silence time.Duration
}

// complain tells of a trouble that the reader waits out: at first, and then ever
// more rarely.
func (r *reader) complain(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opening.Env.Clock.Now()
	c := &r.trouble
	switch {
	case c.about == "":
		c.silence = firstSilence
	case now.Before(c.next):
		return
	default:
		c.silence = min(2*c.silence, longestSilence)
	}
	c.about, c.next = oneLine(err), now.Add(c.silence)
	r.opening.Log.Warn("the cluster can't be read for now; the source waits for it", "source", r.opening.Name, "error", c.about)
}

// relieved tells that a trouble is over, once no partition has any. The caller holds
// the lock.
func (r *reader) relieved() {
	troubled := func(p *partition) bool { return p.tries > 1 || p.phase == seeking }
	if r.trouble.about != "" && !slices.ContainsFunc(r.open, troubled) {
		r.opening.Log.Info("the cluster can be read again", "source", r.opening.Name)
		r.trouble = complaint{}
	}
}
