package kafka_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
)

// endsOf are the offsets behind the last rows that consumers see in a topic; values that
// begin with "other" are others'.
func (l *life) endsOf(t *testing.T) map[string]int64 {
	t.Helper()
	ends := map[string]int64{}
	for _, r := range committed(t, l.addrs, l.topic) {
		if string(r.Value) != "other" {
			ends[fmt.Sprintf("%s/%d", l.topic, r.Partition)] = r.Offset + 1
		}
	}
	return ends
}

// spans expects where a target says that its rows stand.
func (l *life) spans(t *testing.T, target connector.Target, begins map[string]int64) {
	t.Helper()
	got := target.(connector.SpanTarget).Span()
	if ends := l.endsOf(t); !maps.Equal(got.Ends, ends) {
		t.Errorf("rows end at %v, expected %v", got.Ends, ends)
	}
	if !maps.Equal(got.Begins, begins) || (got.Begins == nil) != (begins == nil) {
		t.Errorf("rows begin at %v, expected %v", got.Begins, begins)
	}
}

// progressRecord is the newest record of the sink, as any consumer reads it.
func (l *life) progressRecord(t *testing.T) (r *kgo.Record, fields map[string]any) {
	t.Helper()
	all := committed(t, l.addrs, l.progress())
	r = all[len(all)-1]
	if err := json.Unmarshal(r.Value, &fields); err != nil {
		t.Fatal(err)
	}
	return r, fields
}

// TestSpan: the record tells, in the transaction of the rows, from which offset on they
// stand in each partition, and where they end.
func TestSpan(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		l.topic, l.spread = services.Unique("spans"), true
		makeTopic(t, addrs, l.topic, 3, nil)
		others := plainClient(t, addrs, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for range 2 {
			if err := others.ProduceSync(t.Context(), &kgo.Record{Topic: l.topic, Partition: 1, Value: []byte("other")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		name := func(partition int) string { return fmt.Sprintf("%s/%d", l.topic, partition) }
		begins := map[string]int64{name(0): 0, name(1): 2, name(2): 0}

		target := l.open(t)
		l.make(t, target)
		l.spans(t, target, begins)
		for p, texts := range [][]string{{"a", "b"}, {"bb"}, {}, {"c", "d", "dd"}, {"e"}} { // none to partition 0
			l.deliver(t, target, connector.Apply, l.delivery(connector.Position(p+1), nil, texts...))
			l.spans(t, target, begins)
		}
		if len(l.endsOf(t)) != 2 {
			t.Fatalf("the rows went to other partitions: %v", l.endsOf(t))
		}

		// What consumers read.
		_, fields := l.progressRecord(t)
		for partition, end := range l.endsOf(t) {
			number := partition[len(l.topic)+1:]
			if got := fields["ends"].(map[string]any)[number]; got != float64(end) {
				t.Errorf("partition %s: the record has %v, expected %d", number, got, end)
			}
		}
		if got := fields["begins"].(map[string]any)["1"]; got != 2.0 {
			t.Errorf("partition 1: the record has %v, expected that rows begin at 2", got)
		}

		next := l.open(t) // another process, which knows nothing
		l.deliver(t, next, connector.Skip, l.delivery(5, nil, "e"))
		l.spans(t, next, begins)
		l.deliver(t, next, connector.Apply, l.delivery(6, nil, "f", "fff"))
		l.spans(t, next, begins)
		l.make(t, next) // finds it
		l.spans(t, next, begins)
	})
}

// TestSpanOfAnOldRecord: of a record from before records had such offsets it isn't known
// where rows begin, and they end where those end that have been delivered since.
func TestSpanOfAnOldRecord(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		l := newLife(t, addrs)
		target := l.open(t)
		l.make(t, target)
		l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
		target.Close()
		r, fields := l.progressRecord(t)
		delete(fields, "begins")
		delete(fields, "ends")
		value, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := plainClient(t, addrs).ProduceSync(t.Context(), &kgo.Record{Topic: r.Topic, Key: r.Key, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}

		next := l.open(t)
		l.deliver(t, next, connector.Skip, l.delivery(1, nil, "a"))
		if got := next.(connector.SpanTarget).Span(); got.Begins != nil || got.Ends != nil {
			t.Errorf("%+v is told where nothing is known", got)
		}
		l.deliver(t, next, connector.Apply, l.delivery(2, nil, "b", "c"))
		l.spans(t, next, nil)
		l.sees(t, "a", "b", "c")
	})
}
