package sluice_test

import (
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// balanceSince is balance as a later version has it.
type balanceSince struct {
	Payments int64
	Cents    int64
	Late     bool
}

// fallible is a job whose fold fails on 13 cents, behind the KeyBy, so that an
// attempt is given up.
func fallible[S any](add func(*S, payment)) *sluice.Job {
	job := sluice.NewJob("fallible")
	job.DeadLetter("dead", file.Append[sluice.DeadLetter]("unused"))
	job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User }).
		Fold(sluice.NewState[string, S]("balance"), func(s *S, p payment) {
			if p.Cents == 13 {
				panic("thirteen")
			}
			add(s, p)
		}).
		To("balances", file.Upsert("unused", func(_ string, s S) S { return s }))
	return job
}

// What an attempt has written in vain goes once its epoch is committed; what the
// log refers to stays, also if no epoch of data came between: a new version's
// states are written anew before the first one.
func TestAnAttemptThatIsGivenUpLeavesNothingAndTakesNothing(t *testing.T) {
	test := sluicetest.New(t, fallible((*balance).add))
	var s store.Store
	test.Options(func(o *sluice.Options) { s = o.Store })
	sluicetest.Feed(test, "payments", payment{1, "ann", 5}, payment{2, "bob", 6})
	test.Step()

	test.Replace(fallible(func(b *balanceSince, p payment) { b.Payments++; b.Cents += p.Cents }))
	sluicetest.Feed(test, "payments", payment{3, "ann", 7}, payment{4, "ann", 13}, payment{5, "eve", 1})
	test.Step() // rewrites the state, is given up, and goes on without the fourth
	wantNoLeftOvers(t, s, "fallible")

	sluicetest.Feed(test, "payments", payment{6, "bob", 1}, payment{7, "bob", 13})
	test.Step() // loads what is there
	wantNoLeftOvers(t, s, "fallible")
	want := map[string]balanceSince{"ann": {2, 12, false}, "bob": {2, 7, false}, "eve": {1, 1, false}}
	got := sluicetest.Table[string, balanceSince](test, "balances")
	for user, b := range want {
		if got[user] != b {
			t.Errorf("%s has %+v, want %+v", user, got[user], b)
		}
	}
	if dead := sluicetest.Rows[sluice.DeadLetter](test, "dead"); len(dead) != 2 {
		t.Errorf("%d dead letters, want 2", len(dead))
	}
}

// wantNoLeftOvers compares the data objects of a job with what its manifests
// refer to.
func wantNoLeftOvers(t *testing.T, s store.Store, name string) {
	t.Helper()
	job, err := epoch.FindJob(t.Context(), env.Real(), s, name)
	if err != nil {
		t.Fatal(err)
	}
	referred := map[string]bool{}
	for m, err := range job.Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range m.State {
			for _, segment := range entry.Segments {
				referred[segment.Path] = true
			}
		}
		for _, sink := range m.Sinks {
			for _, object := range sink.Outbox {
				referred[object.Path] = true
			}
		}
	}
	listed, err := s.List(t.Context(), job.Object(epoch.LogPath(epoch.MainBranch, epoch.FirstTask)+"data/"), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range listed {
		path := strings.TrimPrefix(object.Name, job.Object(""))
		if !referred[path] {
			t.Errorf("%s is a left-over", path)
		}
		delete(referred, path)
	}
	for path := range referred {
		t.Errorf("%s is gone, and a manifest refers to it", path)
	}
}
