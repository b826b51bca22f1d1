package epoch

import (
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
		from := Place{Position: o.From}.String()
		text := strings.TrimPrefix(from, "position ") + "-" + strings.TrimPrefix(Place{Position: o.To}.String(), "position ") + " " + o.Manifest.Branch
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
	filled := Piece{
		Link{Live: 2, Branch: "r", From: 5, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Start: StartBase}}},
		[]Manifest{put("r", -1, 3, has(0)), put("r", -1, 5, has(0)), put("r", 2, 6, has(0))},
	}
	for _, c := range []struct {
		name      string
		pieces    []Piece
		confirmed Position
		want      string
	}{
		{"one generation", []Piece{main}, 1, "1-2 main, 2-3 main"},
		{"the next goes on", []Piece{main, {Link{Live: 1, Branch: "n", From: 3, To: AllPositions}, []Manifest{put("n", -1, 2, has(0)), put("n", -1, 3, has(0)), put("n", 1, 4, has(0))}}}, 1, "1-2 main, 2-3 main, 3-4 n"},
		{"what main put out beyond its end counts for nothing", []Piece{{Link{Branch: "main", To: 2}, main.Manifests}, {Link{Live: 1, Branch: "n", From: 2, To: AllPositions}, []Manifest{put("n", 1, 3, has(0))}}}, 1, "1-2 main, 2-3 n"},
		{"back, with a rest to be drained first (H21)", []Piece{main, dropping(ToDrain), back}, 1, "1-2 main, 2-3 main, 3-6 r, 6-7 r"},
		{"back, once the rest is drained and gone", []Piece{{Link: main.Link}, dropping(ToDrain), back}, 1, "3-6 r, 6-7 r"},
		{"back, and the rest was given up", []Piece{{Link: main.Link}, dropping(Consented), back}, 1, "1-6 r gap, 6-7 r"},
		{"back, and filled by the branch from its base", []Piece{main3, dropping(ToDrain), filled}, 3, "3-5 r, 5-6 r"},
		{"new at the cut", []Piece{{Link: main.Link}, {Link{Live: 1, Branch: "n", From: 3, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Start: StartCut}}}, []Manifest{put("n", -1, 3, has(0)), put("n", 1, 4, has(3))}}}, 3, "3-4 n"},
		{"new, from the base", []Piece{{Link: main.Link}, {Link{Live: 1, Branch: "n", From: 3, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Start: StartBase}}}, []Manifest{put("n", -1, 1, has(1)), put("n", -1, 3, has(1)), put("n", 1, 4, has(1))}}}, 1, "1-3 n, 3-4 n"},
		{"a manifest is missing", []Piece{main3}, 1, "error"},
		{"a generation's are missing", []Piece{main, {Link{Live: 1, Branch: "n", From: 3, To: 4}, nil}, {Link{Live: 2, Branch: "r", From: 4, To: AllPositions}, []Manifest{put("r", 2, 5, has(0))}}}, 2, "error"},
		{"all is there", []Piece{main}, 3, ""},
	} {
		owed, err := OwedOver(c.pieces, "out", c.confirmed)
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
		{"new, from the base", true, &SinkState{Start: 2, Confirmed: 2}, nil, SinkConsent{Start: StartBase}, &SinkState{Start: 2, Confirmed: 2}, SinkConsent{Start: StartBase}},
		{"new, from the base, but the chain has named it since (D10)", true, &SinkState{Start: 2, Confirmed: 2}, &SinkState{Record: "made", Start: 5, Confirmed: 6}, SinkConsent{Start: StartBase}, &SinkState{Record: "made", Start: 5, Confirmed: 6}, SinkConsent{}},
		{"gone", false, nil, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{}, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{Dropped: ToDrain}},
		{"gone, its rest given up", false, nil, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{Dropped: Consented}, &SinkState{Record: "made", Confirmed: 4, Dropped: Consented}, SinkConsent{Dropped: Consented}},
		{"gone since longer", false, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}},
		{"back, unsettled", true, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{}, nil, SinkConsent{}},
		{"back, behind a gap", true, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{Gap: Consented}, &SinkState{Record: "made", Start: 9, Confirmed: 4}, SinkConsent{Gap: Consented}},
		{"back, filled", true, nil, &SinkState{Record: "made", Confirmed: 4, Dropped: ToDrain}, SinkConsent{Start: StartBase}, &SinkState{Record: "made", Confirmed: 4}, SinkConsent{Start: StartBase}},
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
// ended final as well.
func TestNoteRewrite(t *testing.T) {
	v := cutOf("n", 9, 9)
	v.Sinks = []string{"out"}
	final, own := v.Finals[FirstTask], v.Own[FirstTask]
	final.Manifest.Sinks = sinks(SinkState{Rewrite: &Rewrite{Mode: "all", Cursor: "m", Ended: []string{"first"}}})
	v.Finals[FirstTask] = final
	m, err := v.Note(own.Manifest, final)
	if r := m.Sinks["out"].Rewrite; err != nil || r == nil || r.Mode != "all" || r.Cursor != "m" || !slices.Equal(r.Ended, []string{"first", "main 9"}) {
		t.Errorf("got %+v, %v", r, err)
	}
	own.Manifest.Sinks = sinks(SinkState{Rewrite: &Rewrite{Mode: "changed", Ended: []string{"main 5"}}})
	m, err = v.Note(own.Manifest, final)
	if r := m.Sinks["out"].Rewrite; err != nil || r.Mode != "changed" || r.Cursor != "" || !slices.Equal(r.Ended, []string{"first", "main 5", "main 9"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}
