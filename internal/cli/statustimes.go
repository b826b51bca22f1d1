package cli

import (
	"context"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
)

// timesStatus is where a job's event times stand, and what goes by times.
type timesStatus struct {
	EventTimes []timeStatus     `json:"event_times,omitempty"`
	Operators  []operatorStatus `json:"operators,omitempty"`
}

// timeStatus is where an event time stands.
type timeStatus struct {
	EventTime string `json:"event_time"`
	Watermark string `json:"watermark,omitempty"` // "": there is none yet
	// HeldBy is the partition, as source/partition, that holds it where it is; "" if all
	// are idle. Idle are those that don't hold it back.
	HeldBy string   `json:"held_by,omitempty"`
	Idle   []string `json:"idle,omitempty"`
}

// operatorStatus is where an operator stands that goes by event times, or by the clock
// if it has none.
type operatorStatus struct {
	Operator   string         `json:"operator"`
	Watermark  string         `json:"watermark,omitempty"`
	EventTimes []string       `json:"event_times,omitempty"`
	Windows    *windowsStatus `json:"windows,omitempty"` // nil: it has none
}

// windowsStatus is how far an operator's windows have come.
type windowsStatus struct {
	// Definitions say what the windows are, the oldest first.
	Definitions     []definitionStatus `json:"definitions"`
	AllowedLateness string             `json:"allowed_lateness,omitempty"`
	// Seen is the latest time that has come into a window, and Closed where windows end
	// that are closed; "": there is none yet.
	Seen   string `json:"seen,omitempty"`
	Closed string `json:"closed,omitempty"`
	// LateRecords and UntimedRecords are sums since the operator began.
	LateRecords    int64 `json:"late_records"`
	UntimedRecords int64 `json:"untimed_records"`

	text string // what the windows are
}

// definitionStatus is a definition in force.
type definitionStatus struct {
	Windows string `json:"windows"`
	Until   string `json:"until,omitempty"` // windows that begin then are others; "": there is no end
}

// timesOf is where the event times of an epoch's version stand, and its operators.
func timesOf(ctx context.Context, job *epoch.Job, m epoch.Manifest) (s timesStatus, err error) {
	if len(m.Watermarks) == 0 && len(m.Windows) == 0 {
		return s, nil
	}
	v, err := job.Version(ctx, m.Version)
	if err != nil {
		return s, err
	}
	for _, t := range m.TimesOf(v) {
		s.EventTimes = append(s.EventTimes, timeStatus{t.Name, markStamp(t.Watermark), t.HeldBy, t.Idle})
	}
	windows, err := m.StandingWindows(v)
	if err != nil {
		return s, err
	}
	marks := m.WatermarksOf(v)
	for name, part := range sorted(v.Operators) {
		at, windowed := windows[name]
		if !windowed && len(part.Times) == 0 {
			continue
		}
		o := operatorStatus{Operator: name, EventTimes: part.Times}
		if len(part.Times) > 0 {
			o.Watermark = markStamp(marks[name])
		}
		if windowed {
			o.Windows = windowsStatusOf(at)
		}
		s.Operators = append(s.Operators, o)
	}
	return s, nil
}

func windowsStatusOf(at epoch.WindowsStanding) *windowsStatus {
	s := &windowsStatus{
		AllowedLateness: at.Allowed, Seen: markStamp(at.Seen), Closed: markStamp(at.Closed),
		LateRecords: at.LateRecords, UntimedRecords: at.UntimedRecords, text: waiting(at.InForce.String(), at.Allowed),
	}
	for _, part := range at.InForce.Parts() {
		d := definitionStatus{Windows: part.Definition.String()}
		if part.Until != window.Forever {
			d.Until = stamp(part.Until)
		}
		s.Definitions = append(s.Definitions, d)
	}
	return s
}

// markStamp is a watermark for machines; "" for none.
func markStamp(at epoch.Moment) string {
	if at.IsZero() {
		return ""
	}
	return stamp(int64(at))
}

func (s timesStatus) times() *table {
	t := newTable(text("event time"), text("watermark"), text("held by"), text("idle"))
	for _, at := range s.EventTimes {
		t.row(at.EventTime, markText(at.Watermark), at.HeldBy, strings.Join(at.Idle, ", "))
	}
	return t
}

func (s timesStatus) operators() *table {
	t := newTable(text("operator"), text("watermark"), text("of event time"))
	for _, o := range s.Operators {
		if len(o.EventTimes) > 0 {
			t.row(o.Operator, markText(o.Watermark), strings.Join(o.EventTimes, ", "))
		}
	}
	return t
}

func (s timesStatus) windows() *table {
	t := newTable(text("windows of"), text("closed up to"), number("late"), number("untimed"), text("which are"))
	for _, o := range s.Operators {
		if w := o.Windows; w != nil {
			t.row(o.Operator, markText(w.Closed), count(w.LateRecords), count(w.UntimedRecords), w.text)
		}
	}
	return t
}

// markText is a watermark's stamp for people.
func markText(stamp string) string {
	if stamp == "" {
		return "none yet"
	}
	return strings.Replace(stamp, "T", " ", 1)
}
