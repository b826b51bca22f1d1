package window

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones, for machines that have none
)

const (
	second = int64(time.Second / time.Microsecond)
	day    = 24 * 60 * 60 * second

	// maxZoneOffset bounds how far a zone's clocks are from UTC: RFC 8536 has them
	// at most 26 hours ahead, and 25 behind.
	maxZoneOffset = 26 * 60 * 60 * second

	// firstMonday is the midnight from which weeks are counted: 1970-01-05.
	firstMonday = 4 * day

	shortestMonth = 28 * day

	// Calendar windows are told of the years 1 to 9999, of which dates are written
	// everywhere in one way.
	firstTold = -62_135_596_800 * second
	endTold   = 253_402_300_800 * second
)

func calendar(count int64, unit Unit, zone string, offset time.Duration) (*Definition, error) {
	if count < 1 || count > MaxCount {
		return nil, fmt.Errorf("%d units in a window, and it has to be 1 to %d", count, MaxCount)
	}
	d := &Definition{Kind: CalendarKind, Count: count, Unit: unit, Zone: zone, Offset: offset.Microseconds(), Clock: EventTime}
	longest := shortestMonth
	switch unit {
	case Day, Week:
		longest = d.period()
	case Month:
	default:
		return nil, fmt.Errorf("unit %q, and it has to be %s, %s or %s", unit, Day, Week, Month)
	}
	if err := whole("offset", offset); err != nil {
		return nil, err
	}
	if d.Offset <= -longest || d.Offset >= longest {
		return nil, fmt.Errorf("offset %v isn't shorter than %d days", offset, longest/day)
	}
	if unit != Month && d.Offset < 0 {
		d.Offset += longest
	}
	var err error
	d.zone, err = loadZone(zone)
	return d, err
}

func loadZone(name string) (*time.Location, error) {
	// What the time package takes for UTC, and for whatever a machine is set to.
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q depends on who reads it: name one, such as UTC or Europe/Paris", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q isn't known: %w", name, err)
	}
	return zone, nil
}

// Below, a wall time is what clocks of the zone show, as microseconds since they
// showed 1970-01-01 00:00. Windows are numbered from the one that holds, or begins
// at, the offset from there.

// calendarWindow is the window of t.
func (d *Definition) calendarWindow(t int64) (Span, bool) {
	if t < firstTold || t >= endTold {
		return Span{}, false
	}
	// The clocks show a time of this window, so it has begun; later ones have as
	// well if clocks went back over midnight, or if a day was left out.
	number := d.numberAt(d.wallAt(t))
	window := Span{d.firstAt(d.beginning(number)), d.firstAt(d.beginning(number + 1))}
	for window.End <= t {
		number++
		window = Span{window.End, d.firstAt(d.beginning(number + 1))}
	}
	return window, true
}

// period is the length of a window of days or weeks on the wall.
func (d *Definition) period() int64 {
	if d.Unit == Week {
		return d.Count * 7 * day
	}
	return d.Count * day
}

// numberAt is the number of the window that holds a wall time.
func (d *Definition) numberAt(wall int64) int64 {
	wall -= d.Offset
	switch d.Unit {
	case Month:
		year, month, _ := time.UnixMicro(wall).UTC().Date()
		return FloorDivide(int64(year-1970)*12+int64(month-time.January), d.Count)
	case Week:
		wall -= firstMonday
	}
	return FloorDivide(wall, d.period())
}

// beginning is the wall time at which a window begins.
func (d *Definition) beginning(number int64) int64 {
	switch d.Unit {
	case Month:
		first := time.Date(1970, time.January+time.Month(number*d.Count), 1, 0, 0, 0, 0, time.UTC)
		return first.UnixMicro() + d.Offset
	case Week:
		return number*d.period() + firstMonday + d.Offset
	}
	return number*d.period() + d.Offset
}

// wallAt is what the zone's clocks show at an instant.
func (d *Definition) wallAt(t int64) int64 {
	_, offset := time.UnixMicro(t).In(d.zone).Zone()
	return t + int64(offset)*second
}

// firstAt is the first instant at which the zone's clocks show a wall time, or a
// later one.
func (d *Definition) firstAt(wall int64) int64 {
	from := wall - maxZoneOffset
	for {
		// As long as the zone keeps its offset, clocks only go forward.
		here := time.UnixMicro(from).In(d.zone)
		_, offset := here.Zone()
		shown := max(from, wall-int64(offset)*second)
		_, end := here.ZoneBounds()
		if end.IsZero() {
			return shown
		}
		// On the last day of a leap year in the future, ZoneBounds gives the day's
		// beginning as the end: it takes each year to have 365 days. Behind what it
		// gives correctly no offset changes before the year's end.
		next := end.UnixMicro()
		if next <= from {
			next = FloorDivide(from, day)*day + day
		}
		if shown < next {
			return shown
		}
		from = next
	}
}

// FloorDivide is a / b, rounded down, for a b above 0.
func FloorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
