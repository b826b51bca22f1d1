package kafka

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// stoppedClock is a clock that stands still.
type stoppedClock struct {
	env.Clock
	now time.Time
}

func (c stoppedClock) Now() time.Time { return c.now }

// TestTimeBounds has topics with all kinds of settings refuse times.
func TestTimeBounds(t *testing.T) {
	const (
		second = int64(1000)
		hour   = 3600 * second
		never  = "9223372036854775807"
	)
	clock := stoppedClock{now: time.UnixMilli(1_800_000_000_000)}
	for _, c := range []struct {
		name    string
		configs map[string]string
		takes   []int64          // from now, in milliseconds
		refuses map[int64]string // the same, and what the error says
	}{
		{"settings that may not be read", nil, []int64{-1e15, 1e15}, nil},
		{"no bounds", map[string]string{timeType: "CreateTime", timeBefore: never, timeAfter: never, timeDifference: never}, []int64{-1e15, 1e15}, nil},
		{"the broker's time", map[string]string{timeType: "LogAppendTime", timeBefore: "0", timeAfter: "0"}, []int64{-1e15, 1e15}, nil},
		{"as Kafka 4.0 has it", map[string]string{timeType: "CreateTime", timeBefore: never, timeAfter: "3600000"}, []int64{-1e15, 0, hour},
			map[int64]string{hour + 1: "at most 1h0m0s ahead of its brokers' (message.timestamp.after.max.ms=3600000), and", 1e15: "after.max.ms=3600000"}},
		{"an age", map[string]string{timeBefore: "86400000"}, []int64{1e15, 0, -23 * hour},
			map[int64]string{-23*hour - 1: "at most 24h0m0s behind its brokers' (message.timestamp.before.max.ms=86400000), of which 1h0m0s are left for the delivery", -1e15: "before.max.ms=86400000"}},
		{"a short age", map[string]string{timeBefore: "10000"}, []int64{0, -9 * second}, map[int64]string{-9*second - 1: "1s are left", -10 * second: "1s are left"}},
		{"no age", map[string]string{timeBefore: "0", timeAfter: "0"}, []int64{0}, map[int64]string{1: "after.max.ms=0", -1: "before.max.ms=0"}},
		{"before Kafka 3.6", map[string]string{timeDifference: "10000"}, []int64{-9 * second, 10 * second},
			map[int64]string{-9*second - 1: "difference.max.ms=10000", 10*second + 1: "difference.max.ms=10000"}},
		{"Kafka 3.6 to 3.9", map[string]string{timeDifference: "10000", timeBefore: never, timeAfter: "20000"}, []int64{-9 * second, 20 * second},
			map[int64]string{-9*second - 1: "difference.max.ms=10000", 20*second + 1: "after.max.ms=20000"}},
		{"the longest that is one", map[string]string{timeAfter: "9223372036854775806"}, []int64{1e15, math.MaxInt64 - clock.now.UnixMilli()}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bounds, err := newTimeBounds(clock, "totals", c.configs)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range c.takes {
				if err := bounds.check("totals", clock.now.UnixMilli()+at); err != nil {
					t.Errorf("%d ms from now: %v", at, err)
				}
			}
			for at, says := range c.refuses {
				err := bounds.check("totals", clock.now.UnixMilli()+at)
				refused, ok := errors.AsType[*RecordTimeError](err)
				if !ok || refused.Time.UnixMilli() != clock.now.UnixMilli()+at || !refused.Now.Equal(clock.now) {
					t.Fatalf("%d ms from now: %v", at, err)
				}
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%d ms from now: %v, expected %q in it", at, err, says)
				}
			}
			for _, none := range []int64{connector.NoTime, -1} {
				if err := bounds.check("totals", none); err != nil {
					t.Errorf("a record without a time: %v", err)
				}
			}
		})
	}
	for _, far := range []int64{math.MinInt64 + 1, math.MaxInt64} {
		bounds := &timeBounds{clock: clock, before: timeBound{timeBefore, hour}, after: timeBound{timeAfter, hour}}
		if err := bounds.check("totals", far); err == nil {
			t.Errorf("a time of %d ms is taken", far)
		}
	}
	for _, bad := range []string{"", "-1", "an hour"} {
		if _, err := newTimeBounds(clock, "totals", map[string]string{timeAfter: bad}); err == nil || !strings.Contains(err.Error(), timeAfter) {
			t.Errorf("the setting %q: %v", bad, err)
		}
	}
}

// TestTimesOfRows holds the rows of both kinds of sinks to the topic's bounds.
func TestTimesOfRows(t *testing.T) {
	clock := stoppedClock{now: time.UnixMilli(1_800_000_000_000)}
	bounds, err := newTimeBounds(clock, "totals", map[string]string{timeAfter: "1000"})
	if err != nil {
		t.Fatal(err)
	}
	stream := Append("totals", codec.String()).Time(func(s string) time.Time { return clock.now.Add(time.Duration(len(s)) * time.Second) })
	table := Upsert("totals", func(_, s string) string { return s }, codec.String(), codec.String()).
		Time(func(_, s string) time.Time { return clock.now.Add(time.Duration(len(s)) * time.Second) })
	stream.bounds.times.Store(bounds)
	table.bounds.times.Store(bounds)
	appended, put := stream.newWire(), table.newWire()
	for text, refused := range map[string]bool{"a": false, "ab": true} {
		for kind, wire := range map[string]func([]byte) ([]byte, error){
			"stream": func(dst []byte) ([]byte, error) { return appended(dst, &text) },
			"table":  func(dst []byte) ([]byte, error) { return put(dst, "k", &text) },
		} {
			out, err := wire([]byte("before"))
			if _, is := errors.AsType[*RecordTimeError](err); is != refused || refused != (string(out) == "before") {
				t.Errorf("a %s's row %d s ahead: %q, %v", kind, len(text), out, err)
			}
		}
	}
	if _, err := put(nil, "k", nil); err != nil {
		t.Errorf("a tombstone: %v", err)
	}
}
