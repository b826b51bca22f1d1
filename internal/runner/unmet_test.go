package runner_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/sluicetest"
)

func billing(keyMeaning int, state sluice.State[string, bill]) *sluice.Job {
	job := sluice.NewJob("visits")
	job.From("visits", file.JSONLines[visit]("unused.jsonl")).KeyBy(func(v visit) string { return v.User }).Meaning(keyMeaning).Fold(state, (*bill).add)
	return job
}

// A build that would carry an entry to where no request finds it doesn't run while one
// waits; given up, it is not met for ever, and never called done.
func TestForgettingBeforeStatesMove(t *testing.T) {
	old := func() *sluice.Job { return billing(0, sluice.NewState[string, bill]("bill")) }
	for what, now := range map[string]func() *sluice.Job{
		"taken over": func() *sluice.Job { return billing(0, sluice.NewState[string, bill]("invoice").TakesOver("bill")) },
		"new keys": func() *sluice.Job {
			return billing(1, sluice.NewState[string, bill]("bill").
				MigrateKeys(func(k string, b bill) iter.Seq2[string, bill] {
					return func(yield func(string, bill) bool) { yield("user:"+k, b) }
				}, nil))
		},
	} {
		t.Run(what, func(t *testing.T) {
			test := sluicetest.New(t, old())
			sluicetest.Feed(test, "visits", visit{"ann", "a", 1}, visit{"bob", "a", 2})
			test.Step()
			_, job := theStore(t, test)
			n := ask(t, job(), "ann", "bill")
			test.Replace(now())
			sluicetest.Feed(test, "visits", visit{"bob", "b", 3})
			var waiting *runner.WaitingForgetError
			if err := test.Try(); !errors.As(err, &waiting) || !slices.Equal(waiting.Requests, []uint64{n}) || !slices.Equal(waiting.States, []string{"bill"}) {
				t.Fatalf("got %v", err)
			}
			if m := head(t, job()); m.Request >= n || m.Epoch == 0 {
				t.Fatalf("the request is called done: %d", m.Request)
			}
			if _, err := job().AskGiveUp(t.Context(), n, "a test"); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a later manifest says so too
				test.Step()
				m := head(t, job())
				if m.Request < n || len(m.Unmet) != 1 || m.Unmet[0].Request != n || !m.Unmet[0].GivenUp || !slices.Equal(m.Unmet[0].States, []string{"bill"}) {
					t.Fatalf("the head says %d, %+v", m.Request, m.Unmet)
				}
				sluicetest.Feed(test, "visits", visit{"cid", "b", 3})
			}
		})
	}
}

// What was asked of keys that a state doesn't have any more is not met, and isn't among
// an epoch's edits, whatever bytes the keys have.
func TestForgettingOfOtherKeys(t *testing.T) {
	test := sluicetest.New(t, billing(0, sluice.NewState[string, bill]("bill")))
	sluicetest.Feed(test, "visits", visit{"ann", "a", 1})
	test.Step()
	_, job := theStore(t, test)
	hash := epoch.EditHash(job().ID(), append([]byte{6}, "ann"...))
	r, err := job().AskForget(t.Context(), []epoch.Edit{{State: "bill", Slot: 1, Hash: hash}}, map[string]string{"bill": `"bytes"`}, "", "a test")
	if err != nil {
		t.Fatal(err)
	}
	test.Step()
	m := head(t, job())
	if m.Request != r.N || len(m.Edits) != 0 || !slices.EqualFunc(m.Unmet, []epoch.Unmet{{Request: r.N, States: []string{"bill"}}},
		func(a, b epoch.Unmet) bool {
			return a.Request == b.Request && a.GivenUp == b.GivenUp && slices.Equal(a.States, b.States)
		}) {
		t.Errorf("the head says %d, edits %v, %+v", m.Request, m.Edits, m.Unmet)
	}
}

// What was asked of a version before, behind the start that has adopted the next, is
// met only where the keys are known to be the same.
func TestForgettingOfAVersionBefore(t *testing.T) {
	test := sluicetest.New(t, billing(0, sluice.NewState[string, bill]("bill")))
	sluicetest.Feed(test, "visits", visit{"ann", "a", 1})
	test.Step()
	_, job := theStore(t, test)
	before := head(t, job()).Version
	test.Replace(billing(0, sluice.NewState[string, bill]("invoice").TakesOver("bill")))
	sluicetest.Feed(test, "visits", visit{"bob", "a", 1})
	test.Step()
	r, err := job().AskForget(t.Context(), []epoch.Edit{{State: "bill", Slot: 1, Hash: "1"}}, map[string]string{"bill": `"string"`}, before, "a test")
	if err != nil {
		t.Fatal(err)
	}
	test.Step()
	if m := head(t, job()); m.Request != r.N || len(m.Edits) != 0 || len(m.Unmet) != 1 || m.Unmet[0].GivenUp {
		t.Errorf("the head says %d, edits %v, %+v", m.Request, m.Edits, m.Unmet)
	}
}
