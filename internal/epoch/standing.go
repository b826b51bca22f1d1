package epoch

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/window"
)

// TimeStanding is where an event time stands after an epoch.
type TimeStanding struct {
	Name      string
	Watermark Moment
	// HeldBy is the partition, as source/partition, that holds the watermark where it
	// is, the first of several; "" if all are idle.
	HeldBy string
	// Idle are the partitions that held it back no more in the epoch.
	Idle []string
}

// IdleAtEnd are the partitions that hold no watermark back at the epoch's end, as in
// [Manifest.Idle].
func (m Manifest) IdleAtEnd() map[string][]string {
	if n := len(m.Steps); n > 0 {
		return m.Steps[n-1].Idle
	}
	return m.Idle
}

// TimesOf is where the event times of a version stand after the epoch, by name.
func (m Manifest) TimesOf(v Version) (all []TimeStanding) {
	idle := m.IdleAtEnd()
	for _, name := range slices.Sorted(maps.Keys(v.Times)) {
		at, ok := m.Watermarks[name]
		if !ok {
			at.Watermark = NoTime
		}
		s := TimeStanding{Name: name, Watermark: at.Watermark, Idle: idle[name]}
		least := Moment(1<<63 - 1)
		for _, source := range v.Times[name].Inputs {
			for _, partition := range slices.Sorted(maps.Keys(m.Sources[source].Partitions)) {
				of := PartitionName(source, partition)
				if mark := at.of(source, partition); mark < least && !slices.Contains(s.Idle, of) {
					least, s.HeldBy = mark, of
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// of is a partition's watermark.
func (e EventTime) of(source, partition string) Moment {
	if p, ok := e.Partitions[source][partition]; ok {
		return p.Watermark
	}
	return NoTime
}

// WatermarksOf are the watermarks of the operators of a version that go by event times,
// by name: the least of these each.
func (m Manifest) WatermarksOf(v Version) map[string]Moment {
	all := map[string]Moment{}
	for name, o := range v.Operators {
		for i, t := range o.Times {
			at, ok := m.Watermarks[t]
			if !ok {
				at.Watermark = NoTime
			}
			if i == 0 || at.Watermark < all[name] {
				all[name] = at.Watermark
			}
		}
	}
	return all
}

// WindowsStanding is where an operator's windows stand after an epoch.
type WindowsStanding struct {
	Windows
	// InForce are the definitions that windows still begin or go on under.
	InForce window.Succession
	// Allowed is how long the windows wait behind their ends, as the version has it; "" if
	// they don't.
	Allowed string
}

// StandingWindows is where the windows of a version's operators stand after the epoch, by
// the operator's name.
func (m Manifest) StandingWindows(v Version) (map[string]WindowsStanding, error) {
	all := map[string]WindowsStanding{}
	for name, o := range v.Operators {
		if o.Kind != WindowKind {
			continue
		}
		s := WindowsStanding{Windows: m.WindowsOf(name), Allowed: o.Parameters[AllowedLateness]}
		if s.Succession != nil {
			s.InForce = s.Succession.Drop(s.Succession.Finished(int64(s.Closed)))
		} else {
			d, err := window.Among(o.Parameters)
			if err != nil {
				return nil, fmt.Errorf("operator %s: %w", name, err)
			}
			s.InForce = window.Begin(d)
		}
		all[name] = s
	}
	return all, nil
}
