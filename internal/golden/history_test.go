package golden

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// history reads what the objects of the job moves say of what became of it.
func (p *place) history() {
	p.t.Helper()
	lives := p.lives()
	kinds := []epoch.BranchKind{epoch.First, epoch.Upgrade, epoch.Upgrade, epoch.Upgrade, epoch.Rollback}
	if len(lives) != len(kinds) {
		p.t.Fatalf("%d generations, want %d", len(lives), len(kinds))
	}
	for n, live := range lives {
		if live.N != epoch.Generation(n) || live.Kind != kinds[n] {
			p.t.Errorf("live record %d is %d, %s", n, live.N, live.Kind)
		}
		if n > 0 && (live.Ends.Live != epoch.Generation(n-1) || live.Ends.Branch != lives[n-1].Branch) {
			p.t.Errorf("live record %d ends generation %d, branch %s", n, live.Ends.Live, live.Ends.Branch)
		}
		p.check(p.headOf(live.Branch), generations[n])
	}
	p.checkConsents(lives)
	p.checkBranches(lives)
	p.checkSteps(lives[1].Branch)
	p.checkParts(lives[1].Branch)
	p.checkFilled(lives[1].Branch)
	p.checkRewritten(lives)
	p.checkKilled(lives)
}

// checkConsents sees what was settled about sinks.
func (p *place) checkConsents(lives []epoch.LiveRecord) {
	p.t.Helper()
	filled, dropped, gap := epoch.SinkConsent{Start: "base"}, epoch.SinkConsent{Dropped: "consented"}, epoch.SinkConsent{Gap: "consented"}
	for n, want := range []map[string]epoch.SinkConsent{nil, {"rooms": filled, "copies": filled}, nil, {"copies": dropped}, {"copies": gap}} {
		if !maps.Equal(lives[n].Sinks, want) {
			p.t.Errorf("generation %d settles %v of its sinks, want %v", n, lives[n].Sinks, want)
		}
	}
	fourth, last := p.headOf(lives[3].Branch).Sinks["copies"], p.head().Sinks["copies"]
	if fourth.Dropped != "consented" || last.Dropped != "" || last.Start != lives[4].Ends.Tasks[epoch.FirstTask].Position || last.Confirmed != p.head().Position {
		p.t.Errorf("the sink copies is %+v where it is lacking, and %+v at the end", fourth, last)
	}
}

// checkBranches sees where branches begin.
func (p *place) checkBranches(lives []epoch.LiveRecord) {
	p.t.Helper()
	saved := p.savepoint("before")
	file := func(n int) epoch.BranchFile {
		f, err := p.log().BranchFile(p.t.Context(), lives[n].Branch)
		if err != nil {
			p.t.Fatal(err)
		}
		return f
	}
	if f := file(1); f.Kind != epoch.Upgrade || f.Asked != "before backfill" || f.Base.Branch != "main" || !maps.Equal(f.Base.Tasks, saved.Tasks) ||
		!maps.Equal(f.Starts, map[string]string{"copies": "base", "rooms": "base"}) {
		p.t.Errorf("the branch of the second build is %+v", f)
	}
	at := lives[2].Ends.Tasks[epoch.FirstTask].Epoch // where the second build was sealed
	if f := file(4); f.Kind != epoch.Rollback || f.Asked != "" || f.Base.Branch != lives[1].Branch || f.Base.Tasks[epoch.FirstTask] != at || f.Build != file(1).Build {
		p.t.Errorf("the branch of the rollback is %+v, expected one that begins at epoch %d of %s", f, at, lives[1].Branch)
	}
	for n := range 4 {
		head, err := p.log().Head(p.t.Context(), lives[n].Branch, epoch.FirstTask)
		if err != nil || !head.Sealed() || !strings.Contains(head.Seal.By, lives[n+1].Branch) {
			p.t.Errorf("branch %s is sealed by %q, %v", lives[n].Branch, head.Seal.By, err)
		}
	}
}

// savepoint is the one of a name.
func (p *place) savepoint(name string) epoch.Savepoint {
	p.t.Helper()
	all, err := p.log().Savepoints(p.t.Context())
	i := slices.IndexFunc(all, func(s epoch.Savepoint) bool { return s.Name == name })
	if err != nil || i < 0 || all[i].By != by {
		p.t.Fatalf("savepoints %+v, %v", all, err)
	}
	return all[i]
}

// checkSteps sees that the second build's branch has covered two epochs with its first,
// each with the clock that it had, and what was forgotten before the first of them.
func (p *place) checkSteps(branch string) {
	p.t.Helper()
	var covered []epoch.Manifest
	for _, m := range p.manifests("main") {
		if m.Kind == epoch.Data && m.Epoch > p.savepoint("before").Tasks[epoch.FirstTask] {
			covered = append(covered, m)
		}
	}
	m := p.data(branch)[0]
	if len(covered) != 2 || len(m.Steps) != 2 {
		p.t.Fatalf("%d epochs are covered, in %d steps, want two", len(covered), len(m.Steps))
	}
	for i, step := range m.Steps {
		if step.Now != covered[i].Now || step.Runs != len(covered[i].Runs) {
			p.t.Errorf("step %d is %+v, that epoch is of %d, with %d runs", i, step, covered[i].Now, len(covered[i].Runs))
		}
	}
	if m.Live != nil || m.Position != 3 || m.Covers[epoch.FirstTask] != 3 || !slices.Equal(m.Runs, slices.Concat(covered[0].Runs, covered[1].Runs)) {
		p.t.Errorf("the epoch that covers them is of generation %v, has position %d, covers %v, and reads %v", m.Live, m.Position, m.Covers, m.Runs)
	}
	if want := p.edits("m3", "values"); !slices.Equal(m.Edits, want) || !slices.Equal(covered[0].Edits, want) || m.Request != 1 {
		p.t.Errorf("it forgets %v up to request %d, the covered one %v, want %v", m.Edits, m.Request, covered[0].Edits, want)
	}
}

// data are a branch's epochs with data.
func (p *place) data(branch string) []epoch.Manifest {
	p.t.Helper()
	return slices.DeleteFunc(p.manifests(branch), func(m epoch.Manifest) bool { return m.Kind != epoch.Data })
}

// checkParts sees that a request to forget took two epochs.
func (p *place) checkParts(branch string) {
	p.t.Helper()
	var parts []epoch.Manifest
	for _, m := range p.data(branch)[1:] {
		if len(m.Edits) > 0 {
			parts = append(parts, m)
		}
	}
	if len(parts) != 2 {
		p.t.Fatalf("%d epochs forget, want two", len(parts))
	}
	a, b := parts[0], parts[1]
	if len(a.Edits) != 1000 || a.EditsOf != 2 || a.Request != 1 || a.Counts["forgotten"] != 0 {
		p.t.Errorf("the first forgets %d entries of request %d, has done %d, and has met %d", len(a.Edits), a.EditsOf, a.Request, a.Counts["forgotten"])
	}
	if !slices.Equal(b.Edits, p.edits("m4", "values")) || b.EditsOf != 0 || b.Request != 2 || b.Counts["forgotten"] != 1 {
		p.t.Errorf("the second forgets %v of request %d, has done %d, and has met %d", b.Edits, b.EditsOf, b.Request, b.Counts["forgotten"])
	}
}

// checkFilled sees that two sinks were filled with what the second build's branch put out
// before it was live: in one part each, by its first epoch with data.
func (p *place) checkFilled(branch string) {
	p.t.Helper()
	first := p.data(branch)[0].Epoch
	for _, sink := range []string{"copies", "rooms"} {
		var got []epoch.Fill
		for _, m := range p.manifests(branch) {
			if f := m.Sinks[sink].Fill; f != nil && (len(got) == 0 || *f != got[len(got)-1]) {
				got = append(got, *f)
			}
		}
		want := []epoch.Fill{{Branch: branch}, {Branch: branch, Parts: 1}, {Branch: branch, Parts: 1, Delivered: 1, Through: first}}
		if !slices.Equal(got, want) {
			p.t.Errorf("sink %s was filled as %v, want %v", sink, got, want)
		}
	}
}

// checkRewritten sees how the sink parity was written anew: by the third build, which was
// stopped before it was done, and by the fourth, which goes on there, and once more for
// what the third had. The rollback writes it and the sink rooms in one go.
func (p *place) checkRewritten(lives []epoch.LiveRecord) {
	p.t.Helper()
	ends := func(n int) epoch.LogEnd {
		final := lives[n].Ends.Tasks[epoch.FirstTask]
		return epoch.LogEnd{Branch: lives[n].Ends.Branch, Task: epoch.FirstTask, Epoch: final.Epoch, SHA256: final.SHA256}
	}
	second, third, fourth := ends(2), ends(3), ends(4)
	if left := p.headOf(lives[2].Branch).Sinks["parity"].Rewrite; left == nil || left.Mode != "all" || left.Cursor == 0 || !slices.Equal(left.Ended, []epoch.LogEnd{second}) || left.Later != nil {
		p.t.Errorf("the third build has left %+v", left)
	}
	written, passes := 0, 0
	for _, m := range slices.Concat(p.manifests(lives[2].Branch), p.manifests(lives[3].Branch)) {
		s := m.Sinks["parity"]
		if m.Live != nil && *m.Live == 3 && s.Rewrite != nil && s.Rewrite.Cursor > 0 && passes == 0 && !slices.Equal(s.Rewrite.Later, []epoch.LogEnd{third}) {
			p.t.Errorf("epoch %d of the fourth build has %+v left", m.Epoch, s.Rewrite)
		}
		if s.Rewrote == nil {
			continue
		}
		if int(s.Rewrote.First) != written || s.Rewrote.Mode != "all" {
			p.t.Errorf("epoch %d of branch %s has written %+v anew, want slots from %d on", m.Epoch, m.Branch, s.Rewrote, written)
		}
		written = int(s.Rewrote.Last) + 1
		if written < 1<<16 {
			continue
		}
		if written, passes = 0, passes+1; passes == 1 && (s.Rewrite == nil || s.Rewrite.Cursor != 0 || !slices.Equal(s.Rewrite.Ended, []epoch.LogEnd{third})) {
			p.t.Errorf("behind the first pass %+v is left", s.Rewrite)
		}
	}
	if left := p.headOf(lives[3].Branch).Sinks["parity"].Rewrite; passes != 2 || written != 0 || left != nil {
		p.t.Errorf("the fourth build has ended %d passes, and stands at slot %d, with %+v left", passes, written, left)
	}
	for _, sink := range []string{"parity", "rooms"} {
		var rewrote []epoch.Rewrote
		for _, m := range p.manifests(lives[4].Branch) {
			s := m.Sinks[sink]
			if s.Rewrote != nil {
				rewrote = append(rewrote, *s.Rewrote)
			}
			if m.Live != nil && m.Kind == epoch.Open && s.Rewrite != nil && !ofAll(s.Rewrite.Ended, second, third, fourth) {
				p.t.Errorf("the rollback compares sink %s with %v", sink, s.Rewrite.Ended)
			}
		}
		if want := (epoch.Rewrote{Mode: "all", Slots: epoch.AllSlots}); !slices.Equal(rewrote, []epoch.Rewrote{want}) {
			p.t.Errorf("the rollback has written sink %s anew as %v", sink, rewrote)
		}
	}
}

// ofAll tells whether a list holds just these.
func ofAll(list []epoch.LogEnd, want ...epoch.LogEnd) bool {
	return len(list) == len(want) && !slices.ContainsFunc(want, func(e epoch.LogEnd) bool { return !slices.Contains(list, e) })
}

// checkKilled sees what killed processes have left.
func (p *place) checkKilled(lives []epoch.LiveRecord) {
	p.t.Helper()
	ctx, job := p.t.Context(), p.log()
	pins, err := job.Pins(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	readers, begun := 0, ""
	for id, pin := range pins {
		if pin.Branch != lives[1].Branch {
			p.t.Errorf("pin %s is of %s", id, pin.Branch)
		}
		if pin.Reader {
			readers++
			continue
		}
		begun = id[:strings.LastIndexByte(id, '-')]
	}
	if len(pins) != 2 || readers != 1 {
		p.t.Errorf("the pins are %v", pins)
	}
	if f, err := job.BranchFile(ctx, begun); err != nil || f.Kind != epoch.Upgrade || f.Build.Executable != strings.Repeat("e0", 32) {
		p.t.Errorf("the branch that was begun is %+v, %v", f, err)
	}
	f, err := job.BranchFile(ctx, "upgrade-00000001")
	ended, eerr := job.Ended(ctx, "upgrade-00000001")
	if err != nil || eerr != nil || f.Kind != epoch.GivenUp || f.By != by || !ended {
		p.t.Errorf("the branch that was given up is %+v, %v, and has ended: %v, %v", f, err, ended, eerr)
	}
}
