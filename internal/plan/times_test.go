package plan_test

import "github.com/sluicestream/sluice/internal/epoch"

// timed gives a build event times: of orders, kept 5s behind, and of clicks, by which
// a window goes as well.
func timed(b *build) {
	b.Times = map[string]epoch.Part{
		"orders": part(epoch.TimeKind, []string{"orders"}, "from", "record", "lateness", "5s", "max ahead", "24h0m0s"),
		"clicks": part(epoch.TimeKind, []string{"clicks"}, "from", "source", "lateness", "0s"),
	}
	b.Functions["orders time"] = "main.Order.Placed"
	p := b.Operators["spend"]
	p.Times = []string{"orders"}
	b.Operators["spend"] = p
}

// retimed is a build with event times of which one has another parameter; "" takes it
// away.
func retimed(name, parameter, value string) func(b *build) {
	return func(b *build) {
		timed(b)
		set(b.Times, name, parameter, value)
	}
}

// at3 has the watermark of orders stand at three seconds past 1970.
func at3(m *epoch.Manifest) {
	m.Watermarks = map[string]epoch.EventTime{"orders": {Watermark: 3e6}, "clicks": {Watermark: epoch.NoTime}}
}

// timeChanges are those of event times.
var timeChanges = []change{
	{name: "the same event times", before: timed, after: timed},
	{name: "event time comes to be", after: timed,
		notes: []string{"time orders: new; what goes by it has no watermark, and closes nothing, until each partition that it comes of has had a time, or is idle"}},
	{name: "event time goes", before: timed, after: func(b *build) {
		timed(b)
		delete(b.Times, "clicks")
	}, notes: []string{"time clicks: gone; its watermark is dropped, and nothing else"}},
	{name: "event time under another name", before: timed, after: func(b *build) {
		timed(b)
		b.Times["clicked"] = b.Times["clicks"]
		delete(b.Times, "clicks")
	}, notes: []string{
		"time clicks: gone; its watermark is dropped, and nothing else",
		"time clicked: new; what goes by it has no watermark, and closes nothing, until each partition that it comes of has had a time, or is idle",
		"time clicked: if it is clicks under another name, name it clicks with TimeName: so its watermark goes on",
	}},
	{name: "a larger lateness", before: timed, head: at3, after: retimed("orders", "lateness", "1m0s"),
		want:  []string{`time orders: resolves: orders, lateness: "5s" → "1m0s"`},
		notes: []string{"time orders: the watermark is 1970-01-01T00:00:03Z, and never goes back: it stays there until each partition has had a time 1m0s ahead of its own"}},
	{name: "a smaller lateness", before: timed, head: at3, after: retimed("orders", "lateness", "900ms"),
		want:  []string{`time orders: resolves: orders, lateness: "5s" → "900ms"`},
		notes: []string{"time orders: the watermark is 1970-01-01T00:00:03Z, and never goes back: with the next batch of each partition it moves ahead, and records may be late that 5s had waited for"}},
	{name: "another lateness before there is a watermark", before: timed, head: at3, after: retimed("clicks", "lateness", "1s"),
		want:  []string{`time clicks: resolves: clicks, lateness: "0s" → "1s"`},
		notes: []string{"time clicks: holds for what is read from now on"}},
	{name: "no bound of times ahead", before: timed, after: retimed("orders", "max ahead", ""),
		want:  []string{`time orders: resolves: orders, max ahead: "24h0m0s" → none`},
		notes: []string{"time orders: holds for what is read from now on; times that have moved the watermark have moved it"}},
	{name: "idle partitions", before: timed, after: retimed("orders", "idle after", "10s"),
		want: []string{`time orders: resolves: orders, idle after: none → "10s"`}, notes: []string{"time orders: holds from the next epoch on"}},
	{name: "a generator in the place of the lateness", before: timed, after: func(b *build) {
		timed(b)
		set(b.Times, "orders", "lateness", "")
		set(b.Times, "orders", "generator", "main.next")
	}, want: []string{`time orders: resolves: orders, generator: none → "main.next" | orders, lateness: "5s" → none`},
		notes: []string{"time orders: goes on from the watermarks that there are, which never go back, with the next batch of each partition"}},
	{name: "a generator whose package moved", before: retimed("orders", "generator", "main.next"), after: retimed("orders", "generator", "times.next")},
	{name: "the source's time", before: timed, after: retimed("orders", "from", "source"),
		want: []string{`time orders: resolves: orders, from: "record" → "source"`}},
	{name: "a time function of another name", before: timed, after: func(b *build) {
		timed(b)
		b.Functions["orders time"] = "main.Order.Paid"
	}, notes: []string{"time orders: its function is main.Order.Paid, and was main.Order.Placed"}},
	{name: "event time of other sources", before: timed, after: func(b *build) {
		timed(b)
		inputs(b.Times, "orders", "clicks")
	}, notes: []string{
		"time orders: it comes no more of orders, whose partitions hold its watermark back no more",
		"time orders: it comes of clicks as well, each partition of which holds its watermark where it is until it has had a time, or is idle",
	}},
	{name: "windows that go by more", before: timed, after: func(b *build) {
		timed(b)
		p := b.Operators["spend"]
		p.Times = []string{"orders", "clicks"}
		b.Operators["spend"] = p
	}, want: []string{"operator spend: resolves: spend, event time: orders → orders, clicks"},
		notes: []string{"operator spend: its watermark is the least of orders, clicks, and may lie behind what it was: what has closed stays closed"}},
}
