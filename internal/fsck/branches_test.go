package fsck_test

import (
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/store"
)

// TestBranchesAreWhole: what upgrades leave in a job is no damage: a branch that is
// live behind another, one that follows, one that was given up, seals in the place
// of bases, with and without a branch's record, and the word that a dropped sink has got
// its rest.
func TestBranchesAreWhole(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	job, err := epoch.OpenJob(ctx, env.Real(), s, "spend", "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	main, err := job.TakeLive(ctx, epoch.FirstTask, epoch.Identity{Build: epoch.Build{Executable: "v1"}})
	must(err)
	for range 3 {
		head, _ := main.Head()
		_, err := main.Commit(ctx, epoch.Manifest{Kind: epoch.Data, Now: head.Now})
		must(err)
	}
	begin := func(exe string) (epoch.Begun, epoch.Identity) {
		me := epoch.Identity{Build: epoch.Build{Executable: exe}}
		begun, err := job.BeginBranch(ctx, epoch.Beginning{Name: exe, Kind: epoch.Upgrade}, me)
		must(err)
		return begun, me
	}
	based := func(exe string) *epoch.Owner {
		begun, me := begin(exe)
		o, err := job.BeginBase(ctx, begun.File.Branch, epoch.FirstTask, me)
		must(err)
		_, err = o.PutBase(ctx, epoch.BaseOf(begun.From[epoch.FirstTask], begun.File.Build, begun.File.Branch, nil))
		must(err)
		must(job.UnpinBranch(ctx, begun.File.Branch))
		return o
	}
	based("follows")
	must(job.GiveUp(ctx, based("given up").Branch(), epoch.Writer{}, "a test"))
	unbased, _ := begin("without a base")
	must(job.GiveUp(ctx, unbased.File.Branch, epoch.Writer{}, "a test"))
	must(job.GiveUp(ctx, "lost-1", epoch.Writer{}, "a test")) // its process died before its record
	begin("pinned")
	next := based("next")
	_, err = job.SealBranch(ctx, epoch.MainBranch, epoch.Writer{}, "a test")
	must(err)
	step, _, err := next.GoLive(ctx, epoch.Cutting{Kind: epoch.Upgrade})
	must(err)
	if step != epoch.IsLive {
		t.Fatalf("step %d", step)
	}
	must(job.PutDrained(ctx, 1, epoch.FirstTask, "totals", nil))
	report, err := fsck.Check(ctx, s, "spend", fsck.Options{})
	must(err)
	for _, f := range report.Findings {
		t.Errorf("%+v", f)
	}
}
