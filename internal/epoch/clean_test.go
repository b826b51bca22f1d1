package epoch

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/store"
)

// cleaning is a history of the protocol that clean-up takes part in: it says
// what harm was done, with all rules or with one switched off.
type cleaning struct {
	name    string
	history func(off bool) (harm string)
}

// TestCleanUpHistories plays the histories on the real decisions. Each ends well
// with the rules, and does not without its own.
func TestCleanUpHistories(t *testing.T) {
	for _, c := range []cleaning{
		{"H9: a writer that slept takes a freed name", freedName},
		{"H10: the object of a manifest to come, of the head's owner", toCome(ruleHeadOwner, 2, "w0")},
		{"H10: the object of a manifest to come, of the next owner", toCome(ruleNameTaken, 9, "w1")},
		{"H11: a branch starts from what is just being removed", branchesOff},
		{"H11a: a seal at a freed name", sealAtFreedName},
		{"H11b: a pin is taken away before its branch is sealed", pinTakenAway},
		{"H12: an outbox of a sink that the live branch lacks", outboxOf(ruleOwnSink)},
		{"H12: an outbox that is not confirmed", outboxOf(ruleOwed)},
		{"H20: what a follower has not covered", uncovered},
		{"an ended branch from which one goes back", ended},
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

// liveLog is a live branch's log: epoch e has position e.
func liveLog(last Epoch) (log []Trace) {
	for e := range last + 1 {
		log = append(log, Trace{Epoch: e, Time: int64(e), Position: Position(e), Data: e > 0, Live: true})
	}
	return log
}

// keepOne asks for nothing but the newest epoch.
func keepOne(last Epoch) FloorView {
	return FloorView{Log: liveLog(last), Retention: Retention{Micros: -1, Epochs: 1}, Owed: AllPositions, Filling: AllEpochs}
}

func freedName(off bool) string {
	// w1 has read head 0 and sleeps. w0 commits 1 and 2. Clean-up frees 0 and 1.
	floor := DecideFloor(keepOne(2)).Floor
	if floor < 2 {
		return "nothing was freed"
	}
	// w1 creates 1, which succeeds, and looks at the floor: the rule.
	seen := floor
	if off {
		seen = 0
	}
	if DecideCommit(1, Mine, nil, seen) == Committed {
		return "w1 believes that it owns the branch"
	}
	return ""
}

func toCome(rule rules, number Epoch, owner string) func(bool) string {
	return func(off bool) string {
		on := allRules
		if off {
			on &^= rule
		}
		// The object is written, clean-up sees that nothing refers to it, and only
		// then its manifest is created. The head is 8, and w0's.
		v := ObjectView{Number: number, Owner: owner, Head: 8, HeadOwner: "w0"}
		if v.decide(on) {
			return "the object goes before its manifest comes"
		}
		return ""
	}
}

// branchesOff plays a brancher and a clean-up step by step, in every order.
func branchesOff(off bool) string {
	// Clean-up: floor, pins, remove; without the rule it reads the pins first.
	// The brancher: pin, read the floor, base; without the rule the other way.
	cleanUp, brancher := []string{"floor", "pins", "remove"}, []string{"pin", "look", "base"}
	if off {
		cleanUp, brancher = []string{"pins", "floor", "remove"}, []string{"look", "pin", "base"}
	}
	for _, order := range merges(len(cleanUp), len(brancher)) {
		var floor Epoch
		var pinned, seenPin, gaveUp, removed, based bool
		var c, b int
		for _, isBrancher := range order {
			step := ""
			if isBrancher {
				step, b = brancher[b], b+1
			} else {
				step, c = cleanUp[c], c+1
			}
			switch step {
			case "floor":
				floor = DecideFloor(keepOne(2)).Floor
			case "pins":
				seenPin = pinned
			case "remove":
				removed = DecideObject(ObjectView{Kept: seenPin, Referred: true})
			case "pin":
				pinned = true
			case "look": // epoch 1 is to be the base's
				gaveUp = floor > 1
			case "base":
				based = !gaveUp
			}
		}
		if based && removed {
			return fmt.Sprintf("in the order %v the base refers to what is gone", order)
		}
	}
	return ""
}

// merges are all orders of n steps of one and m of another (true).
func merges(n, m int) (all [][]bool) {
	if n+m == 0 {
		return [][]bool{{}}
	}
	if n > 0 {
		for _, rest := range merges(n-1, m) {
			all = append(all, append([]bool{false}, rest...))
		}
	}
	if m > 0 {
		for _, rest := range merges(n, m-1) {
			all = append(all, append([]bool{true}, rest...))
		}
	}
	return all
}

func sealAtFreedName(off bool) string {
	floor := DecideFloor(keepOne(2)).Floor
	if off {
		floor = 0 // whoever meets the seal doesn't look
	}
	seal := &Manifest{Kind: Seal, Epoch: 1}
	if DecideCommit(1, Mine, nil, floor) == Committed {
		return "the upgrader believes that main ended at 0"
	}
	if DecideCommit(1, Theirs, seal, floor) == Sealed {
		return "another upgrader believes the void seal"
	}
	return ""
}

func pinTakenAway(off bool) string {
	// The brancher has pinned 1, has seen the floor, and sleeps. A pin is taken
	// away only after a seal has taken the name of the branch's base.
	base := Mine
	var holder *Manifest
	if !off {
		base, holder = Theirs, &Manifest{Kind: Seal}
	}
	removed := DecideObject(ObjectView{Referred: true})
	if removed && DecideCommit(0, base, holder, 0) == Committed {
		return "the base refers to what is gone"
	}
	return ""
}

func outboxOf(rule rules) func(bool) string {
	return func(off bool) string {
		on := allRules
		if off {
			on &^= rule
		}
		// main's position 1 has an outbox for S, which nobody has delivered; the
		// branch that is live now does not have S.
		d := Deliveries{
			Sealed: true, WasLive: true, Newest: map[string]SinkState{"other": {Confirmed: 3}},
			Own: map[string]SinkState{"S": {Record: "r", Confirmed: 0}},
		}
		v := keepOne(3)
		v.Owed, v.Filling = d.owed(on)
		if v.decide(on).Floor > 1 {
			return "the outbox goes"
		}
		// Once it is drained, or consented away, it may go.
		d.Settled = map[string]bool{"S": true}
		v.Owed, v.Filling = d.Owed()
		if DecideFloor(v).Floor != 3 {
			return "a settled outbox stays"
		}
		return ""
	}
}

func uncovered(off bool) string {
	on := allRules
	if off {
		on &^= ruleFollowed
	}
	v := keepOne(9)
	v.Covered = []Position{8, 4}
	if f := v.decide(on).Floor; f != 5 {
		return fmt.Sprintf("floor %d, and a follower has covered position 4", f)
	}
	return ""
}

func ended(off bool) string {
	on := allRules
	if off {
		on &^= ruleFinal
	}
	for _, end := range []End{{Live: true}, {LastEnded: true}, {Pinned: true}, {Awaited: true}} {
		end.Micros = 1 << 40
		v := keepOne(9)
		v.End = &end
		if f := v.decide(on).Floor; f != 9 {
			return fmt.Sprintf("%+v: floor %d instead of the final epoch", end, f)
		}
	}
	v := keepOne(9)
	v.End = &End{Micros: 1}
	if DecideFloor(v).Floor != AllEpochs {
		return "a log that nobody needs stays"
	}
	return ""
}

// TestDecideFloorRandomly holds the choice against the rule as it is written,
// epoch by epoch.
func TestDecideFloorRandomly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := FloorView{Owed: AllPositions, Filling: AllEpochs}
		n := rapid.IntRange(1, 12).Draw(t, "epochs")
		position, now := Position(0), int64(1000)
		for e := range n {
			data := e > 0 && rapid.Bool().Draw(t, "data")
			if data {
				position++
			}
			now += rapid.Int64Range(-2, 6).Draw(t, "later")
			v.Log = append(v.Log, Trace{Epoch(e), now, position, data, rapid.Bool().Draw(t, "live")})
		}
		v.Retention = Retention{Micros: rapid.Int64Range(-1, 20).Draw(t, "time"), Epochs: Epoch(rapid.IntRange(0, 5).Draw(t, "number"))}
		some := func(name string) Position { return Position(rapid.IntRange(0, n).Draw(t, name)) }
		if rapid.Bool().Draw(t, "owed") {
			v.Owed, v.Filling = some("delivered"), Epoch(some("filled"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "followers") {
			v.Covered = append(v.Covered, some("covered"))
		}
		v.Floor = Epoch(rapid.IntRange(0, n-1).Draw(t, "floor"))
		c := DecideFloor(v)
		newest := v.Log[n-1]
		if c.Floor < v.Floor || c.Floor > newest.Epoch {
			t.Fatalf("floor %d, it was %d, the newest epoch is %d", c.Floor, v.Floor, newest.Epoch)
		}
		needed := func(i Epoch) bool {
			tr := v.Log[i]
			owed := tr.Data && (tr.Live && tr.Position > v.Owed || !tr.Live && tr.Epoch > v.Filling)
			followed := tr.Live && slices.ContainsFunc(v.Covered, func(p Position) bool { return tr.Position > p })
			return owed || followed || newest.Epoch-tr.Epoch < max(v.Retention.Epochs, 1)
		}
		for e := range newest.Epoch + 1 {
			if e >= v.Floor && e < c.Floor && needed(e) {
				t.Fatalf("floor %d, and epoch %d is needed", c.Floor, e)
			}
		}
		if c.Floor == v.Floor {
			return
		}
		// It is as high as it can be: the floor's own epoch is kept for a reason,
		// if only that the one after it is owed, or that it is young.
		young := newest.Time-v.Log[c.Floor].Time <= v.Retention.Micros && newest.Time-v.Log[c.Floor].Time >= -v.Retention.Micros
		if !needed(c.Floor) && !young && (c.Floor == newest.Epoch || !needed(c.Floor+1)) {
			t.Fatalf("floor %d, and nothing needs that epoch", c.Floor)
		}
	})
}

func TestNeedsStopsWhereNothingMatters(t *testing.T) {
	whole := keepOne(50)
	whole.Owed, whole.Covered, whole.Retention.Epochs = 40, []Position{44}, 3
	want := DecideFloor(whole)
	part := whole
	part.Log = whole.Log[50:]
	for len(part.Log) < 51 && part.Needs(part.Log[0]) {
		part.Log = whole.Log[50-len(part.Log):]
	}
	if len(part.Log) > 15 {
		t.Errorf("%d epochs were looked at", len(part.Log))
	}
	if got := DecideFloor(part); got != want || got.Floor != 40 {
		t.Errorf("got %+v, with the whole log %+v", got, want)
	}
}

func TestDecideManifest(t *testing.T) {
	v := ManifestView{Trace: Trace{Epoch: 5, Position: 5, Live: true}, Floor: 6, From: AllEpochs}
	if !DecideManifest(v) {
		t.Error("a manifest under the floor stays")
	}
	for what, change := range map[string]func(*ManifestView){
		"not under the floor":                  func(v *ManifestView) { v.Floor = 5 },
		"pinned":                               func(v *ManifestView) { v.Pinned = true },
		"later than an unsealed branch's pin":  func(v *ManifestView) { v.From = 4 },
		"later than what a follower's covered": func(v *ManifestView) { v.Covered = []Position{9, 4} },
	} {
		kept := v
		change(&kept)
		if DecideManifest(kept) {
			t.Errorf("%s: it goes", what)
		}
	}
}

func TestDeliveriesOwed(t *testing.T) {
	sink := func(start, confirmed Position, dropped string) map[string]SinkState {
		return map[string]SinkState{"s": {Start: start, Confirmed: confirmed, Dropped: dropped}}
	}
	filled := func(start Position, through Epoch, dropped string) map[string]SinkState {
		return map[string]SinkState{"s": {Start: start, Confirmed: 2, Dropped: dropped, Fill: &Fill{Branch: "n", Parts: 9, Delivered: 4, Through: through}}}
	}
	for what, c := range map[string]struct {
		d       Deliveries
		live    Position
		filling Epoch
	}{
		"live":                                   {Deliveries{Live: true, Own: sink(0, 7, ""), Newest: sink(0, 7, "")}, 7, AllEpochs},
		"live, being filled":                     {Deliveries{Live: true, Own: filled(8, 3, ""), Newest: filled(8, 4, ""), Branch: "n"}, 8, 4},
		"live, filled before its cut":            {Deliveries{Live: true, Own: sink(8, 9, ""), Newest: sink(8, 9, ""), Branch: "n"}, 9, AllEpochs},
		"ended":                                  {Deliveries{Sealed: true, WasLive: true, Own: sink(0, 5, ""), Newest: sink(0, 9, "")}, 9, AllEpochs},
		"ended, while it is filled":              {Deliveries{Sealed: true, WasLive: true, Own: filled(8, 3, ""), Newest: filled(8, 5, ""), Branch: "n"}, 8, 5},
		"ended, while it is filled, to drain":    {Deliveries{Sealed: true, WasLive: true, Own: filled(8, 3, ""), Newest: filled(8, 3, ToDrain), Branch: "n"}, 8, 3},
		"ended, while it is filled, and settled": {Deliveries{Sealed: true, WasLive: true, Own: filled(8, 3, ""), Newest: filled(8, 3, ToDrain), Branch: "n", Settled: map[string]bool{"s": true}}, AllPositions, AllEpochs},
		"live behind one that fills it":          {Deliveries{Live: true, Own: filled(8, 3, ""), Newest: filled(8, 3, "")}, 8, AllEpochs},
		"ended, dropped by consent":              {Deliveries{Sealed: true, WasLive: true, Own: sink(0, 5, ""), Newest: sink(0, 5, "consented")}, AllPositions, AllEpochs},
		"ended, to drain":                        {Deliveries{Sealed: true, WasLive: true, Own: sink(0, 5, ""), Newest: sink(0, 6, "to drain")}, 6, AllEpochs},
		"ended, and back behind a gap":           {Deliveries{Sealed: true, WasLive: true, Own: sink(0, 5, ""), Newest: sink(8, 5, "")}, 8, AllEpochs},
		"follower":                               {Deliveries{Own: sink(0, 5, ""), Newest: sink(0, 5, "")}, AllPositions, AllEpochs},
		"follower that fills a sink":             {Deliveries{Own: filled(2, 5, ""), Branch: "n"}, AllPositions, 5},
		"follower that filled it too late":       {Deliveries{Own: filled(2, 5, ""), Newest: map[string]SinkState{"s": {Record: "made", Start: 3, Confirmed: 4}}, Branch: "n"}, AllPositions, AllEpochs},
		"follower that fills it in time":         {Deliveries{Own: filled(2, 5, ""), Newest: sink(3, 3, ""), Branch: "n"}, AllPositions, 5},
		"follower with a sink from the cut on":   {Deliveries{Own: sink(2, 5, ""), Branch: "n"}, AllPositions, AllEpochs},
		"given up, while it filled a sink":       {Deliveries{Sealed: true, Own: filled(2, 5, ""), Branch: "n"}, AllPositions, AllEpochs},
		"no sinks":                               {Deliveries{Live: true}, AllPositions, AllEpochs},
	} {
		if live, filling := c.d.Owed(); live != c.live || filling != c.filling {
			t.Errorf("%s: owed above position %d and epoch %d, want %d and %d", what, live, filling, c.live, c.filling)
		}
	}
}

func TestPinsAndSavepoints(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	at := func(e Epoch) Point { return Point{Branch: MainBranch, Tasks: map[string]Epoch{FirstTask: e}} }
	for i, err := range []error{
		p.job.PutPin(t.Context(), "next-1", at(3), "an upgrade"),
		p.job.PutPin(t.Context(), "next-2", at(4), "an upgrade"),
		p.job.DeletePin(t.Context(), "next-1"),
		p.job.DeletePin(t.Context(), "next-1"),
	} {
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := p.job.PutPin(t.Context(), "next-2", at(5), "another"); err == nil {
		t.Error("a pin's name was used twice")
	}
	pins, err := p.job.Pins(t.Context())
	if err != nil || len(pins) != 1 || pins["next-2"].Tasks[FirstTask] != 4 {
		t.Errorf("pins: %+v, %v", pins, err)
	}
	for _, e := range []Epoch{1, 2, 3} {
		if _, err := p.job.PutSavepoint(t.Context(), "before-x", at(e), "somebody"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := p.job.Savepoints(t.Context())
	if err != nil || len(all) != 3 || all[0].Tasks[FirstTask] != 3 || all[0].Name != "before-x" {
		t.Errorf("savepoints: %+v, %v; want the newest first", all, err)
	}
	if _, err := p.job.PutSavepoint(t.Context(), "../x", at(1), ""); err == nil {
		t.Error("a name that leads away was taken")
	}
}

func TestFloorsRise(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	p.take()
	for _, e := range []Epoch{3, 7, 5, 7} {
		if err := p.job.PutFloor(t.Context(), MainBranch, FirstTask, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.job.DropOldFloors(t.Context(), MainBranch, FirstTask); err != nil {
		t.Fatal(err)
	}
	listed, err := p.store.List(t.Context(), "spend/"+LogPath(MainBranch, FirstTask)+"floor/", "", 10)
	if err != nil || len(listed) != 1 {
		t.Errorf("%v, %v; want the newest floor alone", listed, err)
	}
	if f, err := p.job.Floor(t.Context(), MainBranch, FirstTask); err != nil || f != 7 {
		t.Errorf("floor %d, %v", f, err)
	}
}

func TestBranches(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	if names, err := p.job.Branches(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("a job that never ran: %v, %v", names, err)
	}
	o := p.take()
	for next := range int64(5) {
		commit(t, o, next)
	}
	for _, b := range []string{"next-1", "next-10", "next-2"} {
		file := BranchFile{Format: Format, JobID: p.job.ID(), Branch: b, Kind: Upgrade}
		if err := p.job.makeRecord(t.Context(), BranchPath(b), file.encode); err != nil {
			t.Fatal(err)
		}
	}
	before := len(p.store.Calls())
	names, err := p.job.Branches(t.Context())
	if want := []string{"main", "next-1", "next-10", "next-2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %v, %v; want %v", names, err, want)
	}
	if calls := len(p.store.Calls()) - before; calls != 5 {
		t.Errorf("%d calls of the store", calls)
	}
}

func FuzzPin(f *testing.F) {
	fuzzObject(f, Pin{Format: 1, JobID: "id", Point: Point{MainBranch, map[string]Epoch{FirstTask: 7}}, By: "an upgrade", Time: 9})
}

func FuzzSavepoint(f *testing.F) {
	fuzzObject(f, Savepoint{Format: 1, JobID: "id", Name: "before-x", Point: Point{MainBranch, map[string]Epoch{FirstTask: 7}}, Time: 9})
}

func FuzzFloor(f *testing.F) {
	fuzzObject(f, Floor{Format: 1, JobID: "id", Branch: MainBranch, Task: FirstTask, Epoch: AllEpochs, Time: 9})
}
