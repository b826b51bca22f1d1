package plan

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

const (
	// untimed entries come before those that are timed: they find memory cold.
	untimed = 50
	// stretch is how many entries are timed together. Of several the middle one
	// counts, since other processes' turns fall into some.
	stretch = 100
	// mostStretches bounds how many each taster takes the time of.
	mostStretches = 40
	// mostWritten bounds what of an entry's rows, in bytes, the writing is timed with.
	mostWritten = 1 << 20
	// paceBlock is the size of the blocks of what is written for its time: so small
	// that some end in each stretch.
	paceBlock = 4 << 10
)

// pace is how long entries take, in one goroutine.
type pace struct {
	written  *avrofile.Writer // to nowhere
	n        int              // entries so far
	inHand   stretchTime
	finished []stretchTime
}

// stretchTime is what a stretch of entries has taken.
type stretchTime struct {
	entries             int
	converting, writing time.Duration
}

func newPace(f state.Form) *pace {
	return &pace{written: avrofile.New(io.Discard, avrofile.Options{Schema: f.Schema().String(), BlockBytes: paceBlock})}
}

// wanted tells whether the next entry, or the one in hand, is to be timed.
func (p *pace) wanted() bool { return len(p.finished) < mostStretches }

// time counts an entry whose conversion has begun at a time and has just ended; its
// rows are written for the time that it takes.
func (p *pace) time(clock env.Clock, began time.Time, rows []byte) error {
	converted := clock.Now()
	if len(rows) > 0 {
		if err := p.written.Append(rows[:min(len(rows), mostWritten)]); err != nil {
			return err
		}
	}
	if p.n++; p.n <= untimed {
		return nil
	}
	p.inHand.entries++
	p.inHand.converting += converted.Sub(began)
	p.inHand.writing += clock.Now().Sub(converted)
	if p.inHand.entries == stretch {
		p.finished = append(p.finished, p.inHand)
		p.inHand = stretchTime{}
	}
	return nil
}

// The reading is timed in fewer and longer stretches, each of some blocks.
const (
	readStretches = 5
	readEntries   = 4096
	readBytes     = 2 << 20 // or so many bytes, if that comes first
)

// estimate says how long it takes to carry all entries over: each is read, converted
// and written.
func (t *sourceTrial) estimate(ctx context.Context) error {
	var converting, writing []float64 // nanoseconds for an entry, of each stretch
	add := func(s stretchTime) {
		converting = append(converting, float64(s.converting)/float64(s.entries))
		writing = append(writing, float64(s.writing)/float64(s.entries))
	}
	for _, w := range t.tasters {
		for _, s := range w.pace.finished {
			add(s)
		}
	}
	for _, w := range t.tasters { // few entries have no whole stretch
		if s := w.pace.inHand; len(converting) == 0 && s.entries > 0 {
			add(s)
		}
	}
	reading, err := t.readPace(ctx)
	if err != nil || len(converting) == 0 {
		return err
	}
	one, two, three := middle(reading), middle(converting), middle(writing)
	each := max(one, three, (one+two+three)/float64(t.o.Workers)) // one reads, one writes, and all convert
	t.takes = time.Duration(each * float64(t.rows))
	return nil
}

// readPace is how long entries take to be read, in nanoseconds, of each stretch.
func (t *sourceTrial) readPace(ctx context.Context) (all []float64, err error) {
	entries, bytes, began := 0, 0, t.o.Env.Clock.Now()
	end := func() {
		now := t.o.Env.Clock.Now()
		all = append(all, float64(now.Sub(began))/float64(entries))
		entries, bytes, began = 0, 0, now
	}
	for e, err := range t.tasters[0].reader.Read(ctx, epoch.AllSlots) {
		if err != nil {
			return nil, err
		}
		entries++
		if bytes += len(e.Key) + len(e.Element) + len(e.Value); entries == readEntries || bytes >= readBytes {
			end()
		}
		if len(all) == readStretches {
			return all, nil
		}
	}
	if len(all) == 0 && entries > 0 {
		end()
	}
	return all, nil
}

// middle is the median; 0 of none.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
