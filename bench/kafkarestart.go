package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// trickleRate is how many records a second come to the job that is killed.
const trickleRate = 1000

func measureKafkaRestart(b *bench) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	return on.measureRestarts()
}

func (b *bench) measureRestarts() ([]Result, error) {
	l, clean, err := b.newLive(nil)
	if err != nil {
		return nil, err
	}
	defer clean()
	users := b.setting.scale(allKeys)
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	written, failed := make(chan struct{}), make(chan error, 1)
	writing.Go(func() { failed <- writeUsers(ctx, b.setting.Kafka, l.Topic, users, written) })
	select {
	case <-written:
	case err := <-failed:
		return nil, err
	}
	var restart, start, byHand sample
	l.Records = int64(users)
	for range 3 {
		if err := b.killLive(l); err != nil {
			return nil, err
		}
		l.Records = 1 // from now on it has them all
		s, err := startChild(task{setting: b.setting, Name: "kafka.restart", Live: l})
		if err != nil {
			return nil, err
		}
		restart = lesser(restart, s, wallSeconds)
		if s, err = b.child("start", ""); err != nil {
			return nil, err
		}
		start = lesser(start, s, wallSeconds)
		all := l
		all.Records = int64(users)
		if s, err = startChild(task{setting: b.setting, Name: "kafka.restart.floor", Live: all}); err != nil {
			return nil, err
		}
		byHand = lesser(byHand, s, wallSeconds)
	}
	value, floor := restart[wallSeconds]-liveEpoch.Seconds(), start[wallSeconds]+byHand[wallSeconds]
	r := Result{
		Name: "kafka.restart", Value: value * 1e3, Unit: "ms",
		What: fmt.Sprintf("a job between two topics of a real broker with %d users in its state, killed by SIGKILL: from the start of its next process to its first epoch with records, epochs of %v, one of which goes off; floor: the start of an empty job without a broker (see start.empty), and the same state loaded by hand into a map", users, liveEpoch),
		Why:  "what a start asks the brokers one after the other: the topics, the coordinator, the producer's new epoch, which ends the transaction that was left open, and the progress topic's end",
	}.against(floor * 1e3).atMost(3)
	r.note("the floor: %.0f ms for the start, %.0f ms for the state of %.0f segments; the best of 3", start[wallSeconds]*1e3, byHand[wallSeconds]*1e3, byHand["segments"])
	return []Result{r}, nil
}

// killLive runs the job until it has all users, and kills it while it goes on.
func (b *bench) killLive(l live) error {
	job, err := b.talkAbout(task{setting: b.setting, Name: "kafka.live", Live: l}, false)
	if err != nil {
		return err
	}
	defer job.cmd.Wait()
	defer job.cmd.Process.Kill()
	if err := job.says(saysRuns); err != nil {
		return err
	}
	time.Sleep(5 * liveEpoch) // it is in the middle of an epoch like any other
	return nil
}

// writeUsers writes an order of each user, and then one each millisecond until ctx
// ends.
func writeUsers(ctx context.Context, brokers, topic string, users int, written chan<- struct{}) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return err
	}
	defer client.Close()
	encode, err := orderEncoder("json")
	if err != nil {
		return err
	}
	r := newRandom(3)
	for i := 0; ctx.Err() == nil; i++ {
		value, err := encode(r, i, i%users)
		if err != nil {
			return err
		}
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % kafkaPartitions), Value: value}, nil)
		if i+1 == users {
			if err := client.Flush(ctx); err != nil {
				return err
			}
			close(written)
		}
		if i >= users {
			time.Sleep(time.Second / trickleRate)
		}
	}
	return nil
}
