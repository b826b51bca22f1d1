package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fakeBrokers starts three brokers in this process.
func fakeBrokers(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hasty are a client's options for tests in which calls are to fail soon.
func hasty(opts ...kgo.Opt) kafka.ClusterOption {
	return kafka.Client(append(opts, kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RequestRetries(100))...)
}

// plainClient is a client of the tests' own, which does not wait for long before it
// asks again.
func plainClient(t testing.TB, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addrs...), kgo.DisableClientMetrics(), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RequestRetries(250), kgo.UnknownTopicRetries(250)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// clients are those of sameClient, by test and address.
var clients sync.Map

// sameClient is plainClient, but the same one at each call in a test: connections are
// dear where a topic is looked at often. It neither writes nor consumes.
func sameClient(t testing.TB, addrs []string) *kgo.Client {
	t.Helper()
	type key struct {
		test testing.TB
		addr string
	}
	k := key{t, addrs[0]}
	if c, ok := clients.Load(k); ok {
		return c.(*kgo.Client)
	}
	c := plainClient(t, addrs)
	clients.Store(k, c)
	t.Cleanup(func() { clients.Delete(k) })
	return c
}

// makeTopic makes a topic.
func makeTopic(t testing.TB, addrs []string, topic string, partitions int32, configs map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	admin := kadm.NewClient(sameClient(t, addrs))
	if _, err := admin.CreateTopic(t.Context(), partitions, -1, values, topic); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; moment() { // a real broker needs a moment to know of it
		listed, err := admin.ListTopics(t.Context(), topic)
		if err == nil && listed[topic].Err == nil && len(listed[topic].Partitions) == int(partitions) {
			return
		}
		if time.Since(begun) > settleWithin {
			t.Fatalf("topic %s was made and is not there: %v", topic, err)
		}
	}
}

// settleWithin bounds how long tests wait for what is to come.
const settleWithin = 30 * time.Second

// moment lets some time pass between two looks.
func moment() { _ = env.Pause(context.Background(), env.Real().Clock, 5*time.Millisecond) }

// waitUntilGone waits until a topic that was deleted is gone: Kafka answers as soon as
// its controller knows, and for a moment more its brokers take records.
func waitUntilGone(t *testing.T, admin *kadm.Client, topic string) {
	t.Helper()
	for begun := time.Now(); ; moment() {
		found, err := admin.ListTopics(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		if !found.Has(topic) {
			return
		}
		if time.Since(begun) > settleWithin {
			t.Fatalf("waited %v until topic %s is gone", settleWithin, topic)
		}
	}
}

// committed is what a consumer of committed records gets from a topic, partition
// by partition. It waits until no transaction is open there.
func committed(t testing.TB, addrs []string, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	admin := kadm.NewClient(sameClient(t, addrs))
	ends := stableEnds(ctx, t, admin, topic)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	from := map[int32]kgo.Offset{}
	for part, end := range ends {
		if start, _ := starts.Lookup(topic, part); start.Offset < end {
			from[part] = kgo.NewOffset().At(start.Offset)
		}
	}
	var all []*kgo.Record
	for _, of := range committedFrom(ctx, t, addrs, topic, from, ends) {
		all = append(all, of...)
	}
	return all
}

// stableEnds are a topic's ends, once no transaction holds them back.
func stableEnds(ctx context.Context, t testing.TB, admin *kadm.Client, topic string) map[int32]int64 {
	t.Helper()
	for {
		all, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		ends, same := map[int32]int64{}, true
		all.Each(func(o kadm.ListedOffset) {
			s, _ := stable.Lookup(o.Topic, o.Partition)
			ends[o.Partition] = o.Offset
			same = same && s.Offset == o.Offset
		})
		if same {
			return ends
		}
		if ctx.Err() != nil {
			t.Fatalf("a transaction stays open in topic %s", topic)
		}
		moment()
	}
}

// committedFrom is what a consumer of committed records gets of each of a topic's
// partitions, from an offset on that is before the end.
func committedFrom(ctx context.Context, t testing.TB, addrs []string, topic string, from map[int32]kgo.Offset, ends map[int32]int64) [][]*kgo.Record {
	t.Helper()
	got, unread := make([][]*kgo.Record, len(ends)), maps.Clone(from)
	if len(unread) == 0 {
		return nil
	}
	client := plainClient(t, addrs, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	defer client.Close()
	for len(unread) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading topic %s: %v", topic, err)
		}
		for _, r := range fetches.Records() {
			end := ends[r.Partition]
			if r.Offset < end && !r.Attrs.IsControl() {
				got[r.Partition] = append(got[r.Partition], r)
			}
			if r.Offset >= end-1 {
				delete(unread, r.Partition)
			}
		}
	}
	return got
}

// crash has a process reach its brokers up to a request, where it dies.
type crash struct {
	call int
	how  connectortest.Crash
	once bool // only the connection ends at that request

	mu    sync.Mutex
	calls int
	dying bool // the request has been sent, its answer is lost
	dead  chan struct{}
}

// noCall is the number of a request that never comes.
const noCall = math.MaxInt

var errCrashed = errors.New("this process has crashed")

func newCrash(call int, how connectortest.Crash) *crash {
	return &crash{call: call, how: how, dead: make(chan struct{})}
}

func (c *crash) crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls >= c.call
}

func (c *crash) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// die ends the process; the lock is held.
func (c *crash) die() {
	if !c.isDead() && !c.once {
		close(c.dead)
	}
}

func (c *crash) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.isDead() {
		return nil, errCrashed
	}
	var d net.Dialer
	inner, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &crashingConn{Conn: inner, crash: c}, nil
}

type crashingConn struct {
	net.Conn
	*crash
	last bool // the request at which the process dies went out here
}

// Write sends a request: the client library writes each at once.
func (c *crashingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dying || c.isDead() {
		return 0, errCrashed
	}
	c.calls++
	if c.calls < c.call {
		return c.Conn.Write(b)
	}
	if c.once && c.calls > c.call {
		return c.Conn.Write(b)
	}
	if c.how != connectortest.After {
		c.die()
		c.Conn.Close()
		return 0, errCrashed
	}
	c.dying, c.last = !c.once, true
	return c.Conn.Write(b)
}

func (c *crashingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		c.die()
		c.Conn.Close()
	}
	if c.last || c.isDead() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// clock is the process's: when it dies, it waits for nothing any more.
func (c *crash) clock() env.Clock { return crashClock{env.Real().Clock, c} }

type crashClock struct {
	env.Clock
	crash *crash
}

func (c crashClock) NewTimer(d time.Duration) env.Timer {
	t := crashTimer{c.Clock.NewTimer(d), make(chan time.Time, 1), make(chan struct{})}
	go func() {
		select {
		case now := <-t.Timer.C():
			t.fires <- now
		case <-c.crash.dead:
			t.fires <- time.Time{}
		case <-t.stopped:
		}
	}()
	return t
}

type crashTimer struct {
	env.Timer
	fires   chan time.Time
	stopped chan struct{}
}

func (t crashTimer) C() <-chan time.Time { return t.fires }
func (t crashTimer) Stop()               { t.Timer.Stop(); close(t.stopped) }

// inProcess is a sink in a process of its own, which has its own clock.
type inProcess struct {
	connector.Sink
	crash *crash
}

// Open implements [connector.Sink].
func (s inProcess) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	world := *o.Env
	world.Clock = s.crash.clock()
	o.Env = &world
	return s.Sink.Open(ctx, o, key)
}

// faults are the ways of a sink to fail that reaches its brokers by a cluster.
func faults(addrs []string, o connector.Opening, on func(*kafka.Cluster) connector.Sink) connectortest.Faults {
	process := func(c *crash) connector.Sink {
		return inProcess{on(kafka.Connect(kafka.Brokers(addrs...), hasty(kgo.Dialer(c.dial)))), c}
	}
	return connectortest.Faults{
		CrashSink: func(_ *testing.T, call int, how connectortest.Crash) (connector.Sink, func() bool) {
			if how == connectortest.PowerLoss && !torture() {
				// A client keeps nothing itself: it is the crash before the call once more.
				call = noCall
			}
			c := newCrash(call, how)
			return process(c), c.crashed
		},
		Break: func(_ *testing.T, call int, how connectortest.Crash) (connector.Sink, connector.Opening, func() bool) {
			c := newCrash(call, how)
			c.once = true
			return process(c), o, c.crashed
		},
	}
}

// system is what else can be done on the brokers that a sink writes to.
func system(t *testing.T, addrs []string, o connector.Opening, elsewhere func(topic string) connector.Sink) connectortest.System {
	input, group := services.Unique("input"), services.Unique("group")
	makeTopic(t, addrs, input, 1, nil)
	return connectortest.System{
		Elsewhere: func(t *testing.T) connector.Sink {
			topic := services.Unique("elsewhere")
			makeTopic(t, addrs, topic, 1, nil)
			return elsewhere(topic)
		},
		Damage: func(t *testing.T) {
			progress := o.Job + ".sluice"
			all := committed(t, addrs, progress)
			bad := &kgo.Record{Topic: progress, Key: all[0].Key, Value: []byte("{")}
			if err := plainClient(t, addrs).ProduceSync(t.Context(), bad).FirstErr(); err != nil {
				t.Fatal(err)
			}
		},
		Lose: func(t *testing.T) { loseTopic(t, addrs, o.Job+".sluice") },
		Groups: &connectortest.Groups{
			Offsets: func(next int64) []connector.GroupOffsets {
				return []connector.GroupOffsets{{Group: group, Offsets: map[string]connector.Offset{input + "/0": {Next: next}}}}
			},
			Read: func(t *testing.T, group string) map[string]int64 {
				transactionEnds(t, addrs, o.TransactionPrefix+o.JobID+"/0.0/"+o.Name)
				found, err := kadm.NewClient(sameClient(t, addrs)).FetchOffsets(kadm.RequireStable(t.Context()), group)
				if err != nil {
					t.Fatal(err)
				}
				offsets := map[string]int64{}
				found.Each(func(r kadm.OffsetResponse) { offsets[fmt.Sprintf("%s/%d", r.Topic, r.Partition)] = r.At })
				return offsets
			},
		},
	}
}

// loseTopic deletes a topic, and waits until brokers know.
func loseTopic(t *testing.T, addrs []string, topic string) {
	t.Helper()
	admin := kadm.NewClient(sameClient(t, addrs))
	if _, err := admin.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; moment() {
		found, err := admin.ListTopics(t.Context(), topic)
		if err == nil && !found.Has(topic) {
			return
		}
		if time.Since(begun) > settleWithin {
			t.Fatalf("topic %s was deleted and is there: %v", topic, err)
		}
	}
}

// transactionEnds waits until the end of a transaction stands in all partitions that
// it has written to, those of groups' offsets among them: brokers write that behind
// their answer.
func transactionEnds(t *testing.T, addrs []string, id string) {
	t.Helper()
	admin := kadm.NewClient(sameClient(t, addrs))
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	for {
		all, err := admin.DescribeTransactions(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if state := all[id].State; state != "Ongoing" && state != "PrepareCommit" && state != "PrepareAbort" {
			return
		}
		moment()
	}
}

// bound is what a delivery of the suite's sinks holds at the most: few enough rows
// for the suite to try the most.
var bound = kafka.MaxDelivery(20_000, 32<<20)

// suite sets up the sinks for the connectors' suite on the given brokers.
func suite(addrs []string) connectortest.SinkSetup {
	opening := func() connector.Opening {
		return connector.Opening{Env: env.Real(), Job: services.Unique("job"), JobID: "5fe2b1a09d8c4e37", Name: "suite", TransactionPrefix: services.Unique("prefix") + "/"}
	}
	row := func(t *testing.T, value []byte) (r connectortest.Row) {
		if err := codec.JSON[connectortest.Row]().NewDecoder()(value, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	return connectortest.SinkSetup{
		Stream: func(t *testing.T) connectortest.StreamFixture {
			topic := services.Unique("records")
			makeTopic(t, addrs, topic, 1, nil)
			on := func(c *kafka.Cluster, topic string) kafka.AppendSink[connectortest.Row] {
				return kafka.Append(topic, codec.JSON[connectortest.Row](), kafka.On(c), bound).Key(func(r connectortest.Row) []byte { return []byte(r.Name) })
			}
			opening, whole := opening(), kafka.Connect(kafka.Brokers(addrs...), hasty())
			return connectortest.StreamFixture{
				Sink: on(whole, topic), Opening: opening,
				Read: func(t *testing.T) (rows []connectortest.Row) {
					for _, r := range committed(t, addrs, topic) {
						rows = append(rows, row(t, r.Value))
					}
					return rows
				},
				Faults: faults(addrs, opening, func(c *kafka.Cluster) connector.Sink { return on(c, topic) }),
				System: system(t, addrs, opening, func(topic string) connector.Sink { return on(whole, topic) }),
			}
		},
		Table: func(t *testing.T) connectortest.TableFixture {
			topic := services.Unique("rows")
			makeTopic(t, addrs, topic, 1, map[string]string{"cleanup.policy": "compact"})
			on := func(c *kafka.Cluster, topic string) kafka.UpsertSink[string, connectortest.Row, connectortest.Row] {
				whole := func(_ string, r connectortest.Row) connectortest.Row { return r }
				return kafka.Upsert(topic, whole, codec.String(), codec.JSON[connectortest.Row](), kafka.On(c), bound)
			}
			opening, whole := opening(), kafka.Connect(kafka.Brokers(addrs...), hasty())
			changes := func(t *testing.T) (all []connectortest.Change) {
				for _, r := range committed(t, addrs, topic) {
					c := connectortest.Change{Key: string(r.Key)}
					if r.Value != nil {
						v := row(t, r.Value)
						c.Row = &v
					}
					all = append(all, c)
				}
				return all
			}
			return connectortest.TableFixture{
				Sink: on(whole, topic), Opening: opening,
				Read: func(t *testing.T) map[string]connectortest.Row {
					rows := map[string]connectortest.Row{}
					for _, c := range changes(t) {
						delete(rows, c.Key)
						if c.Row != nil {
							rows[c.Key] = *c.Row
						}
					}
					return rows
				},
				Log:    changes,
				Faults: faults(addrs, opening, func(c *kafka.Cluster) connector.Sink { return on(c, topic) }),
				System: system(t, addrs, opening, func(topic string) connector.Sink { return on(whole, topic) }),
			}
		},
	}
}
