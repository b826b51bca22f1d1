package kafka_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// order is a record of the input of whole jobs, total a row of their output.
type (
	order struct {
		User  string
		Cents int64
	}
	total struct {
		User  string
		Cents int64
	}
)

func userOf(o order) string { return o.User }

func (t *total) add(o order) { t.User, t.Cents = o.User, t.Cents+o.Cents }

// sums is a job that sums up a stream of orders by their users, as a table.
func sums(job *sluice.Job, orders *sluice.Stream[order]) *sluice.Table[string, total] {
	return orders.KeyBy(userOf).Fold(sluice.NewState[string, total]("sums"), (*total).add)
}

// oneTotal is the row that an entry of sums becomes.
func oneTotal(_ string, s total) total { return s }

// journal keeps what a job logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// run runs a job until it ends by itself, or enough says so, and returns how it
// ended.
func run(t testing.TB, job *sluice.Job, st store.Store, log *journal, enough func() bool) error {
	t.Helper()
	return runWith(t, job, options(st, log), log, enough)
}

// runWith is run with further options.
func runWith(t testing.TB, job *sluice.Job, o sluice.Options, log *journal, enough func() bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*settleWithin)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- job.Run(ctx, o) }()
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				t.Fatalf("the job had to be stopped; it logged:\n%s", log)
			}
			return err
		default:
		}
		if ctx.Err() == nil && enough() {
			cancel()
			return <-ended
		}
		_ = env.Pause(context.Background(), env.Real().Clock, 20*time.Millisecond) // enough may be dear
	}
}

func options(st store.Store, log *journal) sluice.Options {
	return sluice.Options{
		Store: st, Epoch: 20 * time.Millisecond, Volatile: true, Shards: 2, Workers: 2, KeepEpochs: -1,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// never is for jobs that end by themselves.
func never() bool { return false }
