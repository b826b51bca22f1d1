package plan_test

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
	{name: "windows of another size", before: windowed(), after: with(windowed(), "size", "5m0s"),
		want: []string{`operator spend: refused: spend, size: "1m0s" → "5m0s"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "windows by the clock", before: windowed(), after: with(windowed(), "clock", "processing"),
		want: []string{`operator spend: refused: spend, clock: "event" → "processing"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "windows that are moved", before: windowed(), after: windowed("offset", "10s"),
		want: []string{`operator spend: refused: spend, offset: none → "10s"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "windows that are moved back", before: windowed("offset", "10s"), after: windowed(),
		want: []string{`operator spend: refused: spend, offset: "10s" → none` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "windows that wait", before: windowed(), after: windowed("allowed lateness", "5s"),
		want: []string{`operator spend: refused: spend, allowed lateness: none → "5s"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "windows that share panes", before: windowed(), after: windowed("panes", "shared"),
		want: []string{`operator spend: refused: spend, panes: none → "shared"` + otherWindows}, refusals: []string{"give the state a new name"}},
	{name: "a timer more", before: timed, after: with(timed, "timer flush", "event time")},
	{name: "a timer less", before: with(timed, "timer flush", "event time"), after: timed},
	{name: "a timer that goes by the clock now", before: with(timed, "timer flush", "event time"), after: with(timed, "timer flush", "clock"),
		want: []string{`operator spend: refused: spend, timer flush: "event time" → "clock"` + otherWindows}, refusals: []string{"give the state a new name"}},
}
