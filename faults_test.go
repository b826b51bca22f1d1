package sluice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

type floatKey struct {
	Name  string
	Level float64
}

type withChannel struct{ C chan int }

type withInterface struct{ Any fmt.Stringer }

func sumInt64(s *int64, n int64) { *s += n }

func numbers(job *sluice.Job) *sluice.Stream[int64] {
	return job.From("numbers", file.JSONLines[int64]("unused.jsonl"))
}

func ticks(job *sluice.Job) *sluice.Keyed[string, tick] {
	return job.From("ticks", file.JSONLines[tick]("unused.jsonl")).EventTime(tick.time, 0).KeyBy(tick.key)
}

func even(n int64) bool { return n%2 == 0 }

// Each mistake is found when the job is built, all in one error, with the place.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	total := sluice.NewState[bool, int64]("total")
	for _, c := range []struct {
		name  string
		build func(job *sluice.Job)
		want  []string
	}{
		{"two states of one name", func(job *sluice.Job) {
			keyed := numbers(job).KeyBy(even)
			keyed.Fold(total, sumInt64)
			keyed.Fold(total, sumInt64)
		}, []string{`state "total": the name is taken by a state`}},
		{"a state of a source's name", func(job *sluice.Job) {
			numbers(job).KeyBy(even).Fold(sluice.NewState[bool, int64]("numbers"), sumInt64)
		}, []string{`state "numbers": the name is taken by a source`}},
		{"panes as a table", func(job *sluice.Job) {
			keyed := ticks(job)
			shared := keyed.Window(sluice.Hopping(2*time.Second, time.Second)).FoldMerge(bags, (*bag).add, (*bag).merge)
			shared.To("rows", file.Upsert(dir+"/rows", func(sluice.In[string], bag) windowed { return windowed{} }))
			shared.Changes().Discard()
			shared.Regroup(sluice.NewState[string, int64]("groups"), func(in sluice.In[string], _ bag) string { return in.Key },
				func(n *int64, _ bag) { *n++ }, func(n *int64, _ bag) bool { *n--; return *n > 0 })
		}, []string{
			`sink "rows" of state "bags": the windows share panes, which are what the state holds, so that it has no rows of windows: use Results, or, with Hopping, Fold instead of FoldMerge, which keeps an entry for each window (`,
			`Changes of state "bags": the windows share panes`,
		}},
		{"sliding windows that can't be merged", func(job *sluice.Job) {
			ticks(job).Window(sluice.Sliding(time.Second)).Fold(bags, (*bag).add).Results().Discard()
		}, []string{`state "bags": sliding windows are put together of what they share: use FoldMerge (`}},
		{"sliding windows of no size", func(job *sluice.Job) {
			ticks(job).Window(sluice.Sliding(0)).FoldMerge(bags, (*bag).add, (*bag).merge).Results().Discard()
		}, []string{"Window: sliding windows: size 0s"}},
		{"a merge ahead of what can't be merged", func(job *sluice.Job) {
			ticks(job).Window(sluice.Tumbling(time.Second), sluice.MergeAhead()).Fold(bags, (*bag).add).Results().Discard()
		}, []string{`state "bags": MergeAhead merges what parts of the records were folded to: use FoldMerge (`}},
		{"a merge ahead with a stream of what is late", func(job *sluice.Job) {
			w := ticks(job).Window(sluice.Tumbling(time.Second), sluice.MergeAhead())
			w.Late().Discard()
			w.FoldMerge(bags, (*bag).add, (*bag).merge).Results().Discard()
		}, []string{"Late of a Window with MergeAhead, which merges records before it is known whether they are late, and only counts these: leave out one of the two ("}},
		{"a merge ahead of values", func(job *sluice.Job) {
			ticks(job).MapValues(func(t tick) int64 { return t.ID }).Window(sluice.Tumbling(time.Second), sluice.MergeAhead()).
				FoldMerge(sluice.NewState[sluice.In[string], int64]("sums"), sumInt64, func(into, other *int64) { *into += *other }).Results().Discard()
		}, []string{"Window: MergeAhead behind MapValues"}},
		{"two sinks of one name", func(job *sluice.Job) {
			s := numbers(job)
			s.Map(func(n int64) command { return command{N: n} }).To("out", file.Append[command](dir+"/a"))
			s.Map(func(n int64) command { return command{N: n} }).To("out", file.Append[command](dir+"/b"))
		}, []string{`sink "out": the name is taken by a sink`}},
		{"a stream without an end", func(job *sluice.Job) { numbers(job).Filter(even) }, []string{"a stream without an end"}},
		{"a keyed stream without an end", func(job *sluice.Job) { numbers(job).KeyBy(even) }, []string{"a keyed stream without an end"}},
		{"no source", func(*sluice.Job) {}, []string{"no source"}},
		{"a key with a float", func(job *sluice.Job) {
			numbers(job).KeyBy(func(n int64) floatKey { return floatKey{Level: float64(n)} }).
				Fold(sluice.NewState[floatKey, int64]("f"), sumInt64)
		}, []string{"Level"}},
		{"a key that is a time", func(job *sluice.Job) {
			numbers(job).KeyBy(func(n int64) time.Time { return time.Unix(n, 0) }).
				Fold(sluice.NewState[time.Time, int64]("f"), sumInt64)
		}, []string{"KeyBy"}},
		{"a state with a channel", func(job *sluice.Job) {
			numbers(job).KeyBy(even).Fold(sluice.NewState[bool, withChannel]("c"), func(*withChannel, int64) {})
		}, []string{`state "c"`, "C"}},
		{"records that can't be copied are keyed", func(job *sluice.Job) {
			numbers(job).Map(func(int64) withInterface { return withInterface{} }).KeyBy(func(withInterface) bool { return true }).Values().Discard()
		}, []string{"KeyBy", "Any"}},
		{"a process without a state", func(job *sluice.Job) {
			numbers(job).KeyBy(even).Process(func(*sluice.Setup[bool, int64]) func(*sluice.Context[bool, int64], int64) {
				return func(*sluice.Context[bool, int64], int64) {}
			}).Discard()
		}, []string{"Process without a state"}},
		{"an output that the process doesn't have", func(job *sluice.Job) {
			p := numbers(job).KeyBy(even).Process(func(p *sluice.Setup[bool, int64]) func(*sluice.Context[bool, int64], int64) {
				p.State(total)
				return func(*sluice.Context[bool, int64], int64) {}
			})
			p.Discard()
			p.Output(sluice.NewOutput[int64]("late")).Discard()
		}, []string{`output "late"`}},
		{"a name that leaves the folder", func(job *sluice.Job) {
			numbers(job).KeyBy(even).Fold(sluice.NewState[bool, int64]("../up"), sumInt64)
		}, []string{`../up`}},
		{"four KeyBys in a row", func(job *sluice.Job) {
			s := numbers(job)
			for range 4 {
				s = s.KeyBy(even).Values()
			}
			s.Discard()
		}, []string{"KeyBys follow one another"}},
		{"several at once", func(job *sluice.Job) {
			numbers(job).Filter(even)
			job.From("numbers", file.JSONLines[int64]("x")).Discard()
		}, []string{"a stream without an end", `source "numbers": the name is taken`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := sluice.NewJob("faulty")
			c.build(job)
			var faults *sluice.FaultsError
			if err := job.Check(); !errors.As(err, &faults) {
				t.Fatalf("Check: %v, want faults", err)
			}
			text := faults.Error()
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("faults are\n%s\nwant %q in them", text, want)
				}
			}
			if c.name != "no source" && c.name != "four KeyBys in a row" && !strings.Contains(text, "faults_test.go:") {
				t.Errorf("faults don't say where:\n%s", text)
			}
		})
	}
}

func TestFourKeyBysAreFineBehindATable(t *testing.T) {
	job := sluice.NewJob("deep")
	s := numbers(job)
	for i := range 6 {
		s = s.KeyBy(even).Fold(sluice.NewState[bool, int64](fmt.Sprint("sum", i)), sumInt64).Changes().
			Map(func(c sluice.Change[bool, int64]) int64 { return c.New - c.Old })
	}
	s.Discard()
	if err := job.Check(); err != nil {
		t.Fatal(err)
	}
}

// failingJob has a fold that fails half way, behind one that has done its part.
func failingJob(dir string, dead, mended bool) *sluice.Job {
	job := sluice.NewJob("failing")
	keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User })
	keyed.Fold(sluice.NewState[string, balance]("before"), (*balance).add).
		To("before", file.Upsert(dir+"/before", func(_ string, b balance) balance { return b }))
	second := keyed.Values().KeyBy(func(p payment) int64 { return p.ID % 2 })
	second.Fold(sluice.NewState[int64, balance]("half"), func(b *balance, p payment) {
		b.Payments++
		if p.Cents == 13 && !mended {
			panic("thirteen cents")
		}
		b.Cents += p.Cents
	}).To("half", file.Upsert(dir+"/half", func(_ int64, b balance) balance { return b }))
	if dead {
		job.DeadLetter("dead", file.Append[sluice.DeadLetter](dir+"/dead"))
	}
	return job
}

func TestAPanicLeavesTheEntryAsItWas(t *testing.T) {
	test := sluicetest.New(t, failingJob("unused", false, false))
	sluicetest.Feed(test, "payments", payment{1, "ann", 5})
	test.Step()
	sluicetest.Feed(test, "payments", payment{3, "ann", 7}, payment{5, "bob", 13})
	err := test.Try()
	var record *sluice.RecordError
	if !errors.As(err, &record) {
		t.Fatalf("the step's error is %v, want a RecordError", err)
	}
	if record.Source != "payments" || record.Partition != "0" || record.Offset != 2 || record.Operator != "half" || record.Key != "1" {
		t.Errorf("the error names %+v", record)
	}
	if !strings.Contains(err.Error(), "thirteen cents") {
		t.Errorf("the error doesn't say why: %v", err)
	}
	test.Replace(failingJob("unused", false, true))
	test.Step()
	if got := sluicetest.Table[int64, balance](test, "half"); got[1] != (balance{3, 25}) {
		t.Errorf("after the mended build: %v, want 3 payments of 25 cents", got)
	}
}

func TestDeadLettersLeaveNothingBehind(t *testing.T) {
	test := sluicetest.New(t, failingJob("unused", true, false))
	test.Options(func(o *sluice.Options) { o.Shards, o.BatchRecords = 3, 2 })
	sluicetest.Feed(test, "payments", payment{1, "ann", 5}, payment{2, "bob", 13}, payment{3, "ann", 7})
	sluicetest.FeedBad[payment](test, "payments", "no payment")
	sluicetest.Feed(test, "payments", payment{4, "bob", 13}, payment{5, "bob", 1})
	test.Step()
	if got := sluicetest.Table[string, balance](test, "before"); got["ann"] != (balance{2, 12}) || got["bob"] != (balance{1, 1}) {
		t.Errorf("the fold before the failing one has %v", got)
	}
	if got := sluicetest.Table[int64, balance](test, "half"); got[1] != (balance{3, 13}) || len(got) != 1 {
		t.Errorf("the failing fold has %v, want only the three good payments", got)
	}
	letters := sluicetest.Rows[sluice.DeadLetter](test, "dead")
	if len(letters) != 3 {
		t.Fatalf("%d dead letters, want 3: %v", len(letters), letters)
	}
	for i, want := range []struct {
		offset   int64
		operator string
		cause    string
	}{{1, "half", "thirteen"}, {3, "payments", "no payment"}, {4, "half", "thirteen"}} {
		l := letters[i]
		if l.Offset != want.offset || l.Operator != want.operator || !strings.Contains(l.Error, want.cause) || l.Source != "payments" {
			t.Errorf("dead letter %d is %+v, want offset %d, operator %s", i, l, want.offset, want.operator)
		}
	}
	test.Replay(func(o *sluice.Options) { o.Shards = 1 })
}

func TestAnErrorBehindATableStopsTheJob(t *testing.T) {
	job := sluice.NewJob("behind")
	job.From("payments", file.JSONLines[payment]("unused.jsonl")).
		KeyBy(func(p payment) string { return p.User }).
		Fold(balances, (*balance).add).Changes().
		TryMap(func(c sluice.Change[string, balance]) (balance, error) {
			if c.New.Cents > 100 {
				return balance{}, errors.New("too rich")
			}
			return c.New, nil
		}).To("out", file.Append[balance]("unused"))
	job.DeadLetter("dead", file.Append[sluice.DeadLetter]("unused"))
	test := sluicetest.New(t, job)
	sluicetest.Feed(test, "payments", payment{1, "ann", 5}, payment{2, "bob", 101})
	err := test.Try()
	var state *sluice.StateError
	if !errors.As(err, &state) || state.State != "balance" || state.Key != "bob" {
		t.Fatalf("the error is %v, want a StateError of balance and bob", err)
	}
	if !strings.Contains(err.Error(), "epoch") {
		t.Errorf("the error names no epoch: %v", err)
	}
}

func TestTryMapToDeadLetters(t *testing.T) {
	job := sluice.NewJob("try")
	s := job.From("payments", file.JSONLines[payment]("unused.jsonl"))
	s.KeyBy(func(p payment) string { return p.User }).Fold(balances, (*balance).add).
		To("balances", file.Upsert("unused", func(_ string, b balance) balance { return b }))
	s.TryMap(func(p payment) (payment, error) {
		if p.Cents < 0 {
			return p, errors.New("negative")
		}
		return p, nil
	}).To("good", file.Append[payment]("unused"))
	job.DeadLetter("dead", file.Append[sluice.DeadLetter]("unused2"))
	test := sluicetest.New(t, job)
	sluicetest.Feed(test, "payments", payment{1, "ann", 5}, payment{2, "ann", -1}, payment{3, "ann", 2})
	test.Step()
	if got := sluicetest.Table[string, balance](test, "balances"); got["ann"] != (balance{2, 7}) {
		t.Errorf("the other branch of the stream has %v, want the bad record's effect gone", got)
	}
	if got := sluicetest.Rows[payment](test, "good"); len(got) != 2 || got[0].ID != 1 || got[1].ID != 3 {
		t.Errorf("the stream has put out %v", got)
	}
	if got := sluicetest.Rows[sluice.DeadLetter](test, "dead"); len(got) != 1 || got[0].Offset != 1 || got[0].Error != "negative" {
		t.Errorf("dead letters are %v", got)
	}
}
