package vitals

import "time"

// maxBins bounds the history of a partition: a wait is exact to 1/32 of itself.
const maxBins = 64

// backlog remembers when the unread part of a partition came, so that its age
// can be told.
type backlog struct {
	bins []bin
	// width is the time that a bin spans at least. It is 0 until maxBins are
	// full, and doubles whenever they are.
	width time.Duration
	end   int64
}

// bin says that what lies before end, and behind the previous bin's end, was
// first seen at the time at, or soon after.
type bin struct {
	at  time.Time
	end int64
}

// see notes where the partition is read next, and where it ends.
func (b *backlog) see(now time.Time, next, end int64) {
	if end < b.end {
		*b = backlog{} // cut short, or another of the same name
	}
	b.end = end
	b.forget(next)
	if end <= next {
		return
	}
	last := len(b.bins) - 1
	switch {
	case last < 0:
		b.bins = append(b.bins, bin{now, end})
	case end == b.bins[last].end:
	case since(now, b.bins[last].at) < b.width:
		b.bins[last].end = end
	default:
		if len(b.bins) == maxBins {
			b.thin()
		}
		b.bins = append(b.bins, bin{now, end})
	}
}

// forget drops the bins that are read to their end.
func (b *backlog) forget(next int64) {
	read := 0
	for read < len(b.bins) && b.bins[read].end <= next {
		read++
	}
	b.bins = append(b.bins[:0], b.bins[read:]...)
	if len(b.bins) == 0 {
		b.width = 0
	}
}

// thin puts each two bins together, as if all of both had come with the first.
func (b *backlog) thin() {
	for i := range maxBins / 2 {
		b.bins[i] = bin{b.bins[2*i].at, b.bins[2*i+1].end}
	}
	b.bins = b.bins[:maxBins/2]
	b.width = max(2*b.width, since(b.bins[maxBins/2-1].at, b.bins[0].at)/(maxBins/2))
}

// waited is how long ago the first bin came that goes on behind next.
func (b *backlog) waited(now time.Time, next int64) time.Duration {
	for _, bin := range b.bins {
		if bin.end > next {
			return since(now, bin.at)
		}
	}
	return 0
}
