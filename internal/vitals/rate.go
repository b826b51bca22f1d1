package vitals

import (
	"slices"
	"time"
)

const (
	// rateWindow is the time that a rate is taken over.
	rateWindow = 10 * time.Second
	// rateGrain is the least time between two marks, which bounds them to 41.
	rateGrain = 250 * time.Millisecond
)

// rate remembers how a total grew lately. Between two marks the total stands
// still, so that an idle hour before a burst doesn't thin it out.
type rate struct {
	marks []mark // the first may be older than the window: the total as it began
}

type mark struct {
	at    time.Time
	total int64
}

// add notes the total.
func (r *rate) add(now time.Time, total int64) {
	if last := len(r.marks) - 1; last >= 0 && since(now, r.marks[last].at) < rateGrain {
		r.marks[last].total = total
		return
	}
	if old := r.old(now); old > 1 {
		r.marks = slices.Delete(r.marks, 0, old-1)
	}
	r.marks = append(r.marks, mark{now, total})
}

// old counts the marks from before the window.
func (r *rate) old(now time.Time) (n int) {
	for n < len(r.marks) && since(now, r.marks[n].at) >= rateWindow {
		n++
	}
	return n
}

// perSecond is how fast the total grew in the window, or since the start where
// that is later.
func (r *rate) perSecond(now time.Time, total int64, uptime time.Duration) float64 {
	span := min(uptime, rateWindow).Seconds()
	if span <= 0 {
		return 0
	}
	var before int64
	if old := r.old(now); old > 0 {
		before = r.marks[old-1].total
	}
	return float64(total-before) / span
}
