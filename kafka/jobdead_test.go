package kafka_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// TestDeadLettersHaveTheRecordsKey sees that a dead letter has the key and the value of
// its record, so that it can be written again as it was.
func TestDeadLettersHaveTheRecordsKey(t *testing.T) {
	t.Parallel()
	c := fakeBrokers(t)
	addrs, name := c.ListenAddrs(), services.Unique("dead")
	in, dead := name+"-orders", name+"-dead"
	makeTopic(t, addrs, in, 1, nil)
	makeTopic(t, addrs, dead, 1, nil)
	writer := plainClient(t, addrs, kgo.DefaultProduceTopic(in))
	for _, r := range []*kgo.Record{
		{Key: []byte("good"), Value: []byte(`{"User":"ann","Cents":1}`)},
		{Key: []byte("k\x00\xff"), Value: []byte("no order")},
		{Value: []byte("nor this")},
		{Key: []byte("dear"), Value: []byte(`{"User":"bob","Cents":-5}`)},
	} {
		if err := writer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	on := kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty()))
	job := sluice.NewJob(name)
	orders := job.From("orders", kafka.Topic(in, codec.JSON[order](), on)).TryMap(func(o order) (order, error) {
		if o.Cents < 0 {
			return o, fmt.Errorf("nobody owes us money")
		}
		return o, nil
	})
	sums(job, orders).Changes().Discard()
	job.DeadLetter("dead", kafka.Append(dead, codec.JSON[sluice.DeadLetter](), on))
	letters := func() (all []string) {
		for _, r := range committed(t, addrs, dead) {
			var l sluice.DeadLetter
			if err := json.Unmarshal(r.Value, &l); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%d %q %q", l.Offset, l.RecordKey, l.Bytes))
		}
		return all
	}
	want := []string{`1 "k\x00\xff" "no order"`, `2 "" "nor this"`, `3 "dear" "{\"User\":\"bob\",\"Cents\":-5}"`}
	log := new(journal)
	if err := run(t, job, store.NewMemory(), log, func() bool { return len(letters()) >= len(want) }); err != nil {
		t.Fatalf("%v; it logged:\n%s", err, log)
	}
	if got := letters(); !slices.Equal(got, want) {
		t.Errorf("the dead letters are %q, expected %q", got, want)
	}
}
