package epoch

import (
	"reflect"
	"slices"
	"testing"
)

func TestDecideCreate(t *testing.T) {
	mine, others := []byte("mine"), []byte("others")
	for _, c := range []struct {
		answer Answer
		found  []byte
		want   Outcome
	}{
		{Created, nil, Mine},
		{Taken, nil, Look},
		{Taken, []byte("mine"), Mine}, // one's own, of a create whose reply was lost
		{Taken, others, Theirs},
		{Taken, []byte{}, Theirs}, // an emptied object is no absent one
		{Doubtful, nil, Again},
		{Doubtful, others, Again},
	} {
		if got := DecideCreate(c.answer, mine, c.found); got != c.want {
			t.Errorf("answer %d, found %q: got %d, want %d", c.answer, c.found, got, c.want)
		}
	}
}

// TestDecideCommitExhaustively goes through every view of a small world.
func TestDecideCommitExhaustively(t *testing.T) {
	for _, outcome := range []Outcome{Mine, Theirs} {
		for _, holder := range []*Manifest{nil, {Kind: Data}, {Kind: Open}, {Kind: Base}, {Kind: Seal}} {
			for floor := range Epoch(5) {
				for name := range Epoch(5) {
					got := DecideCommit(name, outcome, holder, floor)
					switch {
					case floor > name: // H9, H11a: whatever is there, and whoever put it
						if got != Void {
							t.Errorf("name %d under floor %d: got %d", name, floor, got)
						}
					case outcome == Mine:
						if got != Committed {
							t.Errorf("mine: got %d", got)
						}
					case holder == nil:
						if got != Vanished {
							t.Errorf("gone without a floor: got %d", got)
						}
					case (got == Sealed) != (holder.Kind == Seal) || (got == Fenced) != (holder.Kind != Seal):
						t.Errorf("held by %s: got %d", holder.Kind, got)
					}
				}
			}
		}
	}
}

func TestNextPosition(t *testing.T) {
	for _, c := range []struct {
		kind            Kind
		live            bool
		parent, covered Position
		want            Position
	}{
		{Data, true, 4, 0, 5},
		{Open, true, 4, 9, 4},
		{Seal, true, 4, 0, 4},
		{Data, false, 4, 9, 9}, // a coarse step of a follower
		{Open, false, 4, 9, 4},
	} {
		if got := NextPosition(c.kind, c.live, c.parent, c.covered); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestDecideTake(t *testing.T) {
	me, other := Build{Executable: "me"}, Build{Executable: "other"}
	head := func(superseded ...Build) Head { return Head{Manifest: Manifest{Build: other, Superseded: superseded}} }
	sealed := Head{Seal: &Manifest{Kind: Seal}}
	for _, c := range []struct {
		view TakeView
		want TakeStep
	}{
		{TakeView{Head: head(), Me: me}, PutOpen},
		{TakeView{Head: head(other), Me: me}, PutOpen},
		{TakeView{Head: head(other, me), Me: me}, RefuseSuperseded},
		{TakeView{Head: head(me), Me: me, Replace: true}, PutOpen},
		{TakeView{Head: sealed, Me: me}, RefuseSealed},
		{TakeView{Head: sealed, Me: me, Replace: true}, RefuseSealed},
		{TakeView{Head: sealed, Me: me, NewerLive: true}, StartOver},
	} {
		if got := DecideTake(c.view); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.view, got, c.want)
		}
	}
}

func TestDecideLostOpen(t *testing.T) {
	head := Manifest{Owner: "before"}
	for _, c := range []struct {
		holder  *Manifest
		verdict Verdict
		want    TakeStep
	}{
		{&Manifest{Owner: "before"}, Fenced, StartOver},   // the owner before went on
		{&Manifest{Owner: "other"}, Fenced, RefuseFenced}, // another took it just now
		{&Manifest{Owner: "other"}, Sealed, StartOver},    // look at live again
		{nil, Void, StartOver},
		{nil, Vanished, StartOver},
	} {
		if got := DecideLostOpen(head, c.holder, c.verdict); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestSupersede(t *testing.T) {
	a, b, c := Build{Executable: "a"}, Build{Executable: "b"}, Build{Executable: "c"}
	for _, x := range []struct {
		list          []Build
		replaced, own Build
		want          []Build
	}{
		{nil, a, a, nil},
		{nil, a, b, []Build{a}},
		{[]Build{a}, b, c, []Build{a, b}},
		{[]Build{a, b}, b, c, []Build{a, b}},
		{[]Build{a}, b, a, []Build{b}}, // a was brought back by --replace
	} {
		if got := Supersede(x.list, x.replaced, x.own); !slices.Equal(got, x.want) {
			t.Errorf("%v and %v by %v: got %v, want %v", x.list, x.replaced, x.own, got, x.want)
		}
	}
	// One file run as two versions is two builds.
	one, two := Build{Executable: "x", Version: "1"}, Build{Executable: "x", Version: "2"}
	if got := Supersede(nil, one, two); !slices.Equal(got, []Build{one}) {
		t.Errorf("got %v", got)
	}
}

// TestOpening checks every field of an opening against the head's, so that a
// field that is added to manifests has to be thought about here.
func TestOpening(t *testing.T) {
	n := Generation(3)
	old, me := Build{Executable: "old", Version: "v"}, Build{Executable: "new", Version: "v"}
	head := Manifest{
		Kind: Data, Position: 7, Version: "v", Build: old, Superseded: []Build{{Executable: "older"}},
		Covers: map[string]Position{"0.0": 7}, Now: 5, Runs: []Run{{"s", "p", 1}},
		Sources:    map[string]SourceState{"s": {Partitions: map[string]Offset{"p": {Next: 1}}}},
		Watermarks: map[string]EventTime{"p": {Watermark: 1}},
		State:      map[string]StateEntry{"spend": {Key: "k"}},
		Partial:    map[string]Partial{"spend": {Why: "new"}},
		Request:    4, Edits: []Edit{{State: "spend"}}, Counts: map[string]int64{"records": 1},
		Sinks: map[string]SinkState{"out": {Outbox: []Object{{Path: "x"}}, Parts: []int64{1}, Record: "r", Start: 1, Confirmed: 6, Note: "n"}},
	}
	got := Opening(head, me, &n)
	want := head
	want.Kind, want.Live, want.Build = Open, &n, me
	want.Superseded = []Build{{Executable: "older"}, old}
	want.Runs, want.Edits, want.Counts = nil, nil, nil
	want.Sinks = map[string]SinkState{"out": {Record: "r", Start: 1, Confirmed: 6, Note: "n"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if head.Sinks["out"].Outbox == nil {
		t.Error("the head itself was changed")
	}
	// Another version keeps the run that it found until it has migrated.
	other := Opening(head, Build{Executable: "new", Version: "w"}, nil)
	if other.WriterBuild != (Build{Executable: "new", Version: "w"}) || got.WriterBuild != (Build{}) {
		t.Errorf("written by %s, and by %s", other.WriterBuild, got.WriterBuild)
	}
	if other.Build != old || other.Version != "v" || !slices.Equal(other.Superseded, head.Superseded) {
		t.Errorf("another version's opening is %+v", other)
	}
}

func TestDecideDelivery(t *testing.T) {
	at := func(p Position, part int) Place { return Place{p, part} }
	record := func(p Position, part int) *SinkRecord {
		return &SinkRecord{Place: at(p, part), ID: "r", Manifest: "m"}
	}
	base := DeliveryView{From: at(4, 0), To: at(5, 0), ID: "r", Confirmed: 3, Head: 6, HeadManifest: "h"}
	for _, c := range []struct {
		what string
		edit func(*DeliveryView)
		want DeliveryStep
	}{
		{"it is due", func(v *DeliveryView) { v.Record = record(4, 0) }, Apply},
		{"it was done", func(v *DeliveryView) { v.Record = record(5, 0) }, Skip},
		{"more than it was done", func(v *DeliveryView) { v.Record = record(6, 0); v.Record.Manifest = "h" }, Skip},
		{"the record is missing", func(v *DeliveryView) {}, Disagree},
		{"the record is another", func(v *DeliveryView) { v.Record = record(4, 0); v.Record.ID = "x" }, Disagree},
		{"the sink went back, below what was confirmed", func(v *DeliveryView) { v.Record = record(2, 0) }, Disagree},
		{"the sink went back, to what was confirmed", func(v *DeliveryView) { v.Record = record(3, 0) }, Disagree},
		{"the sink is beyond the log", func(v *DeliveryView) { v.Record = record(7, 0) }, Disagree},
		{"the head's position by another manifest", func(v *DeliveryView) { v.Record = record(6, 0) }, Disagree},
		{"the same, once that manifest isn't known", func(v *DeliveryView) { v.Record = record(6, 0); v.HeadManifest = "" }, Skip},
		{"a new record at the head", func(v *DeliveryView) { v.Record = record(4, 0); v.Record.Manifest = ""; v.Head = 4 }, Apply},
		{"inside a gap", func(v *DeliveryView) { v.To = at(6, 0); v.Record = record(5, 0) }, Disagree},
		{"over a gap", func(v *DeliveryView) { v.To = at(6, 0); v.Record = record(4, 0) }, Apply},
		{"a part after the one before it", func(v *DeliveryView) { v.From, v.To, v.Record = at(4, 1), at(4, 2), record(4, 1) }, Apply},
		{"a part that was done", func(v *DeliveryView) { v.From, v.To, v.Record = at(4, 1), at(4, 2), record(4, 2) }, Skip},
		{"a part of a delivery that was done", func(v *DeliveryView) { v.From, v.To, v.Record = at(4, 1), at(4, 2), record(5, 0) }, Skip},
		{"a part too early", func(v *DeliveryView) { v.From, v.To, v.Record = at(4, 2), at(5, 0), record(4, 1) }, Disagree},
		{"whole, but parts were begun", func(v *DeliveryView) { v.Record = record(4, 1) }, Disagree},
	} {
		v := base
		c.edit(&v)
		if got, reason := DecideDelivery(v); got != c.want || (got == Disagree) != (reason != "") {
			t.Errorf("%s: got %d %q, want %d", c.what, got, reason, c.want)
		}
	}
}
