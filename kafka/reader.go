package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
)

// reader is an open source: its own client of the cluster, and the partitions that
// are read through it.
//
// What a partition may be read from is fetched by one goroutine for each broker,
// and kept packed in the partition's queue until Next unpacks it. The client's own
// consumer isn't used: it begins anew by itself where a log was cut or lost its
// beginning, and doesn't tell how far it got through records that nobody sees.
type reader struct {
	opening  connector.Opening
	topics   selection
	settings sourceSettings
	client   *kgo.Client
	brokers  []string // addresses
	cluster  string   // id
	unpack   kgo.Decompressor

	// Partitions and Partition alone use these; they are called one at a time.
	known      map[string]topicState // the last look
	first      map[place]bool        // partitions that a new job begins with; nil before the first listing
	beginnings map[place]int64       // where these begin, once it was found out
	spans      map[place]span        // what a listing found of partitions that are not open

	mu       sync.Mutex
	open     []*partition
	loops    map[int32]chan struct{} // by broker: wakes who fetches from it
	turn     int                     // which partition is asked for first
	stop     context.CancelFunc      // nil: nothing is being fetched yet
	trouble  complaint
	closed   bool
	fetching sync.WaitGroup
	attend   chan struct{} // wakes the keeper
}

// span is what a partition's log holds.
type span struct {
	start, end int64
	seen       time.Time
}

// spanHolds is how long a listing's offsets are good for opening partitions.
const spanHolds = 5 * time.Second

// openReader connects to the cluster, and sees that the topics can be read and
// that the group is free.
func openReader(ctx context.Context, o connector.Opening, topics selection, settings sourceSettings) (connector.Reader, error) {
	r := &reader{
		opening: o, topics: topics, settings: settings, unpack: kgo.DefaultDecompressor(),
		loops: map[int32]chan struct{}{}, attend: make(chan struct{}, 1), spans: map[place]span{},
	}
	var err error
	r.client, r.brokers, err = settings.cluster.newClient(o.Job,
		kgo.RetryTimeout(retryWithin), kgo.DisableClientMetrics(), kgo.BrokerMaxReadBytes(largestResponse))
	if err != nil {
		return nil, err
	}
	if err := r.begin(ctx); err != nil {
		r.client.Close()
		return nil, err
	}
	if settings.noGroup {
		return r, nil
	}
	return groupReader{r}, nil
}

// begin makes the first contact.
func (r *reader) begin(ctx context.Context) (err error) {
	found, err := reach(ctx, r.opening.Env, r.client, r.brokers)
	if err != nil {
		return err
	}
	r.cluster = found.cluster
	if err := found.has(r.needs()...); err != nil {
		return err
	}
	if err := r.look(ctx, true); err != nil {
		return err
	}
	for name, t := range r.known {
		if t.id == (topicID{}) {
			r.opening.Log.Warn(fmt.Sprintf("topic %s has no id, since the brokers are older than Kafka 2.8: if it is deleted and made anew, that may go unnoticed", name),
				"source", r.opening.Name)
		}
	}
	if r.settings.noGroup {
		return nil
	}
	return r.checkGroup(ctx)
}

// needs are what the brokers must have.
func (r *reader) needs() [][]need {
	needs := [][]need{sourceNeeds}
	if !r.settings.noGroup {
		needs = append(needs, groupNeeds)
	}
	if !r.opening.Begun && r.settings.begin.asksGroup() {
		needs = append(needs, takeOverNeeds)
	}
	return needs
}

// Bounded implements [connector.Reader]: topics never end.
func (r *reader) Bounded() bool { return false }

// Partitions implements [connector.Reader].
func (r *reader) Partitions(ctx context.Context) ([]string, error) {
	if err := r.look(ctx, r.first == nil); err != nil {
		return nil, err
	}
	places := r.places()
	if r.first == nil {
		r.first = make(map[place]bool, len(places))
		for _, p := range places {
			r.first[p] = true
		}
	}
	if err := r.measure(ctx, r.unopened(places)); err != nil {
		return nil, err
	}
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return names, nil
}

// places are all partitions that the last look found.
func (r *reader) places() (all []place) {
	for name, t := range r.known {
		for number := range t.leaders {
			all = append(all, place{name, number})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.number, b.number))
	})
	return all
}

// unopened are those of the places that no open partition is for.
func (r *reader) unopened(places []place) (out []place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(map[place]bool, len(r.open))
	for _, p := range r.open {
		open[p.place] = true
	}
	for _, p := range places {
		if !open[p] {
			out = append(out, p)
		}
	}
	return out
}

// measure asks where the logs of partitions begin and end.
func (r *reader) measure(ctx context.Context, places []place) error {
	clear(r.spans)
	if len(places) == 0 {
		return nil
	}
	starts, err := r.listOffsets(ctx, places, listEarliest)
	if err != nil {
		return err
	}
	ends, err := r.listOffsets(ctx, places, listLatest)
	if err != nil {
		return err
	}
	now := r.opening.Env.Clock.Now()
	for _, p := range places {
		r.spans[p] = span{starts[p], ends[p], now}
	}
	return nil
}

// spanOf is what the log of a partition holds: as a listing has just found it, or
// as the broker says now.
func (r *reader) spanOf(ctx context.Context, p place) (span, error) {
	if s, ok := r.spans[p]; ok {
		delete(r.spans, p)
		if r.opening.Env.Clock.Now().Sub(s.seen) < spanHolds {
			return s, nil
		}
	}
	kept := r.spans
	r.spans = map[place]span{}
	err := r.measure(ctx, []place{p})
	s := r.spans[p]
	r.spans = kept
	return s, err
}

// Partition implements [connector.Reader].
func (r *reader) Partition(ctx context.Context, name string, from connector.Offset) (connector.Partition, error) {
	at, err := parsePlace(name)
	if err != nil {
		return nil, err
	}
	if !r.topics.has(at.topic) {
		return nil, fmt.Errorf("partition %s is none of this source, which reads %s", name, r.topics)
	}
	if r.first == nil {
		if _, err := r.Partitions(ctx); err != nil {
			return nil, err
		}
	}
	topic, ok := r.known[at.topic]
	if _, there := topic.leaders[at.number]; !ok || !there {
		return nil, &VanishedError{at.topic, at.number}
	}
	if from.Identity != "" && topic.id != (topicID{}) && from.Identity != topic.id.String() {
		return nil, &ReplacedError{Topic: at.topic, Partition: at.number, Offset: from.Next, Expected: from.Identity, Found: topic.id.String()}
	}
	span, err := r.spanOf(ctx, at)
	if err != nil {
		return nil, err
	}
	given := from.Identity == "" && !r.opening.Begun // nothing was read yet
	if from == (connector.Offset{}) {
		if from, err = r.beginning(ctx, at, span); err != nil {
			return nil, err
		}
	} else if from.Identity == "" {
		from.LeaderEpoch = -1 // somebody wrote the offset by hand
	}
	from.Identity = topic.id.String()
	if inside(at, from, span) != nil {
		// The log may have grown since it was measured.
		delete(r.spans, at)
		if span, err = r.spanOf(ctx, at); err != nil {
			return nil, err
		}
	}
	if err := inside(at, from, span); err != nil {
		if given {
			err = &OutsideError{Topic: at.topic, Partition: at.number, Offset: from.Next, Start: span.start, End: span.end}
		}
		return nil, err
	}
	if from.LeaderEpoch >= 0 {
		if err := r.ask(ctx, func(ctx context.Context) error { return r.checkEpoch(ctx, at, from.Next, from.LeaderEpoch) }); err != nil {
			return nil, err
		}
	}
	p := newPartition(r, at, topic, from, span)
	r.mu.Lock()
	r.open = append(r.open, p)
	r.mu.Unlock()
	return p, nil
}

// inside tells whether a log still holds all that lies behind an offset, and
// reaches up to it.
func inside(at place, from connector.Offset, s span) error {
	switch {
	case from.Next < s.start:
		return &LostError{Topic: at.topic, Partition: at.number, From: from.Next, To: s.start}
	case from.Next > s.end:
		return &CutError{Topic: at.topic, Partition: at.number, From: s.end, To: from.Next, LeaderEpoch: from.LeaderEpoch}
	}
	return nil
}

// Close implements [connector.Reader].
func (r *reader) Close() error {
	r.mu.Lock()
	r.closed = true
	stop := r.stop
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
	r.fetching.Wait()
	r.client.Close()
	return nil
}
