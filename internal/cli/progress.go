package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
)

// progress is how far a run is, and how fast. It knows no clock.
type progress struct {
	units map[string]string // what the offsets of a source count, by its name

	epochs, records, deadLetters int64
	epoch                        uint64
	marks                        []mark           // of the last while, oldest first
	behind                       map[string]int64 // by unit, at the newest mark
}

// mark is where a run stood at a time.
type mark struct {
	at      time.Time
	records int64
	read    map[string]int64 // offsets read, by unit
}

// rateOver is the time that a rate is the mean of.
const rateOver = 10 * time.Second

func newProgress(now time.Time, units map[string]string) *progress {
	return &progress{units: units, marks: []mark{{at: now}}}
}

// add notes an epoch that was committed.
func (p *progress) add(now time.Time, c Committed) {
	p.epochs++
	p.epoch = c.Epoch
	p.records += c.Records
	p.deadLetters += c.DeadLetters
	m := mark{at: now, records: p.records, read: map[string]int64{}}
	p.behind = map[string]int64{}
	for _, part := range c.Partitions {
		unit := p.units[part.Source]
		m.read[unit] += part.Next
		p.behind[unit] += max(part.End-part.Next, 0)
	}
	if p.marks[0].read == nil {
		p.marks[0].read = m.read // where it began isn't known; the first epoch stands for it
	}
	p.marks = append(p.marks, m)
}

// forget drops marks that are too old, but for one to reckon from.
func (p *progress) forget(now time.Time) {
	for len(p.marks) > 1 && now.Sub(p.marks[1].at) >= rateOver {
		p.marks = p.marks[1:]
	}
}

// rate is the number of records per second.
func (p *progress) rate(now time.Time) float64 {
	p.forget(now)
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	return perSecond(last.records-first.records, now.Sub(first.at))
}

// left is the time that it takes to read what there is at the speed of now; ok
// is false if that can't be told.
func (p *progress) left(now time.Time) (left time.Duration, ok bool) {
	p.forget(now)
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	for unit, behind := range p.behind {
		if behind == 0 {
			continue
		}
		speed := perSecond(last.read[unit]-first.read[unit], now.Sub(first.at))
		if speed <= 0 {
			return 0, false
		}
		left, ok = max(left, time.Duration(float64(behind)/speed*float64(time.Second))), true
	}
	return left, ok
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// lag is what is still to be read, in words.
func (p *progress) lag() string {
	var parts []string
	for unit, behind := range p.behind {
		switch {
		case behind == 0:
		case unit == unitBytes:
			parts = append(parts, size(behind))
		default:
			parts = append(parts, count(behind)+" "+unit)
		}
	}
	if parts == nil {
		return "none"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// line is the progress for a terminal.
func (p *progress) line(now time.Time) string {
	if p.epochs == 0 {
		return "waiting for records"
	}
	parts := []string{
		fmt.Sprintf("epoch %d", p.epoch),
		count(p.records) + " records",
		count(int64(p.rate(now))) + "/s",
		"lag " + p.lag(),
	}
	if left, ok := p.left(now); ok {
		parts = append(parts, "about "+left.Round(time.Second).String()+" left")
	}
	if p.deadLetters > 0 {
		parts = append(parts, count(p.deadLetters)+" dead letters")
	}
	return strings.Join(parts, " · ")
}

// attrs is the progress for a log.
func (p *progress) attrs(now time.Time) []any {
	attrs := []any{"epoch", p.epoch, "records", p.records, "rate", int64(p.rate(now)), "lag", p.lag()}
	if left, ok := p.left(now); ok {
		attrs = append(attrs, "left", left.Round(time.Second).String())
	}
	if p.deadLetters > 0 {
		attrs = append(attrs, "dead_letters", p.deadLetters)
	}
	return attrs
}

// What offsets count.
const (
	unitBytes   = "bytes"
	unitRecords = "records"
)

// lagUnits says what the offsets of a job's sources count: bytes in files,
// records elsewhere.
func lagUnits(v epoch.Version) map[string]string {
	units := map[string]string{}
	for name, s := range v.Sources {
		units[name] = unitRecords
		if s.Kind == "file" || strings.HasPrefix(s.Kind, "file.") {
			units[name] = unitBytes
		}
	}
	return units
}
