package epoch

import (
	"bytes"
	"fmt"
	"testing"
)

// TestOwnerHistories plays the protocol's histories of commits and take-overs on
// the real decisions. Each ends well with the rules, and does not without its own.
func TestOwnerHistories(t *testing.T) {
	for _, c := range []struct {
		name    string
		history func(off bool) (harm string)
	}{
		{"H7: other bytes under a name once tried", otherBytes},
		{"H7: exists, and it carries my attempt id", mineByAttempt},
		{"H8: the next manifest while the one before is in doubt", twoInDoubt},
		{"H18: two starts whose supervisors restart them", duel},
		{"H18: an opening lost to another taker", lostOpening},
		{"H19: a follower whose names skip what it covers", skippedNames},
		{"T5: an owner that beats slowly", slowOwner},
		{"T5: a heartbeat of the owner before", formerOwner},
		{"T6: a supervisor restarts a build that was replaced", replacedBuild},
		{"T2: the head is looked for while the floor rises", risingFloor},
		{"C5: live from memory", liveFromMemory},
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

// names are what a store's names hold. A create that is late lands when it is
// told to.
type names map[string][]byte

func (n names) create(name string, data []byte) Answer {
	if n[name] != nil {
		return Taken
	}
	n[name] = data
	return Created
}

// settle carries a create through by the real decisions, from an answer on.
func (n names) settle(name string, tried []byte, answer Answer) Outcome {
	outcome := DecideCreate(answer, tried, nil)
	for range 5 {
		switch outcome {
		case Look:
			outcome = DecideCreate(Taken, tried, n[name])
		case Again:
			outcome = DecideCreate(n.create(name, tried), tried, nil)
		default:
			return outcome
		}
	}
	return outcome
}

// otherBytes: a put times out and is late. The process collects again, and what
// it would put is something else.
func otherBytes(off bool) string {
	n := names{}
	first, second := []byte("record of partition 0"), []byte("record of partition 1")
	tried := first
	if off {
		tried = second // whatever it has in hand now
	}
	n.create("main/2", first) // lands
	inMemory := tried
	if n.settle("main/2", tried, Doubtful) != Mine {
		return "its own epoch reads as another's: the process stops although nobody else is there"
	}
	if !bytes.Equal(n["main/2"], inMemory) {
		return "the log and the memory differ"
	}
	return ""
}

// mineByAttempt: what is found was written by this very process, and is not what
// it has in memory.
func mineByAttempt(off bool) string {
	found, inMemory := []byte("attempt a-1: record of partition 0"), []byte("attempt a-1: record of partition 1")
	outcome := DecideCreate(Taken, inMemory, found)
	if off && bytes.Equal(found[:11], inMemory[:11]) {
		outcome = Mine
	}
	if outcome == Mine {
		return "the next epoch does not start where this one ended"
	}
	return ""
}

// twoInDoubt: epoch 2 has not landed when epoch 3 is put.
func twoInDoubt(off bool) string {
	n := names{}
	second, third := []byte("epoch 2"), []byte("epoch 3, parent 2")
	if off {
		n.create("main/3", third) // 2 is still under way
		n.create("main/2", []byte("another owner's open"))
		if n.settle("main/2", second, Doubtful) == Theirs && bytes.Equal(n["main/3"], third) {
			return "epoch 3 stands behind an epoch that is not its parent"
		}
		return ""
	}
	n.create("main/2", []byte("another owner's open"))
	if n.settle("main/2", second, Doubtful) == Mine { // only then 3 would be put
		n.create("main/3", third)
	}
	if n["main/3"] != nil {
		return "epoch 3 was put behind another's"
	}
	return ""
}

// duel: two processes of one build; each is started anew as soon as it ends.
func duel(off bool) string {
	const turns = 100
	var head Manifest
	running, opens := map[string]bool{}, 0
	for turn := range turns {
		me := fmt.Sprintf("p%d", turn%2)
		if running[me] {
			continue // it works
		}
		view := StandbyView{Head: Head{Manifest: head}, Beat: &Heartbeat{Owner: head.Owner}, Lease: 10, Still: 0}
		if off || head.Owner == "" || DecideStandby(view) {
			clear(running) // whoever ran is fenced, and its supervisor starts it again
			head.Owner, running[me] = me, true
			opens++
		}
	}
	if opens > 1 {
		return fmt.Sprintf("%d openings in %d turns, and no work done", opens, turns)
	}
	return ""
}

// lostOpening: two take a branch whose owner has died. Who loses the name must
// not go on from the winner's head at once.
func lostOpening(off bool) string {
	head := Manifest{Owner: "dead"}
	winner := &Manifest{Owner: "p0", Kind: Open}
	step := DecideLostOpen(head, winner, DecideCommit(5, Theirs, winner, 0))
	if off {
		step = StartOver
	}
	if step == StartOver {
		return "the loser fences the winner, who comes back and fences the loser"
	}
	return ""
}

// skippedNames: two processes of a follower's branch; one takes three live epochs
// in a step.
func skippedNames(off bool) string {
	n := names{"next/1": []byte("open")}
	next := func(covered int) string {
		if off {
			return fmt.Sprintf("next/%d", 1+covered)
		}
		return "next/2"
	}
	a := n.settle(next(3), []byte("a covers 3"), n.create(next(3), []byte("a covers 3")))
	b := n.settle(next(1), []byte("b covers 1"), n.create(next(1), []byte("b covers 1")))
	if a == Mine && b == Mine {
		return "two processes own one branch"
	}
	return ""
}

// slowOwner: the owner's lease is longer than that of who waits.
func slowOwner(off bool) string {
	beat := &Heartbeat{Owner: "a", Lease: 60}
	lease := LeaseOf(10, beat)
	if off {
		lease = 10
	}
	// It beats every 20.
	if DecideStandby(StandbyView{Head: Head{Manifest: Manifest{Owner: "a"}}, Beat: beat, Still: 19, Lease: lease}) {
		return "an owner that lives is taken for gone"
	}
	return ""
}

// formerOwner: the owner before has let go; the one now has not beaten yet.
func formerOwner(off bool) string {
	beat := &Heartbeat{Owner: "before", Released: true}
	head := Head{Manifest: Manifest{Owner: "now"}}
	if off {
		beat.Owner = head.Manifest.Owner // whose it is isn't looked at
	}
	if DecideStandby(StandbyView{Head: head, Beat: beat, Lease: 10}) {
		return "an owner that has just begun is taken for gone"
	}
	return ""
}

// replacedBuild: a new build takes the branch in place and dies; the old one's
// supervisor starts that again.
func replacedBuild(off bool) string {
	old, next := Build{Executable: "old"}, Build{Executable: "next"}
	head := Opening(Manifest{Build: old}, next, nil)
	if off {
		head.Superseded = nil
	}
	if DecideTake(TakeView{Head: Head{Manifest: head}, Me: old}) == PutOpen {
		return "the upgrade is undone"
	}
	if DecideTake(TakeView{Head: Head{Manifest: head}, Me: old, Replace: true}) != PutOpen {
		return "nobody can go back"
	}
	return ""
}

// risingFloor: clean-up removes the manifests that a search is looking at.
func risingFloor(off bool) string {
	present := map[Epoch]bool{}
	for e := range Epoch(11) {
		present[e] = true
	}
	floor := Epoch(0)
	s := SearchHead(floor, 0)
	asked := 0
	for name, more := s.Probe(); more; name, more = s.Probe() {
		if asked++; asked == 3 { // the floor rises to 10, and all below goes
			floor = 10
			for e := range floor {
				delete(present, e)
			}
		}
		s.Answer(present[name])
	}
	head, ok := s.Head()
	if believed := off || floor == 0; believed && (!ok || head != 10) {
		return fmt.Sprintf("epoch %d, %v, passes for the head, which is 10", head, ok)
	}
	return "" // the floor has risen: it looks again
}

// liveFromMemory: a branch has written its live record, whose create was lost to
// another's; it must not write as live.
func liveFromMemory(off bool) string {
	n := names{"live/1": []byte("branch other")}
	mine := []byte("branch mine")
	outcome := n.settle("live/1", mine, n.create("live/1", mine))
	live := outcome == Mine // the record read back names it
	if off {
		live = true
	}
	if position := NextPosition(Data, live, 7, 7); position == 8 {
		return "two branches have a data epoch of position 8"
	}
	return ""
}
