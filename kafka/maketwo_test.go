package kafka_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
)

// TestNewJobsOfOneNameAtOnce has several jobs of one name make the record of a sink
// at the same time: one of them has the topic, also after all were started again.
func TestNewJobsOfOneNameAtOnce(t *testing.T) {
	t.Parallel()
	const jobs, rounds = 3, 10
	addrs := []string{realKafka(t).Addr()}
	for round := range rounds {
		topic, job := services.Unique("once"), services.Unique("job")
		makeTopic(t, addrs, topic, 1, nil)
		sink := kafka.Append(topic, codec.String(), kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty())))
		targets := make([]connector.Target, jobs)
		for i := range targets {
			id := fmt.Sprint("job", i)
			o := connector.Opening{Env: env.Real(), Job: job, JobID: id, Name: "out", TransactionPrefix: job + "/"}
			var err error
			if targets[i], err = sink.Open(t.Context(), o, connector.RecordKey{JobID: id, Task: "0.0", Sink: "out"}); err != nil {
				t.Fatal(err)
			}
			defer targets[i].Close()
		}
		var had []int
		for start := range 2 {
			errs := make([]error, jobs)
			var all sync.WaitGroup
			for i, target := range targets {
				all.Go(func() {
					_, errs[i] = target.Make(t.Context(), connector.SinkRecord{ID: fmt.Sprint("id", i), Job: job, Target: topic})
				})
			}
			all.Wait()
			var have []int
			for i, err := range errs {
				if err == nil {
					have = append(have, i)
				} else if !errors.Is(err, connector.ErrRecord) {
					t.Fatal(err)
				}
			}
			if len(have) != 1 || start > 0 && have[0] != had[0] {
				t.Fatalf("round %d, start %d: the jobs %v have the topic, before that %v", round, start, have, had)
			}
			had = have
		}
		for i, target := range targets {
			if r, err := target.Record(t.Context()); err != nil || (r != nil) != (i == had[0]) {
				t.Fatalf("round %d: job %d has the record %+v, %v", round, i, r, err)
			}
		}
	}
}
