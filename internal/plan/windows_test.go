package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	windows "github.com/sluicestream/sluice/internal/window"
)

const minute = 60e6

// seen has the windows of spend have come to a time.
func seen(micros epoch.Moment) func(m *epoch.Manifest) {
	return func(m *epoch.Manifest) {
		m.Windows = map[string]epoch.Windows{"spend": {Seen: micros, Closed: epoch.NoTime, Late: epoch.NoTime}}
	}
}

// twice has windows of a minute have become such of five at ten minutes, the latest time
// seen being before that; all are closed that end by some time.
func twice(closed epoch.Moment) func(m *epoch.Manifest) {
	return func(m *epoch.Manifest) {
		one, _ := windows.Tumbling(time.Minute, 0)
		five, _ := windows.Tumbling(5*time.Minute, 0)
		s, err := windows.Begin(one).Then(five, 10*minute)
		if err != nil {
			panic(err)
		}
		m.Windows = map[string]epoch.Windows{"spend": {Seen: 9*minute + 1, Closed: closed, Late: epoch.NoTime, Succession: &s}}
	}
}

// unused has nothing stored.
func unused(m *epoch.Manifest) {
	for name, e := range m.State {
		e.Segments = nil
		m.State[name] = e
	}
}

// in is a build whose operator of spend puts records into windows of any kind.
func in(parameters ...string) func(b *build) {
	return func(b *build) {
		timed(b)
		p := part("window", b.Operators["spend"].Inputs, append([]string{"clock", "event"}, parameters...)...)
		p.Times = b.Operators["spend"].Times
		b.Operators["spend"] = p
	}
}

func days(zone string) func(b *build) {
	return in("window", "calendar", "count", "1", "unit", "day", "zone", zone)
}

func sessions(gap string) func(b *build) { return in("window", "session", "gap", gap) }

func hopping(slide string) func(b *build) {
	return in("window", "hopping", "size", "1m0s", "slide", slide, "panes", "shared")
}

// windowed is a build whose operator of spend puts records into windows, with further
// parameters, a name and a value in turn.
func windowed(more ...string) func(b *build) {
	return func(b *build) {
		timed(b)
		p := part("window", b.Operators["spend"].Inputs, append([]string{"window", "tumbling", "size", "1m0s", "clock", "event"}, more...)...)
		p.Times = b.Operators["spend"].Times
		b.Operators["spend"] = p
	}
}

// with is a build of which an operator's parameter is another; "" takes it away.
func with(change func(*build), parameter, value string) func(b *build) {
	return func(b *build) {
		change(b)
		set(b.Operators, "spend", parameter, value)
	}
}

const otherWindows = `: what is stored came of the other`

// windowChanges are those of windows and timers.
var windowChanges = []change{
	{name: "the same windows", before: windowed("allowed lateness", "5s"), after: windowed("allowed lateness", "5s")},
	{name: "windows of another size", before: windowed(), head: seen(7*minute + 1), after: with(windowed(), "size", "5m0s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 1m → tumbling 5m, from 1970-01-01T00:10:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:07:00.000001Z: windows that begin before 1970-01-01T00:10:00Z finish as they were, later ones are the new ones"}},
	{name: "windows of another size, a record standing at an edge", before: windowed(), head: seen(10 * minute), after: with(windowed(), "size", "5m0s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 1m → tumbling 5m, from 1970-01-01T00:15:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:10:00Z: windows that begin before 1970-01-01T00:15:00Z finish as they were, later ones are the new ones"}},
	{name: "windows of another size of what was imported", before: windowed(), after: with(windowed(), "size", "5m0s"),
		want:     []string{`operator spend: refused: spend, windows: tumbling 1m → tumbling 5m: what is stored was brought in, and nothing has been read since: let the build that runs make an epoch first`},
		refusals: []string{"give the state a new name"}},
	{name: "windows of another size before there was one", before: windowed(), head: unused, after: with(windowed(), "size", "5m0s"),
		want: []string{`operator spend: resolves: spend, windows: tumbling 1m → tumbling 5m: nothing has come into one yet`}},
	{name: "days for minutes", before: windowed(), head: seen(-1), after: days("Europe/Berlin"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 1m → 1 day in Europe/Berlin, from 1970-01-01T23:00:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1969-12-31T23:59:59.999999Z: windows that begin before 1970-01-01T23:00:00Z finish as they were, later ones are the new ones"}},
	{name: "windows that change again while the change before is under way", before: with(windowed(), "size", "5m0s"), head: twice(9 * minute), after: with(windowed(), "size", "2m0s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 5m → tumbling 2m, from 1970-01-01T00:20:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:09:00.000001Z: windows that begin before 1970-01-01T00:20:00Z finish as they were, later ones are the new ones"}},
	{name: "windows that change again once the change before is over", before: with(windowed(), "size", "5m0s"), head: twice(30 * minute), after: with(windowed(), "size", "2m0s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 5m → tumbling 2m, from 1970-01-01T00:10:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:09:00.000001Z: windows that begin before 1970-01-01T00:10:00Z finish as they were, later ones are the new ones"}},
	{name: "windows by the clock", before: windowed(), head: seen(0), after: with(windowed(), "clock", "processing"),
		want:     []string{`operator spend: refused: spend, windows: tumbling 1m → tumbling 1m, by the clock: what was found by the one clock can't be compared with the other`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that are moved", before: windowed(), head: seen(0), after: windowed("offset", "10s"),
		want:     []string{`operator spend: refused: spend, windows: tumbling 1m → tumbling 1m, offset 10s: behind 1970-01-01T00:00:00Z there is no instant at which windows of both begin`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that are moved back, and smaller", before: windowed("offset", "10s"), head: seen(0), after: with(windowed(), "size", "50s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling 1m, offset 10s → tumbling 50s, from 1970-01-01T00:04:10Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:00:00Z: windows that begin before 1970-01-01T00:04:10Z finish as they were, later ones are the new ones"}},
	{name: "windows that come early", before: windowed(), after: windowed("firings", "early each 1s, on time and late"),
		want:  []string{`operator spend: resolves: spend, firings: none → "early each 1s, on time and late"`},
		notes: []string{"operator spend: holds from where the watermark stands: a window that has ended by then is put out once more only if a late record changes it"}},
	{name: "windows that wait", before: windowed(), after: windowed("allowed lateness", "5s"),
		want:  []string{`operator spend: resolves: spend, allowed lateness: none → "5s"`},
		notes: []string{"operator spend: holds for windows that have not closed yet; those that have stay closed"}},
	{name: "another gap", before: sessions("30s"), head: seen(0), after: sessions("1m0s"),
		want:  []string{`operator spend: resolves: spend, windows: session with a gap of 30s → session with a gap of 1m`},
		notes: []string{"operator spend: sessions that are open go on: each record reaches as far as the gap that is in force when it is read"}},
	{name: "sessions for windows", before: windowed(), head: seen(0), after: sessions("1m0s"),
		want:     []string{`operator spend: refused: spend, windows: tumbling 1m → session with a gap of 1m: there is no time at which the ones could end and the others begin, whatever the records are`},
		refusals: []string{"give the state a new name"}},
	{name: "other windows that share panes", before: hopping("10s"), head: seen(0), after: hopping("20s"),
		want:     []string{`operator spend: refused: spend, windows: hopping 1m every 10s → hopping 1m every 20s: the panes that windows share are of these windows only`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that share panes", before: windowed(), after: windowed("panes", "shared"),
		want: []string{`operator spend: refused: spend, panes: none → "shared"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "a timer more", before: timed, after: with(timed, "timer flush", "event time")},
	{name: "a timer less", before: with(timed, "timer flush", "event time"), after: timed},
	{name: "a timer that goes by the clock now", before: with(timed, "timer flush", "event time"), after: with(timed, "timer flush", "clock"),
		want: []string{`operator spend: refused: spend, timer flush: "event time" → "clock"` + otherWindows}, refusals: []string{"give the state a new name"}},
}

// TestWindowsTakenOverFromSeveral has a state take over the windows of two operators:
// which of them were put out is known only if both have closed equally far.
func TestWindowsTakenOverFromSeveral(t *testing.T) {
	minutes := func(b *build, operator string) {
		p := part("window", []string{"orders"}, "window", "tumbling", "size", "1m0s", "clock", "event")
		p.Times = []string{"orders"}
		b.Operators[operator] = p
	}
	old, now := firstBuild(), firstBuild()
	for _, b := range []*build{old, now} {
		timed(b)
		minutes(b, "spend")
		minutes(b, "refunds")
	}
	now.without("spend", "spend")
	now.without("refunds", "refunds")
	now.operate("both", "window", "main.both", "main.Order.UserID", "orders")
	minutes(now, "both")
	keep(now, "both", "both", "value", meanings{}, carry.Spec[string, spend]{
		Takes: []carry.Taken[spend]{{Name: "spend"}, {Name: "refunds"}}, Merge: func(a *spend, b spend) { a.Cents += b.Cents },
	})
	for _, c := range []struct {
		refunds epoch.Windows
		refused bool
	}{
		{epoch.Windows{Seen: 9 * minute, Closed: 5 * minute, Late: epoch.NoTime, LateRecords: 2, UntimedRecords: 1}, false},
		{epoch.Windows{Seen: 7 * minute, Closed: 4 * minute, Late: epoch.NoTime}, true},
	} {
		head := firstHead(old)
		seen(7 * minute)(&head)
		head.Windows["spend"] = epoch.Windows{Seen: 7 * minute, Closed: 5 * minute, Late: epoch.NoTime, LateRecords: 3}
		head.Windows["refunds"] = c.refunds
		p := compare(t, old, now, head, change{drop: []string{"pg"}})
		refused := slices.ContainsFunc(p.Refusals(), func(text string) bool { return strings.Contains(text, "windows of several operators") })
		if refused != c.refused {
			t.Errorf("with %+v it is refused: %v, expected %v: %v", c.refunds, refused, c.refused, p.Refusals())
		}
		if got := p.Windows()["both"]; !refused && got != (epoch.Windows{Seen: 9 * minute, Closed: 5 * minute, Late: epoch.NoTime, LateRecords: 5, UntimedRecords: 1}) {
			t.Errorf("the windows of both have come to %+v", got)
		}
	}
}
