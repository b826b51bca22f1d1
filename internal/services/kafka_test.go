package services

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var sharedBroker = SharedKafka(KafkaOptions{})

// patience bounds what a test waits for.
const patience = 60 * time.Second

func client(t *testing.T, addr string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func createTopic(t *testing.T, c *kgo.Client, base string) string {
	t.Helper()
	topic := Unique(base)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return topic
}

// write puts n numbered records into a topic, after those from first.
func write(t *testing.T, c *kgo.Client, topic string, first, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range n {
		r := &kgo.Record{Topic: topic, Value: fmt.Append(nil, first+i)}
		if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads n records of a topic's only partition from its start.
func read(t *testing.T, addr, topic string, n int) (values []string) {
	t.Helper()
	c := client(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(values) < n {
		fetched := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("read %d of %d records: %v, %v", len(values), n, err, fetched.Errors())
		}
		for _, r := range fetched.Records() {
			values = append(values, string(r.Value))
		}
	}
	return values
}

// numbers are the first n, as write writes them.
func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return strings.Join(all, " ")
}

func TestKilledBrokerKeepsItsData(t *testing.T) {
	begun := time.Now()
	b := Kafka(t, KafkaOptions{})
	t.Logf("started after %v", time.Since(begun))
	addr := b.Addr()
	c := client(t, addr)
	topic := createTopic(t, c, "killed")
	write(t, c, topic, 0, 10)
	for i, end := range []func() error{b.Kill, b.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if b.Running() || busy(b.folder.ports[0]) {
			t.Fatal("the broker runs on")
		}
		begun = time.Now()
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		t.Logf("started again after %v", time.Since(begun))
		if b.Addr() != addr {
			t.Fatalf("the broker came back at %s, not at %s", b.Addr(), addr)
		}
		write(t, c, topic, 10+i, 1)
	}
	if got := strings.Join(read(t, addr, topic, 12), " "); got != numbers(12) {
		t.Fatalf("the topic holds %s", got)
	}
}

func TestPausedBrokerAnswersAfterwards(t *testing.T) {
	b := sharedBroker(t)
	c := client(t, b.Addr())
	topic := createTopic(t, c, "paused")
	write(t, c, topic, 0, 1)
	if err := b.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Resume() }) // the others use this broker
	got := make(chan error, 1)
	c.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte("1")}, func(_ *kgo.Record, err error) { got <- err })
	if state := ps("stat", b.PID()); !strings.HasPrefix(state, "T") {
		t.Errorf("the paused process is in state %q", state)
	}
	select {
	case err := <-got:
		t.Fatalf("a paused broker answers: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the resumed broker does not answer")
	}
}

func TestToolsOfKafka(t *testing.T) {
	b := sharedBroker(t)
	if same := sharedBroker(t); same != b {
		t.Fatal("two calls gave two brokers")
	}
	topic := Unique("tool")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := b.Tool(ctx, TopicsTool, "--create", "--topic", topic, "--partitions", "3"); err != nil {
		t.Fatal(err)
	}
	out, err := b.Tool(ctx, TopicsTool, "--describe", "--topic", topic)
	if err != nil || !strings.Contains(out, "PartitionCount: 3") {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err = b.Tool(ctx, TopicsTool, "--describe", "--topic", "missing")
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Fatalf("a topic that isn't there is described: %v", err)
	}
}

func TestBrokerThatCannotStartSaysWhy(t *testing.T) {
	_, err := StartKafka(KafkaOptions{Properties: map[string]string{"log.segment.bytes": "few"}})
	if _, missing := errors.AsType[*MissingError](err); missing {
		give(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "log.segment.bytes") {
		t.Fatalf("got %v", err)
	}
}
