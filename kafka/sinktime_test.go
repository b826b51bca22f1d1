package kafka_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTimesOfTheRealBroker: what a sink takes a broker takes, and what it refuses for
// its time never gets there.
func TestTimesOfTheRealBroker(t *testing.T) {
	t.Parallel()
	addrs := []string{realKafka(t).Addr()}
	const age, ahead = 24 * time.Hour, 2 * time.Minute
	sink := func(topic string) kafka.AppendSink[time.Time] {
		return kafka.Append(topic, codec.JSON[time.Time](), kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty()))).
			Time(func(at time.Time) time.Time { return at })
	}
	for name, c := range map[string]struct {
		configs        map[string]string
		takes, refuses []time.Duration // from now
	}{
		"bounds": {
			map[string]string{"message.timestamp.before.max.ms": "86400000", "message.timestamp.after.max.ms": "120000"},
			[]time.Duration{-22 * time.Hour, 0, ahead - 10*time.Second}, []time.Duration{-age - time.Minute, -age + 30*time.Minute, ahead + 10*time.Second},
		},
		"defaults":          {nil, []time.Duration{-10 * 365 * 24 * time.Hour, 50 * time.Minute}, []time.Duration{70 * time.Minute}},
		"the broker's time": {map[string]string{"message.timestamp.type": "LogAppendTime"}, []time.Duration{-age, 1000 * time.Hour}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			topic := services.Unique("timed")
			makeTopic(t, addrs, topic, 1, c.configs)
			s := sink(topic)
			deliverAll(t, addrs, topic, s) // opens it
			rows, err := s.Rows()
			if err != nil {
				t.Fatal(err)
			}
			wire := rows.NewWire()
			for _, d := range c.refuses {
				at := time.Now().Add(d)
				_, err := wire(nil, &at)
				if refused, ok := errors.AsType[*kafka.RecordTimeError](err); !ok || refused.Topic != topic || refused.Time.UnixMilli() != at.UnixMilli() {
					t.Errorf("a time %v from now: %v", d, err)
				}
			}
			var all []time.Time
			for _, d := range c.takes {
				all = append(all, time.Now().Add(d))
			}
			if got := deliverAll(t, addrs, topic, s, all...); len(got) != len(all) {
				t.Errorf("%d records are there, expected %d", len(got), len(all))
			}
		})
	}
}

// TestTimeRefusedAtDelivery: a record that was made by a sink that knew of no bound
// fails at its delivery, which says what to do.
func TestTimeRefusedAtDelivery(t *testing.T) {
	t.Parallel()
	l := newLife(t, []string{realKafka(t).Addr()})
	target := l.open(t)
	l.make(t, target)
	rows, err := kafka.Append(l.topic, codec.String()).Time(func(string) time.Time { return time.Now().Add(2 * time.Hour) }).Rows()
	if err != nil {
		t.Fatal(err)
	}
	text := "a"
	wire, err := rows.NewWire()(nil, &text)
	if err != nil {
		t.Fatal(err)
	}
	d := l.delivery(1, nil)
	d.Rows = func(yield func(connector.Row, error) bool) { yield(connector.Row{Wire: wire}, nil) }
	err = l.fails(t, target, d)
	if !errors.Is(err, kerr.InvalidTimestamp) || !strings.Contains(err.Error(), "raise its message.timestamp.after.max.ms") {
		t.Fatal(err)
	}
	l.sees(t)
}

// TestTimeRefusedUnderUnknownBounds: where the topic's settings may not be read, the
// error at the delivery says so too.
func TestTimeRefusedUnderUnknownBounds(t *testing.T) {
	t.Parallel()
	cluster := fakeBrokers(t)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	l := newLife(t, cluster.ListenAddrs())
	target := l.open(t)
	l.make(t, target)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp, Count: 1})
	err := l.fails(t, target, l.delivery(1, nil, "a"))
	if !errors.Is(err, kerr.InvalidTimestamp) || !strings.Contains(err.Error(), "DescribeConfigs") {
		t.Fatal(err)
	}
	l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
	l.sees(t, "a")
}
