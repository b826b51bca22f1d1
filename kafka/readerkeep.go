package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sluicestream/sluice/env"
)

const (
	// endsEvery is how old the known end of a partition gets that isn't being
	// fetched.
	endsEvery = 5 * time.Second
	// idsEvery is how often the topics' ids are looked at while all is well.
	idsEvery = time.Minute
	// goneAfter is how long a topic that is read may seem not to be there: a broker
	// that has just started may not know it yet.
	goneAfter = 15 * time.Second
	// sureAfter is how often another topic of the name must be seen.
	sureAfter = 2
)

// keep looks for leaders where they are wanted, and keeps the ends and the ids of
// topics known, until ctx ends.
func (r *reader) keep(ctx context.Context) {
	clock := r.opening.Env.Clock
	timer := clock.NewTimer(endsEvery)
	defer timer.Stop()
	looked := clock.Now()
	for ctx.Err() == nil {
		sought, tries := r.sought(clock.Now().Sub(looked) >= idsEvery)
		if len(sought) > 0 {
			if tries > 0 {
				// attend is left alone: who comes anew waits as long as the others.
				if env.Pause(ctx, clock, pauseAfter(tries-1)) != nil {
					return
				}
			}
			if r.findLeaders(ctx, sought) {
				looked = clock.Now()
			}
		}
		r.refreshEnds(ctx)
		if !r.isSeeking() {
			r.pause(ctx, endsEvery, timer)
		}
	}
}

// sought are the partitions whose leader is wanted, or all, and how often that was
// tried already.
func (r *reader) sought(all bool) (out []*partition, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.open {
		if p.phase == seeking || all && p.phase == fetching {
			out = append(out, p)
		}
		if p.phase == seeking {
			tries = max(tries, p.tries)
			p.tries++
		}
	}
	return out, tries
}

// isSeeking tells whether a leader is wanted.
func (r *reader) isSeeking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.open, func(p *partition) bool { return p.phase == seeking })
}

// findLeaders asks who leads the partitions, and tells whether there was an answer.
func (r *reader) findLeaders(ctx context.Context, sought []*partition) bool {
	var names []string
	seen := map[string]bool{}
	for _, p := range sought {
		if !seen[p.place.topic] {
			seen[p.place.topic] = true
			names = append(names, p.place.topic)
		}
	}
	found, err := r.describe(ctx, names)
	if err != nil {
		if ctx.Err() == nil {
			r.complain(err)
		}
		return false
	}
	for _, p := range sought {
		if err := r.follow(ctx, p, found[p.place.topic]); err != nil && ctx.Err() == nil {
			r.complain(err)
		}
	}
	return true
}

// follow goes on with a partition at the leader that it has now. An error passes.
func (r *reader) follow(ctx context.Context, p *partition, topic topicState) error {
	l, err := r.leaderOf(p, topic)
	if err != nil || l.broker < 0 {
		return err
	}
	r.mu.Lock()
	next, epoch, checked, outside := p.next, p.before, p.checked, p.outside
	healthy := p.phase == fetching
	r.mu.Unlock()
	if healthy {
		return nil
	}
	if l.epoch < checked {
		return fmt.Errorf("partition %s: the brokers know of leader epoch %d, expected %d", p.name, l.epoch, checked)
	}
	if l.epoch != checked && epoch >= 0 {
		err = r.checkEpoch(ctx, p.place, next, epoch)
	}
	if err == nil && outside {
		err = r.checkInside(ctx, p, next, epoch)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch end, ok := errors.AsType[final](err); {
	case ok:
		r.fail(p, end.cause)
		return nil
	case err != nil:
		return err
	case p.phase != seeking:
		return nil
	}
	p.leader, p.checked, p.outside, p.phase = l, l.epoch, false, fetching
	r.fetchBy(ctx, l.broker)
	return nil
}

// fetchBy sees that there is a goroutine that fetches from a broker. The caller
// holds the lock.
func (r *reader) fetchBy(ctx context.Context, broker int32) {
	if r.loops[broker] == nil {
		wake := make(chan struct{}, 1)
		r.loops[broker] = wake
		r.fetching.Go(func() { r.fetchFrom(ctx, broker, wake) })
	}
	r.wake(broker)
}

// leaderOf is the leader of a partition, if the topic is there and the one that is
// being read. An error passes.
func (r *reader) leaderOf(p *partition, topic topicState) (leader, error) {
	none := leader{broker: -1}
	l, there := topic.leaders[p.place.number]
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opening.Env.Clock.Now()
	switch {
	case errors.Is(topic.err, kerr.TopicAuthorizationFailed):
		r.fail(p, &PermissionError{Resource: "topic " + p.place.topic, Operation: "Describe"})
		return none, nil
	case topic.err != nil && !errors.Is(topic.err, kerr.UnknownTopicOrPartition):
		return none, fmt.Errorf("topic %s: %w", p.place.topic, topic.err)
	case !there:
		if p.missing.IsZero() {
			p.missing = now
		}
		if now.Sub(p.missing) >= goneAfter {
			r.fail(p, &VanishedError{p.place.topic, p.place.number})
			return none, nil
		}
		r.doubt(p)
		return none, fmt.Errorf("partition %s: %w", p.name, kerr.UnknownTopicOrPartition)
	case p.id != topicID{} && topic.id != topicID{} && p.id != topic.id:
		if p.replaced++; p.replaced >= sureAfter {
			r.fail(p, &ReplacedError{Topic: p.place.topic, Partition: p.place.number, Offset: p.next, Expected: p.identity, Found: topic.id.String()})
			return none, nil
		}
		r.doubt(p)
		return none, fmt.Errorf("topic %s: expected the id %s, found %s", p.place.topic, p.identity, topic.id)
	case l.broker < 0:
		return none, fmt.Errorf("partition %s: %w", p.name, kerr.LeaderNotAvailable)
	}
	p.missing, p.replaced = time.Time{}, 0
	return l, nil
}

// doubt has a partition looked at again soon that seemed to be well. The caller
// holds the lock.
func (r *reader) doubt(p *partition) {
	if p.phase == fetching {
		p.phase = seeking
		p.tries++
	}
}

// checkInside tells whether the log holds what is to be read next, after a broker
// said that it doesn't.
func (r *reader) checkInside(ctx context.Context, p *partition, next int64, epoch int32) error {
	start, err := r.listOnce(ctx, []place{p.place}, listEarliest)
	if err != nil {
		return err
	}
	end, err := r.listOnce(ctx, []place{p.place}, listLatest)
	if err != nil {
		return err
	}
	if epoch >= 0 {
		if err := r.checkEpoch(ctx, p.place, next, epoch); err != nil {
			return err
		}
	}
	at := p.from
	at.Next, at.LeaderEpoch = next, epoch
	if err := inside(p.place, at, span{start: start[p.place], end: end[p.place]}); err != nil {
		return final{err}
	}
	return nil
}

// refreshEnds asks for the ends of partitions that were not heard of for a while.
func (r *reader) refreshEnds(ctx context.Context) {
	now := r.opening.Env.Clock.Now()
	var places []place
	var parts []*partition
	r.mu.Lock()
	for _, p := range r.open {
		if p.phase != failed && now.Sub(p.heard) >= endsEvery {
			places, parts = append(places, p.place), append(parts, p)
		}
	}
	r.mu.Unlock()
	if len(places) == 0 {
		return
	}
	ends, err := r.listOnce(ctx, places, listLatest)
	if err != nil {
		return // fetching finds out what is the matter
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		p.end.Store(ends[p.place])
		p.heard = now
	}
}
