package engine

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
)

// losses count, in one shard or sender, the records of an epoch that an operator has got and could
// not use; beside them stands the latest time of those that came into its windows.
type losses struct {
	operator string
	late     int64 // the time that they belong to was closed
	untimed  int64 // they have no time, and need one
	seen     int64 // or [connector.NoTime]
}

// lossesOf are those of an operator of the shard.
func (in *Instance) lossesOf(operator string) *losses {
	l := &losses{operator: operator, seen: connector.NoTime}
	in.losses = append(in.losses, l)
	return l
}

// timeCounts count, in an epoch, what is told of times.
type timeCounts struct {
	mu            sync.Mutex
	late, untimed map[string]int64 // by operator
	ahead         []atomic.Int64   // by event time
	seen          map[string]int64 // by operator
}

// lost adds what a shard has counted, which begins anew.
func (e *Epoch) lost(all []*losses) {
	for _, l := range all {
		e.lose(l)
	}
}

// lose adds what was counted of an operator, which begins anew.
func (e *Epoch) lose(l *losses) {
	if l.late > 0 || l.untimed > 0 {
		e.counts.mu.Lock()
		e.counts.late = plus(e.counts.late, l.operator, l.late)
		e.counts.untimed = plus(e.counts.untimed, l.operator, l.untimed)
		e.counts.mu.Unlock()
		l.late, l.untimed = 0, 0
	}
	if l.seen != connector.NoTime {
		e.counts.mu.Lock()
		e.counts.see(l.operator, l.seen)
		e.counts.mu.Unlock()
		l.seen = connector.NoTime
	}
}

// see notes a time that an operator has seen.
func (c *timeCounts) see(operator string, t int64) {
	if at, ok := c.seen[operator]; ok && at >= t {
		return
	}
	if c.seen == nil {
		c.seen = map[string]int64{}
	}
	c.seen[operator] = t
}

// Windows is how far windows have come with the epoch, by operator, given how far they
// had before it and where the watermarks stand behind it.
func (e *Epoch) Windows(before map[string]epoch.Windows, marks map[string]epoch.EventTime) map[string]epoch.Windows {
	m := epoch.Manifest{Windows: before}
	after := maps.Clone(before)
	for _, spec := range e.run.graph.windowed {
		was := m.WindowsOf(spec.operator)
		now := was
		now.Closed = max(now.Closed, epoch.Moment(spec.bound(e.Now, marks)))
		if seen, ok := e.counts.seen[spec.operator]; ok {
			now.Seen = max(now.Seen, epoch.Moment(seen))
		}
		now.LateRecords += e.counts.late[spec.operator]
		now.UntimedRecords += e.counts.untimed[spec.operator]
		if now == was {
			continue
		}
		if after == nil {
			after = map[string]epoch.Windows{}
		}
		after[spec.operator] = now
	}
	return after
}

// windowedSpec is an operator with windows.
type windowedSpec struct {
	operator string
	times    func() []*EventTime
	clock    bool // they go by the epochs' clock
	allowed  int64
	// last is where the last window ends that a time up to one is in.
	last func(at epoch.Windows) int64
}

// Beyond is to where watermarks have to come, by event time, so that all windows close
// which have come so far as given, by operator. Those that are there already are left out,
// as are windows by the clock.
func (g *Graph) Beyond(windows map[string]epoch.Windows, marks map[string]epoch.EventTime) map[string]epoch.Moment {
	var all map[string]epoch.Moment
	m := epoch.Manifest{Windows: windows}
	for _, spec := range g.windowed {
		at := m.WindowsOf(spec.operator)
		if spec.clock || at.Seen.IsZero() {
			continue
		}
		to := epoch.Moment(spec.last(at) + spec.allowed)
		if to > math.MaxInt64-1 || at.Closed >= to-epoch.Moment(spec.allowed) {
			continue
		}
		for _, t := range spec.times() {
			if mark, ok := marks[t.Name]; ok && mark.Watermark >= to {
				continue
			}
			if all == nil {
				all = map[string]epoch.Moment{}
			}
			if before, ok := all[t.Name]; !ok || before < to {
				all[t.Name] = to
			}
		}
	}
	return all
}

// bound is where windows end that are closed once all that is due has been done at a
// clock and watermarks; [connector.NoTime]: none is.
func (w *windowedSpec) bound(now int64, marks map[string]epoch.EventTime) int64 {
	if w.clock {
		return now
	}
	bound := int64(connector.NoTime)
	for i, t := range w.times() {
		at, ok := marks[t.Name]
		if !ok || at.Watermark.IsZero() {
			return connector.NoTime
		}
		if mark := int64(at.Watermark) - w.allowed; i == 0 || mark < bound {
			bound = mark
		}
	}
	return bound
}

func plus(sums map[string]int64, name string, n int64) map[string]int64 {
	if n > 0 {
		if sums == nil {
			sums = map[string]int64{}
		}
		sums[name] += n
	}
	return sums
}

// Late is the number of records, by operator, that came too late: what they belong to
// was closed. Operators without any are left out, as of all these counts.
func (e *Epoch) Late() map[string]int64 { return e.counts.late }

// Untimed is the number of records, by operator, that have no time where one is needed.
func (e *Epoch) Untimed() map[string]int64 { return e.counts.untimed }

// Ahead is the number of times, by event time, that were too far ahead of the clock to
// move the watermark.
func (e *Epoch) Ahead() (ahead map[string]int64) {
	for i, t := range e.run.graph.times {
		ahead = plus(ahead, t.Name, e.counts.ahead[i].Load())
	}
	return ahead
}
