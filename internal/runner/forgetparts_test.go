package runner_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/sluicetest"
)

// A request that names more than one epoch's edits may have takes several, with no
// record in between; whatever write is the last before a crash, it is called done with
// the last of them alone, and then has deleted everything that it names.
func TestForgettingInParts(t *testing.T) {
	const named = 2*epoch.MaxEdits + 500
	all := []string{"bill", "pages", "last"}
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		t.Fatal(err)
	}
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
		edit := func(state, user string) epoch.Edit {
			key := keys.Append(nil, user)
			return epoch.Edit{State: state, Slot: epoch.Slot(xxhash.Sum64(key) >> 48), Hash: epoch.EditHash(job().ID(), key)}
		}
		var edits []epoch.Edit // ann's bill is in the first part, her pages in the second, the rest in the third
		for i := range named {
			edits = append(edits, edit("bill", fmt.Sprint("stranger-", i)))
		}
		edits[7], edits[epoch.MaxEdits+3], edits[named-2] = edit("bill", "ann"), edit("pages", "ann"), edit("last", "ann")
		if r, err := job().AskForget(t.Context(), edits, nil, "", "a test"); err != nil || r.N != 1 {
			t.Fatal(r.N, err)
		}
		want.forget("ann", all...)
		feed("ann", "bob")
		crashed := test.Crash(n)
		feed("ann")
		test.Step()
		when := fmt.Sprintf("crash at write %d", n)
		want.check(t, when, test)
		checkParts(t, when, job(), named)
		test.Replay(nil)
		if !crashed {
			if n < 10 {
				t.Fatalf("there were %d writes; more were expected", n-1)
			}
			return
		}
	}
}

// checkParts sees that request 1 was done in whole parts, one behind the other.
func checkParts(t *testing.T, when string, job *epoch.Job, named int) {
	t.Helper()
	done, since, met := 0, 0, int64(0)
	seen := map[epoch.Edit]bool{}
	for m, err := range job.Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, head(t, job).Epoch) {
		if err != nil {
			t.Fatal(err)
		}
		last := m.EditsOf == 0
		switch {
		case len(m.Edits) == 0:
			if since > 0 && len(m.Runs) > 0 && done == 0 {
				t.Errorf("%s: epoch %d has read records behind %d parts", when, m.Epoch, since)
			}
			continue
		case m.Kind != epoch.Data, len(m.Edits) > epoch.MaxEdits, last != (m.Request == 1), !last && (m.EditsOf != 1 || len(m.Runs) > 0), last && len(m.Edits) != named%epoch.MaxEdits:
			t.Errorf("%s: epoch %d is %s, of request %d, with %d edits, a part of %d, and %d runs", when, m.Epoch, m.Kind, m.Request, len(m.Edits), m.EditsOf, len(m.Runs))
		case last:
			done++
		}
		since++
		met += m.Counts["forgotten"]
		for _, e := range m.Edits {
			seen[e] = true
		}
	}
	if len(seen) != named || done != 1 || met != 1+3+3 {
		t.Errorf("%s: %d edits of %d, %d times done, %d entries met, expected 7", when, len(seen), named, done, met)
	}
	if got := head(t, job).Request; got != 1 {
		t.Errorf("%s: up to request %d is called done", when, got)
	}
}
