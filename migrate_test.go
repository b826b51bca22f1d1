package sluice_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state/statetest"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// storedState is what a job's newest epoch holds of a state.
func storedState(t *testing.T, st store.Store, job, name string) map[string]string {
	t.Helper()
	return statetest.Values(t, st, job, statetest.Head(t, st, job), name)
}

// migrating feeds payments to one build and goes on with another.
type migrating struct {
	*sluicetest.Test
	t  *testing.T
	st store.Store
}

func newMigrating(t *testing.T, first *sluice.Job, payments ...payment) *migrating {
	m := &migrating{Test: sluicetest.New(t, first), t: t}
	m.Options(func(o *sluice.Options) { m.st = o.Store })
	sluicetest.Feed(m.Test, "payments", payments...)
	m.Step()
	return m
}

// becomes goes on with another build, one more payment of zoe's 1 cent, and
// compares a state.
func (m *migrating) becomes(job *sluice.Job, name string, want map[string]string) {
	m.t.Helper()
	m.Replace(job)
	sluicetest.Feed(m.Test, "payments", payment{9, "zoe", 1})
	m.Step()
	if got := storedState(m.t, m.st, job.Name(), name); !maps.Equal(got, want) {
		m.t.Fatalf("state %s:\n got %v\nwant %v", name, got, want)
	}
	m.Options(func(o *sluice.Options) { o.Shards, o.Workers = 3, 1 })
	m.Step() // what was migrated is what a later start loads
	if got := storedState(m.t, m.st, job.Name(), name); !maps.Equal(got, want) {
		m.t.Fatalf("state %s after another start:\n got %v\nwant %v", name, got, want)
	}
}

// folding is a job that folds payments by a key into a state.
func folding[K comparable, S any](key func(payment) K, s sluice.State[K, S], fold func(*S, payment)) *sluice.Job {
	job := sluice.NewJob("folding")
	job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(key).Fold(s, fold)
	return job
}

func byUser(p payment) string { return p.User }

type (
	countText struct{ Count string }
	countOnly struct{ Count int64 }
	countSum  struct {
		Count int64
		Even  bool
	}
)

func textToCount(c countText) (n countOnly, err error) {
	_, err = fmt.Sscan(c.Count, &n.Count)
	return n, err
}

func countToSum(c countOnly) (countSum, error) {
	return countSum{c.Count, c.Count%2 == 0}, nil
}

func (c *countText) add(payment) {
	n, _ := textToCount(*c)
	c.Count = fmt.Sprint(n.Count + 1)
}
func (c *countOnly) add(payment) { c.Count++ }
func (c *countSum) add(payment)  { c.Count++; c.Even = c.Count%2 == 0 }

var threePayments = []payment{{1, "ann", 5}, {2, "bob", 7}, {3, "ann", 11}}

// Values go through the chain of functions from wherever they enter it.
func TestMigrate(t *testing.T) {
	chain := sluice.Migrate(textToCount).Then(countToSum)
	newest := func() *sluice.Job {
		return folding(byUser, sluice.NewState[string, countSum]("count").Migrate(chain), (*countSum).add)
	}
	want := map[string]string{`"ann"`: `{"Count":2,"Even":true}`, `"bob"`: `{"Count":1,"Even":false}`, `"zoe"`: `{"Count":1,"Even":false}`}
	t.Run("two steps", func(t *testing.T) {
		newMigrating(t, folding(byUser, sluice.NewState[string, countText]("count"), (*countText).add), threePayments...).becomes(newest(), "count", want)
	})
	t.Run("one step", func(t *testing.T) {
		newMigrating(t, folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add), threePayments...).becomes(newest(), "count", want)
	})
	t.Run("two starts", func(t *testing.T) {
		m := newMigrating(t, folding(byUser, sluice.NewState[string, countText]("count"), (*countText).add), threePayments...)
		m.Replace(folding(byUser, sluice.NewState[string, countOnly]("count").Migrate(sluice.Migrate(textToCount)), (*countOnly).add))
		m.Step()
		m.becomes(newest(), "count", want)
	})
	t.Run("refused without", func(t *testing.T) {
		m := newMigrating(t, folding(byUser, sluice.NewState[string, countText]("count"), (*countText).add), threePayments...)
		m.Replace(folding(byUser, sluice.NewState[string, countSum]("count"), (*countSum).add))
		var refused *sluice.RefusedError
		if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "count.Count: string → long") {
			t.Fatalf("got %v", err)
		}
	})
}

func userNumber(user string, c countOnly) iter.Seq2[int64, countOnly] {
	return func(yield func(int64, countOnly) bool) {
		switch user {
		case "ann", "bob": // they meet
			yield(1, c)
		case "cid": // becomes two
			if yield(2, c) {
				yield(3, c)
			}
		} // others are dropped
	}
}

// Keys become any number of others, whose values meet or go.
func TestMigrateKeys(t *testing.T) {
	merge := func(a *countOnly, b countOnly) { a.Count += b.Count }
	first := folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add)
	payments := append([]payment{{4, "cid", 1}, {5, "dan", 1}}, threePayments...)
	next := func(merge func(*countOnly, countOnly)) *sluice.Job {
		number := func(payment) int64 { return 7 }
		return folding(number, sluice.NewState[int64, countOnly]("count").MigrateKeys(userNumber, merge), (*countOnly).add)
	}
	t.Run("merged", func(t *testing.T) {
		newMigrating(t, first, payments...).becomes(next(merge), "count", map[string]string{"1": `{"Count":3}`, "2": `{"Count":1}`, "3": `{"Count":1}`, "7": `{"Count":1}`})
	})
	t.Run("not merged", func(t *testing.T) {
		m := newMigrating(t, first, payments...)
		m.Replace(next(nil))
		var failed *sluice.MigrationError
		if err := m.Try(); !errors.As(err, &failed) || failed.Entry.Key != "1" {
			t.Fatalf("got %v", err)
		}
	})
}

// One state becomes two, and two become one.
func TestTakesOver(t *testing.T) {
	counts, cents := sluice.NewState[string, countOnly]("counts"), sluice.NewState[string, shorter]("cents")
	both := sluice.NewState[string, balance]("both")
	two := func(c sluice.State[string, countOnly], s sluice.State[string, shorter]) *sluice.Job {
		job := sluice.NewJob("folding")
		keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser)
		keyed.Fold(c, (*countOnly).add)
		keyed.Fold(s, (*shorter).add)
		return job
	}
	one := func(b sluice.State[string, balance]) *sluice.Job { return folding(byUser, b, (*balance).add) }
	t.Run("merged", func(t *testing.T) {
		m := newMigrating(t, two(counts, cents), threePayments...)
		m.becomes(one(both.
			TakesOver("counts", sluice.Migrate(func(c countOnly) (balance, error) { return balance{Payments: c.Count}, nil })).
			TakesOver("cents", sluice.Migrate(func(c shorter) (balance, error) { return balance{Cents: c.Cents}, nil })).
			Merge(func(a *balance, b balance) { a.Payments += b.Payments; a.Cents += b.Cents })),
			"both", map[string]string{`"ann"`: `{"Payments":2,"Cents":16}`, `"bob"`: `{"Payments":1,"Cents":7}`, `"zoe"`: `{"Payments":1,"Cents":1}`})
		if storedState(t, m.st, "folding", "counts") != nil {
			t.Fatal("what was taken over is still there")
		}
	})
	t.Run("split", func(t *testing.T) {
		m := newMigrating(t, one(both), threePayments...)
		m.becomes(two(
			counts.TakesOver("both", sluice.Migrate(func(b balance) (countOnly, error) { return countOnly{b.Payments}, nil })),
			cents.TakesOver("both", sluice.Migrate(func(b balance) (shorter, error) { return shorter{b.Cents}, nil }))),
			"counts", map[string]string{`"ann"`: `{"Count":2}`, `"bob"`: `{"Count":1}`, `"zoe"`: `{"Count":1}`})
		if got := storedState(t, m.st, "folding", "cents")[`"ann"`]; got != `{"Cents":16}` {
			t.Fatalf("cents of ann: %s", got)
		}
	})
	t.Run("renamed", func(t *testing.T) {
		newMigrating(t, one(both), threePayments...).becomes(one(sluice.NewState[string, balance]("sums").TakesOver("both")),
			"sums", map[string]string{`"ann"`: `{"Payments":2,"Cents":16}`, `"bob"`: `{"Payments":1,"Cents":7}`, `"zoe"`: `{"Payments":1,"Cents":1}`})
	})
	t.Run("without a word for what meets", func(t *testing.T) {
		if err := one(both.TakesOver("a").TakesOver("b")).Check(); err == nil || !strings.Contains(err.Error(), "Merge") {
			t.Fatalf("got %v", err)
		}
	})
}

// Equal types can mean something else: then a function is needed, and is called
// once.
func TestMeaning(t *testing.T) {
	plain := sluice.NewState[string, countOnly]("count")
	double := func(c countOnly) (countOnly, error) { return countOnly{2 * c.Count}, nil }
	first := folding(byUser, plain, (*countOnly).add)
	t.Run("without a function", func(t *testing.T) {
		m := newMigrating(t, first, threePayments...)
		m.Replace(folding(byUser, plain.Meaning(2), (*countOnly).add))
		var refused *sluice.RefusedError
		if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "its meaning is 2 and was 0") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("with one", func(t *testing.T) {
		newMigrating(t, first, threePayments...).becomes(folding(byUser, plain.Meaning(2).Migrate(sluice.Migrate(double).From(0)), (*countOnly).add),
			"count", map[string]string{`"ann"`: `{"Count":4}`, `"bob"`: `{"Count":2}`, `"zoe"`: `{"Count":1}`})
	})
	t.Run("with one that may be called again", func(t *testing.T) {
		err := folding(byUser, plain.Meaning(2).Migrate(sluice.Migrate(double)), (*countOnly).add).Check()
		if err == nil || !strings.Contains(err.Error(), "From") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("of the key", func(t *testing.T) {
		upper := func(meaning int, s sluice.State[string, countOnly]) *sluice.Job {
			job := sluice.NewJob("folding")
			job.From("payments", file.JSONLines[payment]("unused.jsonl")).
				KeyBy(func(p payment) string { return strings.ToUpper(p.User) }).Meaning(meaning).Fold(s, (*countOnly).add)
			return job
		}
		m := newMigrating(t, first, threePayments...)
		m.Replace(upper(1, plain))
		var refused *sluice.RefusedError
		if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "count, key: its meaning is 1 and was 0") {
			t.Fatalf("got %v", err)
		}
		m.becomes(upper(1, plain.MigrateKeys(func(old string, c countOnly) iter.Seq2[string, countOnly] {
			return maps.All(map[string]countOnly{strings.ToUpper(old): c})
		}, nil)), "count", map[string]string{`"ANN"`: `{"Count":2}`, `"BOB"`: `{"Count":1}`, `"ZOE"`: `{"Count":1}`})
	})
}

type visit struct{ Cents int64 }

type visitText struct{ Cents string }

func visitToText(v visit) (visitText, error) { return visitText{fmt.Sprint(v.Cents)}, nil }

// Map and list states are migrated by element.
func TestMigrateElements(t *testing.T) {
	job := func(m sluice.MapState[string, int64, visit], l sluice.ListState[string, visit]) *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
			Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
				byID, all := p.Map(m), p.List(l)
				return func(_ *sluice.Context[string, string], p payment) {
					byID.Set(p.ID, visit{p.Cents})
					all.Append(visit{p.Cents})
				}
			}).Discard()
		return job
	}
	text := func(m sluice.MapState[string, int32, visitText], l sluice.ListState[string, visitText]) *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
			Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
				byID, all := p.Map(m), p.List(l)
				return func(_ *sluice.Context[string, string], p payment) {
					byID.Set(int32(p.ID), visitText{fmt.Sprint(p.Cents)})
					all.Append(visitText{fmt.Sprint(p.Cents)})
				}
			}).Discard()
		return job
	}
	first := func() *sluice.Job {
		return job(sluice.NewMapState[string, int64, visit]("by_id"), sluice.NewListState[string, visit]("all"))
	}
	together := func(old string, v visitText) iter.Seq2[string, visitText] {
		return maps.All(map[string]visitText{"all": v})
	}
	shorter := func(key string, id int64, v visitText) iter.Seq2[sluice.KeyElement[string, int32], visitText] {
		return maps.All(map[sluice.KeyElement[string, int32]]visitText{{Key: key, Element: int32(id)}: v})
	}
	m := newMigrating(t, first(), threePayments...)
	m.becomes(text(
		sluice.NewMapState[string, int32, visitText]("by_id").Migrate(sluice.Migrate(visitToText)).MigrateKeys(shorter, nil),
		sluice.NewListState[string, visitText]("all").Migrate(sluice.Migrate(visitToText))),
		"by_id", map[string]string{`"ann" 1`: `{"Cents":"5"}`, `"bob" 2`: `{"Cents":"7"}`, `"ann" 3`: `{"Cents":"11"}`, `"zoe" 9`: `{"Cents":"1"}`})
	if got := storedState(t, m.st, "folding", "all"); got[`"ann" 1`] != `{"Cents":"11"}` || len(got) != 4 {
		t.Fatalf("lists: %v", got)
	}
	// The keys' order by slot and bytes decides the order in which lists meet.
	before := storedState(t, m.st, "folding", "all")
	m.Replace(text(
		sluice.NewMapState[string, int32, visitText]("by_id"),
		sluice.NewListState[string, visitText]("once").TakesOver("all").MigrateKeys(together)))
	m.Step()
	got := storedState(t, m.st, "folding", "once")
	if len(got) != len(before) {
		t.Fatalf("lists put together: %v of %v", got, before)
	}
	var was, is []string
	for i := range len(got) {
		is = append(is, got[fmt.Sprintf(`"all" %d`, i)])
	}
	for _, v := range before {
		was = append(was, v)
	}
	slices.Sort(was)
	ann := slices.Index(is, `{"Cents":"5"}`)
	if ann+1 >= len(is) || is[ann+1] != `{"Cents":"11"}` {
		t.Fatalf("the list of ann lost its order: %v", is)
	}
	slices.Sort(is)
	if !slices.Equal(was, is) {
		t.Fatalf("lists put together: %v, were %v", is, was)
	}
}

func onlyShort(c countOnly) (countText, error) {
	switch {
	case c.Count == 2:
		return countText{}, errors.New("two is too many")
	case c.Count == 3:
		panic("three")
	}
	return countText{fmt.Sprint(c.Count)}, nil
}

// An entry that fails stops the start, which changes nothing, or is set aside.
func TestMigrationFails(t *testing.T) {
	first := folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add)
	second := folding(byUser, sluice.NewState[string, countText]("count").Migrate(sluice.Migrate(onlyShort)), (*countText).add)
	payments := append([]payment{{4, "cid", 1}, {5, "cid", 1}, {6, "cid", 1}}, threePayments...)
	m := newMigrating(t, first, payments...)
	before := statetest.Head(t, m.st, "folding")
	m.Replace(second)
	var failed *sluice.MigrationError
	err := m.Try()
	if !errors.As(err, &failed) || failed.ExitCode() != 13 || failed.Entry.State != "count" {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{failed.Entry.Key, "sluice_test.onlyShort", "Nothing was changed", "--set-aside count=FILE"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %q", part, err)
		}
	}
	after := statetest.Head(t, m.st, "folding")
	if after.Version != before.Version || !maps.EqualFunc(after.State, before.State, func(a, b epoch.StateEntry) bool {
		return a.Value == b.Value && slices.Equal(a.Segments, b.Segments)
	}) || after.Sources["payments"].Partitions["0"] != before.Sources["payments"].Partitions["0"] || after.Kind != epoch.Open {
		t.Fatalf("changed:\n%+v\nwas\n%+v", after, before)
	}

	folder := t.TempDir()
	file := filepath.Join(folder, "failed.jsonl")
	m.Options(func(o *sluice.Options) { o.SetAside = map[string]string{"cuont": file} })
	var wrong *sluice.ConsentError
	if err := m.Try(); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "name one of count") {
		t.Fatalf("with a slip of the pen: %v", err)
	}
	m.Options(func(o *sluice.Options) { o.SetAside = map[string]string{"count": file} })
	m.becomes(second, "count", map[string]string{`"bob"`: `{"Count":"1"}`, `"zoe"`: `{"Count":"1"}`})
	lines := strings.Split(strings.TrimSpace(readFile(t, file)), "\n")
	slices.Sort(lines[1:])
	want := []string{
		`{"state":"count","key":"ann","value":{"Count":2},"function":"sluice_test.onlyShort","error":"two is too many"}`,
		`{"state":"count","key":"cid","value":{"Count":3},"function":"sluice_test.onlyShort","error":"panic: three"}`,
	}
	if !slices.Equal(lines[1:], want) || !strings.HasPrefix(lines[0], `{"job":"folding","state":"count","version":"`) {
		t.Fatalf("set aside:\n%s", strings.Join(lines, "\n"))
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) != 1 {
		t.Fatalf("left in the folder: %v, %v", names, err)
	}
	// A migration in which nothing fails is not in its way; one that would write over
	// the file is refused.
	m.Replace(folding(byUser, sluice.NewState[string, countSum]("count").Migrate(sluice.Migrate(textToCount).Then(countToSum)), (*countSum).add))
	m.Step()
	nothing := func(c countSum) (shorter, error) { return shorter{}, errors.New("no") }
	m.Replace(folding(byUser, sluice.NewState[string, shorter]("count").Migrate(sluice.Migrate(nothing)), (*shorter).add))
	if err := m.Try(); err == nil || !strings.Contains(err.Error(), "name a file that is not there") {
		t.Fatalf("the file of another migration: %v", err)
	}
	if got := readFile(t, file); strings.Count(got, "\n") != 3 {
		t.Fatalf("the file was written over: %s", got)
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) != 1 {
		t.Fatalf("left in the folder: %v, %v", names, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Equal states give equal segments, however many shards migrate them, and a start
// that is killed at any of its writes leaves nothing behind that another would
// trip over.
func TestMigrationCrashes(t *testing.T) {
	first := func() *sluice.Job {
		return folding(byUser, sluice.NewState[string, countText]("count"), (*countText).add)
	}
	second := func() *sluice.Job {
		return folding(byUser, sluice.NewState[string, countSum]("count").Migrate(sluice.Migrate(textToCount).Then(countToSum)), (*countSum).add)
	}
	var sums []string
	for n := 0; ; n++ {
		m := newMigrating(t, first(), threePayments...)
		m.Options(func(o *sluice.Options) { o.Shards = n%3 + 1 })
		m.Replace(second())
		sluicetest.Feed(m.Test, "payments", payment{9, "zoe", 1})
		crashed := n > 0 && m.Crash(n)
		m.Step()
		want := map[string]string{`"ann"`: `{"Count":2,"Even":true}`, `"bob"`: `{"Count":1,"Even":false}`, `"zoe"`: `{"Count":1,"Even":false}`}
		if got := storedState(t, m.st, "folding", "count"); !maps.Equal(got, want) {
			t.Fatalf("after a crash at write %d: %v", n, got)
		}
		for _, s := range statetest.Head(t, m.st, "folding").State["count"].Segments {
			sums = append(sums, s.SHA256)
		}
		if n > 0 && !crashed {
			break
		}
	}
	slices.Sort(sums)
	if sums = slices.Compact(sums); len(sums) != 2 {
		t.Fatalf("%d different segments, want that of the migration and that of the last epoch", len(sums))
	}
}

// A start that is killed once the file of failed entries is there, and before the
// manifest is, is repeated as it was.
func TestSetAsideCrashes(t *testing.T) {
	first := folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add)
	for n := 1; ; n++ {
		m := newMigrating(t, first, threePayments...)
		file := filepath.Join(t.TempDir(), "failed.jsonl")
		m.Options(func(o *sluice.Options) { o.SetAside = map[string]string{"count": file} })
		m.Replace(folding(byUser, sluice.NewState[string, countText]("count").Migrate(sluice.Migrate(onlyShort)), (*countText).add))
		crashed := m.Crash(n)
		m.Step()
		if got := storedState(t, m.st, "folding", "count"); !maps.Equal(got, map[string]string{`"bob"`: `{"Count":"1"}`}) {
			t.Fatalf("after a crash at write %d: %v", n, got)
		}
		lines := readFile(t, file)
		if strings.Count(lines, "\n") != 2 {
			t.Fatalf("after a crash at write %d: the file holds %s", n, lines)
		}
		if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) != 1 {
			t.Fatalf("after a crash at write %d: left are %v, %v", n, names, err)
		}
		// A process that dies before the file has its name leaves it to the next start.
		owner := lines[strings.Index(lines, `"owner":"`)+len(`"owner":"`):]
		owner = owner[:strings.IndexByte(owner, '"')]
		hidden := filepath.Join(filepath.Dir(file), ".failed.jsonl-")
		if err := os.Rename(file, hidden+owner); err != nil {
			t.Fatal(err)
		}
		dead := strings.Replace(lines, owner, "0123456789abcdef", 1)
		if err := os.WriteFile(hidden+"0123456789abcdef", []byte(dead), 0o600); err != nil {
			t.Fatal(err)
		}
		m.Step()
		if got := readFile(t, file); got != lines {
			t.Fatalf("the file that was left holds %s", got)
		}
		if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) != 1 {
			t.Fatalf("left are %v, %v", names, err)
		}
		if !crashed {
			return
		}
	}
}

// A chain, and a function for keys, stay in the code: what has been through them
// isn't sent through them once more when a field is added, a state is renamed, or
// its values mean something else.
func TestMigratedOnce(t *testing.T) {
	type before struct {
		Count    int64
		Currency string
	}
	tenfold := func(b before) (countOnly, error) { return countOnly{10 * b.Count}, nil }
	first := folding(byUser, sluice.NewState[string, before]("count"), func(b *before, _ payment) { b.Count++ })
	second := folding(byUser, sluice.NewState[string, countOnly]("count").Migrate(sluice.Migrate(tenfold)), func(c *countOnly, _ payment) { c.Count += 10 })
	type withVIP struct {
		Count int64
		VIP   bool
	}
	tenfoldVIP := func(b before) (withVIP, error) { return withVIP{Count: 10 * b.Count}, nil }
	third := folding(byUser, sluice.NewState[string, withVIP]("count").Migrate(sluice.Migrate(tenfoldVIP)), func(c *withVIP, _ payment) { c.Count += 10 })
	m := newMigrating(t, first, threePayments...)
	m.Replace(second)
	m.Step()
	m.becomes(third, "count", map[string]string{`"ann"`: `{"Count":20,"VIP":false}`, `"bob"`: `{"Count":10,"VIP":false}`, `"zoe"`: `{"Count":10,"VIP":false}`})

	// From the very first version it goes through the function, of course.
	newMigrating(t, first, threePayments...).becomes(third, "count", map[string]string{`"ann"`: `{"Count":20,"VIP":false}`, `"bob"`: `{"Count":10,"VIP":false}`, `"zoe"`: `{"Count":10,"VIP":false}`})

	// What could be both is nobody's guess.
	type lesser struct{ Count int64 }
	m = newMigrating(t, folding(byUser, sluice.NewState[string, lesser]("count"), func(c *lesser, _ payment) { c.Count++ }), threePayments...)
	m.Replace(third)
	var refused *sluice.RefusedError
	if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "only you know") {
		t.Fatalf("got %v", err)
	}

	eu := func(old string, c countOnly) iter.Seq2[string, countOnly] {
		return maps.All(map[string]countOnly{"eu/" + old: c})
	}
	byRegion := func(s sluice.State[string, countOnly], meaning int) *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return "eu/" + p.User }).Meaning(1).
			Fold(s.Meaning(meaning).MigrateKeys(eu, nil), (*countOnly).add)
		return job
	}
	double := sluice.Migrate(func(c countOnly) (countOnly, error) { return countOnly{2 * c.Count}, nil }).From(0)
	m = newMigrating(t, folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add), threePayments...)
	m.Replace(byRegion(sluice.NewState[string, countOnly]("count"), 0))
	m.Step()
	m.Replace(byRegion(sluice.NewState[string, countOnly]("count").Migrate(double), 1))
	m.Step()
	m.becomes(byRegion(sluice.NewState[string, countOnly]("counts").TakesOver("count"), 1), "counts", map[string]string{`"eu/ann"`: `{"Count":4}`, `"eu/bob"`: `{"Count":2}`, `"eu/zoe"`: `{"Count":1}`})

	// Without a meaning of the key nothing would say when it is to be called.
	job := folding(byUser, sluice.NewState[string, countOnly]("count").MigrateKeys(eu, nil), (*countOnly).add)
	if err := job.Check(); err == nil || !strings.Contains(err.Error(), "raise the key's Meaning") {
		t.Fatalf("got %v", err)
	}
}

// A list from which an element is set aside has no gap.
func TestSetAsideOfAList(t *testing.T) {
	list := func(l sluice.ListState[string, visitText]) *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
			Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
				all := p.List(l)
				return func(_ *sluice.Context[string, string], p payment) {
					all.Append(visitText{fmt.Sprint(p.Cents)})
					for i := range all.Len() {
						_ = all.At(i)
					}
				}
			}).Discard()
		return job
	}
	first := func() *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
			Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
				all := p.List(sluice.NewListState[string, visit]("all"))
				return func(_ *sluice.Context[string, string], p payment) { all.Append(visit{p.Cents}) }
			}).Discard()
		return job
	}
	not7 := func(v visit) (visitText, error) {
		if v.Cents == 7 {
			return visitText{}, errors.New("seven")
		}
		return visitToText(v)
	}
	m := newMigrating(t, first(), payment{1, "ann", 5}, payment{2, "ann", 7}, payment{3, "ann", 11}, payment{4, "zoe", 7})
	m.Options(func(o *sluice.Options) {
		o.SetAside = map[string]string{"all": filepath.Join(t.TempDir(), "failed.jsonl")}
	})
	m.becomes(list(sluice.NewListState[string, visitText]("all").Migrate(sluice.Migrate(not7))), "all",
		map[string]string{`"ann" 0`: `{"Cents":"5"}`, `"ann" 1`: `{"Cents":"11"}`, `"zoe" 0`: `{"Cents":"1"}`})
}

// Two states don't share a file.
func TestSetAsideInOneFile(t *testing.T) {
	m := newMigrating(t, folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add), threePayments...)
	job := sluice.NewJob("folding")
	keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser)
	keyed.Fold(sluice.NewState[string, countOnly]("count"), (*countOnly).add)
	keyed.Fold(sluice.NewState[string, countOnly]("second"), (*countOnly).add)
	m.Options(func(o *sluice.Options) { o.SetAside = map[string]string{"count": "./f", "second": "f"} })
	m.Replace(job)
	if err := m.Try(); err == nil || !strings.Contains(err.Error(), "give each state its own") {
		t.Fatalf("got %v", err)
	}
}

// A state that its migration makes too large is refused before it is the job's.
func TestMigrationThatDoesNotFit(t *testing.T) {
	m := newMigrating(t, folding(byUser, sluice.NewState[string, countOnly]("count"), (*countOnly).add), threePayments...)
	before := statetest.Head(t, m.st, "folding")
	m.Options(func(o *sluice.Options) { o.MemoryLimit = 64 << 20 })
	huge := func(countOnly) (countText, error) { return countText{strings.Repeat("x", 40<<20)}, nil }
	m.Replace(folding(byUser, sluice.NewState[string, countText]("count").Migrate(sluice.Migrate(huge)), (*countText).add))
	var large *sluice.TooLargeError
	if err := m.Try(); !errors.As(err, &large) {
		t.Fatalf("got %v", err)
	}
	after := statetest.Head(t, m.st, "folding")
	if after.Version != before.Version || !slices.Equal(after.State["count"].Segments, before.State["count"].Segments) {
		t.Fatalf("the state was migrated all the same: %+v", after)
	}
}

// Maps are taken over, put together and told apart by their meanings as other
// states are, each element by itself; so are lists by their meanings.
func TestTakesOverMaps(t *testing.T) {
	type maps2 struct {
		first, second sluice.MapState[string, int64, visit]
		list          sluice.ListState[string, visit]
	}
	job := func(m maps2, two bool) *sluice.Job {
		job := sluice.NewJob("folding")
		job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(byUser).
			Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], payment) {
				first, list := p.Map(m.first), p.List(m.list)
				second := first
				if two {
					second = p.Map(m.second)
				}
				return func(_ *sluice.Context[string, string], p payment) {
					for _, to := range []*sluice.Map[string, int64, visit]{first, second} {
						if v, ok := to.Read(p.ID); !ok || v.Cents < p.Cents {
							to.Set(p.ID, visit{p.Cents})
						}
					}
					list.Append(visit{p.Cents})
				}
			}).Discard()
		return job
	}
	named := func(name string) sluice.MapState[string, int64, visit] {
		return sluice.NewMapState[string, int64, visit](name)
	}
	list := sluice.NewListState[string, visit]("list")
	m := newMigrating(t, job(maps2{named("a"), named("b"), list}, true), threePayments...)
	both := named("both").TakesOver("a").TakesOver("b").Merge(func(a *visit, b visit) { a.Cents += b.Cents })
	m.becomes(job(maps2{first: both, list: list}, false), "both", map[string]string{
		`"ann" 1`: `{"Cents":10}`, `"bob" 2`: `{"Cents":14}`, `"ann" 3`: `{"Cents":22}`, `"zoe" 9`: `{"Cents":1}`,
	})

	var refused *sluice.RefusedError
	m.Replace(job(maps2{first: both.Meaning(1), list: list.Meaning(2)}, false))
	if err := m.Try(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "both: its meaning is 1 and was 0") || !strings.Contains(err.Error(), "list: its meaning is 2 and was 0") {
		t.Fatalf("got %v", err)
	}
	half := sluice.Migrate(func(v visit) (visit, error) { return visit{v.Cents / 2}, nil }).From(0)
	m.becomes(job(maps2{first: both.Meaning(1).Migrate(half), list: list.Meaning(2).Migrate(half)}, false), "list", map[string]string{
		`"ann" 0`: `{"Cents":2}`, `"ann" 1`: `{"Cents":5}`, `"bob" 0`: `{"Cents":3}`, `"zoe" 0`: `{"Cents":0}`, `"zoe" 1`: `{"Cents":1}`,
	})
	if got := storedState(t, m.st, "folding", "both")[`"ann" 3`]; got != `{"Cents":11}` {
		t.Fatalf("the map after its values were halved: %s", got)
	}
}
