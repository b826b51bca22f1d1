package plan

import (
	"fmt"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
)

// windows has an operator's windows go on from those of the one whose state it has, which
// was another one if it takes that over: those that are open are finished as they were
// begun, and what was closed stays so.
func (c *comparison) windows(l *Line, origin string, old, now epoch.Part) {
	if old.Kind != epoch.WindowKind || now.Kind != epoch.WindowKind {
		return
	}
	was, err := window.Among(old.Parameters)
	if err != nil {
		l.Add(Refused, origin+": "+err.Error(), "run the release that has written it")
		return
	}
	is, err := window.Among(now.Parameters)
	if err != nil {
		l.Add(Refused, l.Name+": "+err.Error(), "")
		return
	}
	stand := c.Head.WindowsOf(origin)
	if s := stand.Succession; s != nil {
		stand.Succession = nil
		if left := s.Drop(s.Finished(int64(stand.Closed))); !left.Settled(int64(stand.Closed)) {
			stand.Succession = &left // the change before this one is still under way
		}
	}
	if is.Equal(was) {
		// They go on as they are.
	} else if reason := c.change(l, origin, &stand, old, now, was, is); reason != "" {
		l.Add(Refused, fmt.Sprintf("%s, windows: %s → %s: %s", l.Name, was, is, reason), another.do)
		return
	}
	c.allowed(l, old, now)
	c.standAt(l, stand)
}

// standAt notes how far an operator's windows have come. Those of several that it takes
// over have to have come equally far: which of them were put out is known by that alone.
func (c *comparison) standAt(l *Line, stand epoch.Windows) {
	if had, ok := c.plan.windows[l.Name]; ok {
		if had.Closed != stand.Closed || had.Succession != nil || stand.Succession != nil {
			l.Add(Refused, l.Name+": it takes over windows of several operators, some of which have closed further than others, or are being changed", "take over those of one operator, or let the build that runs close the others first (stop --drain --close-windows)")
			return
		}
		stand.Seen, stand.Late = max(stand.Seen, had.Seen), max(stand.Late, had.Late)
		stand.LateRecords, stand.UntimedRecords = stand.LateRecords+had.LateRecords, stand.UntimedRecords+had.UntimedRecords
	}
	c.plan.windows[l.Name] = stand
}

// holds tells whether something is stored of an operator.
func (c *comparison) holds(operator string) bool {
	for name, s := range c.Old.States {
		if s.Operator == operator && len(c.Head.State[name].Segments) > 0 {
			return true
		}
	}
	return false
}

// change notes that windows are others from some time on, or says why they can't be.
func (c *comparison) change(l *Line, origin string, stand *epoch.Windows, old, now epoch.Part, was, is *window.Definition) (refused string) {
	switch {
	case was.Clock != is.Clock:
		return "what was found by the one clock can't be compared with the other"
	case old.Parameters[epoch.SharedPanes] != "" || now.Parameters[epoch.SharedPanes] != "":
		return "the panes that windows share are of these windows only"
	case was.Kind == window.SessionKind && is.Kind == window.SessionKind:
		if stand.Closed != epoch.NoTime {
			stand.Late = max(stand.Late, stand.Closed-epoch.Moment(was.Gap))
		}
		if stand.Seen != epoch.NoTime { // an open session reaches no further beyond this
			stand.Seen += epoch.Moment(max(0, was.Gap-is.Gap))
		}
		l.Add(Resolves, fmt.Sprintf("%s, windows: %s → %s", l.Name, was, is), "")
		l.Note("sessions that are open go on: each record reaches as far as the gap that is in force when it is read")
		return ""
	case !was.HasEdges() || !is.HasEdges():
		return "there is no time at which the ones could end and the others begin, whatever the records are"
	}
	if stand.Seen == epoch.NoTime && c.holds(origin) {
		return "what is stored was brought in, and nothing has been read since: let the build that runs make an epoch first"
	}
	if stand.Seen == epoch.NoTime { // no window was ever begun
		l.Add(Resolves, fmt.Sprintf("%s, windows: %s → %s: nothing has come into one yet", l.Name, was, is), "")
		stand.Succession = nil
		return ""
	}
	succession := window.Begin(was)
	if stand.Succession != nil {
		succession = *stand.Succession
	}
	after := max(int64(stand.Seen), succession.Last())
	at, ok := window.Boundary(was, is, after)
	if !ok {
		return fmt.Sprintf("behind %s there is no instant at which windows of both begin", instant(after))
	}
	succession, err := succession.Then(is, at)
	if err != nil {
		return err.Error()
	}
	stand.Succession = &succession
	l.Add(Resolves, fmt.Sprintf("%s, windows: %s → %s, from %s on", l.Name, was, is, instant(at)), "")
	l.Note(fmt.Sprintf("the latest time seen is %s: windows that begin before %s finish as they were, later ones are the new ones", instant(int64(stand.Seen)), instant(at)))
	return ""
}

// allowed notes that windows wait for late records for another time.
func (c *comparison) allowed(l *Line, old, now epoch.Part) {
	was, had := old.Parameters[epoch.AllowedLateness]
	is, has := now.Parameters[epoch.AllowedLateness]
	if was == is {
		return
	}
	l.Add(Resolves, fmt.Sprintf("%s, %s: %s → %s", l.Name, epoch.AllowedLateness, orNone(was, had), orNone(is, has)), "")
	l.Note("holds for windows that have not closed yet; those that have stay closed")
}

func instant(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
