package kafka

import (
	"io"
	"maps"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
)

// TestOffsetsAt finds the first record of a time or later in each partition, and its end
// where there is none.
func TestOffsetsAt(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]func(t *testing.T) []string{
		"fake": func(t *testing.T) []string { return fake(t).ListenAddrs() },
		"real": func(t *testing.T) []string { return []string{realKafka(t).Addr()} },
	} {
		t.Run(name, func(t *testing.T) {
			addrs, topic := broker(t), services.Unique("timed")
			w := writer(t, addrs)
			newTopic(t, w, topic, 3)
			noon := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			for _, late := range []time.Duration{-2 * time.Minute, -time.Minute, 0, time.Minute} {
				r := record(topic, 0, "v")
				r.Timestamp = noon.Add(late)
				put(t, w, r)
			}
			early := record(topic, 1, "v")
			early.Timestamp = noon.Add(-time.Minute)
			put(t, w, early)

			o := opening(io.Discard)
			o.Job = topic
			r := openSource(t, topicOf(addrs, topic), o)
			if _, err := r.Partitions(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				at    time.Duration // from noon
				first int64         // in partition 0
				alone int64         // in partition 1
			}{{-time.Hour, 0, 0}, {-time.Minute, 1, 0}, {-time.Minute + time.Microsecond, 2, 1}, {0, 2, 1}, {time.Second, 3, 1}, {time.Hour / 2, 4, 1}} {
				found, err := r.(connector.TimedReader).OffsetsAt(t.Context(), noon.Add(c.at))
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]int64{}
				for partition, at := range found {
					got[partition] = at.Next
				}
				if want := map[string]int64{topic + "/0": c.first, topic + "/1": c.alone, topic + "/2": 0}; !maps.Equal(got, want) {
					t.Errorf("%v from noon: %v, want %v", c.at, got, want)
				}
			}
		})
	}
}
