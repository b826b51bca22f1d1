package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// life is a job's sink of texts, as several processes open it, one after the other
// or at once.
type life struct {
	addrs   []string
	topic   string
	opening connector.Opening
	key     connector.RecordKey
	opts    []kafka.SinkOption
	spread  bool // texts go to partitions by their lengths
	opened  kafka.AppendSink[string]
}

func newLife(t testing.TB, addrs []string, opts ...kafka.SinkOption) *life {
	t.Helper()
	l := &life{
		addrs: addrs, topic: services.Unique("texts"), opts: opts,
		key: connector.RecordKey{JobID: "5fe2b1a09d8c4e37", Task: "0.0", Sink: "texts"},
	}
	l.opening = connector.Opening{Env: env.Real(), Job: services.Unique("job"), JobID: l.key.JobID, Name: "texts"}
	l.opening.TransactionPrefix = l.opening.Job + "/"
	makeTopic(t, addrs, l.topic, 1, nil)
	return l
}

func (l *life) progress() string { return l.opening.Job + ".sluice" }

func (l *life) sink(opts ...kgo.Opt) kafka.AppendSink[string] {
	cluster := kafka.Connect(kafka.Brokers(l.addrs...), hasty(opts...))
	sink := kafka.Append(l.topic, codec.String(), append(slices.Clone(l.opts), kafka.On(cluster))...)
	if l.spread {
		return sink.PartitionBy(func(text string, partitions int) int { return len(text) % partitions })
	}
	return sink
}

// open opens the sink as a process of its own.
func (l *life) open(t testing.TB, opts ...kgo.Opt) connector.Target {
	t.Helper()
	l.opened = l.sink(opts...)
	target, err := l.opened.Open(t.Context(), l.opening, l.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// make makes the record.
func (l *life) make(t testing.TB, target connector.Target) {
	t.Helper()
	if _, err := target.Make(t.Context(), l.record(0)); err != nil {
		t.Fatal(err)
	}
}

func (l *life) record(p connector.Position) connector.SinkRecord {
	return connector.SinkRecord{Position: p, ID: "first", Job: l.opening.Job, Target: l.topic, Branch: "main", Epoch: uint64(p), Manifest: "hash"}
}

// delivery is the one that leads to a position. Wait, if not nil, is called before
// each row but the first.
func (l *life) delivery(p connector.Position, wait func(), texts ...string) *connector.Delivery {
	sink := l.sink()
	if l.spread {
		sink = l.opened // which knows how many partitions there are
	}
	rows, err := sink.Rows()
	if err != nil {
		panic(err)
	}
	wire := rows.NewWire()
	return &connector.Delivery{
		Record: l.record(p), Schema: rows.Schema,
		Decide: func(found *connector.SinkRecord) connector.Verdict {
			switch {
			case found == nil || found.ID != "first" || found.Position < p-1:
				return connector.Disagree
			case found.Position == p-1:
				return connector.Apply
			}
			return connector.Skip
		},
		Rows: func(yield func(connector.Row, error) bool) {
			for i, text := range texts {
				if i > 0 && wait != nil {
					wait()
				}
				b, err := wire(nil, &text)
				if !yield(connector.Row{Op: connector.Append, Wire: b}, err) {
					return
				}
				for i := range b {
					b[i] = '#' // a row's bytes hold until the next
				}
			}
		},
	}
}

// deliver delivers and expects a verdict.
func (l *life) deliver(t testing.TB, target connector.Target, expected connector.Verdict, d *connector.Delivery) {
	t.Helper()
	verdict, found, err := target.Deliver(t.Context(), d)
	if err != nil {
		t.Fatalf("delivering position %d: %v", d.Record.Position, err)
	}
	if verdict != expected {
		t.Fatalf("delivering position %d: verdict %d, expected %d; found %+v", d.Record.Position, verdict, expected, found)
	}
}

// fails expects a delivery to fail.
func (l *life) fails(t testing.TB, target connector.Target, d *connector.Delivery) error {
	t.Helper()
	verdict, _, err := target.Deliver(t.Context(), d)
	if err == nil {
		t.Fatalf("delivering position %d: verdict %d, expected an error", d.Record.Position, verdict)
	}
	return err
}

// sees expects what consumers have got, and no open transaction.
func (l *life) sees(t testing.TB, expected ...string) {
	t.Helper()
	var got []string
	for _, r := range committed(t, l.addrs, l.topic) {
		got = append(got, string(r.Value))
	}
	if !slices.Equal(got, expected) {
		t.Fatalf("consumers have got %q, expected %q", got, expected)
	}
}

// everyBroker runs a test on brokers in this process and on a real one.
func everyBroker(t *testing.T, test func(t *testing.T, addrs []string)) {
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		test(t, fakeBrokers(t).ListenAddrs())
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, []string{realKafka(t).Addr()})
	})
}

// endTxn is the key of the requests that end transactions.
const endTxn = 26

// holdEnd keeps back the first request that ends a transaction, as a network may:
// the client sees its connection break.
type holdEnd struct {
	mu        sync.Mutex
	addr      string
	held      []byte
	passes    bool // later ones pass
	downAfter bool // the network is down from then on, while this is true
}

func (h *holdEnd) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.downAfter && h.held != nil {
		return nil, errCrashed
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	return &holdingConn{c, h}, err
}

type holdingConn struct {
	net.Conn
	hold *holdEnd
}

func (c *holdingConn) Write(b []byte) (int, error) {
	c.hold.mu.Lock()
	defer c.hold.mu.Unlock()
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == endTxn && (c.hold.held == nil || !c.hold.passes) {
		if c.hold.held == nil {
			c.hold.addr, c.hold.held = c.RemoteAddr().String(), bytes.Clone(b)
		}
		c.Close()
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}

// arrives has the request arrive after all, and waits for the answer.
func (h *holdEnd) arrives(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		t.Fatal("no transaction was ended")
	}
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(settleWithin)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(h.held); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
		t.Fatalf("the answer to the delayed end: %v", err)
	}
}

// TestDelayedEnd is history H3: the end of a transaction is under way while its
// outcome is looked for. Whenever it arrives, each position is there once.
func TestDelayedEnd(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		for _, when := range []string{"before the next process", "after it has begun", "never"} {
			t.Run(when, func(t *testing.T) {
				l := newLife(t, addrs)
				l.make(t, l.open(t))
				end := &holdEnd{}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if verdict, _, err := l.open(t, kgo.Dialer(end.dial)).Deliver(ctx, l.delivery(1, nil, "a", "b")); err == nil {
					t.Fatalf("verdict %d though the end of the transaction was not heard of", verdict)
				}
				expected := connector.Apply
				if when == "before the next process" {
					end.arrives(t)
					expected = connector.Skip
				}
				next := l.open(t)
				l.deliver(t, next, expected, l.delivery(1, nil, "a", "b"))
				if when == "after it has begun" {
					end.arrives(t)
				}
				l.sees(t, "a", "b")
				l.deliver(t, next, connector.Apply, l.delivery(2, nil, "c"))
				l.sees(t, "a", "b", "c")
			})
		}
	})
}

// TestDelayedEndInTheNextTry is history H5: the end arrives while the same process
// has written half of what it tries again.
func TestDelayedEndInTheNextTry(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		l.make(t, l.open(t))
		end := &holdEnd{downAfter: true}
		target := l.open(t, kgo.Dialer(end.dial))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		l.failsWithin(ctx, t, target, l.delivery(1, nil, "a", "b"))
		end.mu.Lock()
		end.downAfter, end.passes = false, true
		end.mu.Unlock()
		arrived := false
		again := l.delivery(1, func() {
			l.hasOpen(t)
			end.arrives(t)
			arrived = true
		}, "a", "b")
		verdict, _, err := target.Deliver(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if verdict == connector.Apply && !arrived {
			t.Fatal("the delayed end didn't arrive")
		}
		l.sees(t, "a", "b")
	})
}

// hasOpen waits until a transaction is open in the topic.
func (l *life) hasOpen(t *testing.T) {
	t.Helper()
	l.waits(t, "a transaction is open", func(end, stable int64) bool { return stable < end })
}

func (l *life) waits(t *testing.T, what string, holds func(end, stable int64) bool) {
	t.Helper()
	admin := kadm.NewClient(sameClient(t, l.addrs))
	for begun := time.Now(); ; {
		ends, err := admin.ListEndOffsets(t.Context(), l.topic)
		if err != nil {
			t.Fatal(err)
		}
		stable, err := admin.ListCommittedOffsets(t.Context(), l.topic)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ends.Lookup(l.topic, 0)
		s, _ := stable.Lookup(l.topic, 0)
		if holds(e.Offset, s.Offset) {
			return
		}
		if time.Since(begun) > settleWithin {
			t.Fatalf("waited %v until %s", settleWithin, what)
		}
		moment()
	}
}

// TestPausedProcess is history H4: a process that has written everything and is
// paused before the end must not be able to commit once another has taken over.
func TestPausedProcess(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		l.make(t, l.open(t))
		paused, next := l.open(t), l.open(t)
		err := l.fails(t, paused, l.delivery(1, func() {
			l.hasOpen(t)
			l.deliver(t, next, connector.Apply, l.delivery(1, nil, "a", "b"))
		}, "a", "b"))
		t.Logf("the paused process got: %v", err)
		l.sees(t, "a", "b")
		// Duels (H18) are kept from by the log; here both go on, and each position is
		// there once.
		for p := connector.Position(2); p < 8; p++ {
			first, second := paused, next
			if p%2 == 0 {
				first, second = next, paused
			}
			for _, target := range []connector.Target{first, second} {
				d := l.delivery(p, nil, string(rune('a'+p)))
				verdict, _, err := target.Deliver(t.Context(), d)
				if err != nil {
					verdict, _, err = target.Deliver(t.Context(), d)
				}
				if err != nil || verdict == connector.Disagree {
					t.Fatalf("delivering position %d, the second time: verdict %d, %v", p, verdict, err)
				}
			}
		}
		l.sees(t, "a", "b", "c", "d", "e", "f", "g", "h")
	})
}

// TestTransactionTimedOut has brokers undo a transaction that takes too long.
func TestTransactionTimedOut(t *testing.T) {
	t.Parallel()
	l := newLife(t, []string{realKafka(t).Addr()}, kafka.TransactionTimeout(time.Second))
	world := *l.opening.Env
	world.Clock = patient{world.Clock}
	l.opening.Env = &world
	target := l.open(t)
	l.make(t, target)
	err := l.fails(t, target, l.delivery(1, func() {
		l.hasOpen(t)
		l.waits(t, "brokers have undone the transaction", func(end, stable int64) bool { return stable == end })
	}, "a", "b"))
	t.Logf("the process that took too long got: %v", err)
	l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a", "b"))
	l.deliver(t, target, connector.Apply, l.delivery(2, nil, "c"))
	l.sees(t, "a", "b", "c")
}

// patient is a clock whose timers are slow, as those of a machine that sleeps.
type patient struct{ env.Clock }

func (p patient) NewTimer(d time.Duration) env.Timer { return p.Clock.NewTimer(100 * d) }

// TestAbandonedTransaction kills a process in the middle: as soon as the next one
// has started, consumers get on.
func TestAbandonedTransaction(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		l.make(t, l.open(t))
		c := newCrash(noCall, 0)
		dying := l.open(t, kgo.Dialer(c.dial))
		ctx, cancel := context.WithCancel(t.Context())
		l.failsWithin(ctx, t, dying, l.delivery(1, func() {
			l.hasOpen(t)
			c.mu.Lock()
			c.die()
			c.mu.Unlock()
			cancel()
		}, "a", "b"))
		next := l.open(t)
		begun := time.Now()
		l.deliver(t, next, connector.Apply, l.delivery(1, nil, "a", "b"))
		l.sees(t, "a", "b")
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("consumers waited %v, expected less than the transaction's time-out", took)
		}
	})
}

func (l *life) failsWithin(ctx context.Context, t *testing.T, target connector.Target, d *connector.Delivery) {
	t.Helper()
	if _, _, err := target.Deliver(ctx, d); err == nil {
		t.Fatal("a process that lost its brokers has delivered")
	}
}

// TestLostRecord is history H22: the progress is gone, or can't be read.
func TestLostRecord(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		admin := kadm.NewClient(plainClient(t, addrs))
		one := func(t *testing.T) (*life, connector.Target) {
			l := newLife(t, addrs)
			target := l.open(t)
			l.make(t, target)
			l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
			return l, target
		}
		t.Run("topic deleted", func(t *testing.T) {
			l, target := one(t)
			if _, err := admin.DeleteTopics(t.Context(), l.progress()); err != nil {
				t.Fatal(err)
			}
			waitUntilGone(t, admin, l.progress())
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if verdict, _, err := target.Deliver(ctx, l.delivery(2, nil, "b")); err == nil {
				t.Fatalf("delivered without a topic of the progress: verdict %d", verdict)
			}
			if err := l.fails(t, target, l.delivery(2, nil, "b")); !errors.Is(err, connector.ErrRecord) {
				t.Fatalf("got %v, expected %v", err, connector.ErrRecord)
			}
			l.deliver(t, l.open(t), connector.Disagree, l.delivery(2, nil, "b"))
			l.sees(t, "a")
		})
		t.Run("record deleted", func(t *testing.T) {
			l, _ := one(t)
			tombstone := &kgo.Record{Topic: l.progress(), Key: committed(t, addrs, l.progress())[0].Key}
			if err := plainClient(t, addrs).ProduceSync(t.Context(), tombstone).FirstErr(); err != nil {
				t.Fatal(err)
			}
			l.deliver(t, l.open(t), connector.Disagree, l.delivery(2, nil, "b"))
			l.sees(t, "a")
		})
		for name, value := range map[string]string{
			"damaged":      `{"format":1,"position":`,
			"later format": `{"format":2,"position":1,"id":"first"}`,
			"more behind":  `{"format":1,"position":1,"id":"first"} {}`,
			"without id":   `{"format":1,"position":1}`,
			"unknown word": `{"format":1,"position":1,"id":"first","colour":"red"}`,
		} {
			t.Run(name, func(t *testing.T) {
				l, _ := one(t)
				all := committed(t, addrs, l.progress())
				client := plainClient(t, addrs)
				bad := &kgo.Record{Topic: l.progress(), Key: all[0].Key, Value: []byte(value)}
				if err := client.ProduceSync(t.Context(), bad).FirstErr(); err != nil {
					t.Fatal(err)
				}
				target := l.open(t)
				if _, err := target.Record(t.Context()); !errors.Is(err, connector.ErrRecord) {
					t.Errorf("reading: %v, expected %v", err, connector.ErrRecord)
				}
				if err := l.fails(t, target, l.delivery(2, nil, "b")); !errors.Is(err, connector.ErrRecord) {
					t.Errorf("delivering: %v, expected %v", err, connector.ErrRecord)
				}
				l.sees(t, "a")
			})
		}
		t.Run("of an earlier job", func(t *testing.T) {
			l, _ := one(t)
			l.key.JobID, l.opening.JobID = "another", "another"
			other := newLife(t, addrs)
			l.topic = other.topic
			_, err := l.open(t).Make(t.Context(), l.record(0))
			if !errors.Is(err, connector.ErrRecord) {
				t.Fatalf("got %v, expected %v", err, connector.ErrRecord)
			}
			t.Log(err)
		})
	})
}

// TestGroupOffsets tells a group its offsets in the transaction of a delivery.
func TestGroupOffsets(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		input, group := services.Unique("input"), services.Unique("group")
		makeTopic(t, addrs, input, 2, nil)
		client := plainClient(t, addrs, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for i := range 5 {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: input, Partition: int32(i % 2)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		target := l.open(t)
		admin := kadm.NewClient(client)
		meta, err := admin.Metadata(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := target.(connector.GroupTarget).Cluster(); got != meta.Cluster || got == "" {
			t.Errorf("the cluster is %q, expected %q", got, meta.Cluster)
		}
		l.make(t, target)
		for p, offsets := range []map[string]connector.Offset{
			{input + "/0": {Next: 2}, input + "/1": {Next: 0, LeaderEpoch: -1}},
			{input + "/0": {Next: 3}, input + "/1": {Next: 2}},
		} {
			d := l.delivery(connector.Position(p+1), nil, "a")
			d.Offsets = []connector.GroupOffsets{{Group: group, Offsets: offsets}}
			l.deliver(t, target, connector.Apply, d)
			l.sees(t, slices.Repeat([]string{"a"}, p+1)...)
			ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
			defer cancel()
			for name, want := range offsets {
				partition := int32(name[len(name)-1] - '0')
				for {
					got, err := admin.FetchOffsets(ctx, group)
					if err != nil {
						t.Fatal(err)
					}
					if at, ok := got.Lookup(input, partition); ok && at.At == want.Next && at.Metadata == "sluice:"+l.key.JobID {
						break
					}
					moment()
				}
			}
		}
		lag, err := admin.Lag(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		described := lag[group]
		if err := described.Error(); err != nil {
			t.Fatal(err)
		}
		if total := described.Lag.Total(); total != 0 {
			t.Errorf("the group's lag is %d, expected 0", total)
		}
	})
}

// TestDeposedLeader has the end of the progress topic told by a broker that was its
// leader once and doesn't know what was written since.
func TestDeposedLeader(t *testing.T) {
	t.Parallel()
	cluster := fakeBrokers(t)
	l := newLife(t, cluster.ListenAddrs())
	target := l.open(t)
	l.make(t, target)
	made := stableEnds(t.Context(), t, kadm.NewClient(plainClient(t, l.addrs)), l.progress())[0]
	l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
	next := l.open(t)
	cluster.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.ListOffsetsRequest)
		asked := req.Topics[0].Partitions[0]
		if req.Topics[0].Topic != l.progress() || asked.Timestamp != -1 {
			cluster.KeepControl()
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic, part := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
		topic.Topic, part.Offset = l.progress(), made
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	var deposed atomic.Bool
	deposed.Store(true)
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.FetchRequest) // batch by batch, so that nothing behind that end is told
		if len(req.Topics) > 0 && deposed.Load() {
			req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
		}
		cluster.KeepControl()
		return nil, nil, false
	})
	err := l.fails(t, next, l.delivery(1, nil, "a"))
	deposed.Store(false)
	t.Logf("the process that asked a deposed leader got: %v", err)
	l.deliver(t, next, connector.Skip, l.delivery(1, nil, "a"))
	l.deliver(t, next, connector.Apply, l.delivery(2, nil, "b"))
	l.sees(t, "a", "b")
}

// TestHangingTransaction has a partition say that a transaction is open there which
// the coordinator has ended: nothing is written before it is ended there too.
func TestHangingTransaction(t *testing.T) {
	cluster := fakeBrokers(t)
	l := newLife(t, cluster.ListenAddrs())
	l.make(t, l.open(t))
	name := l.opening.TransactionPrefix + l.key.JobID + "/0.0/texts"
	all, err := kadm.NewClient(plainClient(t, l.addrs)).DescribeTransactions(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	hangs.Store(true)
	var epoch atomic.Int32
	cluster.ControlKey(int16(kmsg.DescribeProducers), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := r.(*kmsg.DescribeProducersRequest)
		if !hangs.Load() {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		for _, asked := range req.Topics {
			topic := kmsg.NewDescribeProducersResponseTopic()
			topic.Topic = asked.Topic
			for _, p := range asked.Partitions {
				part, open := kmsg.NewDescribeProducersResponseTopicPartition(), kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				part.Partition, open.ProducerID, open.CurrentTxnStartOffset = p, all[name].ProducerID, 7
				open.ProducerEpoch = epoch.Load()
				part.ActiveProducers = append(part.ActiveProducers, open)
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	world := *l.opening.Env
	world.Clock = impatient{world.Clock}
	l.opening.Env = &world
	target := l.open(t)
	if err := l.fails(t, target, l.delivery(1, nil, "a")); !strings.Contains(err.Error(), "open since offset 7") {
		t.Fatalf("got %v", err)
	}
	hangs.Store(false)
	l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
	l.sees(t, "a")

	// One that is newer than what was committed last can be undone.
	epoch.Store(1000)
	hangs.Store(true)
	var undone atomic.Int64
	cluster.ControlKey(int16(kmsg.WriteTxnMarkers), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := r.(*kmsg.WriteTxnMarkersRequest)
		resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
		for _, m := range req.Markers {
			if m.Committed || m.ProducerID != all[name].ProducerID || m.ProducerEpoch != 1000 {
				t.Errorf("the transaction is ended by %+v", m)
			}
			for _, topic := range m.Topics {
				undone.Add(int64(len(topic.Partitions)))
			}
		}
		hangs.Store(false)
		return resp, nil, true
	})
	l.deliver(t, l.open(t), connector.Apply, l.delivery(2, nil, "b"))
	if undone.Load() == 0 {
		t.Error("nothing was undone")
	}
	l.sees(t, "a", "b")
}

// impatient is a clock whose timers are fast.
type impatient struct{ env.Clock }

func (p impatient) NewTimer(d time.Duration) env.Timer { return p.Clock.NewTimer(d / 10) }
