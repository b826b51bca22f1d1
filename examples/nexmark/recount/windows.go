package recount

import (
	"fmt"
	"iter"
	"time"

	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/schema"
)

// Late tells whether a bid came too late for the window that begins at start, and is
// left out of it. A nil Late leaves nothing out.
type Late func(number int64, start schema.Instant) bool

func (late Late) leavesOut(number int64, start schema.Instant) bool {
	return late != nil && late(number, start)
}

// bids are those among the events, with their numbers.
func bids(events iter.Seq2[int64, generator.Event]) iter.Seq2[int64, *generator.Bid] {
	return func(yield func(int64, *generator.Bid) bool) {
		for n, e := range events {
			if e.Bid != nil && !yield(n, e.Bid) {
				return
			}
		}
	}
}

// span is a duration as it is stored, in microseconds. One that has none is a fault in
// the program.
func span(name string, d time.Duration) schema.Instant {
	if d < time.Microsecond || d%time.Microsecond != 0 {
		panic(fmt.Sprintf("%s is %v, expected whole microseconds", name, d))
	}
	return schema.Instant(d.Microseconds())
}

// startOf is the last multiple of size that is not after t, before 1970 as well.
func startOf(t, size schema.Instant) schema.Instant {
	into := t % size
	if into < 0 {
		into += size
	}
	return t - into
}

// startsOf are the starts of all windows that hold t.
func startsOf(t, size, slide schema.Instant) (starts []schema.Instant) {
	for start := startOf(t, slide); start > t-size; start -= slide {
		starts = append(starts, start)
	}
	return starts
}
