package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/schema"
)

// onBoth runs a test on the embedded cluster and on the real broker, with a topic
// name of its own.
func onBoth(t *testing.T, test func(t *testing.T, addrs []string, topic string)) {
	t.Run("embedded", func(t *testing.T) {
		noLeaks(t)
		test(t, fake(t).ListenAddrs(), services.Unique("orders"))
	})
	t.Run("real", func(t *testing.T) {
		b := realKafka(t)
		test(t, []string{b.Addr()}, services.Unique("orders"))
	})
}

// inTransaction writes in a transaction, which is committed or given up.
func inTransaction(t *testing.T, c *kgo.Client, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	put(t, c, records...)
	if err := c.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
}

// TestTransactions: records of transactions that were given up are not seen, marks
// are passed over, what is undecided is not read, and a partition that ends with
// marks alone is read to its end.
func TestTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs, kgo.TransactionalID(topic))
		newTopic(t, w, topic, 1)
		inTransaction(t, w, kgo.TryCommit, numbered(topic, 0, 0, 3)...)    // 0 1 2, mark 3
		inTransaction(t, w, kgo.TryAbort, numbered(topic, 0, 100, 105)...) // 4 to 8, mark 9
		inTransaction(t, w, kgo.TryCommit, numbered(topic, 0, 3, 5)...)    // 10 11, mark 12
		inTransaction(t, w, kgo.TryAbort, numbered(topic, 0, 200, 203)...) // 13 14 15, mark 16
		inTransaction(t, w, kgo.TryAbort, numbered(topic, 0, 300, 301)...) // 17, mark 18
		r := openSource(t, topicOf(addrs, topic), opening(io.Discard))
		p := partitionAt(t, r, topic+"/0", connector.Offset{})
		if p.End() != 19 {
			t.Fatalf("the partition ends at %d, expected 19", p.End())
		}
		var got []string
		var to connector.Offset
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for to.Next < 19 {
			b := &connector.Batch{Limit: 2}
			if err := p.Next(ctx, b, -1); err != nil {
				t.Fatal(err)
			}
			for _, r := range b.Records {
				got = append(got, string(r.Value))
			}
			to = b.To
		}
		if !slices.Equal(got, texts(0, 5)) || to.Next != 19 || to.Identity == "" {
			t.Fatalf("read %q to %+v", got, to)
		}

		// From each offset on the rest is the same, also from within what was given up.
		rest := map[int64]int{0: 0, 2: 2, 3: 3, 4: 3, 7: 3, 9: 3, 10: 3, 11: 4, 12: 5, 14: 5, 18: 5}
		for from, done := range rest {
			at := to
			at.Next = from
			q := partitionAt(t, r, topic+"/0", at)
			var got []string
			for {
				b := &connector.Batch{}
				err := q.Next(ctx, b, 19)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range b.Records {
					got = append(got, string(r.Value))
				}
			}
			if !slices.Equal(got, texts(done, 5)) {
				t.Fatalf("from %d on: read %q", from, got)
			}
		}

		// What is undecided is neither read nor part of the end.
		if err := w.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		put(t, w, record(topic, 0, "later"))
		short, end := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer end()
		if err := p.Next(short, &connector.Batch{}, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("with an open transaction: %v", err)
		}
		if p.End() != 19 {
			t.Fatalf("the partition ends at %d with an open transaction, expected 19", p.End())
		}
		if err := w.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		if got, to := values(t, p, 1); got[0] != "later" || to.Next < 20 {
			t.Fatalf("read %q to %+v", got, to)
		}
	})
}

// TestCompactedGaps: offsets that compaction took away are passed over, at the end
// as well.
func TestCompactedGaps(t *testing.T) {
	noLeaks(t)
	c := fake(t)
	w := writer(t, c.ListenAddrs())
	newTopic(t, w, "orders", 1, "cleanup.policy", "compact", "segment.bytes", "1", "min.cleanable.dirty.ratio", "0")
	var want []string
	for i := range 20 {
		r := record("orders", 0, fmt.Sprint("v", i))
		r.Key = fmt.Append(nil, "k", i%3)
		put(t, w, r)
	}
	c.Compact()
	r := openSource(t, topicOf(c.ListenAddrs(), "orders"), opening(io.Discard))
	p := partitionAt(t, r, "orders/0", connector.Offset{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var offsets []int64
	for to := int64(0); to < 20; {
		b := &connector.Batch{}
		if err := p.Next(ctx, b, -1); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			want = append(want, string(r.Value))
			offsets = append(offsets, r.Offset)
		}
		to = b.To.Next
	}
	if len(offsets) >= 20 || !slices.IsSorted(offsets) || !slices.Equal(want[len(want)-3:], texts(17, 20)) {
		t.Fatalf("read %q at %v: expected gaps, and the last value of each key", want, offsets)
	}
}

// TestOddRecords: what a record may lack, and what a decoder makes of it.
func TestOddRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs)
		newTopic(t, w, topic, 1)
		at := time.UnixMilli(1767323045123)
		put(t, w,
			&kgo.Record{Topic: topic, Value: []byte("a"), Timestamp: at},
			&kgo.Record{Topic: topic, Key: []byte{}, Value: []byte{}, Timestamp: at.Add(time.Millisecond)},
			&kgo.Record{Topic: topic, Key: []byte("k"), Value: nil, Timestamp: at, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}}},
			&kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("b"), Timestamp: at},
		)
		source := topicOf(addrs, topic)
		r := openSource(t, Messages(source), opening(io.Discard))
		p := partitionAt(t, r, topic+"/0", connector.Offset{})
		decode, plain := Messages(source).NewDecoder(), source.NewDecoder()
		var got []Message[string]
		for len(got) < 4 {
			b := &connector.Batch{}
			if err := p.Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				var m Message[string]
				if err := decode(b, i, &m); err != nil {
					t.Fatal(err)
				}
				got = append(got, m)
				var v string
				err := plain(b, i, &v)
				bad, isDecode := errors.AsType[*connector.DecodeError](err)
				if m.Tombstone != isDecode || isDecode && (!strings.Contains(err.Error(), "tombstone") || bad.At != -1) || !isDecode && v != m.Value {
					t.Fatalf("plain: %q, %v", v, err)
				}
			}
		}
		micros := schema.Instant(at.UnixMicro())
		want := []string{
			fmt.Sprintf("{%s 0 0 %v [] [] a false}", topic, micros),
			fmt.Sprintf("{%s 0 1 %v [] []  false}", topic, micros+1000),
			fmt.Sprintf("{%s 0 2 %v [107] [{h [49]} {h []}]  true}", topic, micros),
			fmt.Sprintf("{%s 0 3 %v [107] [] b false}", topic, micros),
		}
		for i, m := range got {
			if s := fmt.Sprint(m); s != want[i] {
				t.Errorf("read %s, expected %s", s, want[i])
			}
		}
	})
}

// TestMessagesHaveASchema: whole messages can be state and cross shards.
func TestMessagesHaveASchema(t *testing.T) {
	type order struct{ ID string }
	if _, err := schema.Of[Message[order]]("m"); err != nil {
		t.Fatal(err)
	}
}

// TestNoTimestamp: -1 is no time.
func TestNoTimestamp(t *testing.T) {
	records := appendRecord(nil, &kgo.Record{Value: []byte("a"), Timestamp: time.UnixMilli(-1)})
	records = appendRecord(records, &kgo.Record{Value: []byte("a"), Timestamp: time.UnixMilli(0)})
	if records[0].Time != connector.NoTime || records[1].Time != 0 {
		t.Fatalf("times %d and %d", records[0].Time, records[1].Time)
	}
	b := &connector.Batch{Partition: "orders/7", Records: records}
	var m Message[string]
	if err := newMessageDecoder(codec.String().NewDecoder())(b, 0, &m); err != nil || m.Time != -1 || m.Partition != 7 || m.Topic != "orders" {
		t.Fatalf("%+v, %v", m, err)
	}
}

// TestNewPartitionsAreReadWhole: partitions that come later are read from their
// beginning, wherever the job began.
func TestNewPartitionsAreReadWhole(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs)
		newTopic(t, w, topic, 1)
		put(t, w, numbered(topic, 0, 0, 3)...)
		r := openSource(t, topicOf(addrs, topic, Begin(Latest())), opening(io.Discard))
		list := func() []string {
			names, err := r.Partitions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if names := list(); !slices.Equal(names, []string{topic + "/0"}) {
			t.Fatalf("partitions %q", names)
		}
		p := partitionAt(t, r, topic+"/0", connector.Offset{})
		if from := p.(connector.FoundPartition).From(); from.Next != 3 || from.Identity == "" {
			t.Fatalf("begins at %+v, expected 3", from)
		}
		morePartitions(t, w, topic, 12)
		w = writer(t, addrs)
		until(t, "12 partitions to be told", func() bool { return len(list()) == 12 })
		put(t, w, numbered(topic, 11, 0, 3)...)
		var names []string
		until(t, "12 partitions", func() bool { names = list(); return len(names) == 12 })
		if names[2] != topic+"/2" || names[11] != topic+"/11" {
			t.Fatalf("partitions %q", names)
		}
		put(t, w, record(topic, 0, "new"))
		if got, _ := values(t, p, 1); got[0] != "new" {
			t.Fatalf("read %q", got)
		}
		q := partitionAt(t, r, topic+"/11", connector.Offset{})
		if got, _ := values(t, q, 3); !slices.Equal(got, texts(0, 3)) {
			t.Fatalf("read %q", got)
		}
	})
}

// TestLeaderMoves: reading goes on where the leader is now.
func TestLeaderMoves(t *testing.T) {
	noLeaks(t)
	c := fake(t, kfake.NumBrokers(3))
	answerEpochsAsKafka(c)
	w := writer(t, c.ListenAddrs())
	newTopic(t, w, "orders", 1)
	put(t, w, numbered("orders", 0, 0, 5)...)
	r := openSource(t, topicOf(c.ListenAddrs(), "orders"), opening(io.Discard))
	p := partitionAt(t, r, "orders/0", connector.Offset{})
	got, _ := values(t, p, 5)
	for i := range int32(6) {
		if err := c.MoveTopicPartition("orders", 0, i%3); err != nil {
			t.Fatal(err)
		}
		n := 5 + 2*int(i)
		put(t, w, numbered("orders", 0, n, n+2)...)
		more, to := values(t, p, 2)
		got = append(got, more...)
		if to.LeaderEpoch != i+1 {
			t.Fatalf("leader epoch %d after %d moves", to.LeaderEpoch, i+1)
		}
	}
	if !slices.Equal(got, texts(0, 17)) {
		t.Fatalf("read %q", got)
	}
}
