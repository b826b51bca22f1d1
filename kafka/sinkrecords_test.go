package kafka_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

type purchase struct {
	User  string
	Cents int64
	At    time.Time
}

// deliverAll delivers records of a sink, in one delivery, and returns what
// consumers get.
func deliverAll[T any](t *testing.T, addrs []string, topic string, sink kafka.AppendSink[T], all ...T) []*kgo.Record {
	t.Helper()
	job := services.Unique("job")
	target, err := sink.Open(t.Context(), connector.Opening{Env: env.Real(), Job: job, JobID: job}, connector.RecordKey{JobID: job, Task: "0.0", Sink: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := target.Make(t.Context(), connector.SinkRecord{ID: "first", Job: job, Target: topic}); err != nil {
		t.Fatal(err)
	}
	rows, err := sink.Rows()
	if err != nil {
		t.Fatal(err)
	}
	wire := rows.NewWire()
	verdict, _, err := target.Deliver(t.Context(), &connector.Delivery{
		Record: connector.SinkRecord{Position: 1, ID: "first", Job: job, Target: topic},
		Decide: func(*connector.SinkRecord) connector.Verdict { return connector.Apply },
		Rows: func(yield func(connector.Row, error) bool) {
			for _, v := range all {
				b, err := wire(nil, &v)
				if !yield(connector.Row{Wire: b}, err) {
					return
				}
			}
		},
	})
	if err != nil || verdict != connector.Apply {
		t.Fatalf("verdict %d, %v", verdict, err)
	}
	return committed(t, addrs, topic)
}

// TestPartitionsOfKeys compares with what Kafka's own client computes.
func TestPartitionsOfKeys(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		topic := services.Unique("keyed")
		makeTopic(t, addrs, topic, 12, nil)
		sink := kafka.Append(topic, codec.String(), kafka.On(kafka.Connect(kafka.Brokers(addrs...)))).
			KeyAs(func(s string) string { return s }, codec.String())
		want := map[string]int32{"user-42": 4, "a": 4, "100:48069": 9}
		for _, r := range deliverAll(t, addrs, topic, sink, slices.Sorted(maps.Keys(want))...) {
			if r.Partition != want[string(r.Key)] {
				t.Errorf("key %q is in partition %d, expected %d", r.Key, r.Partition, want[string(r.Key)])
			}
			delete(want, string(r.Key))
		}
		if len(want) > 0 {
			t.Errorf("not written: %v", want)
		}
	})
}

func TestWhatRecordsHold(t *testing.T) {
	t.Parallel()
	addrs := fakeBrokers(t).ListenAddrs()
	topic := services.Unique("purchases")
	at := time.Date(2026, 1, 31, 12, 0, 0, 7_654_321, time.UTC)
	sink := kafka.Append(topic, codec.JSON[purchase](), kafka.On(kafka.Connect(kafka.Brokers(addrs...))), kafka.CreateTopic(3, 1, map[string]string{"retention.ms": "1234567"})).
		Key(func(p purchase) []byte {
			if p.User == "" {
				return nil
			}
			return []byte(p.User)
		}).
		Headers(func(p purchase) []connector.Header {
			return []connector.Header{{Key: "cents", Value: fmt.Append(nil, p.Cents)}, {Key: "none"}}
		}).
		PartitionBy(func(p purchase, partitions int) int { return int(p.Cents) % partitions }).
		Time(func(p purchase) time.Time { return p.At })
	all := deliverAll(t, addrs, topic, sink, purchase{"ann", 4, at}, purchase{"", 5, at.Add(time.Hour)})
	if len(all) != 2 {
		t.Fatalf("%d records, expected 2", len(all))
	}
	for i, want := range []struct {
		key, value, cents string
		partition         int32
		at                time.Time
	}{
		{"ann", `{"User":"ann","Cents":4,"At":"2026-01-31T12:00:00.007654321Z"}`, "4", 1, at},
		{"", `{"User":"","Cents":5,"At":"2026-01-31T13:00:00.007654321Z"}`, "5", 2, at.Add(time.Hour)},
	} {
		r := all[i]
		if string(r.Key) != want.key || (r.Key == nil) != (want.key == "") || string(r.Value) != want.value || r.Partition != want.partition {
			t.Errorf("record %d is %q: %s in partition %d, expected %q: %s in %d", i, r.Key, r.Value, r.Partition, want.key, want.value, want.partition)
		}
		if !r.Timestamp.Equal(want.at.Truncate(time.Millisecond)) {
			t.Errorf("record %d is of %v, expected %v", i, r.Timestamp, want.at)
		}
		if headers := []kgo.RecordHeader{{Key: "cents", Value: []byte(want.cents)}, {Key: "none"}}; !reflect.DeepEqual(r.Headers, headers) {
			t.Errorf("record %d has headers %v, expected %v", i, r.Headers, headers)
		}
	}
	found, err := kadm.NewClient(plainClient(t, addrs)).DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found[0].Configs {
		if c.Key == "retention.ms" && c.MaybeValue() != "1234567" {
			t.Errorf("the topic was made with retention.ms=%s, expected 1234567", c.MaybeValue())
		}
	}
}

func TestDescribe(t *testing.T) {
	double := func(k string, n int64) purchase { return purchase{User: k, Cents: n} }
	whole := func(s kafka.UpsertSink[string, int64, purchase]) connector.Sink { return s }
	for _, c := range []struct {
		sink connector.Sink
		want string
	}{
		{kafka.Append("t", codec.String()), "mode=append key=none value=string"},
		{kafka.Append("t", codec.String()).Key(func(string) []byte { return nil }).PartitionBy(func(string, int) int { return 0 }).Headers(func(string) []connector.Header { return nil }), "mode=append key=function value=string headers=function partition=function"},
		{whole(kafka.Upsert("t", double, codec.String(), codec.JSON[purchase]()).Time(func(_ string, p purchase) time.Time { return p.At })), "mode=upsert key=string value=json time=function"},
	} {
		d := c.sink.Describe()
		var words []string
		for _, p := range d.Parameters {
			words = append(words, p.Name+"="+p.Value)
		}
		if got := strings.Join(words, " "); got != c.want || d.Connector != "kafka" || d.Contract != 1 || d.Target != "t" {
			t.Errorf("described as %s %d %s, %s; expected kafka 1 t, %s", d.Connector, d.Contract, d.Target, got, c.want)
		}
	}
	rows, bytes := kafka.Append("t", codec.String()).PartLimits()
	if rows != 200_000 || bytes != 32<<20 {
		t.Errorf("a delivery has at most %d rows and %d bytes, expected 200,000 and 32 MiB", rows, bytes)
	}
	if rows, bytes := kafka.Append("t", codec.String(), kafka.MaxDelivery(7, 0)).PartLimits(); rows != 7 || bytes != 0 {
		t.Errorf("a delivery has at most %d rows and %d bytes, expected 7 and no bound", rows, bytes)
	}
}

// TestLargestRecord writes records around what the topic takes.
func TestLargestRecord(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		topic := services.Unique("small")
		makeTopic(t, addrs, topic, 1, map[string]string{"max.message.bytes": "2000"})
		sink := kafka.Append(topic, codec.Bytes(), kafka.On(kafka.Connect(kafka.Brokers(addrs...))), kafka.Compress(kafka.Uncompressed))
		rows, err := sink.Rows()
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		value := make([]byte, 3000)
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		wire := rows.NewWire()
		if _, err := wire(nil, &value); err != nil {
			t.Fatalf("a sink that was never opened knows of no bound: %v", err)
		}
		deliverAll(t, addrs, topic, sink)
		largest := 0
		for n := range value {
			v := value[:n]
			_, err := wire(nil, &v)
			var large *kafka.RecordTooLargeError
			switch {
			case err == nil:
				largest = n
			case !errors.As(err, &large) || large.Limit != 2000 || large.Value != n || large.Topic != topic:
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if largest < 1850 || largest > 1930 {
			t.Errorf("the largest value is %d, expected what a batch of 2000 bytes holds", largest)
		}
		if got := deliverAll(t, addrs, topic, sink, value[:largest]); len(got) != 1 || len(got[0].Value) != largest {
			t.Errorf("the largest record isn't there: %d records", len(got))
		}
		dst := []byte("before")
		if out, err := wire(dst, &value); err == nil || string(out) != "before" {
			t.Errorf("after an error there is %q, expected what was there before", out)
		}
	})
}

// TestAnswers has brokers answer with errors, each at its request, once or a few
// times: each delivery is there once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key kmsg.Key
		err *kerr.Error
	}{
		{kmsg.InitProducerID, kerr.NotCoordinator},
		{kmsg.InitProducerID, kerr.ConcurrentTransactions},
		{kmsg.InitProducerID, kerr.CoordinatorLoadInProgress},
		{kmsg.Produce, kerr.InvalidProducerIDMapping}, // the transactional id has expired
		{kmsg.Produce, kerr.UnknownProducerID},
		{kmsg.Produce, kerr.NotLeaderForPartition},
		{kmsg.Produce, kerr.OutOfOrderSequenceNumber},
		{kmsg.Produce, kerr.InvalidProducerEpoch},
		{kmsg.Produce, kerr.NotEnoughReplicasAfterAppend},
		{kmsg.Produce, kerr.TransactionAbortable},
		{kmsg.EndTxn, kerr.NotCoordinator},
		{kmsg.EndTxn, kerr.ConcurrentTransactions},
		{kmsg.EndTxn, kerr.InvalidTxnState},
		{kmsg.EndTxn, kerr.UnknownServerError},
		{kmsg.EndTxn, kerr.InvalidProducerEpoch},
		{kmsg.EndTxn, kerr.InvalidProducerIDMapping},
		{kmsg.EndTxn, kerr.TransactionAbortable},
		{kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{kmsg.Fetch, kerr.NotLeaderForPartition},
		{kmsg.Fetch, kerr.FencedLeaderEpoch},
		{kmsg.TxnOffsetCommit, kerr.NotCoordinator},
		{kmsg.TxnOffsetCommit, kerr.ConcurrentTransactions},
		{kmsg.TxnOffsetCommit, kerr.InvalidProducerEpoch},
		{kmsg.Metadata, kerr.LeaderNotAvailable},
	} {
		t.Run(c.key.Name()+" "+c.err.Message, func(t *testing.T) {
			cluster := fakeBrokers(t)
			l := newLife(t, cluster.ListenAddrs())
			input := services.Unique("input")
			makeTopic(t, l.addrs, input, 1, nil)
			l.make(t, l.open(t))
			target := l.open(t)
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{c.key}, Err: c.err, Count: 2})
			for p, text := range []string{"a", "b", "c"} {
				d := l.delivery(connector.Position(p+1), nil, text)
				d.Offsets = []connector.GroupOffsets{{Group: "readers", Offsets: map[string]connector.Offset{input + "/0": {Next: int64(p)}}}}
				const tries = 6
				for try := range tries {
					verdict, _, err := target.Deliver(t.Context(), d)
					if err == nil && verdict != connector.Disagree {
						break
					}
					if err == nil || try == tries-1 {
						t.Fatalf("position %d: verdict %d, %v", p+1, verdict, err)
					}
				}
			}
			if fault.Hits() == 0 {
				t.Errorf("no broker answered %s", c.err.Message)
			}
			l.sees(t, "a", "b", "c")
		})
	}
}

// TestOldBrokers writes to brokers with the first version of transactions.
func TestOldBrokers(t *testing.T) {
	t.Parallel()
	cluster := fakeBrokers(t)
	client := plainClient(t, cluster.ListenAddrs())
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.TimeoutMillis = 5000
	feature := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	feature.Feature, feature.MaxVersionLevel, feature.UpgradeType, feature.AllowDowngrade = "transaction.version", 0, 2, true
	req.FeatureUpdates = append(req.FeatureUpdates, feature)
	if _, err := req.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	l := newLife(t, cluster.ListenAddrs())
	_, err := l.sink().Open(t.Context(), l.opening, l.key)
	if err == nil || !strings.Contains(err.Error(), "transaction.version at 0, expected at least 2") {
		t.Fatalf("got %v", err)
	}
	input := services.Unique("input")
	makeTopic(t, l.addrs, input, 1, nil)
	l.opts = append(l.opts, kafka.AllowOldBrokers())
	target, other := l.open(t), l.open(t)
	l.make(t, target)
	for p, text := range []string{"a", "b", "c"} {
		d := l.delivery(connector.Position(p+1), nil, text)
		d.Offsets = []connector.GroupOffsets{{Group: "readers", Offsets: map[string]connector.Offset{input + "/0": {Next: int64(p)}}}}
		l.deliver(t, target, connector.Apply, d)
	}
	l.deliver(t, other, connector.Apply, l.delivery(4, nil, "d"))
	if _, _, err := target.Deliver(t.Context(), l.delivery(4, nil, "d")); err != nil {
		l.deliver(t, target, connector.Skip, l.delivery(4, nil, "d"))
	}
	l.sees(t, "a", "b", "c", "d")
	got, err := kadm.NewClient(client).FetchOffsets(kadm.RequireStable(t.Context()), "readers")
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := got.Lookup(input, 0); !ok || at.At != 2 {
		t.Errorf("the group stands at %+v, expected 2", at)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cluster := fakeBrokers(t)
	addrs := cluster.ListenAddrs()
	makeTopic(t, addrs, "there", 1, nil)
	makeTopic(t, addrs, "partitioned.sluice", 2, map[string]string{"cleanup.policy": "compact", "segment.ms": "600000"})
	makeTopic(t, addrs, "deleting.sluice", 1, map[string]string{"cleanup.policy": "delete", "segment.ms": "700000"})
	for _, c := range []struct {
		topic, job string
		opts       []kafka.SinkOption
		says       []string
	}{
		{"", "job", nil, []string{"is no name of a topic"}},
		{"missing", "job", nil, []string{"topic missing isn't there", "kafka.CreateTopic"}},
		{"there", "partitioned", nil, []string{"topic partitioned.sluice", "partitions is 2, expected 1"}},
		{"there", "deleting", nil, []string{"topic deleting.sluice", "cleanup.policy is delete, expected compact", "segment.ms is 700000, expected at most 600000"}},
		{"there", "job", []kafka.SinkOption{kafka.TransactionTimeout(0)}, []string{"TransactionTimeout is 0s, expected at least 1s"}},
		{"there", "job", []kafka.SinkOption{kafka.Compress("fast")}, []string{`"fast"`}},
		{"there", "job", []kafka.SinkOption{kafka.MaxRecordBytes(0), kafka.MaxDelivery(-1, 0)}, []string{"MaxRecordBytes", "MaxDelivery"}},
		{"there", "job", []kafka.SinkOption{kafka.CreateTopic(0, 1, nil)}, []string{"CreateTopic has 0 partitions"}},
	} {
		sink := kafka.Append(c.topic, codec.String(), append(c.opts, kafka.On(kafka.Connect(kafka.Brokers(addrs...))))...)
		_, err := sink.Open(t.Context(), connector.Opening{Env: env.Real(), Job: c.job}, connector.RecordKey{JobID: "id", Task: "0.0", Sink: "s"})
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("topic %q, job %s: got %v, expected %q in it", c.topic, c.job, err, says)
			}
		}
	}
}

// TestNothingStays closes a sink after deliveries that went well and after one that
// didn't: no goroutine is left.
func TestNothingStays(t *testing.T) {
	cluster := fakeBrokers(t)
	l := newLife(t, cluster.ListenAddrs())
	target, err := l.sink().Open(t.Context(), l.opening, l.key)
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	next, err := l.sink().Open(t.Context(), l.opening, l.key)
	if err != nil {
		t.Fatal(err)
	}
	l.make(t, next)
	l.deliver(t, next, connector.Apply, l.delivery(1, nil, "a"))
	l.deliver(t, target, connector.Apply, l.delivery(2, nil, "b"))
	t.Logf("the fenced one got: %v", l.fails(t, next, l.delivery(2, func() {}, "b", "c")))
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"))
}
