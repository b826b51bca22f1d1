package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
)

const (
	// What Next takes a batch's limits for that are not given.
	defaultLimit      = 1024
	defaultLimitBytes = 1 << 20
)

// partition is a partition that is open.
type partition struct {
	reader   *reader
	place    place
	name     string
	id       topicID
	identity string
	from     connector.Offset

	// Next alone uses these.
	at       int64         // the offset that comes next
	epoch    int32         // the leader epoch of the last record before it, or -1
	records  []*kgo.Record // unpacked and not given out yet
	unpacked int64         // the offset behind all of them
	newest   int32         // the leader epoch of the last of them

	start atomic.Int64
	end   atomic.Int64
	ready chan struct{} // wakes Next

	// The reader's lock guards these.
	fetched
}

// fetched is what was fetched of a partition, and how the fetching stands.
type fetched struct {
	phase  phase
	queue  []packed
	queued int   // bytes in the queue
	next   int64 // the offset to be fetched next
	before int32 // the leader epoch of the last record before it, or -1
	leader leader
	err    error // why nothing more is fetched
	heard  time.Time

	tries     int       // how often the leader was looked for since the last success
	checked   int32     // the leader's epoch under which the log was compared with what was read
	missing   time.Time // since when the topic seems not to be there
	replaced  int       // how often another topic of the name was seen in its place
	outside   bool      // the broker says that next lies outside of the log
	shownCuts int       // how often nothing whole came
}

// phase tells what is being done about a partition.
type phase int

const (
	unread   phase = iota // Next was never called
	seeking               // its leader is to be looked for
	fetching              // its leader is asked for more
	failed                // err says why
)

func newPartition(r *reader, at place, topic topicState, from connector.Offset, s span) *partition {
	p := &partition{
		reader: r, place: at, name: at.String(), id: topic.id, identity: topic.id.String(), from: from,
		at: from.Next, epoch: from.LeaderEpoch, unpacked: from.Next, newest: from.LeaderEpoch, ready: make(chan struct{}, 1),
	}
	p.fetched = fetched{next: from.Next, before: from.LeaderEpoch, leader: topic.leaders[at.number], heard: s.seen, checked: topic.leaders[at.number].epoch}
	p.start.Store(s.start)
	p.end.Store(max(s.end, from.Next))
	return p
}

// From implements [connector.FoundPartition].
func (p *partition) From() connector.Offset { return p.from }

// End implements [connector.Partition]: the end of what is decided, that is, of the
// transactions that were committed or given up.
func (p *partition) End() int64 { return p.end.Load() }

// Start implements [connector.StartPartition].
func (p *partition) Start() int64 { return p.start.Load() }

// Close implements [connector.Partition].
func (p *partition) Close() error {
	p.reader.release(p)
	return nil
}

// Next implements [connector.Partition].
func (p *partition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	if b.Limit <= 0 {
		b.Limit = defaultLimit
	}
	if b.LimitBytes <= 0 {
		b.LimitBytes = defaultLimitBytes
	}
	b.Partition, b.Records = p.name, b.Records[:0]
	if err := ctx.Err(); err != nil {
		return err
	}
	for p.at == p.unpacked && (until < 0 || p.at < until) {
		got, err := p.reader.take(ctx, p)
		if err != nil {
			return err
		}
		if err := p.unpack(got); err != nil {
			return err
		}
	}
	if until >= 0 && p.at >= until {
		b.To = p.offset()
		return io.EOF
	}
	p.fill(b, until)
	b.To = p.offset()
	return nil
}

// offset is where reading goes on.
func (p *partition) offset() connector.Offset {
	return connector.Offset{Next: p.at, LeaderEpoch: p.epoch, Identity: p.identity}
}

// fill gives out what was unpacked, as much as there may be. Behind the last record
// the offset moves over what there is besides: marks of transactions, records of
// those that were given up, gaps of compaction.
func (p *partition) fill(b *connector.Batch, until int64) {
	size, n := 0, 0
	for ; n < len(p.records) && n < b.Limit; n++ {
		r := p.records[n]
		if size += len(r.Value); n > 0 && size > b.LimitBytes || until >= 0 && r.Offset >= until {
			break
		}
		b.Records = appendRecord(b.Records, r)
		p.at, p.epoch = r.Offset+1, r.LeaderEpoch
	}
	p.records = p.records[n:]
	switch {
	case len(p.records) == 0 && (until < 0 || p.unpacked <= until):
		p.at, p.epoch, p.records = p.unpacked, p.newest, nil
	case until >= 0 && (len(p.records) == 0 || p.records[0].Offset >= until):
		p.at = until
	}
}

// appendRecord appends a record, whose bytes stay the client's.
func appendRecord(records []connector.Record, r *kgo.Record) []connector.Record {
	records = slices.Grow(records, 1)[:len(records)+1]
	out := &records[len(records)-1]
	out.Offset, out.Time, out.Key, out.Value, out.Headers = r.Offset, connector.NoTime, r.Key, r.Value, out.Headers[:0]
	if t := r.Timestamp.UnixMilli(); t != -1 {
		out.Time = t * 1000
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, connector.Header{Key: h.Key, Value: h.Value})
	}
	return records
}

// unpack makes records of what was fetched.
func (p *partition) unpack(got packed) error {
	opts := kgo.ProcessFetchPartitionOpts{Offset: p.at, IsolationLevel: kgo.ReadCommitted(), Topic: p.place.topic, Partition: p.place.number}
	found, next := kgo.ProcessFetchPartition(opts, &got.part, p.reader.unpack, nil)
	p.records, p.unpacked, p.newest = found.Records, got.to, got.epoch
	switch {
	case next == got.to:
		return nil
	case next <= p.at && found.Err != nil:
		return p.unreadable(found.Err)
	case next <= p.at:
		return p.unreadable(errDamaged)
	}
	// Some of it couldn't be unpacked: what could is given out, and the rest is
	// fetched once more, by itself.
	p.unpacked, p.newest = next, p.epoch
	if n := len(found.Records); n > 0 {
		p.newest = found.Records[n-1].LeaderEpoch
	}
	p.reader.fetchAgain(p, next, p.newest)
	return nil
}

// errDamaged is what there is to say about a batch that ends too early.
var errDamaged = errors.New("it has fewer records than it says")

func (p *partition) unreadable(cause error) error {
	return fmt.Errorf("topic %s, partition %d: the batch of records at offset %d can't be unpacked: %w; nothing was skipped; look at it with kafka-dump-log on the broker", p.place.topic, p.place.number, p.at, cause)
}
