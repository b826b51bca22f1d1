package sluice_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// rank is an order of two fields, of which the first is not what sorts the strings
// of them.
type rank struct {
	Score  int32
	Player string
}

func compareRanks(a, b rank) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Player, b.Player))
}

// sortedJob does what it is told with two sorted states, of which one ascends and
// the other descends.
func sortedJob(lowest, highest int) *sluice.Job {
	low := sluice.NewSortedState[string, rank, cell]("low", lowest)
	high := sluice.NewSortedState[string, int64, cell]("high", highest).Descending()
	job := sluice.NewJob("sorting")
	job.From("commands", file.JSONLines[command]("unused.jsonl")).
		KeyBy(func(c command) string { return c.Key }).
		Process(func(p *sluice.Setup[string, answer]) func(*sluice.Context[string, answer], command) {
			low, high := p.Sorted(low), p.Sorted(high)
			return func(c *sluice.Context[string, answer], cmd command) {
				a := doSorted(low, cmd, rankOf(cmd.Element))
				b := doSorted(high, cmd, cmd.Element)
				c.Emit(answer{c.Key(), a + "; " + b})
			}
		}).
		To("answers", file.Append[answer]("unused"))
	return job
}

func rankOf(n int64) rank { return rank{int32(n/4) - 1, strings.Repeat("x", int(n%4))} }

func doSorted[O comparable](s *sluice.Sorted[string, O, cell], c command, order O) string {
	told := ""
	switch c.Op {
	case "put":
		dropped, was := s.Put(order, cell{c.N})
		told = fmt.Sprint(dropped, was)
	case "increase":
		if v := s.Update(order); v != nil {
			v.N += c.N
		}
	case "remove":
		s.Delete(order)
	case "clear":
		s.Clear()
	case "thin": // on the way
		for o, v := range s.All() {
			if v.N%2 == 0 {
				s.Delete(o)
			}
		}
	case "move": // on the way: what is put behind the one in hand is met
		for o, v := range s.All() {
			if told += fmt.Sprint(o, " "); v.N == c.N {
				s.Delete(o)
				s.Put(order, cell{c.N + 1})
			}
		}
	}
	v, ok := s.Read(order)
	first, fv, fok := s.First()
	last, lv, lok := s.Last()
	told += fmt.Sprint("|", v.N, ok, first, fv.N, fok, last, lv.N, lok, s.Len())
	for o, v := range s.All() {
		told += fmt.Sprint(" ", o, "=", v.N)
	}
	return told
}

// ranked is an entry of the model: a slice that is sorted and cut after every change.
type ranked[O comparable] struct {
	order O
	n     int64
}

type sortedModel[O comparable] struct {
	compare func(a, b O) int
	limit   int
	keys    map[string][]ranked[O]
}

func (m *sortedModel[O]) cut(key string) (dropped O, was bool) {
	all := m.keys[key]
	slices.SortFunc(all, func(a, b ranked[O]) int { return m.compare(a.order, b.order) })
	if len(all) > m.limit {
		dropped, was = all[m.limit].order, true
		all = all[:m.limit]
	}
	m.keys[key] = slices.Clip(all)
	return dropped, was
}

func (m *sortedModel[O]) index(key string, order O) int {
	return slices.IndexFunc(m.keys[key], func(r ranked[O]) bool { return r.order == order })
}

func (m *sortedModel[O]) put(key string, order O, n int64) (dropped O, was bool) {
	if i := m.index(key, order); i >= 0 {
		m.keys[key][i].n = n
		return dropped, false
	}
	m.keys[key] = append(m.keys[key], ranked[O]{order, n})
	return m.cut(key)
}

func (m *sortedModel[O]) remove(key string, order O) {
	m.keys[key] = slices.DeleteFunc(m.keys[key], func(r ranked[O]) bool { return r.order == order })
}

func (m *sortedModel[O]) do(c command, order O) string {
	told := ""
	switch c.Op {
	case "put":
		told = fmt.Sprint(m.put(c.Key, order, c.N))
	case "increase":
		if i := m.index(c.Key, order); i >= 0 {
			m.keys[c.Key][i].n += c.N
		}
	case "remove":
		m.remove(c.Key, order)
	case "clear":
		m.keys[c.Key] = nil
	case "thin":
		m.keys[c.Key] = slices.DeleteFunc(m.keys[c.Key], func(r ranked[O]) bool { return r.n%2 == 0 })
	case "move":
		var at *O
		for {
			i := slices.IndexFunc(m.keys[c.Key], func(r ranked[O]) bool { return at == nil || m.compare(r.order, *at) > 0 })
			if i < 0 {
				break
			}
			r := m.keys[c.Key][i]
			at = &r.order
			if told += fmt.Sprint(r.order, " "); r.n == c.N {
				m.remove(c.Key, r.order)
				m.put(c.Key, order, c.N+1)
			}
		}
	}
	all := m.keys[c.Key]
	var read, first, last ranked[O]
	i := m.index(c.Key, order)
	if i >= 0 {
		read = all[i]
	}
	if len(all) > 0 {
		first, last = all[0], all[len(all)-1]
	}
	told += fmt.Sprint("|", read.n, i >= 0, first.order, first.n, len(all) > 0, last.order, last.n, len(all) > 0, len(all))
	for _, r := range all {
		told += fmt.Sprint(" ", r.order, "=", r.n)
	}
	return told
}

// setLimit gives all keys another limit, as another build does.
func (m *sortedModel[O]) setLimit(limit int) {
	m.limit = limit
	for key, all := range m.keys {
		m.keys[key] = all[:min(len(all), limit):min(len(all), limit)]
	}
}

// Random commands, epochs, crashes, shards and changes of the limit: all that sorted
// states tell is what slices tell that are sorted and cut after each command.
func TestSortedStatesAgreeWithAModel(t *testing.T) {
	t.Parallel()
	commands := rapid.Custom(func(t *rapid.T) command {
		return command{
			Key:     fmt.Sprint("key-", rapid.IntRange(0, 3).Draw(t, "key")),
			Op:      rapid.SampledFrom([]string{"put", "put", "put", "put", "put", "put", "increase", "remove", "thin", "move", "clear"}).Draw(t, "op"),
			Element: rapid.Int64Range(0, 15).Draw(t, "element"),
			N:       rapid.Int64Range(0, 5).Draw(t, "n"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		limits := func() (int, int) {
			return rapid.IntRange(1, 4).Draw(rt, "lowest"), rapid.IntRange(1, 6).Draw(rt, "highest")
		}
		lowest, highest := limits()
		low := sortedModel[rank]{compareRanks, lowest, map[string][]ranked[rank]{}}
		high := sortedModel[int64]{func(a, b int64) int { return cmp.Compare(b, a) }, highest, map[string][]ranked[int64]{}}
		test := sluicetest.New(t, sortedJob(lowest, highest))
		var want []answer
		others := false
		for range rapid.IntRange(1, 3).Draw(rt, "epochs") {
			for _, c := range rapid.SliceOfN(commands, 1, 40).Draw(rt, "commands") {
				sluicetest.Feed(test, "commands", c)
				want = append(want, answer{c.Key, low.do(c, rankOf(c.Element)) + "; " + high.do(c, c.Element)})
			}
			stepAnyhow(rt, test)
			if rapid.Bool().Draw(rt, "other limits") {
				if !others { // replays begin at the first epoch
					test.Replay(nil)
				}
				others = true
				lowest, highest := limits()
				test.Options(func(o *sluice.Options) {
					o.Drop, o.Replace = nil, true // it may have run before
					if lowest < low.limit {
						o.Drop = append(o.Drop, "low")
					}
					if highest < high.limit {
						o.Drop = append(o.Drop, "high")
					}
				})
				low.setLimit(lowest)
				high.setLimit(highest)
				test.Replace(sortedJob(lowest, highest)) // which the next step begins with
			}
		}
		if !others {
			test.Replay(nil)
		}
		if got := sluicetest.Rows[answer](test, "answers"); !slices.Equal(got, want) {
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					rt.Fatalf("answer %d of %d:\n got %v\nwant %v", i, len(want), got[min(i, len(got)-1)], want[i])
				}
			}
			rt.Fatalf("%d answers, want %d", len(got), len(want))
		}
	})
}

// top is a job that keeps the payments of each user by their cents.
func top[O comparable](state sluice.SortedState[string, O, visit], order func(payment) O) *sluice.Job {
	job := sluice.NewJob("folding")
	job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
		Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
			top := p.Sorted(state)
			return func(_ *sluice.Context[string, string], p payment) { top.Put(order(p), visit{p.Cents}) }
		}).Discard()
	return job
}

func cents(p payment) int64 { return p.Cents }

func highest(limit int) sluice.SortedState[string, int64, visit] {
	return sluice.NewSortedState[string, int64, visit]("top", limit).Descending()
}

var fivePayments = []payment{{1, "ann", 5}, {2, "bob", 7}, {3, "ann", 11}, {4, "ann", 13}, {5, "ann", 17}}

// A smaller limit drops what is behind it, once that is allowed; a larger one leaves
// the state incomplete; the other order is refused.
func TestSortedLimitChanges(t *testing.T) {
	m := newMigrating(t, top(highest(3), cents), fivePayments...)
	want := map[string]string{`"ann" 11`: `{"Cents":11}`, `"ann" 13`: `{"Cents":13}`, `"ann" 17`: `{"Cents":17}`, `"bob" 7`: `{"Cents":7}`}
	if got := storedState(t, m.st, "folding", "top"); !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	refused := func(job *sluice.Job, part string) {
		t.Helper()
		m.Replace(job)
		var refused *sluice.RefusedError
		if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), part) {
			t.Fatalf("got %v, want a refusal with %q", err, part)
		}
	}
	refused(top(highest(2), cents), "top, limit: 3 → 2: the entries of a key that are behind the new one go: data would be lost; allow it with --drop top")
	refused(top(sluice.NewSortedState[string, int64, visit]("top", 3), cents), "it was descending and is ascending")
	refused(top(sluice.NewSortedState[string, int64, visit]("top", 10), cents), "it was descending and is ascending")

	m.Options(func(o *sluice.Options) { o.Drop = []string{"top"} })
	want = map[string]string{`"ann" 13`: `{"Cents":13}`, `"ann" 17`: `{"Cents":17}`, `"bob" 7`: `{"Cents":7}`, `"zoe" 1`: `{"Cents":1}`}
	m.becomes(top(highest(2), cents), "top", want) // and again with the consent, which is used
	m.Options(func(o *sluice.Options) { o.Drop = nil })
	m.Replace(top(highest(4), cents))
	sluicetest.Feed(m.Test, "payments", payment{10, "ann", 3})
	m.Step()
	want[`"ann" 3`] = `{"Cents":3}`
	if got := storedState(t, m.st, "folding", "top"); !maps.Equal(got, want) {
		t.Fatalf("with a larger limit: got %v, want %v", got, want)
	}
}

// Entries that get other keys, or come from several states, are cut to the limit in
// the new order.
func TestSortedKeysMigrate(t *testing.T) {
	// From the highest to the lowest of what is kept: the author says what it means.
	m := newMigrating(t, top(highest(3), cents), fivePayments...)
	negated := sluice.NewSortedState[string, int32, visit]("top", 2).MigrateKeys(
		func(user string, cents int64, v visit) iter.Seq2[sluice.KeyElement[string, int32], visit] {
			return maps.All(map[sluice.KeyElement[string, int32]]visit{{Key: "all", Element: int32(-cents)}: v})
		}, nil)
	m.Options(func(o *sluice.Options) { o.Drop = []string{"top"} })
	m.becomes(top(negated, func(p payment) int32 { return int32(-p.Cents) }), "top",
		map[string]string{`"all" -17`: `{"Cents":17}`, `"all" -13`: `{"Cents":13}`, `"zoe" -1`: `{"Cents":1}`})

	// Two states become one.
	both := sluice.NewJob("folding")
	both.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
		Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
			odd := p.Sorted(sluice.NewSortedState[string, int64, visit]("odd", 2).Descending())
			all := p.Sorted(sluice.NewSortedState[string, int64, visit]("all", 2).Descending())
			return func(_ *sluice.Context[string, string], p payment) {
				if all.Put(p.Cents, visit{p.Cents}); p.ID%2 == 1 {
					odd.Put(p.Cents-100, visit{-1})
				}
			}
		}).Discard()
	m = newMigrating(t, both, fivePayments...)
	m.becomes(top(highest(3).TakesOver("all").TakesOver("odd").Merge(func(_ *visit, _ visit) {}), cents), "top",
		map[string]string{`"ann" 13`: `{"Cents":13}`, `"ann" 17`: `{"Cents":17}`, `"ann" -83`: `{"Cents":-1}`, `"bob" 7`: `{"Cents":7}`, `"zoe" 1`: `{"Cents":1}`})
}

// Rows that are imported are cut to the limit.
func TestSortedImport(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		state := highest(limit).Import(func(r legacyRow) iter.Seq2[string, map[int64]visit] {
			return maps.All(map[string]map[int64]visit{r.User: {r.Cents: {r.Cents}, r.Cents + 1: {0}}})
		})
		d := newImportDesk(t)
		d.write(t, "top.jsonl", `{"user":"ann","cents":5,"cities":""}
{"user":"bob","cents":7,"cities":""}
{"user":"ann","cents":9,"cities":""}
`)
		d.write(t, "payments.jsonl", "")
		job := top(state, cents)
		if err := job.ReplaceSource("payments", file.JSONLines[payment](filepath.Join(d.dir, "payments.jsonl"))); err != nil {
			t.Fatal(err)
		}
		st := store.NewMemory()
		done, err := job.Import(t.Context(), importOptions(st), sluice.Import{
			Files: []sluice.ImportFile{{State: "top", Path: filepath.Join(d.dir, "top.jsonl")}}, BeginRest: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{`"ann" 10`: `{"Cents":0}`, `"bob" 8`: `{"Cents":0}`}
		if limit > 1 {
			want[`"ann" 9`], want[`"bob" 7`] = `{"Cents":9}`, `{"Cents":7}`
		}
		if limit > 2 {
			want[`"ann" 6`] = `{"Cents":0}`
		}
		if got := storedState(t, st, "folding", "top"); !maps.Equal(got, want) || done.States[0].Entries != int64(len(want)) || done.States[0].Rows != 3 {
			t.Errorf("limit %d: got %v of %+v, want %v", limit, got, done.States[0], want)
		}
	}
}

// A limit of no entries is a fault of the job.
func TestSortedNeedsALimit(t *testing.T) {
	if err := top(highest(0), cents).Check(); err == nil || !strings.Contains(err.Error(), `state "top": a limit of 0`) {
		t.Errorf("got %v", err)
	}
}
