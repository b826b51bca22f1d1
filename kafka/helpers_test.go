package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
)

// patience bounds what tests wait for; nothing should take that long.
const patience = 60 * time.Second

// realKafka is the broker that the tests share. It looks often for transactions that
// have taken too long.
var realKafka = services.SharedKafka(services.KafkaOptions{Properties: map[string]string{
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}})

// guarded is the broker that the tests share which looks at who comes: it has every
// kind of listener, and users with rightPassword. Alice, and whoever comes without a
// name, may do everything; to the others a test gives its own permissions.
var guarded = services.SharedKafka(services.KafkaOptions{
	Users: map[string]string{"alice": rightPassword, "ann": rightPassword, "bob": rightPassword, "eve": rightPassword},
	ACLs:  true, Properties: map[string]string{"super.users": "User:ANONYMOUS;User:alice;User:CN=alice"},
	Listeners: []services.Listener{
		{Name: "TLS", Protocol: services.SSL},
		{Name: "MUTUAL", Protocol: services.SSL, ClientCertificates: true},
		{Name: "SASL", Protocol: services.SASLPlaintext},
		{Name: "BOTH", Protocol: services.SASLSSL},
		{Name: "SCRAM", Protocol: services.SASLPlaintext, Mechanisms: []string{services.ScramSHA512}},
	},
})

const (
	rightPassword = "rightS3cret"
	wrongPassword = "wrongS3cret"
)

// mortal is the broker that tests stop and kill, one after the other.
var mortal = services.SharedKafka(services.KafkaOptions{})

// noLeaks sees that everything ended that the test started.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if !t.Failed() {
			goleak.VerifyNone(t, before)
		}
	})
}

// fake starts an embedded cluster of one broker unless the options say otherwise. It
// waits for records for a moment only, before it answers that there are none.
func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		fetch := req.(*kmsg.FetchRequest)
		fetch.MaxWaitMillis = min(fetch.MaxWaitMillis, 10)
		return nil, nil, false
	})
	return c
}

// writer is a client that writes to the partitions that records name.
func writer(t *testing.T, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.ProducerLinger(0), kgo.UnknownTopicRetries(100)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put writes records.
func put(t *testing.T, c *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("writing: %v", err)
	}
}

// record is one to be written.
func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

// numbered are records v0, v1, ….
func numbered(topic string, partition int32, from, to int) (out []*kgo.Record) {
	for i := from; i < to; i++ {
		out = append(out, record(topic, partition, fmt.Sprint("v", i)))
	}
	return out
}

// texts are the values of numbered.
func texts(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint("v", i))
	}
	return out
}

// newTopic makes a topic.
func newTopic(t *testing.T, c *kgo.Client, name string, partitions int32, settings ...string) {
	t.Helper()
	configs := map[string]*string{}
	for i := 0; i < len(settings); i += 2 {
		configs[settings[i]] = &settings[i+1]
	}
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, configs, name); err != nil {
		t.Fatalf("making topic %s: %v", name, err)
	}
}

// makeTopic makes a topic with nothing set.
func makeTopic(ctx context.Context, c *kgo.Client, name string, partitions int32) error {
	_, err := kadm.NewClient(c).CreateTopic(ctx, partitions, 1, nil, name)
	return err
}

// opened is what a source of the tests is opened with.
func opening(logs io.Writer) connector.Opening {
	return connector.Opening{
		Env: env.Real(), Log: slog.New(slog.NewTextHandler(logs, nil)),
		Job: "spend", JobID: "0123456789abcdef", Name: "orders",
	}
}

// logged is a log that may be looked at while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// hasty is a clock whose timers run 100 times as fast, and which then tells a time
// that is as much later.
type hasty struct {
	env.Clock
	began time.Time
}

const haste = 100

func hastyEnv() *env.Env {
	e := env.Real()
	e.Clock = hasty{e.Clock, time.Now()}
	return e
}

func (c hasty) Now() time.Time { return c.began.Add(haste * time.Since(c.began)) }

func (c hasty) NewTimer(d time.Duration) env.Timer { return hastyTimer{c.Clock.NewTimer(d / haste)} }

type hastyTimer struct{ env.Timer }

func (t hastyTimer) Reset(d time.Duration) { t.Timer.Reset(d / haste) }

// topicOf is a source of text at a cluster.
func topicOf(addrs []string, topic string, opts ...SourceOption) *Source[string] {
	return Topic(topic, codec.String(), append([]SourceOption{On(Connect(Brokers(addrs...)))}, opts...)...)
}

// openSource opens a source.
func openSource[T any](t *testing.T, s connector.Source[T], o connector.Opening) connector.Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.Open(ctx, o)
	if err != nil {
		t.Fatalf("opening the source: %v", err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// partitionAt opens a partition.
func partitionAt(t *testing.T, r connector.Reader, name string, from connector.Offset) connector.Partition {
	t.Helper()
	p, err := r.Partition(t.Context(), name, from)
	if err != nil {
		t.Fatalf("opening partition %s at %+v: %v", name, from, err)
	}
	return p
}

// values reads n values, and tells where the partition stands then.
func values(t *testing.T, p connector.Partition, n int) (out []string, to connector.Offset) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(out) < n {
		b := &connector.Batch{Limit: n - len(out)}
		if err := p.Next(ctx, b, -1); err != nil {
			t.Fatalf("after %d of %d values: %v", len(out), n, err)
		}
		for _, r := range b.Records {
			out = append(out, string(r.Value))
		}
		to = b.To
	}
	return out, to
}

// failure reads until an error comes, and returns what was read before.
func failure(t *testing.T, p connector.Partition) (out []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		b := &connector.Batch{}
		if err := p.Next(ctx, b, -1); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("no error within %v", patience)
			}
			return out, err
		}
		for _, r := range b.Records {
			out = append(out, string(r.Value))
		}
	}
}

// until polls until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited for %v: %s", patience, what)
		}
	}
}

// morePartitions has a topic grow.
func morePartitions(t *testing.T, c *kgo.Client, topic string, to int) {
	t.Helper()
	resp, err := kadm.NewClient(c).UpdatePartitions(t.Context(), to, topic)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answerEpochsAsKafka has the embedded cluster answer for a leader epoch in which
// nothing was written after it as a broker does, with the log's end; by itself it
// says that it doesn't know the epoch.
func answerEpochsAsKafka(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		part := req.Topics[0].Partitions[0]
		topic := req.Topics[0].Topic
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = topic
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.Partition, p.LeaderEpoch, p.EndOffset = part.Partition, part.LeaderEpoch, 1<<40
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp, nil, true
	})
}

// fetches counts what is fetched from the embedded cluster.
func fetches(c *kfake.Cluster) func() int64 {
	var n atomic.Int64
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n.Load
}
