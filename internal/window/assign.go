package window

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// One is the window of t, without a look at any other; ok is false where a time is
// in several, and where Append refuses.
func (d *Definition) One(t int64) (window Span, ok bool) {
	switch {
	case d.isFixed():
		if d.Slide != d.Size {
			return Span{}, false
		}
		start, ok := alignedBefore(t, d.Size, d.Offset)
		if !ok || start > math.MaxInt64-d.Size {
			return Span{}, false
		}
		return Span{start, start + d.Size}, true
	case d.Kind == CalendarKind:
		return d.calendarWindow(t)
	case d.Kind == SessionKind:
		if t > math.MaxInt64-d.Gap {
			return Span{}, false
		}
		return Span{t, t + d.Gap}, true
	case d.Kind == SlidingKind:
		if t == math.MaxInt64 || t < math.MinInt64+d.Size-1 {
			return Span{}, false
		}
		return Span{t - d.Size + 1, t + 1}, true
	default:
		all, err := d.appendCustom(nil, t)
		if err != nil || len(all) != 1 {
			return Span{}, false
		}
		return all[0], true
	}
}

// Append appends the windows of t, in the order of their starts. It refuses, and
// appends nothing, where a window would leave the 64 bits of a time, for calendar
// windows in years before 1 and after 9999, and where a custom function does what
// it may not; [Definition.Refusal] says which.
func (d *Definition) Append(dst []Span, t int64) (windows []Span, ok bool) {
	switch {
	case d.isFixed() && d.Slide < d.Size:
		return d.appendHopping(dst, t)
	case d.Kind == CustomKind:
		all, err := d.appendCustom(dst, t)
		return all, err == nil
	}
	window, ok := d.One(t)
	if !ok {
		return dst, false
	}
	return append(dst, window), true
}

// Refusal tells why Append refuses t; nil if it doesn't.
func (d *Definition) Refusal(t int64) error {
	if d.Kind == CustomKind {
		_, err := d.appendCustom(nil, t)
		return err
	}
	switch _, ok := d.Append(nil, t); {
	case ok:
		return nil
	case d.Kind == CalendarKind:
		return fmt.Errorf("time %d isn't in the years 1 to 9999, which calendar windows are told of", t)
	default:
		return fmt.Errorf("time %d: its %s windows would leave the times that 64 bits of microseconds can tell", t, d.Kind)
	}
}

func (d *Definition) appendHopping(dst []Span, t int64) ([]Span, bool) {
	first, last, ok := d.startsOf(t)
	if !ok {
		return dst, false
	}
	for start := first; start <= last; start += d.Slide {
		dst = append(dst, Span{start, start + d.Size})
	}
	return dst, true
}

// startsOf is where the first and the last of the tumbling or hopping windows of t
// begin.
func (d *Definition) startsOf(t int64) (first, last int64, ok bool) {
	last, ok = alignedBefore(t, d.Slide, d.Offset)
	if !ok || last > math.MaxInt64-d.Size {
		return 0, 0, false
	}
	earlier := (d.Size - 1 - (t - last)) / d.Slide * d.Slide
	return last - earlier, last, last >= math.MinInt64+earlier
}

// alignedBefore is the last instant up to t that is phase from a multiple of the
// period; phase is at least 0 and shorter than it.
func alignedBefore(t, period, phase int64) (instant int64, ok bool) {
	into := t%period - phase // between -2 periods and one: no overflow, since a period is a duration
	for into < 0 {
		into += period
	}
	return t - into, t >= math.MinInt64+into
}

// appendCustom asks the author's function. What it gives is put in order, and what
// it gives twice is taken once.
func (d *Definition) appendCustom(dst []Span, t int64) ([]Span, error) {
	if d.Spans == nil {
		return dst, fmt.Errorf("windows of %s: the function isn't there", d.Name)
	}
	n := len(dst)
	var err error
	for window := range d.Spans(t) {
		switch {
		case !window.Holds(t):
			err = fmt.Errorf("windows of %s: [%d, %d) doesn't hold the time %d, and the windows of a time have to", d.Name, window.Start, window.End, t)
		case len(dst)-n == MaxWindows:
			err = fmt.Errorf("windows of %s: more than %d for the time %s", d.Name, MaxWindows, time.UnixMicro(t).UTC())
		}
		if err != nil {
			return dst[:n], err
		}
		dst = append(dst, window)
	}
	return ordered(dst, n), nil
}

// ordered puts what stands from n on in order, each once.
func ordered(windows []Span, n int) []Span {
	slices.SortFunc(windows[n:], func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return windows[:n+len(slices.Compact(windows[n:]))]
}
