package engine

import (
	"sync"
	"sync/atomic"
)

// losses count, in one shard, the records of an epoch that an operator has got and could
// not use.
type losses struct {
	operator string
	late     int64 // the time that they belong to was closed
	untimed  int64 // they have no time, and need one
}

// lossesOf are those of an operator of the shard.
func (in *Instance) lossesOf(operator string) *losses {
	l := &losses{operator: operator}
	in.losses = append(in.losses, l)
	return l
}

// timeCounts count, in an epoch, what is told of times.
type timeCounts struct {
	mu            sync.Mutex
	late, untimed map[string]int64 // by operator
	ahead         []atomic.Int64   // by event time
}

// lost adds what a shard has counted, which begins anew.
func (e *Epoch) lost(all []*losses) {
	for _, l := range all {
		if l.late > 0 || l.untimed > 0 {
			e.counts.mu.Lock()
			e.counts.late = plus(e.counts.late, l.operator, l.late)
			e.counts.untimed = plus(e.counts.untimed, l.operator, l.untimed)
			e.counts.mu.Unlock()
			l.late, l.untimed = 0, 0
		}
	}
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
