package kafka_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/cutproxy"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
)

// torture tells whether the long tests are to run.
func torture() bool { return os.Getenv("SLUICE_TORTURE") == "1" }

// edges are the places at which a sweep cuts: the messages' edges, of which it
// takes every n-th unless SLUICE_TORTURE=1.
func edges(messages []cutproxy.Message, nth int) (all []cutproxy.Place) {
	for i, at := range cutproxy.Edges(messages) {
		if i%nth == 0 || torture() {
			all = append(all, at)
		}
	}
	return all
}

// tell logs what a sweep cuts.
func tell(t *testing.T, messages []cutproxy.Message, places []cutproxy.Place) {
	t.Helper()
	var size [2]int64
	for _, m := range messages {
		size[m.Way] += m.Size()
	}
	t.Logf("%d cuts in %d messages, %d bytes to the broker and %d from it", len(places), len(messages), size[cutproxy.ToServer], size[cutproxy.ToClient])
}

// cutSink is a topic's sink that is reached through a proxy, position by position.
type cutSink struct {
	t       *testing.T
	sink    kafka.AppendSink[string]
	opening connector.Opening
	key     connector.RecordKey
	knife   *cutproxy.Knife
	addrs   []string
	topic   string
	group   string
	at      connector.Position
	cuts    map[connector.Position]string // where the delivery of a position was cut
}

func newCutSink(t *testing.T) *cutSink {
	addrs := []string{realKafka(t).Addr()}
	s := &cutSink{t: t, knife: &cutproxy.Knife{}, addrs: addrs, topic: services.Unique("cuts"), group: services.Unique("group"), cuts: map[connector.Position]string{}}
	proxy := cutproxy.Start(t, cutproxy.Options{Protocol: cutproxy.Kafka, Fate: s.knife.Fate})
	makeTopic(t, addrs, s.topic, 1, nil)
	s.sink = kafka.Append(s.topic, codec.String(), kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty(kgo.Dialer(proxy.Dial)))))
	s.key = connector.RecordKey{JobID: "5fe2b1a09d8c4e37", Task: "0.0", Sink: "cuts"}
	s.opening = connector.Opening{
		Env: env.Real(), Log: slog.New(slog.DiscardHandler), Job: services.Unique("job"), JobID: s.key.JobID, Name: "cuts", TransactionPrefix: services.Unique("prefix") + "/",
	}
	return s
}

// open is what a process that starts has.
func (s *cutSink) open() connector.Target {
	s.t.Helper()
	target, err := s.sink.Open(s.t.Context(), s.opening, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return target
}

// made makes the record, once the broker has its coordinators.
func (s *cutSink) made(target connector.Target) {
	s.t.Helper()
	for end := time.Now().Add(settleWithin); ; {
		_, err := target.Make(s.t.Context(), connector.SinkRecord{ID: "id", Job: s.opening.Job, Target: s.topic})
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// noted are the messages of a delivery, by a target that is got for it. Some
// requests are made again while the broker is still ending the transaction before:
// of several deliveries the one with the fewest messages tells.
func (s *cutSink) noted(get func() connector.Target) (messages []cutproxy.Message) {
	s.t.Helper()
	for range 5 {
		target := get()
		s.at++
		s.knife.Note()
		s.through(target, s.at)
		if got := s.knife.Noted(); messages == nil || len(got) < len(messages) {
			messages = got
		}
	}
	return messages
}

// cutWhere cuts at a place, and tries again if it doesn't come.
func (s *cutSink) cutWhere(at cutproxy.Place, fresh bool, get func() connector.Target) {
	s.t.Helper()
	for range 5 {
		if s.cut(get(), at, fresh) {
			return
		}
	}
	s.t.Fatalf("the place does not come again: %v", at)
}

// rowsOf are the rows of a position.
func rowsOf(position connector.Position) []string {
	return []string{fmt.Sprint("first of ", position), fmt.Sprint("second of ", position)}
}

// delivery makes the delivery of a position, whose record has to stand right
// before it.
func (s *cutSink) delivery(position connector.Position) *connector.Delivery {
	s.t.Helper()
	rows, err := s.sink.Rows()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []connector.Row
	for _, text := range rowsOf(position) {
		row, err := rows.NewAppend()(nil, &text)
		if err != nil {
			s.t.Fatal(err)
		}
		wire, err := rows.NewWire()(nil, &text)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, connector.Row{Op: connector.Append, Row: row, Wire: wire})
	}
	return &connector.Delivery{
		Record:  connector.SinkRecord{Position: position, ID: "id", Job: s.opening.Job, Target: s.topic, Branch: "main", Manifest: "9c1f"},
		Offsets: []connector.GroupOffsets{{Group: s.group, Offsets: map[string]connector.Offset{s.topic + "/0": {Next: int64(position), LeaderEpoch: -1}}}},
		Schema:  rows.Schema,
		Decide: func(found *connector.SinkRecord) connector.Verdict {
			switch {
			case found == nil || found.ID != "id":
				return connector.Disagree
			case found.Position == position-1:
				return connector.Apply
			case found.Position >= position:
				return connector.Skip
			}
			return connector.Disagree
		},
		Rows: func(yield func(connector.Row, error) bool) {
			for _, r := range all {
				if !yield(r, nil) {
					return
				}
			}
		},
	}
}

// through delivers a position as the engine does, again and again until it is
// through, and returns the last verdict.
func (s *cutSink) through(target connector.Target, position connector.Position) connector.Verdict {
	s.t.Helper()
	for end := time.Now().Add(settleWithin); ; {
		verdict, found, err := target.Deliver(s.t.Context(), s.delivery(position))
		switch {
		case err == nil && verdict == connector.Disagree:
			s.t.Fatalf("position %d, cut at %s: the sink disagrees, its record is %+v", position, s.cuts[position], found)
		case err == nil:
			return verdict
		case time.Now().After(end):
			s.t.Fatalf("position %d, cut at %s: %v", position, s.cuts[position], err)
		}
	}
}

// cut delivers the next position with a cut. After that the same target or a new
// one brings it through, and the other finds it done.
func (s *cutSink) cut(target connector.Target, at cutproxy.Place, fresh bool) (cut bool) {
	s.t.Helper()
	s.at++
	s.knife.Arm(at)
	verdict, _, err := target.Deliver(s.t.Context(), s.delivery(s.at))
	m := s.knife.Disarm()
	if m == nil {
		if err != nil || verdict != connector.Apply {
			s.t.Fatalf("position %d: verdict %v, %v, and nothing was cut", s.at, verdict, err)
		}
		return false
	}
	s.cuts[s.at] = fmt.Sprintf("%v, byte %d", m, at.After)
	if err == nil && verdict != connector.Apply {
		s.t.Fatalf("cut at %s: verdict %v", s.cuts[s.at], verdict)
	}
	if err != nil && (at.Key == kmsg.Fetch.Int16() || at.Key == kmsg.ListOffsets.Int16()) {
		s.t.Fatalf("cut at %s: reading the record is not tried again: %v", s.cuts[s.at], err)
	}
	other := s.open()
	defer other.Close()
	first, second := target, other
	if fresh {
		first, second = other, target
	}
	s.through(first, s.at)
	if verdict := s.through(second, s.at); verdict != connector.Skip {
		s.t.Fatalf("cut at %s: delivered again: verdict %v", s.cuts[s.at], verdict)
	}
	return true
}

// verify compares what a consumer sees with what was delivered.
func (s *cutSink) verify() {
	s.t.Helper()
	var got []string
	for _, r := range committed(s.t, s.addrs, s.topic) {
		got = append(got, string(r.Value))
	}
	var want []string
	for p := range s.at {
		want = append(want, rowsOf(p+1)...)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			p := connector.Position(i/2 + 1)
			s.t.Fatalf("row %d: got %q, want %q; position %d was cut at %s", i, got[min(i, len(got)):min(i+3, len(got))], want[min(i, len(want)):min(i+3, len(want))], p, s.cuts[p])
		}
	}
	target := s.open()
	defer target.Close()
	record, err := target.Record(s.t.Context())
	if err != nil || record == nil || record.Position != s.at || record.ID != "id" {
		s.t.Fatalf("the record is %+v, %v, want position %d", record, err, s.at)
	}
	transactionEnds(s.t, s.addrs, s.opening.TransactionPrefix+s.key.JobID+"/0.0/"+s.key.Sink)
	told, err := kadm.NewClient(plainClient(s.t, s.addrs)).FetchOffsets(kadm.RequireStable(s.t.Context()), s.group)
	if err != nil {
		s.t.Fatal(err)
	}
	if o, ok := told.Lookup(s.topic, 0); !ok || o.At != int64(s.at) {
		s.t.Fatalf("the group was told %+v, want %d", o, s.at)
	}
}

// TestCutsOfADelivery cuts the connections under a delivery, at each byte of each
// message with SLUICE_TORTURE=1, else at the messages' edges: whatever is lost on
// the way, trying again makes it one delivery.
func TestCutsOfADelivery(t *testing.T) {
	t.Parallel()
	s := newCutSink(t)
	target := s.open()
	defer target.Close()
	s.made(target)
	messages := s.noted(func() connector.Target { return target })
	places := edges(messages, 1)
	if torture() {
		places = cutproxy.Everywhere(messages)
	}
	tell(t, messages, places)
	for i, at := range places {
		s.cutWhere(at, i%2 == 1, func() connector.Target {
			s.at++
			s.through(target, s.at) // all connections are there then
			return target
		})
	}
	s.verify()
}

// TestCutsOfAFirstDelivery is the same for the first delivery of a process: its
// connections are made, its producer starts, and the record is read. It cuts at
// edges alone, and at every third of them without SLUICE_TORTURE=1.
func TestCutsOfAFirstDelivery(t *testing.T) {
	t.Parallel()
	s := newCutSink(t)
	first := s.open()
	s.made(first)
	first.Close()
	var target connector.Target
	anew := func() connector.Target {
		if target != nil {
			target.Close()
		}
		target = s.open()
		return target
	}
	defer func() { target.Close() }()
	messages := s.noted(anew)
	places := edges(messages, 3)
	tell(t, messages, places)
	for i, at := range places {
		s.cutWhere(at, i%2 == 1, anew)
	}
	s.verify()
}

// TestCutsOfReading cuts the connections under a source that reads two partitions:
// it reads all, each record once and in its order. It cuts at edges alone, and at
// every fourth of them without SLUICE_TORTURE=1.
func TestCutsOfReading(t *testing.T) {
	t.Parallel()
	const records = 12
	addrs := []string{realKafka(t).Addr()}
	topic := services.Unique("reading")
	makeTopic(t, addrs, topic, 2, nil)
	w := plainClient(t, addrs, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range records {
		for part := range int32(2) {
			if err := w.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: part, Value: fmt.Append(nil, "v", i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	knife := &cutproxy.Knife{}
	knife.Note()
	readThrough(t, addrs, topic, records, knife)
	var missed atomic.Int64
	places := edges(knife.Noted(), 4)
	tell(t, knife.Noted(), places)
	t.Run("cuts", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				for i := lane; i < len(places); i += lanes {
					knife := &cutproxy.Knife{}
					knife.Arm(places[i])
					readThrough(t, addrs, topic, records, knife)
					if knife.Disarm() == nil {
						missed.Add(1)
					}
				}
			})
		}
	})
	t.Logf("%d places did not come again", missed.Load())
	if int(missed.Load()) > len(places)/4 {
		t.Errorf("%d of %d places did not come again", missed.Load(), len(places))
	}
}

// lanes is how many readings there are at once: they wait most of the time.
const lanes = 8

// readThrough opens a source through a proxy and reads both partitions, a few
// records at a time.
func readThrough(t *testing.T, addrs []string, topic string, records int, knife *cutproxy.Knife) {
	t.Helper()
	proxy := cutproxy.Start(t, cutproxy.Options{Protocol: cutproxy.Kafka, Fate: knife.Fate})
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	source := kafka.Topic(topic, codec.String(), kafka.NoGroup(), kafka.FetchBytes(1), kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty(kgo.Dialer(proxy.Dial)))))
	o := connector.Opening{Env: env.Real(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Job: topic, JobID: "5fe2", Name: "orders"}
	r, err := source.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	names, err := r.Partitions(ctx)
	if err != nil || len(names) != 2 {
		t.Fatalf("partitions %q, %v", names, err)
	}
	var want []string
	for i := range records {
		want = append(want, fmt.Sprint("v", i))
	}
	for _, name := range names {
		p, err := r.Partition(ctx, name, connector.Offset{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for len(got) < records {
			b := &connector.Batch{Limit: 3}
			if err := p.Next(ctx, b, -1); err != nil {
				t.Fatalf("%s after %d records, cut at %v: %v", name, len(got), knife.Disarm(), err)
			}
			for _, r := range b.Records {
				got = append(got, string(r.Value))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s, cut at %v: read %s", name, knife.Disarm(), strings.Join(got, " "))
		}
		p.Close()
	}
}
