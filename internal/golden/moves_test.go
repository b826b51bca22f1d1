package golden

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// What the job moves reads: at first, after it was asked to forget the meter m3, by the
// upgrade to the second build, by that to the fourth, and by the rollback to the second.
var movesInput = [][]string{
	{at("m1", hall, 3), at("m2", cellar, 4), at("m3", hall, 5)},
	{at("m1", attic, 7), at("m2", hall, 9)},
	{at("m4", attic, 10), at("m5", hall, 11), at("m5", cellar, 12)},
	{at("m1", hall, 13)},
	{at("m2", attic, 14), at("m4", hall, 15)},
	{at("m1", cellar, 16)},
}

// movesNext is what it reads when the checkpoint is gone on from: by the build that it
// ends with, by an upgrade, and by a rollback.
var movesNext = [][]string{{at("m1", hall, 20)}, {at("m2", cellar, 21)}, {at("m4", attic, 22)}}

// What its states hold at the end of each of its generations, by hand, and once it has
// gone on. The second build's state floors begins where the savepoint is, behind the
// first three readings; the third has other keys there, and at the end the second is back.
var (
	generations = []held{
		{
			"totals": {hall: averaged(4, 28, "7"), cellar: averaged(2, 16, "8"), attic: averaged(2, 17, "8.5")},
			"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m2" 0`: "4", `"m2" 1`: "9", `"m4" 0`: "10", `"m5" 0`: "11", `"m5" 1`: "12"},
			"parity": {"0": sum(3, 26), "1": sum(5, 35)},
		},
		{
			"totals": {hall: averaged(5, 41, "8.2"), cellar: averaged(2, 16, "8"), attic: averaged(2, 17, "8.5")},
			"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "13", `"m2" 0`: "4", `"m2" 1`: "9", `"m5" 0`: "11", `"m5" 1`: "12"},
			"parity": {"0": sum(3, 26), "1": sum(6, 48)},
			"floors": {"1": sum(3, 33), "2": sum(2, 17), "-1": sum(1, 12)},
		},
		{
			"parity": {"0": sum(3, 26), "1": sum(6, 48)},
			"floors": {`"floor 1"`: sum(3, 33), `"floor 2"`: sum(2, 17), `"floor -1"`: sum(1, 12)},
		},
		{
			"totals": {hall: averaged(6, 56, "9.333333333333334"), cellar: averaged(2, 16, "8"), attic: averaged(3, 31, "10.333333333333334")},
			"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "13", `"m2" 0`: "4", `"m2" 1`: "9", `"m2" 2`: "14", `"m4" 0`: "15", `"m5" 0`: "11", `"m5" 1`: "12"},
			"parity": {"0": sum(4, 40), "1": sum(7, 63)},
			"floors": {`"floor 1"`: sum(4, 48), `"floor 2"`: sum(3, 31), `"floor -1"`: sum(1, 12)},
		},
		{
			"totals": {hall: averaged(6, 56, "9.333333333333334"), cellar: averaged(3, 32, "10.666666666666666"), attic: averaged(3, 31, "10.333333333333334")},
			"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "13", `"m1" 3`: "16", `"m2" 0`: "4", `"m2" 1`: "9", `"m2" 2`: "14", `"m4" 0`: "15", `"m5" 0`: "11", `"m5" 1`: "12"},
			"parity": {"0": sum(5, 56), "1": sum(7, 63)},
			"floors": {"1": sum(4, 48), "2": sum(3, 31), "-1": sum(2, 28)},
		},
	}
	movesGoneOn = []held{
		{"parity": {"0": sum(6, 76), "1": sum(7, 63)}, "floors": {"1": sum(5, 68), "2": sum(3, 31), "-1": sum(2, 28)}},
		{"parity": {"0": sum(6, 76), "1": sum(8, 84)}, "floors": {`"floor 1"`: sum(5, 68), `"floor 2"`: sum(3, 31), `"floor -1"`: sum(3, 49)}},
		{
			"totals": {hall: averaged(7, 76, "10.857142857142858"), cellar: averaged(4, 53, "13.25"), attic: averaged(4, 53, "13.25")},
			"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "13", `"m1" 3`: "16", `"m1" 4`: "20", `"m2" 0`: "4", `"m2" 1`: "9", `"m2" 2`: "14", `"m2" 3`: "21", `"m4" 0`: "15", `"m4" 1`: "22", `"m5" 0`: "11", `"m5" 1`: "12"},
			"parity": {"0": sum(7, 98), "1": sum(8, 84)},
			"floors": {"1": sum(5, 68), "2": sum(4, 53), "-1": sum(3, 49)},
		},
	}
)

// writeMoves has builds of the job take each other's place.
func writeMoves(p *place) {
	p.t.Helper()
	p.append(movesInput[0])
	p.run(first(), nil)
	p.saved("before")
	p.forget(p.edits("m3", "values"))
	for _, lines := range movesInput[1:3] {
		p.append(lines)
		p.run(first(), nil)
	}
	p.append(movesInput[3])
	p.upgrade(second(), sluice.Upgrade{From: "before", Backfill: true}, nil)
	p.forgetInParts("m4")
	p.run(second(), nil)
	p.killed()
	p.interrupted()
	p.append(movesInput[4])
	p.upgrade(fourth(), sluice.Upgrade{DropDeliveries: []string{"copies"}}, small)
	p.append(movesInput[5])
	p.rollback(second(), sluice.Upgrade{}, func(o *sluice.Options) { o.Gap = []string{"copies"} })
}

// forgetInParts asks for a meter's values to be forgotten by a request that takes two
// epochs.
func (p *place) forgetInParts(meter string) {
	p.t.Helper()
	var edits []epoch.Edit
	for i := range epoch.MaxEdits {
		edits = append(edits, p.edits(fmt.Sprint("stranger", i), "values")...)
	}
	p.forget(append(edits, p.edits(meter, "values")...))
}

// killed leaves what processes leave that are killed: the branch of an upgrade with its
// pin and without a base, and a reader's pin. Of a third, which was killed when it had
// pinned its branch's beginning, the branch was given up.
func (p *place) killed() {
	p.t.Helper()
	ctx, job, head := p.t.Context(), p.log(), p.head()
	at := epoch.Point{Branch: head.Branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: head.Epoch}}
	must := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	me := epoch.Identity{Build: epoch.Build{Executable: strings.Repeat("e0", 32)}, Version: epoch.Version{Format: epoch.Format}, Writer: epoch.ThisProcess()}
	_, err := job.BeginBranch(ctx, epoch.Beginning{Name: "upgrade", Kind: epoch.Upgrade}, me)
	must(err)
	must(job.PutPin(ctx, "upgrade-00000001-abc", at, by))
	must(job.GiveUp(ctx, "upgrade-00000001", epoch.ThisProcess(), by))
	pins := map[string][]byte{}
	err = job.Reading(ctx, []epoch.Manifest{head}, by, func(error) bool { return false }, func(ctx context.Context) error {
		found, err := job.Pins(ctx)
		for id, pin := range found {
			if pin.Reader && err == nil {
				name := job.Object(epoch.PinPath(id))
				pins[name], err = p.store.Read(ctx, name, epoch.MaxObject)
			}
		}
		return err
	})
	must(err)
	for name, data := range pins {
		must(p.store.Create(ctx, name, data))
	}
}

// small has a table's sink be written anew in several epochs.
func small(o *sluice.Options) { o.EpochBytes = 700 }

// interrupted upgrades to the third build, and stops it when it has begun to write
// its tables' sinks anew.
func (p *place) interrupted() {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	o := p.options(small)
	o.Rewrite = map[string]string{"parity": "all"}
	o.Committed = func(sluice.Committed) {
		if p.head().Sinks["parity"].Rewrote != nil {
			stop()
		}
	}
	if err := third().Upgrade(ctx, o, sluice.Upgrade{Auto: true}); err != nil || ctx.Err() == nil {
		p.t.Fatalf("the third build ended with %v before it had begun to write anew", err)
	}
	if left := p.head().Sinks["parity"].Rewrite; left == nil || left.Cursor == 0 {
		p.t.Fatalf("the third build has left %+v to be written anew", left)
	}
}

// readMoves reads what the job's generations hold, and has it go on, as its newest build,
// by an upgrade, and by a rollback.
func readMoves(p *place) {
	p.t.Helper()
	p.history()
	p.append(movesNext[0])
	p.run(second(), nil)
	p.check(p.head(), movesGoneOn[0])
	p.append(movesNext[1])
	p.upgrade(fifth(), sluice.Upgrade{DropDeliveries: []string{"rooms"}}, nil)
	p.check(p.head(), movesGoneOn[1])
	p.append(movesNext[2])
	p.rollback(second(), sluice.Upgrade{Again: true}, nil)
	p.check(p.head(), movesGoneOn[2])

	// The sink copies was filled from the savepoint on, and lacks what the fourth build
	// read, which did not have it.
	for sink, want := range map[string][]int64{
		"moves-readings": {3, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22},
		"moves-copies":   {7, 9, 10, 11, 12, 13, 16, 20, 21, 22},
	} {
		if got := readJSON(p.t, p.lines(sink)); !slices.Equal(got, want) {
			p.t.Errorf("sink %s has %v, want %v", sink, got, want)
		}
	}
	for sink, state := range map[string]string{"moves-parity": "parity", "moves-rooms": "totals"} {
		if got := p.table(sink); !maps.Equal(got, movesGoneOn[2][state]) {
			p.t.Errorf("sink %s:\n got %v\nwant %v", sink, got, movesGoneOn[2][state])
		}
	}
}
