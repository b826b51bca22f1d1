package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// liveEpoch is the length of the epochs of the figures about latency and restarts.
const liveEpoch = 100 * time.Millisecond

// live is a task of a job that runs while its input is being written.
type live struct {
	// Job is the job's name, and that of its store's folder.
	Job string
	// Topic is its input, Output where its table goes.
	Topic, Output string
	// Records is how many it reads before it says that it runs.
	Records int64
	// Meaning is that of its state's values, by which builds of it differ.
	Meaning int
}

// seen is what the job knows of a user; At is the time of the newest record, when
// the broker appended it, in microseconds since 1970 UTC.
type seen struct{ Orders, Cents, At int64 }

func (s *seen) count(m kafka.Message[order]) {
	s.Orders++
	s.Cents += m.Value.Cents
	s.At = max(s.At, int64(m.Time))
}

func userOf(m kafka.Message[order]) string { return m.Value.User }

func sameSeen(_ string, s seen) seen { return s }

// stateOf is a state of some meaning, whose values were of the one before.
func stateOf[V any](name string, meaning int) sluice.State[string, V] {
	state := sluice.NewState[string, V](name)
	if meaning == 0 {
		return state
	}
	return state.Meaning(meaning).Migrate(sluice.Migrate(func(v V) (V, error) { return v, nil }).From(meaning - 1))
}

func (l live) job(brokers string) *sluice.Job {
	cluster := kafka.Connect(kafka.Brokers(brokers))
	job := sluice.NewJob(l.Job)
	job.From("orders", kafka.Messages(kafka.Topic(l.Topic, codec.JSON[order](), kafka.On(cluster)))).
		KeyBy(userOf).
		Fold(stateOf[seen]("seen", l.Meaning), (*seen).count).
		To("seen_by_user", kafka.Upsert(l.Output, sameSeen, codec.String(), codec.JSON[seen](), kafka.On(cluster)))
	return job
}

func (l live) store(s setting) (*store.Folder, error) {
	return store.OpenFolder(env.Real(), l.folder(s))
}

func (l live) folder(s setting) string { return filepath.Join(s.Dir, "live", l.Job) }

// liveJob runs until it is killed, or another build has taken its place.
func liveJob(t task) (sample, error) {
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	records, said := int64(0), false
	err = t.Live.job(t.Kafka).Run(context.Background(), sluice.Options{Store: st, Log: quiet(), Epoch: liveEpoch, Lease: takeoverLease(t.setting), Committed: func(c sluice.Committed) {
		if records += c.Records; records >= t.Live.Records && !said {
			said = true
			fmt.Println(saysRuns)
		}
	}})
	return sample{}, unlessReplaced(err)
}

// unlessReplaced makes no error of the end of a build that another one has replaced.
func unlessReplaced(err error) error {
	if replaced := (*sluice.SupersededError)(nil); errors.As(err, &replaced) {
		return nil
	}
	return err
}

// readAgain reads a topic from its beginning, as fast as it can, and measures how
// many records a second that are.
func readAgain(t task) (sample, error) {
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	records, s := int64(0), sample{}
	var began time.Time
	err = t.Live.job(t.Kafka).Run(ctx, sluice.Options{Store: st, Log: quiet(), Epoch: liveEpoch, Committed: func(c sluice.Committed) {
		if began.IsZero() {
			began = time.Now() // what came before is the start
			return
		}
		if records += c.Records; s["rate"] == 0 && records >= t.Live.Records {
			s["rate"] = float64(records) / time.Since(began).Seconds()
			stop()
		}
	}})
	return s, err
}

// restartLive starts the job anew, and measures the time from the start of the
// process to the first epoch with records.
func restartLive(t task) (sample, error) {
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := sample{}
	var first sync.Once
	err = t.Live.job(t.Kafka).Run(ctx, sluice.Options{Store: st, Log: quiet(), Epoch: liveEpoch, Committed: func(c sluice.Committed) {
		if c.Records > 0 {
			first.Do(func() {
				s[wallSeconds] = time.Since(time.Unix(0, t.Started)).Seconds()
				stop()
			})
		}
	}})
	if err == nil && s[wallSeconds] == 0 {
		err = errors.New("the job has ended without an epoch of records")
	}
	return s, err
}

// loadLive loads the job's state by hand: it reads the objects, decodes the entries
// and puts them into a map that has room for them.
func loadLive(t task) (sample, error) {
	began := time.Now()
	ctx := context.Background()
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	segments, err := storedSegments(ctx, st, t.Live.Job, "seen")
	if err != nil {
		return nil, err
	}
	m := make(map[string]seen, t.Live.Records)
	for _, s := range segments {
		err := loadByHand(ctx, st, t.Live.Job, s.Path, func(src []byte) []byte {
			key, v, rest := decodeSeen(src)
			m[key] = v
			return rest
		})
		if err != nil {
			return nil, err
		}
	}
	if int64(len(m)) != t.Live.Records {
		return nil, fmt.Errorf("expected %d users, found %d", t.Live.Records, len(m))
	}
	return sample{wallSeconds: time.Since(began).Seconds(), "segments": float64(len(segments))}, nil
}

// decodeSeen decodes a record whose bytes are known to be good.
func decodeSeen(src []byte) (key string, v seen, rest []byte) {
	_, src = takeNumber(src) // the slot
	key, src = takeText(src)
	src = src[1:] // there is a value
	v.Orders, src = takeNumber(src)
	v.Cents, src = takeNumber(src)
	v.At, src = takeNumber(src)
	return key, v, src
}
