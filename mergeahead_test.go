package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// pile is a bag in order, which is the same however its ticks were divided.
type pile struct{ IDs []int64 }

func (p *pile) add(t tick) {
	at, _ := slices.BinarySearch(p.IDs, t.ID)
	p.IDs = slices.Insert(p.IDs, at, t.ID)
}

func (p *pile) merge(other *pile) {
	for _, id := range other.IDs {
		p.add(tick{ID: id})
	}
}

func pileRow(r sluice.Result[string, pile]) windowed {
	return windowed{r.Key, r.Window.Start, r.Window.End, r.Value.IDs}
}

// A tick comes in a few parts. Of some, which come in many, the last one can't be used, and
// others can't be used by somebody else.
func partsOf(t tick) (parts []tick) {
	count := 1 + uint64(t.ID)%3
	if isBad(t) {
		count += 20
	}
	for n := range count {
		part := t
		part.ID = t.ID*100 + int64(n)
		parts = append(parts, part)
	}
	return parts
}

func isBad(t tick) bool      { return uint64(t.ID)%13 == 5 }
func isUnwanted(t tick) bool { return uint64(t.ID)%13 == 7 }

func split(t tick) iter.Seq[tick] { return slices.Values(partsOf(t)) }

func checkPart(part tick) (tick, error) {
	whole := tick{ID: part.ID / 100}
	if last := partsOf(whole); isBad(whole) && part.ID == last[len(last)-1].ID {
		return part, errors.New("the last part is bad")
	}
	return part, nil
}

func checkUnwanted(part tick) (tick, error) {
	if isUnwanted(tick{ID: part.ID / 100}) {
		return part, errors.New("nobody wants it")
	}
	return part, nil
}

// aheadJob has windows twice, merged ahead and not: way says how the records come to them.
func aheadJob(dir string, k kind, lateness, allowed time.Duration, way string) *sluice.Job {
	job := sluice.NewJob("ahead")
	parts := job.From("ticks", file.JSONLines[tick]("unused.jsonl")).EventTime(tick.time, lateness).FlatMap(split).TryMap(checkPart)
	stream := parts
	if way == "behind another key" {
		stream = parts.KeyBy(func(t tick) int64 { return t.ID % 7 }).Values()
	}
	keyed := stream.KeyBy(tick.key)
	other := keyed
	if way == "alone" {
		other = stream.KeyBy(tick.key)
	}
	options := []sluice.WindowOption{sluice.AllowedLateness(allowed)}
	plain := other.Window(k.windows, options...)
	plain.Late().To("late", file.Append[tick](dir+"/late"))
	plain.FoldMerge(sluice.NewState[sluice.In[string], pile]("plain"), (*pile).add, (*pile).merge).
		Results().Map(pileRow).To("plain", file.Append[windowed](dir+"/plain"))
	table := keyed.Window(k.windows, append(options, sluice.MergeAhead())...).
		FoldMerge(sluice.NewState[sluice.In[string], pile]("ahead"), (*pile).add, (*pile).merge)
	table.Results().Map(pileRow).To("results", file.Append[windowed](dir+"/results"))
	if !k.shared {
		table.To("table", file.Upsert(dir+"/table", func(k sluice.In[string], p pile) windowed {
			return windowed{k.Key, k.Window.Start, k.Window.End, p.IDs}
		}))
	}
	parts.TryMap(checkUnwanted).Discard()
	job.DeadLetter("dead", file.Append[sluice.DeadLetter](dir+"/dead"))
	return job
}

// aheadKinds are the kinds of windows whose records can be merged ahead.
func aheadKinds() []kind {
	kinds := slices.DeleteFunc(kinds(), func(k kind) bool { return !k.merged })
	return append(kinds,
		kind{"function", sluice.WindowsBy("several", several), true, false, assigned(severalOf)},
		kind{"clock", sluice.Tumbling(20 * time.Millisecond).OnClock(), true, false, nil},
		kind{"clock, shared", sluice.Hopping(20*time.Millisecond, 5*time.Millisecond).OnClock(), true, true, nil})
}

// severalOf are windows of a function: of one second, and of three where the time is in the
// first three of four.
func severalOf(at int64) [][2]int64 {
	cycle := at - (at%(4*second)+4*second)%(4*second)
	start := at - (at%second+second)%second
	if at < cycle+3*second {
		return [][2]int64{{cycle, cycle + 3*second}, {start, start + second}}
	}
	return [][2]int64{{start, start + second}}
}

func several(t sluice.Instant) iter.Seq[sluice.Window] {
	return func(yield func(sluice.Window) bool) {
		for _, w := range severalOf(int64(t)) {
			if !yield(sluice.Window{Start: sluice.Instant(w[0]), End: sluice.Instant(w[1])}) {
				return
			}
		}
	}
}

// TestMergedAhead feeds ticks out of order, some too late, some without a time and some
// that become dead letters when a part of them has been put out, with crashes and epochs
// anywhere: what windows come to is what a batch says over all that was not late, and as
// many are counted as late as where nothing is merged ahead.
func TestMergedAhead(t *testing.T) {
	for _, k := range aheadKinds() {
		for _, way := range []string{"alone", "beside others", "behind another key"} {
			t.Run(k.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				var allowed time.Duration
				if k.batch != nil && len(way)%2 == 0 { // not by the clock
					allowed = 2500 * time.Millisecond
				}
				test := newTicking(t, aheadJob(dir, k, 2*time.Second, allowed, way))
				test.steps(12)
				test.end()
				late := map[int64]bool{}
				for _, l := range sluicetest.Rows[tick](test.Test, "late") {
					late[l.ID] = true
				}
				var kept []tick
				dead := 0
				for _, x := range test.all {
					if isBad(x) || isUnwanted(x) {
						dead++
						continue
					}
					for _, part := range partsOf(x) {
						if !late[part.ID] {
							kept = append(kept, part)
						}
					}
				}
				if n := len(sluicetest.Rows[sluice.DeadLetter](test.Test, "dead")); n != dead {
					t.Errorf("%d dead letters, want %d", n, dead)
				}
				t.Logf("%d ticks, %d parts kept, %d late", len(test.all), len(kept), len(late))
				got := withoutEnd(sluicetest.Rows[windowed](test.Test, "results"))
				compareWindows(t, "results beside those that were not merged ahead", got, withoutEnd(sluicetest.Rows[windowed](test.Test, "plain")))
				if k.batch != nil {
					want := sorted(k.batch(kept))
					compareWindows(t, "results", got, want)
					if !k.shared {
						compareWindows(t, "table", sorted(tableRows(test.Test)), want)
					}
				}
				sameCounts(t, test)
				test.Replay(func(o *sluice.Options) {
					o.Shards, o.Workers, o.BatchRecords = 1+test.r.IntN(5), 1+test.r.IntN(3), 1+test.r.IntN(20)
				})
			})
		}
	}
}

// withoutEnd is rows in an order of their own, without those of the key that ends it all.
func withoutEnd(rows []windowed) []windowed {
	return sorted(slices.DeleteFunc(rows, func(w windowed) bool { return w.Key == "end" }))
}

// sameCounts compares what the manifests tell of the two operators.
func sameCounts(t *testing.T, test *ticking) {
	t.Helper()
	counts := map[string]int64{}
	var last *epoch.Manifest
	for m := range manifests(t, test.Test, "ahead") {
		for name, n := range m.Counts {
			counts[name] += n
		}
		last = m
	}
	for _, what := range []string{"late.", "untimed."} {
		if got, want := counts[what+"ahead"], counts[what+"plain"]; got != want {
			t.Errorf("%d are counted as %sahead, and %d as %splain", got, what, want, what)
		}
	}
	if got, want := last.WindowsOf("ahead"), last.WindowsOf("plain"); got.Seen != want.Seen || got.Closed != want.Closed {
		t.Errorf("the windows have come to %+v, and to %+v where nothing is merged ahead", got, want)
	}
}

// manifests are those of a job so far.
func manifests(t *testing.T, test *sluicetest.Test, name string) iter.Seq[*epoch.Manifest] {
	t.Helper()
	var st store.Store
	test.Options(func(o *sluice.Options) { st = o.Store })
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, env.Real(), st, name)
	if err != nil {
		t.Fatal(err)
	}
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*epoch.Manifest) bool) {
		for m, err := range job.Manifests(ctx, epoch.MainBranch, epoch.FirstTask, 1, head.Manifest.Epoch) {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(&m) {
				return
			}
		}
	}
}

// touchy is a tally that fails for some ticks, half way.
type touchy struct{ Ticks, Sum int64 }

func (c *touchy) add(t tick) {
	c.Ticks++
	if t.ID == 13 {
		panic("thirteen")
	}
	c.Sum += t.ID
}

func (c *touchy) merge(other *touchy) {
	c.Ticks += other.Ticks
	if c.Sum += other.Sum; c.Sum > 1000 {
		panic("too much")
	}
}

// touchyJob tallies ticks by the window, each of them behind one of the number 1.
func touchyJob(dir string, opts ...sluice.WindowOption) *sluice.Job {
	job := sluice.NewJob("tally")
	job.From("ticks", file.JSONLines[tick]("unused.jsonl")).EventTime(tick.time, 0).
		FlatMap(func(t tick) iter.Seq[tick] { return slices.Values([]tick{{ID: 1, Key: t.Key}, t}) }).
		KeyBy(tick.key).
		Window(sluice.Tumbling(4*time.Second), opts...).
		FoldMerge(sluice.NewState[sluice.In[string], touchy]("tally"), (*touchy).add, (*touchy).merge).
		To("tally", file.Upsert(dir+"/tally", func(in sluice.In[string], c touchy) touchy { return c }))
	job.DeadLetter("dead", file.Append[sluice.DeadLetter](dir+"/dead"))
	return job
}

func tallies(test *sluicetest.Test) string {
	sums := map[string]touchy{}
	for in, c := range sluicetest.Table[sluice.In[string], touchy](test, "tally") {
		sum := sums[in.Key]
		sums[in.Key] = touchy{sum.Ticks + c.Ticks, sum.Sum + c.Sum}
	}
	return fmt.Sprint(sums)
}

// TestAFoldAheadThatFails has a fold fail half way, when another part of its record and
// other records have been folded: the record becomes a dead letter, and leaves nothing
// behind; so does one whose time no window can hold.
func TestAFoldAheadThatFails(t *testing.T) {
	test := sluicetest.New(t, touchyJob(t.TempDir(), sluice.MergeAhead()))
	test.Options(func(o *sluice.Options) { o.Shards, o.Workers = 2, 1 })
	sluicetest.Feed(test, "ticks", tick{2, "ann", 5, false}, tick{13, "bob", 5, false}, tick{4, "bob", 6, false},
		tick{5, "ann", sluice.Instant(1<<63 - 1), false}, tick{6, "ann", 7, false}, tick{13, "ann", 7, false})
	test.Step()
	if got, want := tallies(test), "map[ann:{4 10} bob:{2 5}]"; got != want {
		t.Errorf("the tallies are %s, want %s", got, want)
	}
	var letters []string
	for _, l := range sluicetest.Rows[sluice.DeadLetter](test, "dead") {
		letters = append(letters, fmt.Sprint(l.Offset, " ", l.Operator, " ", l.Key, " ", strings.SplitN(l.Error, "\n", 2)[0]))
	}
	if got, want := strings.Join(letters, "; "), "1 tally bob panic: thirteen; 3 tally  time 9223372036854775807: its tumbling windows would leave the times that 64 bits of microseconds can tell; 5 tally ann panic: thirteen"; got != want {
		t.Errorf("the dead letters are %s, want %s", got, want)
	}
}

// TestAMergeAheadThatFails has a merge fail in a shard: that is the fault of no
// record, of which those that were merged could all be dropped, one by one.
func TestAMergeAheadThatFails(t *testing.T) {
	test := sluicetest.New(t, touchyJob(t.TempDir(), sluice.MergeAhead()))
	test.Options(func(o *sluice.Options) { o.BatchRecords = 1 })
	sluicetest.Feed(test, "ticks", tick{2, "ann", 5, false}, tick{999, "bob", 5, false}, tick{999, "bob", 6, false})
	err := test.Try()
	var state *sluice.StateError
	if !errors.As(err, &state) || state.State != "tally" || state.Key != "bob" || !strings.Contains(err.Error(), "too much") {
		t.Errorf("the error is %v, want a StateError of tally and bob", err)
	}
}

// TestMergedAheadNowAndThen has builds follow one another that merge ahead and don't: they
// are one version, whose state goes on.
func TestMergedAheadNowAndThen(t *testing.T) {
	dir := t.TempDir()
	test := sluicetest.New(t, touchyJob(dir))
	for n := range 4 {
		if n%2 == 1 {
			test.Replace(touchyJob(dir, sluice.MergeAhead()))
		} else {
			test.Replace(touchyJob(dir))
		}
		sluicetest.Feed(test, "ticks", tick{2, "ann", sluice.Instant(n), false}, tick{3, "bob", 6, false}, tick{4, "ann", 7, false})
		test.Step()
	}
	if got, want := tallies(test), "map[ann:{16 32} bob:{8 16}]"; got != want {
		t.Errorf("the tallies are %s, want %s", got, want)
	}
	versions := map[string]bool{}
	for m := range manifests(t, test, "tally") {
		versions[m.Build.Version] = true
	}
	if len(versions) != 1 {
		t.Errorf("%d versions have written the state, want 1", len(versions))
	}
	test.Replay(nil)
	test.Replace(touchyJob(dir))
	test.Replay(nil)
}

// TestWindowsThatChangeMergedAhead changes windows while some are open: those whose records
// are merged ahead come to what the others do.
func TestWindowsThatChangeMergedAhead(t *testing.T) {
	for name, windows := range map[string]func(n int64) sluice.Windows{
		"tumbling": func(n int64) sluice.Windows { return sluice.Tumbling(micros((2 + 2*n) * second)) },
		"session":  func(n int64) sluice.Windows { return sluice.Session(micros((1 + n) * second)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := func() *sluice.Job {
				return aheadJob(dir, kind{windows: windows(rand.Int64N(3))}, 2*time.Second, time.Duration(rand.Int64N(3))*1500*time.Millisecond, "alone")
			}
			test := newTicking(t, job())
			for range 5 {
				test.Replace(job())
				test.steps(2 + test.r.IntN(3))
			}
			test.end()
			plain := withoutEnd(sluicetest.Rows[windowed](test.Test, "plain"))
			t.Logf("%d windows", len(plain))
			compareWindows(t, "results", withoutEnd(sluicetest.Rows[windowed](test.Test, "results")), plain)
			sameCounts(t, test)
		})
	}
}
