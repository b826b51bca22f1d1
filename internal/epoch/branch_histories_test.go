package epoch

import (
	"fmt"
	"slices"
	"testing"
)

// TestBranchHistories plays the protocol's histories of seals, live records and
// followers on the real decisions. Each ends well with the rules, and does not without
// its own.
func TestBranchHistories(t *testing.T) {
	for _, c := range []struct {
		name    string
		history func(off bool) (harm string)
	}{
		{"H13: who loses the race for live/1 takes live/2", loserTakesTheNext},
		{"H14: the seal names its heir, who dies", deadHeir},
		{"H15: live before the seal", liveBeforeSeal},
		{"H15: live before the end is covered", liveBeforeCovered},
		{"H16: a branch that was given up goes live", givenUpGoesLive},
		{"H16: a live record under which no epoch was written", emptyGeneration},
		{"H17: a cut that never gets its turn", cutWithoutTurn},
		{"H11a: a seal at a freed name ends a loop of sealing", sealUnderFloor},
		{"H20: what is gone is passed over", passedOver},
		{"H20, forget: edits in the middle of a coarse step", editsInTheMiddle},
		{"H20a: a source that only one of the builds has", foreignSource},
		{"H22a: a branch from an old manifest", oldRecord},
		{"C6, U7: what an opening has noted behind the data", notedByOpening},
		{"Builds: a build that ended between its two openings", betweenOpenings},
		{"Builds: a standby of the build that was replaced", standbyOfReplaced},
		{"Builds: the same build elsewhere", sameBuildElsewhere},
		{"Q3: a build that was replaced resumes", replacedResumes},
		{"C5: data under a generation that the owner has not read of", dataUnderNoRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			if harm := c.history(false); harm != "" {
				t.Errorf("with the rule: %s", harm)
			}
			if harm := c.history(true); harm == "" {
				t.Error("without the rule nothing goes wrong: the history tests nothing")
			}
		})
	}
}

var (
	oldBuild = Build{Executable: "old"}
	newBuild = Build{Executable: "new"}
)

// headAt is the end of a log at a position, where as many records were read.
func headAt(branch string, p Position, b Build) Head {
	return Head{Hash: fmt.Sprintf("%s %d", branch, p), Manifest: Manifest{
		Kind: Data, Branch: branch, Task: FirstTask, Epoch: Epoch(p), Position: p, Build: b, Covers: map[string]Position{FirstTask: p},
		Sources: map[string]SourceState{"orders": {Partitions: map[string]Offset{"0": {Next: int64(p)}}}},
	}}
}

func sealedAt(h Head) Head {
	h.Seal = &Manifest{Kind: Seal, Epoch: h.Manifest.Epoch + 1}
	return h
}

// cutOf is the view of a branch that has covered up to a position of main, which ends
// at another.
func cutOf(branch string, covers, end Position) CutView {
	own := headAt(branch, covers, newBuild)
	own.Manifest.Superseded = []Build{oldBuild}
	return CutView{
		Branch: branch, Live: LiveRecord{Branch: MainBranch},
		Finals: map[string]Head{FirstTask: sealedAt(headAt(MainBranch, end, oldBuild))}, Own: map[string]Head{FirstTask: own},
	}
}

func step(v CutView, on cutRules) CutStep {
	s, err := v.decide(on)
	if err != nil {
		return -1
	}
	return s
}

// loserTakesTheNext: n1 and n2 have both covered main's end; n1 makes live/1.
func loserTakesTheNext(off bool) string {
	v := cutOf("n2", 3, 3)
	v.Live = LiveRecord{N: 1, Branch: "n1", Ends: &Ends{Branch: MainBranch}}
	v.Finals[FirstTask] = headAt("n1", 3, newBuild) // which nobody has sealed
	on := allCutRules
	if off {
		on &^= ruleSealFirst
	}
	if step(v, on) == PutLive {
		return "two branches deliver the records behind 3"
	}
	return ""
}

// deadHeir: n sealed main and died; whoever covers the end may go on.
func deadHeir(off bool) string {
	v := cutOf("resumed", 3, 3)
	own := v.Own[FirstTask]
	own.Manifest.Build = oldBuild
	own.Manifest.Superseded = nil
	v.Own[FirstTask] = own
	final := v.Finals[FirstTask]
	final.Seal.By = "n"
	if off && final.Seal.By != v.Branch {
		return "nobody may go on"
	}
	if step(v, allCutRules) != PutLive {
		return "the old build can't go on from the end"
	}
	if e := DecideEnded(EndedView{Final: final.Manifest, Live: v.Live, Me: oldBuild, WasLive: true, Still: 60, After: 60}); e != ResumeNow {
		return "the old build does not go on"
	}
	return ""
}

// liveBeforeSeal: n has covered all there is, and main is not sealed.
func liveBeforeSeal(off bool) string {
	v := cutOf("n", 3, 3)
	final := v.Finals[FirstTask]
	final.Seal = nil
	v.Finals[FirstTask] = final
	on := allCutRules
	if off {
		on &^= ruleSealFirst
	}
	if step(v, on) == PutLive {
		return "main commits position 4, and n does"
	}
	return ""
}

// liveBeforeCovered: n seals main and goes live from where it stands.
func liveBeforeCovered(off bool) string {
	on := allCutRules
	if off {
		on &^= ruleExactCover
	}
	for _, covers := range []Position{2, 4} {
		if step(cutOf("n", covers, 3), on) == PutLive {
			return fmt.Sprintf("main ended at 3, and n goes on behind %d", covers)
		}
	}
	v := cutOf("n", 3, 3) // the position, but not the offsets
	v.Own[FirstTask].Manifest.Sources["orders"].Partitions["0"] = Offset{Next: 2}
	if step(v, on) == PutLive {
		return "record 2 is read by both"
	}
	return ""
}

// givenUpGoesLive: a person gave n up while its process slept.
func givenUpGoesLive(off bool) string {
	v := cutOf("n", 3, 3)
	v.Own[FirstTask] = sealedAt(v.Own[FirstTask])
	on := allCutRules
	if off {
		on &^= ruleOwnEnd
	}
	if step(v, on) == PutLive {
		return "a branch that can't commit is live"
	}
	return ""
}

// emptyGeneration: the live record of n, which was given up and cleaned away, lands
// late; m goes on behind it.
func emptyGeneration(off bool) string {
	final := headAt(MainBranch, 3, oldBuild)
	first := LiveRecord{Branch: MainBranch}
	late := LiveRecord{N: 1, Branch: "n", Ends: EndsOf(first, map[string]Head{FirstTask: final})}
	third := LiveRecord{N: 2, Branch: "m", Ends: EndsOf(late, map[string]Head{FirstTask: final})}
	if off { // n is taken at its word, of which there is nothing
		third.Ends = &Ends{Live: 1, Branch: "n", Tasks: map[string]Final{FirstTask: {}}}
	}
	chain, err := ChainOf([]LiveRecord{first, late, third}, FirstTask)
	if err != nil {
		return "the chain is broken: " + err.Error()
	}
	if l, ok := Holder(chain, 3); !ok || l.Branch != "m" || l.From != 3 || chain[1].To != 3 {
		return fmt.Sprintf("position 4 is %+v's", l)
	}
	return ""
}

// cutWithoutTurn: main commits whenever n has covered what there was.
func cutWithoutTurn(off bool) string {
	end := Epoch(5)
	verdict := func(name Epoch) Verdict {
		if name <= end {
			return Fenced
		}
		return Committed
	}
	_, name := DecideSeal(headAt(MainBranch, Position(end), oldBuild), false)
	end++ // main was faster
	for range 100 {
		switch DecideLostSeal(verdict(name)) {
		case SealDone:
			return ""
		case PutSeal:
			name++
			if off {
				end++ // meanwhile it covers what beat it, and main commits
			}
		}
	}
	return "main is never sealed"
}

// sealUnderFloor: a seal is put, or met, at a name that clean-up has freed.
func sealUnderFloor(off bool) string {
	for _, outcome := range []Outcome{Mine, Theirs} {
		verdict := DecideCommit(1, outcome, &Manifest{Kind: Seal}, 3)
		if off {
			verdict = DecideCommit(1, outcome, &Manifest{Kind: Seal}, 0)
		}
		if verdict == Committed || verdict == Sealed || DecideLostSeal(verdict) != LookAgain {
			return "main passes for ended at 0, and goes on at 3"
		}
	}
	return ""
}

// passedOver: clean-up has removed positions 4 and 5, which the follower has not
// covered; 6 is there.
func passedOver(off bool) string {
	chain := []Link{{Branch: MainBranch, To: AllPositions}}
	v := FollowView{Branch: "n", Covers: 3, Chain: chain, Most: 10, Gone: true, Ahead: []Manifest{headAt(MainBranch, 6, oldBuild).Manifest}}
	on := allFollowRules
	if off {
		on &^= ruleTimetable
	}
	if s, n := v.decide(on); s == Cover {
		return fmt.Sprintf("it covers %d epochs, and never reads what 4 and 5 did", n)
	}
	return ""
}

// editsInTheMiddle: key k was deleted before position 5's first record. Position 4
// read a record of it.
func editsInTheMiddle(off bool) string {
	edit := Edit{State: "spend", Hash: "k"}
	var ahead []Manifest
	for p := Position(4); p <= 6; p++ {
		m := headAt(MainBranch, p, oldBuild).Manifest
		if p == 5 {
			m.Edits = []Edit{edit}
		}
		ahead = append(ahead, m)
	}
	v := FollowView{Branch: "n", Covers: 3, Chain: []Link{{Branch: MainBranch, To: AllPositions}}, Most: 10, Ahead: ahead}
	on := allFollowRules
	if off {
		on &^= ruleEdits
	}
	own, kept := headAt("n", 3, newBuild).Manifest, 0
	for len(v.Ahead) > 0 {
		s, n := v.decide(on)
		if s != Cover {
			return "it does not go on"
		}
		m := Following(own, v.Ahead[:n])
		// A replay of this epoch deletes first, and reads then.
		if slices.Contains(m.Edits, edit) {
			kept = 0
		}
		for _, c := range v.Ahead[:n] {
			if c.Position == 4 {
				kept++
			}
		}
		own, v.Ahead, v.Covers = m, v.Ahead[n:], m.Position
	}
	if kept > 0 {
		return "a replay of the follower has the deleted entry"
	}
	return ""
}

// foreignSource: the new build reads a source that the old one has not, and has
// dropped one that it has.
func foreignSource(off bool) string {
	v := cutOf("n", 3, 3)
	own := v.Own[FirstTask].Manifest
	own.Sources["extra"] = SourceState{Partitions: map[string]Offset{"0": {Next: 70}}}
	v.Finals[FirstTask].Manifest.Sources["gone"] = SourceState{Partitions: map[string]Offset{"0": {Next: 9}}}
	equal := AtEnd(own, v.Finals[FirstTask].Manifest, nil)
	if off {
		equal = len(own.Sources) == len(v.Finals[FirstTask].Manifest.Sources) && own.Sources["gone"].Partitions["0"].Next == 9
	}
	if !equal || !off && step(v, allCutRules) != PutLive {
		return "the cut waits for ever"
	}
	return ""
}

// oldRecord: a branch is based on a manifest from before the sink's record was made.
// The record is lost.
func oldRecord(off bool) string {
	base := headAt("back", 3, oldBuild).Manifest
	live := headAt(MainBranch, 4, newBuild).Manifest
	live.Sinks = map[string]SinkState{"out": {Record: "made", Confirmed: 3}}
	m := Following(base, []Manifest{live})
	if off {
		m.Sinks = base.Sinks
	}
	s := m.Sinks["out"]
	if s.Record == "" { // rule D2: it makes one, at the sink's start
		return "a lost record reads as never made: all is delivered again"
	}
	step, _ := DecideDelivery(DeliveryView{From: Place{Position: 3}, To: Place{Position: 4}, ID: s.Record, Confirmed: s.Confirmed, Head: 4})
	if step != Disagree {
		return "the loss is not seen"
	}
	return ""
}

// notedByOpening: main notes by an opening that the sink's record was made, and is
// sealed.
func notedByOpening(off bool) string {
	v := cutOf("n", 3, 3)
	v.Sinks = []string{"out"}
	final := v.Finals[FirstTask]
	final.Manifest.Kind, final.Manifest.Request = Open, 5
	final.Manifest.Sinks = map[string]SinkState{"out": {Record: "made"}}
	v.Finals[FirstTask] = final
	on := allCutRules
	if off {
		on &^= ruleNotes
	}
	own := v.Own[FirstTask]
	switch step(v, on) {
	case NoteFinals:
		m, err := v.Note(own.Manifest, final)
		if err != nil {
			return err.Error()
		}
		own.Manifest = m
		v.Own[FirstTask] = own
		if step(v, on) != PutLive {
			return "noted, and it does not go on"
		}
	case PutLive:
	default:
		return "it does not go on"
	}
	if own.Manifest.Sinks["out"].Record != "made" {
		return "a second record is made at 0: all is delivered again"
	}
	if own.Manifest.Request != 5 {
		return "request 5 is carried out again"
	}
	return ""
}

// betweenOpenings: a build of another version took main over by its first opening, and
// n sealed main then.
func betweenOpenings(off bool) string {
	third := Build{Executable: "third", Version: "3"}
	before := headAt(MainBranch, 3, oldBuild).Manifest
	final := Opening(before, third, nil)
	if off {
		final.WriterBuild = Build{}
	}
	v := cutOf("n", 3, 3)
	m, err := v.Note(v.Own[FirstTask].Manifest, Head{Manifest: final})
	if err != nil {
		return err.Error()
	}
	if DecideTake(TakeView{Head: Head{Manifest: m}, Me: third}) == PutOpen {
		return "its supervisor starts it again, and it takes n over"
	}
	if DecideTake(TakeView{Head: Head{Manifest: m}, Me: oldBuild}) == PutOpen {
		return "the old build takes n over"
	}
	return ""
}

// standbyOfReplaced: a standby of the old build has followed the new one, which dies.
func standbyOfReplaced(off bool) string {
	v := cutOf("standby", 5, 5)
	v.Live = LiveRecord{N: 1, Branch: "n"}
	final := v.Finals[FirstTask]
	final.Manifest.Branch, final.Manifest.Build, final.Manifest.Superseded = "n", newBuild, []Build{oldBuild}
	v.Finals[FirstTask] = final
	own := Following(headAt("standby", 4, oldBuild).Manifest, []Manifest{final.Manifest})
	own.Sources = final.Manifest.Sources
	v.Own[FirstTask] = Head{Manifest: own, Hash: "own"}
	on := allCutRules
	if off {
		on &^= ruleReplaced
	}
	if s := step(v, on); s == PutLive || s == NoteFinals {
		return "the upgrade is undone, and nobody has asked for that"
	}
	if v.Replace = true; step(v, on) == CutSuperseded {
		return "nobody can go back"
	}
	return ""
}

// sameBuildElsewhere: a standby of the same build took over from a hung process.
func sameBuildElsewhere(off bool) string {
	live := headAt(MainBranch, 4, oldBuild).Manifest
	m := Following(headAt("standby", 3, oldBuild).Manifest, []Manifest{live})
	if off {
		m.Superseded = append(m.Superseded, live.Build)
	}
	if DecideTake(TakeView{Head: Head{Manifest: m}, Me: oldBuild}) != PutOpen {
		return "no process of the build may go on"
	}
	if e := DecideEnded(EndedView{Final: live, Live: LiveRecord{N: 1, Branch: "standby"}, Now: oldBuild, Me: oldBuild, WasLive: true}); e != StandByAgain {
		return "the process that woke ends as superseded"
	}
	return ""
}

// replacedResumes: n has ended without an heir, and the supervisor of the old build
// starts that.
func replacedResumes(off bool) string {
	final := headAt("n", 5, newBuild).Manifest
	final.Superseded = []Build{oldBuild}
	if off {
		final.Superseded = nil
	}
	v := EndedView{Final: final, Live: LiveRecord{N: 1, Branch: "n"}, Me: oldBuild, WasLive: true, Still: 100, After: 60}
	if DecideEnded(v) == ResumeNow {
		return "the upgrade is undone, and nobody has asked for that"
	}
	if v.Replace = true; DecideEnded(v) != ResumeNow {
		return "nobody can go back"
	}
	return ""
}

// dataUnderNoRecord: an owner was told to write under generation 1, and has not read
// its record: another's has the name.
func dataUnderNoRecord(off bool) string {
	n := Generation(1)
	job := &Job{name: "spend", env: testEnv(1)}
	o := &Owner{job: job, branch: "n", task: FirstTask, head: headAt("n", 3, newBuild).Manifest, hash: "h"}
	m := Manifest{Kind: Data, Position: 4, Covers: map[string]Position{FirstTask: 4}}
	if !off {
		m.Live = &n
	} else {
		o.live = &n // from memory
	}
	if made, _, err := o.complete(m); err == nil && made.Live != nil {
		return "two branches have live data of position 4"
	}
	return ""
}
