package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// A job with a state of each kind, whose changes are put out, keyed anew and read
// on.

type visit struct {
	User string
	Page string
	Cost int64
}

type bill struct{ Visits, Cost int64 }

func (b *bill) add(v visit) { b.Visits++; b.Cost += v.Cost }

type bracket struct{ Users, Cost int64 }

var (
	bills    = sluice.NewState[string, bill]("bill")
	brackets = sluice.NewState[int64, bracket]("bracket")
	pages    = sluice.NewMapState[string, string, int64]("pages")
	lastOnes = sluice.NewListState[string, int64]("last")
)

// told is what a visit makes the job say of its user.
type told struct {
	User  string
	Pages int64 // that the user has seen, as is known
	Last  []int64
}

func visitsJob(dir string) *sluice.Job {
	job := sluice.NewJob("visits")
	keyed := job.From("visits", file.JSONLines[visit]("unused.jsonl")).KeyBy(func(v visit) string { return v.User })
	table := keyed.Fold(bills, (*bill).add)
	table.To("bills", file.Upsert(dir+"/bills", func(_ string, b bill) bill { return b }))
	table.Regroup(brackets, func(_ string, b bill) int64 { return b.Visits / 3 },
		func(c *bracket, b bill) { c.Users++; c.Cost += b.Cost },
		func(c *bracket, b bill) bool { c.Users--; c.Cost -= b.Cost; return c.Users > 0 }).
		To("brackets", file.Upsert(dir+"/brackets", func(_ int64, c bracket) bracket { return c }))
	keyed.Process(func(p *sluice.Setup[string, told]) func(*sluice.Context[string, told], visit) {
		seen, last := p.Map(pages), p.List(lastOnes)
		return func(c *sluice.Context[string, told], v visit) {
			*seen.Update(v.Page) += v.Cost
			last.Append(v.Cost)
			if last.Len() > 3 {
				last.RemoveFirst(1)
			}
			t := told{User: c.Key(), Pages: int64(seen.Len())}
			for _, cost := range last.All() {
				t.Last = append(t.Last, cost)
			}
			c.Emit(t)
		}
	}).To("told", file.Append[told](dir+"/told"))
	return job
}

// model is what the job is to come to, by itself.
type model struct {
	bills map[string]bill
	pages map[string]map[string]int64
	last  map[string][]int64
	told  []string // what was said, in any order
}

func newModel() *model {
	return &model{bills: map[string]bill{}, pages: map[string]map[string]int64{}, last: map[string][]int64{}}
}

func (m *model) visit(v visit) {
	b := m.bills[v.User]
	m.bills[v.User] = bill{b.Visits + 1, b.Cost + v.Cost}
	if m.pages[v.User] == nil {
		m.pages[v.User] = map[string]int64{}
	}
	m.pages[v.User][v.Page] += v.Cost
	last := append(m.last[v.User], v.Cost)
	m.last[v.User] = last[max(0, len(last)-3):]
	m.told = append(m.told, fmt.Sprint(told{v.User, int64(len(m.pages[v.User])), slices.Clone(m.last[v.User])}))
}

// forget forgets a user in some states.
func (m *model) forget(user string, states ...string) {
	for _, s := range states {
		switch s {
		case "bill":
			delete(m.bills, user)
		case "pages":
			delete(m.pages, user)
		case "last":
			delete(m.last, user)
		}
	}
}

func (m *model) brackets() map[int64]bracket {
	all := map[int64]bracket{}
	for _, b := range m.bills {
		c := all[b.Visits/3]
		all[b.Visits/3] = bracket{c.Users + 1, c.Cost + b.Cost}
	}
	return all
}

func (m *model) check(t *testing.T, when string, test *sluicetest.Test) {
	t.Helper()
	if got := sluicetest.Table[string, bill](test, "bills"); !maps.Equal(got, m.bills) {
		t.Fatalf("%s: bills are %v, want %v", when, got, m.bills)
	}
	if got, want := sluicetest.Table[int64, bracket](test, "brackets"), m.brackets(); !maps.Equal(got, want) {
		t.Fatalf("%s: brackets are %v, want %v", when, got, want)
	}
	var got []string
	for _, r := range sluicetest.Rows[told](test, "told") {
		got = append(got, fmt.Sprint(r))
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(m.told)); !slices.Equal(got, want) {
		t.Fatalf("%s: it was told\n%v, want\n%v", when, got, want)
	}
}

// theStore is the store of a test, and its job in it.
func theStore(t *testing.T, test *sluicetest.Test) (s store.Store, job func() *epoch.Job) {
	test.Options(func(o *sluice.Options) { s = o.Store })
	return s, func() *epoch.Job {
		t.Helper()
		j, err := epoch.FindJob(t.Context(), env.Real(), s, "visits")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
}

func ask(t *testing.T, job *epoch.Job, user string, states ...string) uint64 {
	t.Helper()
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		t.Fatal(err)
	}
	key := keys.Append(nil, user)
	var edits []epoch.Edit
	for _, s := range states {
		edits = append(edits, epoch.Edit{State: s, Slot: epoch.Slot(xxhash.Sum64(key) >> 48), Hash: epoch.EditHash(job.ID(), key)})
	}
	r, err := job.AskForget(t.Context(), edits, nil, "", "a test")
	if err != nil {
		t.Fatal(err)
	}
	return r.N
}

func head(t *testing.T, job *epoch.Job) epoch.Manifest {
	t.Helper()
	h, err := job.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	return h.Manifest
}

// Random users are forgotten in random states between random visits: tables, what
// reads their changes, maps and lists come to what a model comes to, and a replay
// gives the same bytes, whatever the number of shards and the size of batches.
func TestForgetting(t *testing.T) {
	seed := uint64(20261130)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	test := sluicetest.New(t, visitsJob(t.TempDir()))
	test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 3, 2, 5 })
	want := newModel()
	all := []string{"bill", "pages", "last"}
	var job func() *epoch.Job
	for step := range 12 {
		if step > 0 {
			for range r.IntN(3) {
				user := fmt.Sprintf("user-%d", r.IntN(9)) // some were never there
				states := all[r.IntN(3):]
				n := ask(t, job(), user, states...)
				want.forget(user, states...)
				t.Logf("step %d, request %d: %s in %v", step, n, user, states)
			}
		}
		for range r.IntN(30) {
			v := visit{fmt.Sprintf("user-%d", r.IntN(6)), fmt.Sprintf("page-%d", r.IntN(5)), r.Int64N(100)}
			sluicetest.Feed(test, "visits", v)
			want.visit(v)
		}
		if step == 0 {
			sluicetest.Feed(test, "visits", visit{"user-0", "page-0", 1})
			want.visit(visit{"user-0", "page-0", 1})
		}
		test.Step()
		_, job = theStore(t, test)
		want.check(t, fmt.Sprintf("step %d", step), test)
	}
	m := head(t, job())
	newest, err := job().NewestRequest(t.Context(), 0)
	if err != nil || newest == 0 || m.Request != newest {
		t.Errorf("the newest request done is %d of %d (%v)", m.Request, newest, err)
	}
	for _, shards := range []int{1, 2, 7} {
		for _, batch := range []int{1, 1000} {
			test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = shards, 1+batch%3, batch })
		}
	}
}

// Whatever write is the last before a crash: what was asked is done once. Not never,
// and not to what came behind it.
func TestForgettingAtACrash(t *testing.T) {
	all := []string{"bill", "pages", "last"}
	for n := 1; ; n++ {
		test := sluicetest.New(t, visitsJob(t.TempDir()))
		want := newModel()
		feed := func(users ...string) {
			for i, u := range users {
				v := visit{u, fmt.Sprint("page-", i), int64(10 + i)}
				sluicetest.Feed(test, "visits", v)
				want.visit(v)
			}
		}
		feed("ann", "bob", "ann", "cid", "ann")
		test.Step()
		_, job := theStore(t, test)
		ask(t, job(), "ann", all...)
		ask(t, job(), "cid", all...)
		want.forget("ann", all...)
		want.forget("cid", all...)
		feed("ann", "bob")
		crashed := test.Crash(n)
		feed("ann")
		test.Step()
		when := fmt.Sprintf("crash at write %d", n)
		want.check(t, when, test)
		feed("ann", "cid")
		test.Step()
		want.check(t, when+", and later", test)
		edits, epochs := 0, 0
		for m, err := range job().Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, head(t, job()).Epoch) {
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Edits) > 0 {
				edits, epochs = edits+len(m.Edits), epochs+1
				if m.Kind != epoch.Data || m.Request != 2 || m.Counts["forgotten"] != 1+3+3+1+1+1 {
					t.Errorf("%s: epoch %d is %s, request %d, with %d edits that met %d entries", when, m.Epoch, m.Kind, m.Request, len(m.Edits), m.Counts["forgotten"])
				}
			}
		}
		if edits != 6 || epochs != 1 {
			t.Errorf("%s: %d edits in %d epochs", when, edits, epochs)
		}
		for name, s := range head(t, job()).State {
			if s.Edited != 0 {
				t.Errorf("%s: the segments of state %s may still hold what was deleted in epoch %d", when, name, s.Edited)
			}
		}
		test.Replay(nil)
		if !crashed {
			if n < 8 {
				t.Fatalf("there were %d writes; more were expected", n-1)
			}
			return
		}
	}
}

// holding are the objects of a store in which some bytes stand.
func holding(t *testing.T, s store.Store, job string, text string) (names []string) {
	t.Helper()
	for after := ""; ; {
		page, err := s.List(t.Context(), job+"/", after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range page {
			after = listed.Name
			data, err := s.Read(t.Context(), listed.Name, 1<<24)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte(text)) {
				names = append(names, listed.Name)
			}
		}
		if len(page) < 1000 {
			return names
		}
	}
}

// What was forgotten stands in no byte of the store once the epochs before the
// merge have gone; a savepoint from before keeps it until it is dropped.
func TestForgottenIsGone(t *testing.T) {
	const who = "Xq7-zebra-Kw9"
	test := sluicetest.New(t, visitsJob(t.TempDir()))
	for i := range 20 {
		sluicetest.Feed(test, "visits", visit{fmt.Sprint("user-", i), "page", 1})
	}
	sluicetest.Feed(test, "visits", visit{who, "page", 5})
	test.Step()
	s, job := theStore(t, test)
	if found := holding(t, s, "visits", who); len(found) != 5 { // three states, two sinks
		t.Fatalf("before, it stands in %v", found)
	}
	before := head(t, job())
	saved, err := job().MakeSavepoint(t.Context(), epoch.Savepoint{
		Name: "before", Point: epoch.Point{Branch: before.Branch, Tasks: map[string]epoch.Epoch{before.Task: before.Epoch}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, job(), who, "bill", "pages", "last")
	test.Step() // without any input

	m := head(t, job())
	if len(sluicetest.Table[string, bill](test, "bills")) != 20 {
		t.Errorf("the sink still has %v", sluicetest.Table[string, bill](test, "bills"))
	}
	if m.Kind != epoch.Open || m.Request != 1 {
		t.Errorf("the newest epoch is %d, %s, with request %d as the newest done", m.Epoch, m.Kind, m.Request)
	}
	for name, entry := range m.State {
		form, err := state.FormOf(name, entry)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, err := range state.Read(t.Context(), s, "visits", form, entry.Segments, epoch.AllSlots) {
			if err != nil {
				t.Fatal(err)
			}
			rows++
		}
		if name != "bracket" && (rows != 20 || len(entry.Segments) != 1 || entry.Segments[0].Rows != 20 || entry.Edited != 0) {
			t.Errorf("state %s has %d entries in %d segments, edited: %d", name, rows, len(entry.Segments), entry.Edited)
		}
	}
	sweep := func() {
		t.Helper()
		if _, err := clean.New(job(), clean.Options{Keep: -1, KeepEpochs: 1}).All(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	kept := holding(t, s, "visits", who)
	if len(kept) != 3 { // the segments of the savepoint's epoch, which has no outbox
		t.Errorf("with a savepoint from before, it stands in %v", kept)
	}
	if err := job().DropSavepoint(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	sweep()
	if found := holding(t, s, "visits", who); len(found) > 0 {
		t.Errorf("when all is done, it stands in %v", found)
	}
	sluicetest.Feed(test, "visits", visit{who, "page", 7})
	test.Step()
	if got := sluicetest.Table[string, bill](test, "bills")[who]; got != (bill{1, 7}) {
		t.Errorf("who is back has the bill %v", got)
	}
}
