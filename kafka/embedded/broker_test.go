package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka/embedded"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for.
const patience = 30 * time.Second

func start(t *testing.T, o embedded.Options) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// addressed is a broker of either kind.
type addressed interface{ Addr() string }

func client(t *testing.T, b addressed, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	return clientAt(t, b.Addr(), options...)
}

func clientAt(t *testing.T, addr string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, options...)...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

var realBroker = services.SharedKafka(services.KafkaOptions{})

// onBoth tries something with the embedded broker and with the real one: where
// the docs say nothing else, they do the same.
func onBoth(t *testing.T, try func(t *testing.T, b addressed)) {
	t.Run("embedded", func(t *testing.T) { try(t, start(t, embedded.Options{Folder: t.TempDir()})) })
	t.Run("real", func(t *testing.T) { try(t, realBroker(t)) })
}

// newTopic makes a topic of a name that nothing else has.
func newTopic(t *testing.T, b addressed, base string, partitions int32, settings map[string]*string) string {
	t.Helper()
	topic := services.Unique(base)
	_, err := kadm.NewClient(client(t, b)).CreateTopic(bounded(t), partitions, 1, settings, topic)
	must(t, err)
	return topic
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts values into a topic, each with itself as its key.
func write(t *testing.T, c *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		must(t, c.ProduceSync(bounded(t), &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)}).FirstErr())
	}
}

// awaited is what a topic holds once that is enough, or after a while: a real broker
// writes the ends of transactions behind its answer.
func awaited(t *testing.T, b addressed, topic string, enough func(held string) bool) (held string) {
	t.Helper()
	for range 100 {
		if held = contents(t, b, topic); enough(held) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	return held
}

// contents reads what a topic's partitions hold up to their stable ends: values
// with spaces between.
func contents(t *testing.T, b addressed, topic string, options ...kgo.Opt) string {
	t.Helper()
	asking := client(t, b)
	defer asking.Close() // while there is a broker to take leave of
	ends, err := kadm.NewClient(asking).ListCommittedOffsets(bounded(t), topic)
	must(t, err)
	must(t, ends.Error())
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		from[o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	c := client(t, b, append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))...)
	defer c.Close()
	var values []string
	ctx := bounded(t)
	for len(left) > 0 {
		fetched := c.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("topic %s: %v are not reached, %q so far, %v", topic, left, values, fetched.Errors())
		}
		fetched.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if !r.Attrs.IsControl() {
					values = append(values, string(r.Value))
				}
				if r.Offset+1 >= left[p.Partition] {
					delete(left, p.Partition)
				}
			}
			if p.LogStartOffset >= left[p.Partition] {
				delete(left, p.Partition)
			}
		})
	}
	return strings.Join(values, " ")
}

func records(values ...string) iter.Seq2[embedded.Record, error] {
	return func(yield func(embedded.Record, error) bool) {
		for _, v := range values {
			if !yield(embedded.Record{Key: []byte("key of " + v), Value: []byte(v)}, nil) {
				return
			}
		}
	}
}

func TestFillAndRead(t *testing.T) {
	b := start(t, embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 3}, {Name: "other"}}})
	var want []string
	for i := range 1000 {
		want = append(want, fmt.Sprintf("%04d", i))
	}
	n, err := b.Fill(bounded(t), "orders", records(want...))
	if n != 1000 || err != nil || b.Records("orders") != 1000 || b.Records("other") != 0 || b.Records("none") != 0 {
		t.Fatalf("filled %d, %v; there are %d, %d and %d", n, err, b.Records("orders"), b.Records("other"), b.Records("none"))
	}
	got := strings.Fields(contents(t, b, "orders"))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it holds %d other records", len(got))
	}

	broken := errors.New("line 3 is broken")
	n, err = b.Fill(bounded(t), "other", func(yield func(embedded.Record, error) bool) {
		_ = yield(embedded.Record{Value: []byte("1")}, nil) && yield(embedded.Record{}, broken)
	})
	if err != broken || n != b.Records("other") {
		t.Errorf("filled %d, %v; there are %d", n, err, b.Records("other"))
	}
	topics, err := b.Topics(bounded(t))
	if err != nil || len(topics) != 2 || topics[0].Name != "orders" || topics[0].Partitions != 3 || topics[1].Name != "other" {
		t.Errorf("the topics are %v, %v", topics, err)
	}
	if _, err := b.Fill(bounded(t), "none", records("1")); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("a topic that isn't there: %v", err)
	}
}

func TestTransactions(t *testing.T) { onBoth(t, tryTransactions) }

func tryTransactions(t *testing.T, b addressed) {
	out, id := newTopic(t, b, "out", 2, nil), services.Unique("job")
	c := client(t, b, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ctx := bounded(t)
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		must(t, c.BeginTransaction())
		for p := range int32(2) {
			must(t, c.ProduceSync(ctx, &kgo.Record{Topic: out, Partition: p, Value: fmt.Append(nil, i)}).FirstErr())
		}
		before := strings.Fields(contents(t, b, out))
		if slices.Contains(before, fmt.Sprint(i)) {
			t.Errorf("an open transaction is seen: %q", before)
		}
		must(t, c.EndTransaction(ctx, end))
	}
	sorted := func(held string) string {
		fields := strings.Fields(held)
		slices.Sort(fields)
		return strings.Join(fields, " ")
	}
	if got := awaited(t, b, out, func(held string) bool { return sorted(held) == "0 0 2 2" }); sorted(got) != "0 0 2 2" {
		t.Errorf("it holds %q", got)
	}

	// a second producer of this id fences the first
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(ctx, &kgo.Record{Topic: out, Value: []byte("fenced")}).FirstErr())
	second := client(t, b, kgo.TransactionalID(id))
	must(t, second.BeginTransaction())
	must(t, second.ProduceSync(ctx, &kgo.Record{Topic: out, Value: []byte("second")}).FirstErr())
	if err := c.EndTransaction(ctx, kgo.TryCommit); !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Errorf("the first ends its transaction: %v", err)
	}
	must(t, second.EndTransaction(ctx, kgo.TryCommit))
	theSecond := func(held string) bool { return strings.Contains(held, "second") }
	if got := awaited(t, b, out, theSecond); strings.Contains(got, "fenced") || !theSecond(got) {
		t.Errorf("it holds %q", got)
	}
}

func TestOffsetsOfATransaction(t *testing.T) { onBoth(t, tryOffsets) }

func tryOffsets(t *testing.T, b addressed) {
	in, out, id := newTopic(t, b, "in", 1, nil), newTopic(t, b, "out", 1, nil), services.Unique("job")
	write(t, client(t, b), in, "1", "2", "3")
	ctx := bounded(t)
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(b.Addr()), kgo.TransactionalID(id), kgo.ConsumerGroup(id),
		kgo.ConsumeTopics(in), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	must(t, err)
	defer s.Close()
	for done := 0; done < 3; {
		fetched := s.PollFetches(ctx)
		must(t, ctx.Err())
		must(t, s.Begin())
		for _, r := range fetched.Records() {
			must(t, s.ProduceSync(ctx, &kgo.Record{Topic: out, Value: r.Value}).FirstErr())
			done++
		}
		if committed, err := s.End(ctx, kgo.TryCommit); !committed || err != nil {
			t.Fatalf("committed %v, %v", committed, err)
		}
	}
	admin := kadm.NewClient(client(t, b))
	for { // a real broker writes the end of the transaction behind its answer
		offsets, err := admin.FetchOffsets(ctx, id)
		must(t, err)
		if at, ok := offsets.Lookup(in, 0); ok && at.At == 3 {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if got := awaited(t, b, out, func(held string) bool { return held == "1 2 3" }); got != "1 2 3" {
		t.Errorf("it holds %q", got)
	}
}

func TestCompaction(t *testing.T) {
	b := start(t, embedded.Options{Topics: []embedded.Topic{{Name: "compact", Settings: map[string]string{"cleanup.policy": "compact"}}}})
	c := client(t, b)
	for _, v := range []string{"a=1", "b=1", "a=2", "a=3"} {
		must(t, c.ProduceSync(bounded(t), &kgo.Record{Topic: "compact", Key: []byte(v[:1]), Value: []byte(v)}).FirstErr())
	}
	b.Compact()
	// the newest batch takes no part, and the log's start has moved
	if got := contents(t, b, "compact"); got != "b=1 a=2 a=3" || b.Records("compact") != 3 {
		t.Errorf("it holds %q, from %d offsets before its end", got, b.Records("compact"))
	}
}

func TestTopicIDs(t *testing.T) { onBoth(t, tryTopicIDs) }

func tryTopicIDs(t *testing.T, b addressed) {
	topic := newTopic(t, b, "again", 1, nil)
	id := func() kadm.TopicID {
		admin := kadm.NewClient(client(t, b)) // one that remembers nothing
		topics, err := admin.ListTopics(bounded(t), topic)
		must(t, err)
		return topics[topic].ID
	}
	first := id()
	if first == (kadm.TopicID{}) || id() != first {
		t.Fatalf("the id is %v, then %v", first, id())
	}
	admin := kadm.NewClient(client(t, b))
	_, err := admin.DeleteTopic(bounded(t), topic)
	must(t, err)
	for ctx := bounded(t); ; { // the real one deletes by and by
		if _, err = admin.CreateTopic(ctx, 1, 1, nil, topic); err == nil || ctx.Err() != nil {
			break
		}
	}
	must(t, err)
	if again := id(); again == first {
		t.Error("a topic that was made anew has the id of the old one")
	}
}

func TestLeaderEpochs(t *testing.T) {
	b := start(t, embedded.Options{Brokers: 3, Topics: []embedded.Topic{{Name: "moved"}}})
	if len(b.Addrs()) != 3 {
		t.Fatalf("addresses %v", b.Addrs())
	}
	c := client(t, b)
	write(t, c, "moved", "1", "2")
	for broker := range int32(3) {
		must(t, b.MoveLeader("moved", 0, broker))
	}
	write(t, c, "moved", "3") // the client finds the new leader
	reader := client(t, b, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"moved": {0: kgo.NewOffset().AtStart()}}))
	var epochs []int32
	for ctx := bounded(t); len(epochs) < 3; {
		for _, r := range reader.PollFetches(ctx).Records() {
			epochs = append(epochs, r.LeaderEpoch)
		}
		must(t, ctx.Err())
	}
	if epochs[1] != epochs[0] || epochs[2] != epochs[0]+3 {
		t.Errorf("the records have the leader epochs %v", epochs)
	}
	ends, err := kadm.NewClient(c).OffsetForLeaderEpoch(bounded(t), kadm.OffsetForLeaderEpochRequest{"moved": {0: epochs[0]}})
	must(t, err)
	if end := ends["moved"][0]; end.EndOffset != 2 || end.LeaderEpoch != epochs[0] {
		t.Errorf("the first epoch ends as %+v", end)
	}
	if err := b.MoveLeader("moved", 7, 0); err == nil {
		t.Error("a partition that isn't there moves")
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	foreign := t.TempDir()
	must(t, os.WriteFile(filepath.Join(foreign, "orders.csv"), nil, 0o644))
	takenFolder := filepath.Join(t.TempDir(), "taken")
	taken := start(t, embedded.Options{Folder: takenFolder, Topics: []embedded.Topic{{Name: "three", Partitions: 3}}})
	file := filepath.Join(foreign, "orders.csv")
	for want, o := range map[string]embedded.Options{
		"17 brokers; give 1 to 16":                              {Brokers: 17},
		"give host:port":                                        {Addr: "localhost"},
		"names no host":                                         {Addr: ":9092"},
		"one that they can reach":                               {Addr: "0.0.0.0:9092"},
		"expected a port up to 65534 for 2 brokers":             {Addr: "127.0.0.1:65535", Brokers: 2},
		"topic x: -1 partitions":                                {Topics: []embedded.Topic{{Name: "x", Partitions: -1}}},
		`topic "a/b" can't be made; use up to`:                  {Topics: []embedded.Topic{{Name: "a/b"}}},
		"topic y: the setting cleanup.polizy does nothing here": {Topics: []embedded.Topic{{Name: "y", Settings: map[string]string{"cleanup.polizy": "compact"}}}},
		"user ann: mechanism \"GSSAPI\"; use PLAIN":             {Users: []embedded.User{{Mechanism: "GSSAPI", Name: "ann", Password: "p"}}},
		"no name or no password":                                {Users: []embedded.User{{Mechanism: "PLAIN", Name: "ann"}}},
		"holds orders.csv, which is no broker's":                {Folder: foreign},
		"can't be made":                                         {Folder: filepath.Join(file, "x")},
		"another broker runs in it; stop that one, or name":     {Folder: takenFolder},
		"address already in use; give another, or port 0":       {Addr: taken.Addr()},
	} {
		b, err := embedded.Start(o)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "embedded Kafka: ") && !strings.HasPrefix(err.Error(), "topic ") {
			t.Errorf("expected %q: %v", want, err)
		}
	}
	if err := taken.CreateTopic(embedded.Topic{Name: "three", Partitions: 4}); err == nil || !strings.Contains(err.Error(), "has 3 partitions, expected 4") {
		t.Errorf("other partitions: %v", err)
	}
	must(t, taken.CreateTopic(embedded.Topic{Name: "three", Partitions: 3}))
}
