package sluice_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/sluicetest"
)

// owing is a row of a user: which version has written it is told by By.
type owing struct {
	User  string
	Cents int64
	By    int64
}

// doubled is what the second version has for a user.
type doubled struct {
	Payments int64
	Cents    int64
	Twice    int64
}

func (d *doubled) add(p payment) { d.Payments++; d.Cents += p.Cents; d.Twice += 2 * p.Cents }

// A payment of a multiple of seven closes the account, so that entries go as well.
func open(p payment) bool { return p.Cents%7 != 0 }

// rewriteJob is a version of a job with one table sink: 1 has what a user paid, 2 twice
// that since it began, in a state of its own, and 3 what 1 has, in a larger state.
func rewriteJob(version int) *sluice.Job {
	job := sluice.NewJob("payments")
	keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User })
	switch version {
	case 1:
		keyed.FoldKeep(balances, func(b *balance, p payment) bool { b.add(p); return open(p) }).
			To("owing", file.Upsert("unused", func(user string, b balance) owing { return owing{user, b.Cents, 1} }))
	case 2:
		keyed.FoldKeep(sluice.NewState[string, doubled]("doubled"), func(d *doubled, p payment) bool { d.add(p); return open(p) }).
			To("owing", file.Upsert("unused", func(user string, d doubled) owing { return owing{user, d.Twice, 2} }))
	case 3:
		keyed.FoldKeep(sluice.NewState[string, doubled]("balance"), func(d *doubled, p payment) bool { d.add(p); return open(p) }).
			To("owing", file.Upsert("unused", func(user string, d doubled) owing { return owing{user, d.Cents, 3} }))
	}
	return job
}

// owe is the table after payments, worked out on its own: an account that is closed
// begins anew.
func owe(payments []payment, version int64) map[string]owing {
	table := map[string]owing{}
	for _, p := range payments {
		row := table[p.User]
		row.User, row.By = p.User, version
		if row.Cents += p.Cents; version == 2 {
			row.Cents += p.Cents
		}
		if table[p.User] = row; p.Cents%7 == 0 {
			delete(table, p.User)
		}
	}
	return table
}

// somePayments are random ones; one in seven closes an account.
func somePayments(random *rand.Rand, n, users int) (all []payment) {
	for range n {
		all = append(all, payment{ID: random.Int64(), User: fmt.Sprintf("user%03d", random.IntN(users)), Cents: 1 + random.Int64N(1000)})
	}
	return all
}

// A table's sink has just the rows of the new version's table once it is written anew,
// in parts, wherever the process is killed meanwhile: rows of keys that the table lacks
// go, and each other key's row is the new version's. A replay puts out the same bytes,
// whatever the number of shards.
func TestATableIsWrittenAnewInPlace(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		for range 6 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("version %d, seed %#x", version, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				test := sluicetest.New(t, rewriteJob(1))
				var options sluice.Options
				test.Options(func(o *sluice.Options) {
					o.Shards = 1 + random.IntN(4)
					options = *o
				})
				before := somePayments(random, 600, 300)
				sluicetest.Feed(test, "payments", before...)
				test.Step()
				old := sluicetest.Table[string, owing](test, "owing")
				if !maps.Equal(old, owe(before, 1)) {
					t.Fatalf("the first version put out %d rows, want %d", len(old), len(owe(before, 1)))
				}

				test.Replace(rewriteJob(version))
				test.Options(func(o *sluice.Options) {
					o.Rewrite, o.EpochBytes = map[string]string{"owing": "all"}, int64(1000+random.IntN(4000))
					if version == 2 {
						o.Drop = []string{"balance"}
					}
					o.Shards = 1 + random.IntN(4)
				})
				after := somePayments(random, random.IntN(60), 330)
				sluicetest.Feed(test, "payments", after...)
				killed := 0
				for test.Crash(1 + random.IntN(200)) {
					killed++
				}
				test.Step()

				want := owe(after, 2)
				if version == 3 {
					want = owe(slices.Concat(before, after), 3)
				}
				if got := sluicetest.Table[string, owing](test, "owing"); !maps.Equal(got, want) {
					t.Errorf("the sink has %d rows, want %d, after %d kills:\n%s", len(got), len(want), killed, differing(got, want))
				}
				began, parts := rewritten(t, options)
				if parts < 3 {
					t.Errorf("it was written anew in %d parts, want several", parts)
				}
				test.Options(func(o *sluice.Options) { options = *o })
				options.Shards = 5
				replayed, err := replayOf(rewriteJob(version), test, options, began)
				if err != nil || len(replayed.Differences) > 0 || replayed.Epochs < int64(parts) {
					t.Errorf("a replay of %d epochs says %q, %v", replayed.Epochs, replayed.Differences, err)
				}
			})
		}
	}
}

// replayOf replays a job's epochs with the test's sources.
func replayOf(job *sluice.Job, test *sluicetest.Test, o sluice.Options, after epoch.Epoch) (sluice.Replayed, error) {
	test.Replace(job)
	return job.Replay(context.Background(), o, uint64(after))
}

func differing(got, want map[string]owing) string {
	text := ""
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, user := range slices.Sorted(maps.Keys(all)) {
		if got[user] != want[user] {
			text += fmt.Sprintf("%s: got %+v, want %+v\n", user, got[user], want[user])
		}
	}
	return text
}

// rewritten reads in which epoch the last version began, in how many parts a sink was
// written anew, and holds these to be one pass over all slots, which is over.
func rewritten(t *testing.T, o sluice.Options) (began epoch.Epoch, parts int) {
	t.Helper()
	job, err := epoch.FindJob(t.Context(), env.Real(), o.Store, "payments")
	if err != nil {
		t.Fatal(err)
	}
	head, err := job.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for m, err := range job.Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, head.Manifest.Epoch) {
		if err != nil {
			t.Fatal(err)
		}
		s := m.Sinks["owing"]
		if m.Kind != epoch.Data && s.Rewrite != nil && next == 0 {
			began = m.Epoch
		}
		if s.Rewrote == nil {
			continue
		}
		if parts++; int(s.Rewrote.First) != next {
			t.Errorf("epoch %d has written anew slots from %d on, want from %d", m.Epoch, s.Rewrote.First, next)
		}
		next = int(s.Rewrote.Last) + 1
	}
	if left := head.Manifest.Sinks["owing"].Rewrite; next != 1<<16 || left != nil {
		t.Errorf("it was written anew up to slot %d, and %+v is left", next, left)
	}
	if report, err := fsck.Check(t.Context(), o.Store, "payments", fsck.Options{}); err != nil || !report.Whole() {
		t.Errorf("fsck says %+v, %v", report, err)
	}
	return began, parts
}

// Without a wish nothing is written anew: rows of keys that don't change stay. Each row
// that is written anew is written once.
func TestRowsAreWrittenAnewOnceAndOnlyByWish(t *testing.T) {
	for _, mode := range []string{"touched", "all"} {
		test := sluicetest.New(t, rewriteJob(1))
		payments := []payment{{1, "ann", 5}, {2, "bob", 6}, {3, "eve", 8}}
		sluicetest.Feed(test, "payments", payments...)
		test.Step()
		test.Replace(rewriteJob(3))
		test.Options(func(o *sluice.Options) { o.Rewrite = map[string]string{"owing": mode} })
		test.Step()
		test.Step() // nothing comes twice
		got := sluicetest.Rows[owing](test, "owing")[3:]
		slices.SortFunc(got, func(a, b owing) int { return cmp.Compare(a.User, b.User) })
		var want []owing
		if mode == "all" {
			want = []owing{{"ann", 5, 3}, {"bob", 6, 3}, {"eve", 8, 3}}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the rows behind the change are %v, want %v", mode, got, want)
		}
	}
}

// What can't be written anew as it is asked for is refused, before anything changes.
func TestRewritingIsRefused(t *testing.T) {
	for mode, want := range map[string]string{
		"owing=changed": "payments: refused: sink owing can't be written anew, and nothing was changed: changed leaves out rows that the sink has already, and this one can't see what it has; use all, or touched.",
		"owing=some":    `payments: refused: sink owing can't be written anew, and nothing was changed: "some" is none of the modes; use touched, changed or all.`,
		"paid=all":      "payments: --rewrite paid: the job has nothing of that name for it; name one of owing, or leave it out",
	} {
		test := sluicetest.New(t, rewriteJob(1))
		sink, mode, _ := strings.Cut(mode, "=")
		test.Options(func(o *sluice.Options) { o.Rewrite = map[string]string{sink: mode} })
		sluicetest.Feed(test, "payments", payment{1, "ann", 5})
		err := test.Try()
		var coded interface{ ExitCode() int }
		if err == nil || err.Error() != want || !errors.As(err, &coded) || coded.ExitCode() != 13 {
			t.Errorf("%s=%s: %v", sink, mode, err)
		}
		if rows := sluicetest.Rows[owing](test, "owing"); len(rows) > 0 {
			t.Errorf("%s=%s: %v was put out", sink, mode, rows)
		}
	}
}
