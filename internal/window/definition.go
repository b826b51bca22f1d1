package window

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Kind is how windows lie in time.
type Kind string

// The kinds of windows.
const (
	TumblingKind Kind = "tumbling"
	HoppingKind  Kind = "hopping"
	SlidingKind  Kind = "sliding"
	SessionKind  Kind = "session"
	CalendarKind Kind = "calendar"
	CustomKind   Kind = "custom"
)

// Unit is what calendar windows are made of.
type Unit string

// The units of a calendar.
const (
	Day   Unit = "day"
	Week  Unit = "week" // from Monday
	Month Unit = "month"
)

// Clock is what the times are that a definition is asked about.
type Clock string

// The clocks.
const (
	EventTime      Clock = "event"      // of the records
	ProcessingTime Clock = "processing" // of the epoch that reads them
)

const (
	// MaxWindows bounds how many windows hold one time. Each is an entry that the
	// record changes, so that more would be a mistake rather than a wish.
	MaxWindows = 10_000

	// MaxCount bounds the units of one calendar window: 27 years of days.
	MaxCount = 10_000
)

// A Definition says which windows a time belongs to. It is made by one of the
// functions of this package and not changed afterwards; any number of goroutines
// may use it. Durations are microseconds; what a kind doesn't have is zero.
type Definition struct {
	Kind   Kind
	Size   int64  // of tumbling, hopping and sliding windows
	Slide  int64  // from one start to the next, of hopping windows and of tumbling ones, where it is Size
	Offset int64  // of tumbling, hopping and calendar windows: how far their starts are moved
	Gap    int64  // that ends a session
	Count  int64  // units in a calendar window
	Unit   Unit   // of calendar windows
	Zone   string // of calendar windows: its name in the IANA database
	Name   string // of the function of custom windows
	Clock  Clock  // EventTime, unless On has chosen another

	// Spans is the function of custom windows; nil where the definition was parsed.
	Spans func(t int64) iter.Seq[Span]

	zone *time.Location // of Zone
}

// Tumbling defines windows of one size, one after the other. One of them begins at
// offset from 1970 UTC; offset lies within the size, to either side.
func Tumbling(size, offset time.Duration) (*Definition, error) {
	d, err := fixed(TumblingKind, size, size, offset)
	if err != nil {
		return nil, fmt.Errorf("tumbling windows: %w", err)
	}
	return d, nil
}

// Hopping defines windows of one size that begin at every slide. One of them
// begins at offset from 1970 UTC; offset lies within the slide, to either side.
// The slide is at most the size, and at least the size divided by [MaxWindows].
func Hopping(size, slide, offset time.Duration) (*Definition, error) {
	d, err := fixed(HoppingKind, size, slide, offset)
	if err != nil {
		return nil, fmt.Errorf("hopping windows: %w", err)
	}
	return d, nil
}

func fixed(kind Kind, size, slide, offset time.Duration) (*Definition, error) {
	if err := cmp.Or(positive("size", size), positive("slide", slide), whole("offset", offset)); err != nil {
		return nil, err
	}
	switch {
	case slide > size:
		return nil, fmt.Errorf("slide %v is longer than size %v: times in between would be in no window", slide, size)
	case (size-1)/slide >= MaxWindows:
		return nil, fmt.Errorf("size %v with slide %v puts each record into more than %d windows: a longer slide is needed", size, slide, MaxWindows)
	case offset <= -slide || offset >= slide:
		return nil, fmt.Errorf("offset %v isn't shorter than %v, from one window to the next", offset, slide)
	case offset < 0:
		offset += slide
	}
	return &Definition{Kind: kind, Size: size.Microseconds(), Slide: slide.Microseconds(), Offset: offset.Microseconds(), Clock: EventTime}, nil
}

// Sliding defines a window for each distinct time of a key: the time itself and
// what came less than size before it, [t-size+1, t+1).
func Sliding(size time.Duration) (*Definition, error) {
	if err := positive("size", size); err != nil {
		return nil, fmt.Errorf("sliding windows: %w", err)
	}
	return &Definition{Kind: SlidingKind, Size: size.Microseconds(), Clock: EventTime}, nil
}

// Session defines windows [t, t+gap), of which those of a key that overlap are
// one. A record that comes exactly gap after the last begins a new session.
func Session(gap time.Duration) (*Definition, error) {
	if err := positive("gap", gap); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return &Definition{Kind: SessionKind, Gap: gap.Microseconds(), Clock: EventTime}, nil
}

// Calendar defines windows of count days, weeks or months of a zone, which is
// named as in the IANA database. Windows begin when the zone's clocks have gone on
// by offset from midnight: with 4 hours, a day begins at four o'clock. Offset is
// shorter than the window, of months than 28 days, to either side.
func Calendar(count int64, unit Unit, zone string, offset time.Duration) (*Definition, error) {
	d, err := calendar(count, unit, zone, offset)
	if err != nil {
		return nil, fmt.Errorf("calendar windows: %w", err)
	}
	return d, nil
}

// Custom defines windows by a function. It gives the windows of a time, each of
// which holds the time, at most [MaxWindows] of them, and always the same. Name is
// what the author calls it.
func Custom(name string, spans func(t int64) iter.Seq[Span]) (*Definition, error) {
	switch {
	case name == "":
		return nil, errors.New("custom windows: the function has no name")
	case spans == nil:
		return nil, fmt.Errorf("custom windows: there is no function %s", name)
	}
	return &Definition{Kind: CustomKind, Name: name, Spans: spans, Clock: EventTime}, nil
}

// On is the same definition for times of another clock.
func (d *Definition) On(clock Clock) *Definition {
	other := *d
	other.Clock = clock
	return &other
}

// Complete tells whether times can be put into windows. They can't be where a
// definition was parsed whose function only the author's code has.
func (d *Definition) Complete() bool { return d.Kind != CustomKind || d.Spans != nil }

// isFixed tells whether windows are as far apart everywhere.
func (d *Definition) isFixed() bool { return d.Slide > 0 }

// divides tells whether each time is in one window, whose starts are edges.
func (d *Definition) divides() bool {
	return d.Kind == TumblingKind || d.Kind == CalendarKind
}

func positive(what string, length time.Duration) error {
	if length < time.Microsecond {
		return fmt.Errorf("%s %v, and it has to be at least 1µs", what, length)
	}
	return whole(what, length)
}

func whole(what string, length time.Duration) error {
	if length%time.Microsecond != 0 {
		return fmt.Errorf("%s %v isn't whole microseconds", what, length)
	}
	return nil
}
