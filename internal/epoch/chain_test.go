package epoch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// put is a data manifest of a generation, or of a follower if there is none.
func put(branch string, live int, position Position, sinks map[string]SinkState) Manifest {
	m := Manifest{Kind: Data, Branch: branch, Task: FirstTask, Position: position, Sinks: sinks}
	if live >= 0 {
		n := Generation(live)
		m.Live = &n
	}
	return m
}

func sinks(out SinkState) map[string]SinkState { return map[string]SinkState{"out": out} }

// deliveries are what is owed, as text: from-to of a branch, with the end of a gap in
// which the sink may stand anywhere.
func deliveries(owed []Owed) (all []string) {
	for _, o := range owed {
		text := fmt.Sprintf("%d", o.From)
		if o.Part > 0 || o.From == o.To {
			text += fmt.Sprintf("+%d", o.Part)
		}
		text += fmt.Sprintf("-%d %s", o.To, o.Manifest.Branch)
		if o.Gap > 0 {
			text += " gap"
		}
		all = append(all, text)
	}
	return all
}

// TestOwedOver is D1 over generations, with the bytes of each position taken from the
// one whose interval holds it.
func TestOwedOver(t *testing.T) {
	has := func(start Position) map[string]SinkState { return sinks(SinkState{Record: "made", Start: start}) }
	main := Piece{Link{Branch: "main", To: 3}, []Manifest{put("main", 0, 1, has(0)), put("main", 0, 2, has(0)), put("main", 0, 3, has(0))}}
	main3 := Piece{Link{Branch: "main", To: 3}, []Manifest{put("main", 0, 3, has(0))}}
	dropping := func(how string) Piece {
		gone := sinks(SinkState{Record: "made", Dropped: how})
		return Piece{
			Link{Live: 1, Branch: "n", From: 3, To: 5, Sinks: map[string]SinkConsent{"out": {Dropped: how}}},
			[]Manifest{put("n", 1, 4, gone), put("n", 1, 5, gone)},
		}
	}
	back := Piece{Link{Live: 2, Branch: "r", From: 5, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Gap: Consented}}}, []Manifest{put("r", 2, 6, has(5)), put("r", 2, 7, has(5))}}
	// n fills it: epochs of two parts, of none, and of one, as a follower, and is live behind 3.
	fills := func(start Position, n, parts int) map[string]SinkState {
		return sinks(SinkState{Record: "made", Start: start, Confirmed: 1, Outbox: make([]Object, n), Parts: make([]int64, n), Fill: &Fill{Branch: "n", Parts: parts}})
	}
	filled := func(to Position) Piece {
		return Piece{
			Link{Live: 1, Branch: "n", From: 3, To: to, Sinks: map[string]SinkConsent{"out": {Start: StartBase}}},
			[]Manifest{put("n", -1, 1, fills(1, 2, 2)), put("n", -1, 1, fills(1, 0, 2)), put("n", -1, 3, fills(1, 1, 3)), put("n", 1, 4, fills(3, 0, 3)), put("n", 1, 5, fills(3, 0, 3))},
		}
	}
	next := Piece{Link{Live: 2, Branch: "v", From: 4, To: AllPositions}, []Manifest{put("v", -1, 4, fills(3, 0, 3)), put("v", 2, 5, fills(3, 1, 3))}}
	filling := func(delivered int) SinkState {
		return SinkState{Confirmed: 1, Fill: &Fill{Branch: "n", Parts: 3, Delivered: delivered}}
	}
	for _, c := range []struct {
		name   string
		pieces []Piece
		now    SinkState
		want   string
	}{
		{"one generation", []Piece{main}, SinkState{Confirmed: 1}, "1-2 main, 2-3 main"},
		{"the next goes on", []Piece{main, {Link{Live: 1, Branch: "n", From: 3, To: AllPositions}, []Manifest{put("n", -1, 2, has(0)), put("n", -1, 3, has(0)), put("n", 1, 4, has(0))}}}, SinkState{Confirmed: 1}, "1-2 main, 2-3 main, 3-4 n"},
		{"what main put out beyond its end counts for nothing", []Piece{{Link{Branch: "main", To: 2}, main.Manifests}, {Link{Live: 1, Branch: "n", From: 2, To: AllPositions}, []Manifest{put("n", 1, 3, has(0))}}}, SinkState{Confirmed: 1}, "1-2 main, 2-3 n"},
		{"back, with a rest to be drained first (H21)", []Piece{main, dropping(ToDrain), back}, SinkState{Confirmed: 1}, "1-2 main, 2-3 main, 3-6 r, 6-7 r"},
		{"back, once the rest is drained and gone", []Piece{{Link: main.Link}, dropping(ToDrain), back}, SinkState{Confirmed: 1}, "3-6 r, 6-7 r"},
		{"back, and the rest was given up", []Piece{{Link: main.Link}, dropping(Consented), back}, SinkState{Confirmed: 1}, "1-6 r gap, 6-7 r"},
		{"new at the cut", []Piece{{Link: main.Link}, {Link{Live: 1, Branch: "n", From: 3, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Start: StartCut}}}, []Manifest{put("n", -1, 3, has(0)), put("n", 1, 4, has(3))}}}, SinkState{Confirmed: 3}, "3-4 n"},
		{"filled, and nothing is delivered", []Piece{{Link: main.Link}, filled(AllPositions)}, filling(0), "1+0-1 n, 1+2-1 n, 1+3-4 n, 4-5 n"},
		{"filled by an epoch of two", []Piece{{Link: main.Link}, filled(AllPositions)}, filling(2), "1+2-1 n, 1+3-4 n, 4-5 n"},
		{"filled by half of one, which is owed with all its parts", []Piece{{Link: main.Link}, filled(AllPositions)}, filling(1), "error"},
		{"filled, and behind the cut", []Piece{{Link: main.Link}, filled(AllPositions)}, filling(3), "1+3-4 n, 4-5 n"},
		{"filled, and the next generation goes on", []Piece{{Link: main.Link}, filled(4), next}, filling(2), "1+2-1 n, 1+3-4 n, 4-5 v"},
		{"what fills it is missing", []Piece{{Link: main.Link}, {filled(4).Link, filled(4).Manifests[2:]}}, filling(0), "error"},
		{"a manifest is missing", []Piece{main3}, SinkState{Confirmed: 1}, "error"},
		{"a generation's are missing", []Piece{main, {Link{Live: 1, Branch: "n", From: 3, To: 4}, nil}, {Link{Live: 2, Branch: "r", From: 4, To: AllPositions}, []Manifest{put("r", 2, 5, has(0))}}}, SinkState{Confirmed: 2}, "error"},
		{"all is there", []Piece{main}, SinkState{Confirmed: 3}, ""},
	} {
		owed, err := OwedOver(c.pieces, "out", c.now)
		got := strings.Join(deliveries(owed), ", ")
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestGapOfASinkThatWasGivenUp: where the rest was given up nobody knows how far the
// sink got; every place from the one that is noted to the gap's end is as good, and
// none beside.
func TestGapOfASinkThatWasGivenUp(t *testing.T) {
	for p, want := range map[Position]DeliveryStep{0: Disagree, 1: Apply, 2: Apply, 5: Apply, 6: Skip, 7: Skip, 8: Disagree} {
		v := DeliveryView{From: Place{Position: 1}, To: Place{Position: 6}, Gap: 5, ID: "made", Confirmed: 1, Head: 7, Record: &SinkRecord{Place: Place{Position: p}, ID: "made"}}
		if got, reason := DecideDelivery(v); got != want {
			t.Errorf("the sink is at %d: got %d %q, want %d", p, got, reason, want)
		}
	}
	v := DeliveryView{From: Place{Position: 1}, To: Place{Position: 6}, Gap: 5, ID: "made", Head: 7, Record: &SinkRecord{Place: Place{3, 1}, ID: "made"}}
	if got, _ := DecideDelivery(v); got != Disagree {
		t.Errorf("half of a delivery in the gap: got %d", got)
	}
}

func TestChainOf(t *testing.T) {
	ends := func(live Generation, branch string, p Position) *Ends {
		return &Ends{Live: live, Branch: branch, Tasks: map[string]Final{FirstTask: {Epoch(p), p, branch}}}
	}
	main := LiveRecord{Branch: "main"}
	one := LiveRecord{N: 1, Branch: "n", Ends: ends(0, "main", 3)}
	for _, c := range []struct {
		name    string
		records []LiveRecord
		want    []Link
	}{
		{"none", nil, nil},
		{"one", []LiveRecord{main}, []Link{{Branch: "main", To: AllPositions}}},
		{"two", []LiveRecord{main, one}, []Link{{Branch: "main", To: 3, Final: 3, Hash: "main"}, {Live: 1, Branch: "n", From: 3, To: AllPositions}}},
		{"another layout begins anew", []LiveRecord{main, {N: 1, Branch: "n", Layout: 1}}, []Link{{Live: 1, Branch: "n", To: AllPositions}}},
		{"an empty one that is gone", []LiveRecord{main, one, {N: 2, Branch: "m", Ends: ends(1, "main", 3)}}, []Link{
			{Branch: "main", To: 3, Final: 3, Hash: "main"}, {Live: 1, Branch: "n", From: 3, To: 3}, {Live: 2, Branch: "m", From: 3, To: AllPositions},
		}},
	} {
		got, err := ChainOf(c.records, FirstTask)
		same := slices.EqualFunc(got, c.want, func(a, b Link) bool {
			return a.Live == b.Live && a.Branch == b.Branch && a.From == b.From && a.To == b.To && a.Final == b.Final && a.Hash == b.Hash
		})
		if err != nil || !same {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	for name, records := range map[string][]LiveRecord{
		"a record is missing":                       {main, {N: 2, Branch: "n", Ends: ends(0, "main", 3)}},
		"the end of another generation":             {main, {N: 1, Branch: "n", Ends: ends(7, "main", 3)}},
		"no end":                                    {main, {N: 1, Branch: "n"}},
		"no end of the task":                        {main, {N: 1, Branch: "n", Ends: &Ends{Branch: "main"}}},
		"the end of another branch":                 {main, {N: 1, Branch: "n", Ends: ends(0, "other", 3)}},
		"a gone generation that has had positions":  {main, one, {N: 2, Branch: "m", Ends: ends(1, "main", 4)}},
		"an end before the generation before ended": {main, one, {N: 2, Branch: "m", Ends: ends(1, "n", 2)}},
	} {
		if got, err := ChainOf(records, FirstTask); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestNoteSinks goes through what can become of a sink at a cut.
func TestNoteSinks(t *testing.T) {
	for _, c := range []struct {
		name    string
		has     bool       // the build has the sink
		own     *SinkState // what the branch's newest manifest says
		final   *SinkState
		settled SinkConsent
		want    *SinkState // nil: refused
		consent SinkConsent
	}{
		{"it goes on", true, &SinkState{Record: "old", Confirmed: 1}, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{}, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{}},
		{"new", true, nil, nil, SinkConsent{}, &SinkState{Start: 9, Confirmed: 9}, SinkConsent{Start: StartCut}},
		{"new, with outboxes of the follower", true, &SinkState{Outbox: []Object{{Path: "x"}}}, nil, SinkConsent{}, &SinkState{Start: 9, Confirmed: 9}, SinkConsent{Start: StartCut}},
		{"new, filled from the base", true, &SinkState{Start: 2, Confirmed: 2, Fill: &Fill{"n", 3, 1, 4}}, nil, SinkConsent{Start: StartBase}, &SinkState{Start: 9, Confirmed: 2, Fill: &Fill{"n", 3, 1, 4}}, SinkConsent{Start: StartBase}},
		{"new, filled from the base, with a record", true, &SinkState{Record: "made", Start: 2, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, nil, SinkConsent{Start: StartBase}, &SinkState{Record: "made", Start: 9, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, SinkConsent{Start: StartBase}},
		{"new, filled from the base, but the chain has named it since (D10)", true, &SinkState{Start: 2, Confirmed: 2, Fill: &Fill{"n", 3, 1, 4}}, &SinkState{Record: "made", Start: 5, Confirmed: 6}, SinkConsent{Start: StartBase}, &SinkState{Record: "made", Start: 5, Confirmed: 6}, SinkConsent{}},
		{"new, filled from the base, and the chain has named it without a record", true, &SinkState{Record: "mine", Start: 2, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, &SinkState{Start: 5, Confirmed: 5, Fill: &Fill{Branch: "m"}}, SinkConsent{Start: StartBase}, &SinkState{Record: "mine", Start: 9, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, SinkConsent{Start: StartBase}},
		{"new, filled from the base, in the place of the chain's record", true, &SinkState{Record: "mine", Takes: "theirs", Start: 2, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, &SinkState{Record: "theirs", Start: 5, Confirmed: 5, Fill: &Fill{Branch: "m"}}, SinkConsent{Start: StartBase}, &SinkState{Record: "mine", Takes: "theirs", Start: 9, Confirmed: 2, Fill: &Fill{"n", 3, 3, 5}}, SinkConsent{Start: StartBase}},
		{"gone", false, nil, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{}, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{Dropped: ToDrain}},
		{"gone, its rest given up", false, nil, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{Dropped: Consented}, &SinkState{Record: "made", Confirmed: 4, Dropped: Consented}, SinkConsent{Dropped: Consented}},
		{"gone since longer", false, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}},
		{"back, unsettled", true, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}, nil, SinkConsent{}},
		{"back, behind a gap", true, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{Gap: Consented}, &SinkState{Record: "made", Start: 9, Confirmed: 4}, SinkConsent{Gap: Consented}},
	} {
		v := cutOf("n", 9, 9)
		final, own := v.Finals[FirstTask], v.Own[FirstTask]
		v.Settled = map[string]SinkConsent{"out": c.settled}
		if c.final != nil {
			final.Manifest.Sinks = sinks(*c.final)
		}
		if c.own != nil {
			own.Manifest.Sinks = sinks(*c.own)
		}
		if c.has {
			v.Sinks = []string{"out"}
		}
		v.Finals[FirstTask], v.Own[FirstTask] = final, own
		m, err := v.Note(own.Manifest, final)
		if c.want == nil {
			gap := wantError[*GapError](t, c.name, err)
			if gap.From != 4 || gap.To != 9 {
				t.Errorf("%s: %+v", c.name, gap)
			}
			continue
		}
		if got := m.Sinks["out"]; err != nil || !sameSink(got, *c.want) || got.Outbox != nil {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
		own.Manifest = m
		v.Own[FirstTask] = own
		if again, err := v.noted(m, final); err != nil || !again {
			t.Errorf("%s: noted, and to be noted again: %v", c.name, err)
		}
		if got := v.Record(Upgrade, 0).Sinks["out"]; got != c.consent {
			t.Errorf("%s: the live record says %+v", c.name, got)
		}
	}
}

// TestNoteRewrite is D11: an unfinished writing anew goes on, and compares with the
// ended final as well; a wish for one begins with the first slot. What it says is said
// again by the next look.
func TestNoteRewrite(t *testing.T) {
	first, second, main := LogEnd{"first", FirstTask, 3, "a"}, LogEnd{"second", FirstTask, 4, "b"}, LogEnd{}
	pass := func(mode RewriteMode, cursor Slot, ended, later []LogEnd) *Rewrite {
		return &Rewrite{mode, cursor, ended, later}
	}
	final, own := cutOf("n", 9, 9).Finals[FirstTask], cutOf("n", 9, 9).Own[FirstTask]
	main = LogEnd{final.Manifest.Branch, final.Manifest.Task, final.Manifest.Epoch, final.Hash}
	ends := func(e ...LogEnd) []LogEnd { return e }
	for _, c := range []struct {
		name            string
		wish            RewriteMode
		lacks           bool // the build has no such sink
		own, unfinished *Rewrite
		want            *Rewrite
	}{
		{name: "nothing"},
		{name: "touched", wish: RewriteTouched},
		{name: "all", wish: RewriteAll, want: pass(RewriteAll, 0, ends(main), nil)},
		{name: "unfinished", unfinished: pass(RewriteAll, 7, ends(first), nil), want: pass(RewriteAll, 7, ends(first), ends(main))},
		{name: "unfinished, touched", wish: RewriteTouched, unfinished: pass(RewriteChanged, 7, ends(first), ends(second)), want: pass(RewriteChanged, 7, ends(first), ends(main, second))},
		{name: "not begun yet", unfinished: pass(RewriteAll, 0, ends(second), nil), want: pass(RewriteAll, 0, ends(main, second), nil)},
		{name: "unfinished, all", wish: RewriteAll, unfinished: pass(RewriteChanged, 7, ends(first), ends(second)), want: pass(RewriteAll, 0, ends(first, main, second), nil)},
		{name: "of the base", own: pass(RewriteAll, 0, ends(first), nil), want: pass(RewriteAll, 0, ends(first, main), nil)},
		{name: "of the base, unfinished", own: pass(RewriteAll, 0, ends(first), nil), unfinished: pass(RewriteAll, 7, ends(second), nil), want: pass(RewriteAll, 0, ends(first, main, second), nil)},
		{name: "gone", wish: RewriteAll, lacks: true, unfinished: pass(RewriteAll, 7, ends(first), nil)},
	} {
		v := cutOf("n", 9, 9)
		if !c.lacks {
			v.Sinks, v.Rewrite = []string{"out"}, map[string]RewriteMode{"out": c.wish}
		}
		final.Manifest.Sinks = sinks(SinkState{Rewrite: c.unfinished})
		own.Manifest.Sinks = sinks(SinkState{Rewrite: c.own})
		v.Finals[FirstTask], v.Own[FirstTask] = final, own
		m, err := v.Note(own.Manifest, final)
		if got := m.Sinks["out"].Rewrite; err != nil || !got.Equal(c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
		if noted, err := v.noted(m, final); err != nil || !noted {
			t.Errorf("%s: noted, and to be noted again: %v", c.name, err)
		}
	}
}

// A pass that ends is done with the ends that it began with, and another one follows
// for those that came meanwhile.
func TestPassedRewrite(t *testing.T) {
	first, later := []LogEnd{{"a", FirstTask, 1, "x"}}, []LogEnd{{"b", FirstTask, 2, "y"}}
	r := Rewrite{RewriteAll, 3, first, later}
	if got := r.Passed(9); !got.Equal(&Rewrite{RewriteAll, 10, first, later}) {
		t.Errorf("behind slot 9: %+v", got)
	}
	again := r.Passed(65535)
	if !again.Equal(&Rewrite{RewriteAll, 0, later, nil}) {
		t.Fatalf("behind the last slot: %+v", again)
	}
	if got := again.Passed(65535); got != nil {
		t.Errorf("behind the last slot of the second pass: %+v", got)
	}
}
