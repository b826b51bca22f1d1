package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/env"
)

const (
	// pollWithin is how long a broker may wait for records before it answers that
	// there are none.
	pollWithin = 250 * time.Millisecond
	// halfPause is the pause after an answer without records while others of the
	// broker's partitions have no room: a waiting request would keep the
	// connection from them.
	halfPause = 50 * time.Millisecond
	// leastResponse is what all partitions of a broker may have in one answer, if
	// [FetchBytes] isn't larger; largestResponse is far beyond any.
	leastResponse, largestResponse = 16 << 20, 1 << 30
	// mostPieces bounds the pieces of a queue, besides their bytes.
	mostPieces = 16
	// mostCuts is how often an answer without a whole batch is asked for again.
	mostCuts = 5
)

// take waits for the next piece of a partition.
func (r *reader) take(ctx context.Context, p *partition) (packed, error) {
	for {
		got, ok, err := r.taken(p)
		if ok || err != nil {
			return got, err
		}
		select {
		case <-p.ready:
		case <-ctx.Done():
			return packed{}, ctx.Err()
		}
	}
}

func (r *reader) taken(p *partition) (got packed, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return packed{}, false, errClosed
	}
	if p.phase == unread {
		r.startReading(p)
	}
	if len(p.queue) == 0 {
		return packed{}, false, p.err
	}
	full := !p.hasRoom(r.settings.fetchBytes)
	got = p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	p.queued -= len(got.part.RecordBatches)
	if full && p.hasRoom(r.settings.fetchBytes) {
		r.wake(p.leader.broker)
	}
	return got, true, nil
}

var errClosed = errors.New("the source is closed")

// hasRoom tells whether more is to be fetched.
func (f *fetched) hasRoom(bytes int) bool { return f.queued < bytes && len(f.queue) < mostPieces }

// startReading begins to fetch a partition. The caller holds the lock.
func (r *reader) startReading(p *partition) {
	p.phase = seeking
	if r.stop == nil {
		var ctx context.Context
		ctx, r.stop = context.WithCancel(context.Background())
		r.fetching.Go(func() { r.keep(ctx) })
	}
	poke(r.attend)
}

// started tells whether anything is being fetched.
func (r *reader) started() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop != nil
}

// poke wakes who waits on a channel, now or next.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wake wakes who fetches from a broker. The caller holds the lock.
func (r *reader) wake(broker int32) {
	if c := r.loops[broker]; c != nil {
		poke(c)
	}
}

// release forgets a partition.
func (r *reader) release(p *partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.phase, p.err, p.queue, p.queued = failed, errClosed, nil, 0
	r.open = slices.DeleteFunc(r.open, func(o *partition) bool { return o == p })
	poke(p.ready)
}

// fetchAgain drops what was fetched of a partition from an offset on.
func (r *reader) fetchAgain(p *partition, next int64, epoch int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.queue, p.queued, p.next, p.before = nil, 0, next, epoch
	r.wake(p.leader.broker)
}

// fail ends the reading of a partition. The caller holds the lock.
func (r *reader) fail(p *partition, err error) {
	if p.phase == failed {
		return
	}
	p.phase, p.err = failed, err
	poke(p.ready)
}

// seek has the leader of a partition looked for. The caller holds the lock.
func (r *reader) seek(p *partition) {
	if p.phase == fetching {
		p.phase = seeking
		poke(r.attend)
	}
}

// wish is what is fetched of a partition.
type wish struct {
	p     *partition
	next  int64
	epoch int32 // the leader's
}

// wishes are what is to be fetched from a broker, and whether that is of all
// partitions that it leads. The order changes, so that none starves.
func (r *reader) wishes(broker int32) (out []wish, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = true
	r.turn++
	for i := range r.open {
		p := r.open[(i+r.turn)%len(r.open)]
		switch {
		case p.phase != fetching || p.leader.broker != broker:
		case p.hasRoom(r.settings.fetchBytes):
			out = append(out, wish{p, p.next, p.checked})
		default:
			all = false
		}
	}
	return out, all
}

// fetchFrom fetches from a broker until ctx ends.
func (r *reader) fetchFrom(ctx context.Context, broker int32, wake chan struct{}) {
	for ctx.Err() == nil {
		wishes, all := r.wishes(broker)
		if len(wishes) == 0 {
			select {
			case <-wake:
			case <-ctx.Done():
			}
			continue
		}
		got, err := r.fetch(ctx, broker, wishes, all)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.complain(err)
			r.mu.Lock()
			for _, w := range wishes {
				r.seek(w.p)
			}
			r.mu.Unlock()
		case !got && !all:
			r.rest(ctx, wake)
		}
	}
}

// rest waits for a moment, or until there is room.
func (r *reader) rest(ctx context.Context, wake chan struct{}) {
	timer := r.opening.Env.Clock.NewTimer(halfPause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-wake:
	case <-ctx.Done():
	}
}

// fetch asks a broker once, and tells whether it had anything.
func (r *reader) fetch(ctx context.Context, broker int32, wishes []wish, patient bool) (bool, error) {
	req := r.fetchRequest(wishes, patient)
	answer, err := r.client.Broker(int(broker)).Request(ctx, req)
	if err != nil {
		return false, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return false, err
	}
	return r.sort(resp, wishes), nil
}

func (r *reader) fetchRequest(wishes []wish, patient bool) kmsg.Request {
	const readCommitted = 1
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes, req.IsolationLevel = 1, int32(max(leastResponse, r.settings.fetchBytes)), readCommitted
	if patient {
		req.MaxWaitMillis = int32(pollWithin.Milliseconds())
	}
	nameless := false
	byTopic := map[string]int{}
	for _, w := range wishes {
		n, ok := byTopic[w.p.place.topic]
		if !ok {
			n = len(req.Topics)
			byTopic[w.p.place.topic] = n
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = w.p.place.topic, w.p.id
			req.Topics = append(req.Topics, t)
			nameless = nameless || w.p.id == topicID{}
		}
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = w.p.place.number, w.next, int32(r.settings.fetchBytes)
		part.CurrentLeaderEpoch = w.epoch
		req.Topics[n].Partitions = append(req.Topics[n].Partitions, part)
	}
	if nameless {
		return byName{req}
	}
	return req
}

// byName is a request of the last version that names topics by their names.
type byName struct{ *kmsg.FetchRequest }

// MaxVersion implements [kmsg.Request].
func (byName) MaxVersion() int16 { return 12 }

// key is how a partition is found in a response: by the topic's name, in newer
// versions by its id.
type key struct {
	topic string
	id    topicID
	part  int32
}

// sort hands out what a broker answered.
func (r *reader) sort(resp *kmsg.FetchResponse, wishes []wish) (got bool) {
	asked := make(map[key]wish, len(wishes))
	for _, w := range wishes {
		asked[key{id: w.p.id, part: w.p.place.number}] = w
		asked[key{topic: w.p.place.topic, part: w.p.place.number}] = w
	}
	body := 0
	for _, t := range resp.Topics {
		for i := range t.Partitions {
			body += len(t.Partitions[i].RecordBatches)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opening.Env.Clock.Now()
	for _, t := range resp.Topics {
		for i := range t.Partitions {
			part := &t.Partitions[i]
			k := key{topic: t.Topic, part: part.Partition}
			if t.Topic == "" {
				k.id = t.TopicID
			}
			w, ok := asked[k]
			if !ok || w.p.phase != fetching || w.p.next != w.next {
				continue
			}
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				r.refused(w.p, err)
				continue
			}
			got = r.receive(w.p, part, body, now) || got
		}
	}
	return got
}

// receive takes what was fetched of a partition, and tells whether it is any. The
// caller holds the lock.
func (r *reader) receive(p *partition, part *kmsg.FetchResponseTopicPartition, body int, now time.Time) bool {
	end := part.LastStableOffset
	if end < 0 {
		end = part.HighWatermark
	}
	p.end.Store(end)
	p.start.Store(max(p.start.Load(), part.LogStartOffset)) // below 0 by a broker that doesn't say
	p.heard = now
	got := len(part.RecordBatches) > 0
	if got {
		piece, ok := pack(*part, p.next, body)
		if !ok {
			if p.shownCuts++; p.shownCuts >= mostCuts {
				r.fail(p, fmt.Errorf("topic %s, partition %d: the broker sends no whole batch of records for offset %d, expected at least one", p.place.topic, p.place.number, p.next))
			}
			return false
		}
		p.queue, p.queued = append(p.queue, piece), p.queued+len(piece.part.RecordBatches)
		p.next = piece.to
		if piece.epoch >= 0 {
			p.before = piece.epoch
		}
		poke(p.ready)
	}
	p.shownCuts, p.tries, p.replaced, p.missing = 0, 0, 0, time.Time{}
	r.relieved()
	return got
}

// refused sees what a broker's error means for a partition. The caller holds the
// lock.
func (r *reader) refused(p *partition, err error) {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		r.fail(p, &PermissionError{Resource: "topic " + p.place.topic, Operation: "Read"})
	case errors.Is(err, kerr.OffsetOutOfRange):
		p.outside = true
		r.seek(p)
	case kerr.IsRetriable(err):
		r.seek(p)
	default:
		r.fail(p, fmt.Errorf("topic %s, partition %d, offset %d: the broker can't send it: %w", p.place.topic, p.place.number, p.next, err))
	}
}

// pause waits for d, or until the keeper is wanted.
func (r *reader) pause(ctx context.Context, d time.Duration, timer env.Timer) {
	timer.Reset(d)
	select {
	case <-timer.C():
	case <-r.attend:
	case <-ctx.Done():
	}
}
