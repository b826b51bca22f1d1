package upgrades

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/kafka"
)

// deleteInputs has the topic lose what a branch has read, as retention does.
func (w *way) deleteInputs(read epoch.Manifest) {
	w.t.Helper()
	var to kadm.Offsets
	for p := range int32(partitions) {
		to.AddOffset("inputs", p, next(read, p), -1)
	}
	if r, err := w.cluster.Admin.DeleteRecords(w.t.Context(), to); err != nil || r.Error() != nil {
		w.t.Fatal(err, r.Error())
	}
}

// next is the offset of a partition that a branch reads next.
func next(m epoch.Manifest, partition int32) int64 {
	return m.Sources["inputs"].Partitions[fmt.Sprintf("inputs/%d", partition)].Next
}

// lost expects that an error names a partition, and the offsets between two epochs.
func (w *way) lost(err error, from, to epoch.Manifest) {
	w.t.Helper()
	lost, ok := errors.AsType[*kafka.LostError](err)
	if !ok {
		w.t.Fatalf("it says: %v", err)
	}
	if want := (kafka.LostError{Topic: "inputs", Partition: lost.Partition, From: next(from, lost.Partition), To: next(to, lost.Partition)}); *lost != want || lost.From >= lost.To {
		w.t.Errorf("it says %+v, want %+v", *lost, want)
	}
}

// wayBroker is the variable in which a process gets its broker that is the first build's
// command line instead of a test.
const wayBroker = "SLUICE_TEST_WAY"

// command runs a command of the first build, and returns what it prints and its exit code.
func (w *way) command(args ...string) (out string, code int) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), wayBroker+"="+w.cluster.Addr, "SLUICE_STORE="+w.folder)
	printed, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		w.t.Fatal(err)
	}
	return string(printed), code
}

// foresees expects that a plan says which inputs are gone, of each partition that has lost
// some, and what to do.
func (w *way) foresees(from, to epoch.Manifest, do string, args ...string) {
	w.t.Helper()
	out, code := w.command(append([]string{"plan"}, args...)...)
	lost := 0
	for p := range int32(partitions) {
		says := fmt.Sprintf("inputs: partition inputs/%d: inputs are gone: offset %d is needed, and the first that is left is %d", p, next(from, p), next(to, p))
		if gone := next(from, p) < next(to, p); gone != strings.Contains(out, says) {
			w.t.Errorf("expected %q: %v, in\n%s", says, gone, out)
		} else if gone {
			lost++
		}
	}
	if lost == 0 || code != 24 || !strings.Contains(out, "do: "+do) {
		w.t.Errorf("exit code %d, expected 24 and what to do, in\n%s", code, out)
	}
}

// branches are the names of all branches.
func (w *way) branches() []string {
	w.t.Helper()
	all, err := w.log().Branches(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// manifest is an epoch.
func (w *way) manifest(branch string, e epoch.Epoch) epoch.Manifest {
	w.t.Helper()
	m, err := w.log().Manifest(w.t.Context(), branch, epoch.FirstTask, e)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// TestRetention has the topic lose what a branch from a savepoint has to read: nothing is
// begun.
func TestRetention(t *testing.T) {
	w, old := compared(t, build{version: 1})
	saved, err := w.log().Savepoints(t.Context())
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	from := w.manifest(saved[0].Branch, saved[0].Tasks[epoch.FirstTask])
	head := w.head(epoch.MainBranch).Manifest
	if out, code := w.command("plan", "--from", "before"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	w.deleteInputs(head)
	w.foresees(from, head, "begin later", "--from", "before")
	for _, rehearse := range []bool{false, true} {
		u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, From: "before", Rehearse: rehearse})
		u.endsWith(16, "Nothing was begun", "the live branch goes on")
		w.lost(u.err, from, head)
	}
	if all := w.branches(); len(all) != 1 || w.live().N != 0 || w.head(epoch.MainBranch).Sealed() {
		t.Errorf("branches %v, want main alone, and that it goes on", all)
	}
	w.feedEpochs(2, nil)
	old.goesOn()
	now := w.upgrade("the new build from the head", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	now.stops()
}

// TestRollbackRetention has the topic lose what a rollback has to read: it is refused
// before anything is begun. Going on with the newer build's state is the way that is left.
func TestRollbackRetention(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	record := w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	sealed, head := w.head(record.Ends.Branch).Manifest, w.head(record.Branch).Manifest
	before := w.branches()
	if out, code := w.command("plan", "--rollback"); code != 0 || !strings.Contains(out, "a rollback goes on from here") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	w.deleteInputs(head)
	w.foresees(sealed, head, "let this build go on with the newer one's state: run --replace", "--rollback")
	w.await("status says that there is no going back", func() bool {
		out, code := w.command("status")
		return code == 0 && strings.Contains(out, "no more, since inputs that it would have to read are gone")
	}, nil)
	back := w.rollback("the old build again", first(w, build{version: 1}), sluice.Options{}, sluice.Upgrade{Auto: true})
	back.endsWith(16, "Nothing was begun", "the live branch goes on", "`run --replace`")
	w.lost(back.err, sealed, head)
	if all := w.branches(); len(all) != len(before) || w.live().N != 1 || w.head(record.Branch).Sealed() {
		t.Errorf("branches %v, want %v, and that the live one goes on", all, before)
	}
	w.feedEpochs(2, nil)
	u.stops()
	in := w.run("the old build in place", first(w, build{version: 1}), sluice.Options{Replace: true, Drop: []string{"totals.Since2"}})
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if got := w.versions("totals"); got[1] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	in.stops()
}

// rollback goes back to a build.
func (w *way) rollback(what string, job *sluice.Job, o sluice.Options, u sluice.Upgrade) *process {
	w.t.Helper()
	return w.start(what, o, func(ctx context.Context, o sluice.Options, p *process) error {
		u.Told = func(progress sluice.UpgradeProgress) { p.last.Store(&progress) }
		return job.Rollback(ctx, o, u)
	})
}

// TestFollowerRetention has the topic lose what a branch has yet to follow that has begun:
// while nobody follows on it, and a rollback that goes on behind what was lost.
func TestFollowerRetention(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	w.savepoint("before")
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := u.caughtUp().Branch
	u.kill()
	from := w.head(branch).Manifest
	w.leaseOver(from)
	late := w.upgrade("the third build", third(w, build{version: 3}), sluice.Options{}, sluice.Upgrade{From: "before"})
	w.feedEpochs(2, nil)
	late.awaits("has what there is", func(p sluice.UpgradeProgress) bool {
		return p.Position == uint64(w.head(epoch.MainBranch).Manifest.Position)
	})
	late.kill()
	w.deleteInputs(w.head(epoch.MainBranch).Manifest) // behind where the savepoint is
	again := w.upgrade("the third build again", third(w, build{version: 3}), sluice.Options{}, sluice.Upgrade{From: "before"})
	again.caughtUp()
	again.stops()
	w.feedEpochs(2, nil)
	head := w.head(epoch.MainBranch).Manifest
	w.deleteInputs(head)
	u = w.upgrade("the new build again", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	u.endsWith(16, "the live branch goes on", "`sluice branch drop ways "+branch+"`")
	w.lost(u.err, from, head)
	if follower, ok := errors.AsType[*runner.InputError](u.err); !ok || follower.Branch != branch {
		t.Errorf("it says: %v", u.err)
	}
	if w.live().N != 0 || w.head(epoch.MainBranch).Sealed() {
		t.Error("it has ended the live branch")
	}
	w.feedEpochs(1, nil)
	old.stops()
}
