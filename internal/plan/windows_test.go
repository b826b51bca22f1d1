package plan_test

import "github.com/sluicestream/sluice/internal/epoch"

const minute = 60e6

// seen has the windows of spend have come to a time.
func seen(micros epoch.Moment) func(m *epoch.Manifest) {
	return func(m *epoch.Manifest) {
		m.Windows = map[string]epoch.Windows{"spend": {Seen: micros, Closed: epoch.NoTime, Late: epoch.NoTime}}
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
		want:  []string{`operator spend: resolves: spend, windows: tumbling, size 1m0s → tumbling, size 5m0s, from 1970-01-01T00:10:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:07:00.000001Z: windows that begin before 1970-01-01T00:10:00Z finish as they were, later ones are the new ones"}},
	{name: "windows of another size, a record standing at an edge", before: windowed(), head: seen(10 * minute), after: with(windowed(), "size", "5m0s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling, size 1m0s → tumbling, size 5m0s, from 1970-01-01T00:15:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:10:00Z: windows that begin before 1970-01-01T00:15:00Z finish as they were, later ones are the new ones"}},
	{name: "windows of another size before there was one", before: windowed(), after: with(windowed(), "size", "5m0s"),
		want: []string{`operator spend: resolves: spend, windows: tumbling, size 1m0s → tumbling, size 5m0s: nothing has come into one yet`}},
	{name: "days for minutes", before: windowed(), head: seen(-1), after: days("Europe/Berlin"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling, size 1m0s → calendar, count 1, unit day, zone Europe/Berlin, from 1970-01-01T23:00:00Z on`},
		notes: []string{"operator spend: the latest time seen is 1969-12-31T23:59:59.999999Z: windows that begin before 1970-01-01T23:00:00Z finish as they were, later ones are the new ones"}},
	{name: "windows by the clock", before: windowed(), head: seen(0), after: with(windowed(), "clock", "processing"),
		want:     []string{`operator spend: refused: spend, windows: tumbling, size 1m0s → tumbling, clock processing, size 1m0s: what was found by the one clock can't be compared with the other`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that are moved", before: windowed(), head: seen(0), after: windowed("offset", "10s"),
		want:     []string{`operator spend: refused: spend, windows: tumbling, size 1m0s → tumbling, offset 10s, size 1m0s: behind 1970-01-01T00:00:00Z there is no instant at which windows of both begin`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that are moved back, and smaller", before: windowed("offset", "10s"), head: seen(0), after: with(windowed(), "size", "50s"),
		want:  []string{`operator spend: resolves: spend, windows: tumbling, offset 10s, size 1m0s → tumbling, size 50s, from 1970-01-01T00:04:10Z on`},
		notes: []string{"operator spend: the latest time seen is 1970-01-01T00:00:00Z: windows that begin before 1970-01-01T00:04:10Z finish as they were, later ones are the new ones"}},
	{name: "windows that wait", before: windowed(), after: windowed("allowed lateness", "5s"),
		want:  []string{`operator spend: resolves: spend, allowed lateness: none → "5s"`},
		notes: []string{"operator spend: holds for windows that have not closed yet; those that have stay closed"}},
	{name: "another gap", before: sessions("30s"), head: seen(0), after: sessions("1m0s"),
		want:  []string{`operator spend: resolves: spend, windows: session, gap 30s → session, gap 1m0s`},
		notes: []string{"operator spend: sessions that are open go on: each record reaches as far as the gap that is in force when it is read"}},
	{name: "sessions for windows", before: windowed(), head: seen(0), after: sessions("1m0s"),
		want:     []string{`operator spend: refused: spend, windows: tumbling, size 1m0s → session, gap 1m0s: there is no time at which the ones could end and the others begin, whatever the records are`},
		refusals: []string{"give the state a new name"}},
	{name: "other windows that share panes", before: hopping("10s"), head: seen(0), after: hopping("20s"),
		want:     []string{`operator spend: refused: spend, windows: hopping, size 1m0s, slide 10s → hopping, size 1m0s, slide 20s: the panes that windows share are of these windows only`},
		refusals: []string{"give the state a new name"}},
	{name: "windows that share panes", before: windowed(), after: windowed("panes", "shared"),
		want: []string{`operator spend: refused: spend, panes: none → "shared"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "a timer more", before: timed, after: with(timed, "timer flush", "event time")},
	{name: "a timer less", before: with(timed, "timer flush", "event time"), after: timed},
	{name: "a timer that goes by the clock now", before: with(timed, "timer flush", "event time"), after: with(timed, "timer flush", "clock"),
		want: []string{`operator spend: refused: spend, timer flush: "event time" → "clock"` + otherWindows}, refusals: []string{"give the state a new name"}},
}
