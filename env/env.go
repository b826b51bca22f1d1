// Package env is the small environment through which Sluice reaches the world:
// the clock, randomness and files. Everything else (the engine, the checkpoint
// stores, the connectors) gets an [Env] and calls nothing of the kind by
// itself, so that a test can put a clock that steps, a disk that forgets what
// was not synced or a seeded source of randomness in its place.
package env

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// Env is what a job may use of the world. Make one with [Real], or fill in the
// fields that a test wants to control.
type Env struct {
	// Clock tells and waits for the time.
	Clock Clock
	// Random yields random bytes; ids are made of them, nothing else.
	Random io.Reader
	// Files is the file system.
	Files FS
}

// Clock tells the time and waits for it.
type Clock interface {
	// Now is the wall clock with a monotonic reading where there is one.
	Now() time.Time
	// NewTimer returns a timer that fires once, after d.
	NewTimer(d time.Duration) Timer
}

// Timer fires once. Stop is to be called when it isn't needed any more.
type Timer interface {
	// C is the channel on which the time is sent.
	C() <-chan time.Time
	// Reset makes the timer fire after d from now, as [time.Timer.Reset] does.
	Reset(d time.Duration)
	// Stop ends the timer.
	Stop()
}

// Real returns the environment of this process: the system's clock, the
// operating system's randomness and its files.
func Real() *Env {
	return &Env{Clock: systemClock{}, Random: rand.Reader, Files: OS()}
}

// ID returns a random name of 16 hexadecimal digits.
func (e *Env) ID() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(e.Random, b[:]); err != nil {
		return "", fmt.Errorf("no randomness for an id: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// Pause waits for d by a clock, or until ctx ends: then the error is ctx's.
func Pause(ctx context.Context, clock Clock, d time.Duration) error {
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrTooLong is the cause of the end of a context of [Within].
var ErrTooLong = errors.New("took too long")

// Within returns a context that ends after d by a clock, with the cause
// [ErrTooLong], or with ctx, or with cancel, which must be called.
func Within(ctx context.Context, clock Clock, d time.Duration) (within context.Context, cancel func()) {
	within, end := context.WithCancelCause(ctx)
	timer := clock.NewTimer(d)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer timer.Stop()
		select {
		case <-timer.C():
			end(ErrTooLong)
		case <-within.Done():
		}
	}()
	return within, func() {
		end(context.Canceled)
		<-ended
	}
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (t systemTimer) C() <-chan time.Time   { return t.t.C }
func (t systemTimer) Reset(d time.Duration) { t.t.Reset(d) }
func (t systemTimer) Stop()                 { t.t.Stop() }
