package window

import (
	"fmt"
	"strings"
	"time"
)

// String says in words what the windows are: tumbling 10s, hopping 1m every 10s,
// sliding 10s, session with a gap of 30s, 1 day in Europe/Berlin, or custom and the
// name of the function.
func (d *Definition) String() string {
	text := string(d.Kind)
	switch d.Kind {
	case TumblingKind, SlidingKind:
		text += " " + length(d.Size)
	case HoppingKind:
		text += " " + length(d.Size) + " every " + length(d.Slide)
	case SessionKind:
		text += " with a gap of " + length(d.Gap)
	case CalendarKind:
		text = fmt.Sprintf("%d %s", d.Count, d.Unit)
		if d.Count > 1 {
			text += "s"
		}
		text += " in " + d.Zone
	case CustomKind:
		text += " " + d.Name
	}
	if d.Offset != 0 {
		text += ", offset " + length(d.Offset)
	}
	if d.Clock == ProcessingTime {
		text += ", by the clock"
	}
	return text
}

// String says in words which definitions are in force until when, the oldest first:
// tumbling 10s until 2026-11-01T00:00:00Z, then tumbling 1h.
func (s Succession) String() string {
	var parts []string
	for _, p := range s.parts {
		text := p.Definition.String()
		if p.Until != Forever {
			text += " until " + time.UnixMicro(p.Until).UTC().Format(time.RFC3339Nano)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", then ")
}

// Length is a duration as Go writes it, without the zeros at its end: 1h.
func Length(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func length(micros int64) string { return Length(duration(micros)) }

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
