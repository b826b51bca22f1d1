package golden

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// begun is where the seconds of the job windows are counted from, the beginning of a day.
const begun = 1_772_323_200

func instant(n int) sluice.Instant { return sluice.Instant(begun+n) * 1_000_000 }

// ticked is a tick of a second; below 0, of no time.
func ticked(key string, at, n int) string {
	if at < 0 {
		return fmt.Sprintf(`{"Key":%q,"N":%d}`, key, n)
	}
	return fmt.Sprintf(`{"Key":%q,"At":%q,"N":%d}`, key, instant(at), n)
}

// feed appends ticks to one of the files that the job reads.
func (p *place) feed(name string, lines ...string) {
	p.t.Helper()
	f, err := os.OpenFile("in/windows/"+name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// writeWindows has a build of the job be replaced by another one that follows all that
// the first has done since a savepoint: a partition was found, and was idle, and all
// windows were closed. A third takes over in place, whose windows begin while those of the
// second are open.
func writeWindows(p *place) {
	p.t.Helper()
	if err := os.MkdirAll("in/windows", 0o755); err != nil {
		p.t.Fatal(err)
	}
	p.feed("a.jsonl", ticked("m1", 1, 1), ticked("m2", 3, 2), ticked("m1", 5, 3), ticked("m2", -1, 4), ticked("m1", 13, 5))
	p.run(ticking1(false), nil)
	p.saved("before")

	r := p.start(func(ctx context.Context, o sluice.Options) error { return ticking1(true).Run(ctx, o) })
	p.feed("a.jsonl", ticked("m1", 9, 6), ticked("m2", 2, 7))
	p.feed("b.jsonl", ticked("m3", 10, 8))
	r.await(p, "it has read both files", func() bool { return p.hasRead("a.jsonl") && p.hasRead("b.jsonl") })
	<-time.After(3 * idleAfter)
	p.feed("a.jsonl", ticked("m1", 15, 9))
	r.await(p, "it has read on", func() bool { return p.hasRead("a.jsonl") })
	if _, err := p.log().AskDrainTo(p.t.Context(), nil, true, by); err != nil {
		p.t.Fatal(err)
	}
	if err := <-r.ended; err != nil {
		p.t.Fatal(err)
	}

	p.upgrade(ticking2(), sluice.Upgrade{From: "before"}, nil)
	p.feed("a.jsonl", ticked("m1", 19, 10), ticked("m2", 17, 11), ticked("m2", 23, 12))
	p.feed("b.jsonl", ticked("m3", 24, 13))
	p.run(ticking3(), nil)
}

// hasRead tells whether the live branch has read one of the job's files to its end.
func (p *place) hasRead(name string) bool {
	p.t.Helper()
	file, err := os.Stat("in/windows/" + name)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.head().Sources["ticks"].Partitions[name].Next == file.Size()
}

// What the job's states hold at the end, by hand: the windows that began before 20 are the
// second build's, of which one begins every 2 seconds from 16 on, and those that share
// panes are there as panes of 4. Once it has gone on, only what is younger is open.
var (
	tickedAtEnd = held{
		"counted": {
			windowed("m1", 16, 22): sum(1, 10), windowed("m1", 18, 24): sum(1, 10), windowed("m2", 16, 22): sum(1, 11),
			windowed("m2", 18, 24): sum(1, 12), windowed("m2", 20, 25): sum(1, 12), windowed("m3", 20, 25): sum(1, 13),
		},
		"sessions": {windowed("m1", 19, 22): sum(1, 10), windowed("m2", 23, 26): sum(1, 12), windowed("m3", 24, 27): sum(1, 13)},
		"shared":   {windowed("m2", 20, 24): sum(1, 12), windowed("m3", 24, 28): sum(1, 13)},
		"latest": {
			kept("m1", 19): "10", kept("m1", 15): "9", kept("m2", 23): "12", kept("m2", 17): "11", kept("m3", 24): "13", kept("m3", 10): "8",
		},
		"quiet": {`"m1"`: due(29), `"m2"`: due(33), `"m3"`: due(34)},
		"never": {`"m1"`: due(19 + years), `"m2"`: due(23 + years), `"m3"`: due(24 + years)},
	}
	tickedGoneOn = held{
		"counted":  {windowed("m4", 50, 55): sum(1, 14), windowed("m5", 50, 55): sum(1, 15)},
		"sessions": {windowed("m4", 50, 53): sum(1, 14), windowed("m5", 51, 54): sum(1, 15)},
		"shared":   {windowed("m4", 48, 52): sum(1, 14), windowed("m5", 48, 52): sum(1, 15)},
		"quiet":    {`"m4"`: due(60), `"m5"`: due(61)},
	}
)

const years = int(century / 1e6) // in seconds

func windowed(key string, start, end int) string {
	return fmt.Sprintf(`%q {"start":%q,"end":%q}`, key, instant(start), instant(end))
}

func kept(key string, at int) string { return fmt.Sprintf("%q %q", key, instant(at)) }

func due(at int) string { return fmt.Sprintf(`{"at":%q,"order":0}`, instant(at)) }

// spans are what the sink of that name holds once the job has gone on, by hand: the
// windows of an operator and key from start to end, with the number of their ticks and
// the sum of these. m1 at 9 came too late for its session, m2 at 2 for all windows (but
// its timer goes by it), m2 at 17 for a session; what shares panes was closed up to 20.
var spans = []string{
	"counted m1 0-4: 1, 1", "counted m1 4-8: 1, 3", "counted m1 8-12: 1, 6", "counted m1 12-16: 2, 14", "counted m1 16-22: 1, 10", "counted m1 18-24: 1, 10",
	"counted m2 0-4: 1, 2", "counted m2 16-22: 1, 11", "counted m2 18-24: 1, 12", "counted m2 20-25: 1, 12",
	"counted m3 8-12: 1, 8", "counted m3 20-25: 1, 13",
	"quiet m1 19-29: 0, 0", "quiet m2 2-12: 0, 0", "quiet m2 23-33: 0, 0", "quiet m3 10-20: 0, 0", "quiet m3 24-34: 0, 0",
	"sessions m1 1-10: 2, 4", "sessions m1 13-20: 2, 14", "sessions m1 19-22: 1, 10", "sessions m2 3-8: 1, 2", "sessions m2 23-26: 1, 12",
	"sessions m3 10-15: 1, 8", "sessions m3 24-27: 1, 13",
	"shared m1 -4-4: 1, 1", "shared m1 0-8: 2, 4", "shared m1 4-12: 2, 9", "shared m1 8-16: 3, 20", "shared m1 12-20: 2, 14",
	"shared m2 -4-4: 1, 2", "shared m2 0-8: 1, 2", "shared m2 16-24: 1, 12", "shared m2 20-28: 1, 12",
	"shared m3 4-12: 1, 8", "shared m3 8-16: 1, 8", "shared m3 20-28: 1, 13", "shared m3 24-32: 1, 13",
}

// readWindows reads what the job's states hold, and closes all of it by what comes later.
func readWindows(p *place) {
	p.t.Helper()
	p.check(p.head(), tickedAtEnd)
	p.checkTimes()
	p.feed("a.jsonl", ticked("m4", 50, 14))
	p.feed("b.jsonl", ticked("m5", 51, 15))
	p.run(ticking3(), nil)
	p.check(p.head(), tickedGoneOn)
	if got := readLines(p, "windows-spans", spanText); !slices.Equal(got, slices.Sorted(slices.Values(spans))) {
		p.t.Errorf("the sink spans has %q", got)
	}
	if got := readLines(p, "windows-late", func(t tick) string { return fmt.Sprint(t.N) }); !slices.Equal(got, []string{"4", "7"}) {
		p.t.Errorf("the sink late has %v", got)
	}
	open := p.table("windows-open")
	for key, want := range map[string]string{
		`{"key":"m1","window":{"start":"2026-03-01T00:00:12Z","end":"2026-03-01T00:00:16Z"}}`: sum(2, 14),
		`{"key":"m2","window":{"start":"2026-03-01T00:00:20Z","end":"2026-03-01T00:00:25Z"}}`: sum(1, 12),
	} {
		if open[key] != want {
			p.t.Errorf("the sink open has %q for %s, want %s", open[key], key, want)
		}
	}
	if len(open) != 14 {
		p.t.Errorf("the sink open has %d rows, want one for each window that ever was, 14", len(open))
	}
}

func spanText(s span) string {
	return fmt.Sprintf("%s %s %d-%d: %d, %d", s.Of, s.Key, int(s.Start/1e6)-begun, int(s.End/1e6)-begun, s.Readings, s.Sum)
}

// readLines are texts of what a sink has been given, sorted.
func readLines[R any](p *place, sink string, textOf func(R) string) (all []string) {
	p.t.Helper()
	for _, line := range p.lines(sink) {
		var row R
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			p.t.Fatalf("sink %s: %s: %v", sink, line, err)
		}
		all = append(all, textOf(row))
	}
	slices.Sort(all)
	return all
}

// checkTimes reads what the manifests say of times: of the first build's, those that were
// read while it ran are those that the second covers, step by step.
func (p *place) checkTimes() {
	p.t.Helper()
	saved := p.savepoint("before").Tasks[epoch.FirstTask]
	covered := slices.DeleteFunc(p.data("main"), func(m epoch.Manifest) bool { return m.Epoch <= saved })
	lives := p.lives()
	steps := p.data(lives[1].Branch)[0].Steps
	if len(covered) != len(steps) {
		p.t.Fatalf("%d epochs are covered in %d steps", len(covered), len(steps))
	}
	found, idle, advanced := 0, 0, 0
	for i, m := range covered {
		step := steps[i]
		if !maps.EqualFunc(step.Idle, m.Idle, slices.Equal) || !maps.Equal(step.Advanced, m.Advanced) {
			p.t.Errorf("epoch %d has the idle partitions %v and moves watermarks to %v, its step %v and %v", m.Epoch, m.Idle, m.Advanced, step.Idle, step.Advanced)
		}
		found += len(step.Found)
		if slices.Equal(m.Idle["ticks"], []string{"ticks/b.jsonl"}) {
			idle++
		}
		if m.Advanced["ticks"] == moment(20) {
			advanced++
		}
	}
	if found != 1 || idle == 0 || advanced != 1 {
		p.t.Errorf("%d partitions were found, %d epochs have an idle one, and %d move the watermark, want one of each", found, idle, advanced)
	}

	head := p.head()
	want := map[string]epoch.Windows{
		"counted":  {Seen: moment(24), Closed: moment(20), Late: epoch.NoTime, LateRecords: 1, UntimedRecords: 1},
		"sessions": {Seen: moment(24), Closed: moment(21), Late: moment(6), LateRecords: 3, UntimedRecords: 1},
		"shared":   {Seen: moment(24), Closed: moment(21), Late: epoch.NoTime, LateRecords: 3, UntimedRecords: 1},
	}
	for operator, want := range want {
		got := head.Windows[operator]
		if got.Succession = nil; got != want {
			p.t.Errorf("the windows of %s are %+v, want %+v", operator, got, want)
		}
	}
	counted, err := json.Marshal(head.Windows["counted"].Succession)
	if want := fmt.Sprintf(`{"from":%d,"parts":[{"parameters":{"clock":"event","size":"6s","slide":"2s","window":"hopping"},"until":%d},{"parameters":{"clock":"event","size":"5s","window":"tumbling"}}]}`, moment(16), moment(20)); err != nil || string(counted) != want {
		p.t.Errorf("the windows of counted are %s, %v, want %s", counted, err, want)
	}
	if at := head.Watermarks["ticks"]; at.Watermark != moment(21) || at.Partitions["ticks"]["b.jsonl"] != (epoch.PartitionTime{Watermark: moment(22), Seen: moment(24)}) {
		p.t.Errorf("the watermark is %+v", at)
	}
}

func moment(second int) epoch.Moment { return epoch.Moment(instant(second)) }
