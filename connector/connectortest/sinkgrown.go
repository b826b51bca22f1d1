package connectortest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// anothersName has a job of the same name, and another id, make its record for
// another target.
func (s sinkSuite) anothersName(t *testing.T) {
	k := s.setup(t)
	if k.Elsewhere == nil {
		t.Skip("another job of the same name is not tried: the fixture has no Elsewhere")
	}
	k.make(t, 0)
	elsewhere := k.Elsewhere(t)
	makes := func(key connector.RecordKey, r connector.SinkRecord) error {
		target, err := elsewhere.Open(t.Context(), k.opening, key)
		if err != nil {
			return err
		}
		defer target.Close()
		_, err = target.Make(t.Context(), r)
		return err
	}
	foreign := key
	foreign.JobID = "a different job"
	if err := makes(foreign, record("second", stage{})); !errors.Is(err, connector.ErrRecord) {
		t.Fatalf("another job of the same name makes its record for another target: %v, expected an error that matches ErrRecord", err)
	}
	other := record("third", stage{})
	other.Job, other.Target = "another name", elsewhere.Describe().Target
	if err := makes(foreign, other); err != nil {
		t.Fatalf("a job of another name, for another target: %v", err)
	}
}

func (s sinkSuite) damaged(t *testing.T) {
	k := s.setup(t)
	if k.Damage == nil {
		t.Skip("a damaged record is not tried: the fixture has no Damage")
	}
	target := k.make(t, 0)
	first := changes(0, 3)
	k.deliver(t, target, next(1, first), connector.Apply)
	k.Damage(t)
	expect := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, connector.ErrRecord) {
			t.Fatalf("%s with a damaged record: %v, expected an error that matches ErrRecord", what, err)
		}
	}
	_, _, err := target.Deliver(t.Context(), k.frozen(t, "first", next(2, changes(1, 3))))
	expect("Deliver", err)
	_, err = target.Record(t.Context())
	expect("Record", err)
	_, err = target.Make(t.Context(), record("second", stage{}))
	expect("Make", err)
	k.sees(t, "one delivery, and one by a damaged record", first)
}

// refusedRow has the system refuse one row of many. Each try says so, and leaves
// nothing of the delivery, until the row is allowed.
func (s sinkSuite) refusedRow(t *testing.T) {
	k := s.setup(t)
	if k.Refuse == nil {
		t.Skip("a row that the system refuses is not tried: the fixture has no Refuse")
	}
	target := k.make(t, 0)
	first, second := changes(0, 3), changes(1, 300)
	k.deliver(t, target, next(1, first), connector.Apply)
	second[200].Row.Name = "refused"
	allow := k.Refuse(t, second[200].Row.Name)
	for _, process := range []connector.Target{target, target, k.open(t)} {
		_, _, err := process.Deliver(t.Context(), k.frozen(t, "first", next(2, second)))
		if !errors.Is(err, connector.ErrRejected) || errors.Is(err, connector.ErrRecord) {
			t.Fatalf("delivering a row that the system refuses: %v, expected an error that matches ErrRejected alone", err)
		}
		k.stands(t, k.open(t), stage{1, 0})
		k.sees(t, "one delivery, and one with a row that is refused", first)
	}
	allow()
	k.deliver(t, k.open(t), next(2, second), connector.Apply)
	k.stands(t, target, stage{2, 0})
	k.sees(t, "the delivery, once its row is allowed", first, second)
}

// lost opens a sink whose record the job has noted, and which is gone. Sinks may
// refuse that, or leave it to the first delivery.
func (s sinkSuite) lost(t *testing.T) {
	k := s.setup(t)
	if k.Lose == nil {
		t.Skip("records that are gone are not tried: the fixture has no Lose")
	}
	first := changes(0, 3)
	k.deliver(t, k.make(t, 0), next(1, first), connector.Apply)
	k.Lose(t)
	k.opening.Begun = true
	for range 2 {
		k.loses(t)
		k.sees(t, "one delivery, and one without the record", first)
	}
}

// loses delivers without a record, which has no effect.
func (s *sink) loses(t *testing.T) {
	t.Helper()
	target, err := s.Open(t.Context(), s.opening, key)
	if errors.Is(err, connector.ErrRecord) {
		return
	}
	if err != nil {
		t.Fatalf("opening the sink without its record: %v, expected none, or one that matches ErrRecord", err)
	}
	defer target.Close()
	found, err := target.Record(t.Context())
	if found != nil || err != nil && !errors.Is(err, connector.ErrRecord) {
		t.Fatalf("a sink whose record is gone has %+v, %v", found, err)
	}
	verdict, _, err := target.Deliver(t.Context(), s.frozen(t, "first", next(2, changes(1, 3))))
	if !errors.Is(err, connector.ErrRecord) && (err != nil || verdict != connector.Disagree) {
		t.Fatalf("Deliver without the record: verdict %s, %v", verdictName(verdict), err)
	}
}

func (s sinkSuite) partLimits(t *testing.T) {
	k := s.setup(t)
	parted, ok := k.Sink.(connector.PartedSink)
	if !ok {
		t.Skip("limits of parts are not tried: the sink is no PartedSink")
	}
	rows, size := parted.PartLimits()
	if rows < 0 || size < 0 {
		t.Fatalf("parts of at most %d rows and %d bytes; 0 is no bound", rows, size)
	}
	if againRows, againSize := parted.PartLimits(); againRows != rows || againSize != size {
		t.Fatalf("parts of at most %d rows and %d bytes, then of %d and %d", rows, size, againRows, againSize)
	}
	const most = 100_000 // what the suite can afford
	if rows == 0 || rows > most {
		t.Skipf("a part of the most rows is not tried: the limit is %d, the suite's %d", rows, most)
	}
	all := changes(0, int(rows))
	k.deliver(t, k.make(t, 0), next(1, all), connector.Apply)
	k.sees(t, "a part of the most rows", all)
}

func (s sinkSuite) triesOnce(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	all := changes(0, 5)
	d := k.frozen(t, "first", next(1, all))
	broken := errors.New("the store didn't answer, this time")
	whole, reads, asked := d.Rows, 0, 0
	d.Rows = func(yield func(connector.Row, error) bool) {
		if reads++; reads == 1 {
			yield(connector.Row{}, broken)
			return
		}
		whole(yield)
	}
	d.Decide = func(found *connector.SinkRecord) connector.Verdict {
		asked++
		return decide("first", next(1, all), found)
	}
	if _, _, err := target.Deliver(t.Context(), d); !errors.Is(err, broken) || asked > 1 {
		t.Fatalf("rows that fail once: %v, after %d decisions; expected the rows' error after one", err, asked)
	}
	k.sees(t, "a delivery that failed")
	k.deliver(t, k.open(t), next(1, all), connector.Apply)
	k.sees(t, "the delivery, tried again", all)
}

func (s sinkSuite) newerBuild(t *testing.T) {
	k := s.setup(t)
	if k.viewNewer == nil {
		t.Skip("rows of a newer build are not tried: the fixture has no ReadNewer")
	}
	newer, err := schema.Of[NewerRow]("row")
	if err != nil {
		t.Fatal(err)
	}
	all := changes(0, 3)
	d := k.frozen(t, "first", next(1, nil))
	d.Key, d.Schema = k.key, newer.Schema()
	var want []string
	for i, c := range all {
		line := (&NewerRow{*c.Row, fmt.Sprint("extra ", i)}).String()
		if k.key != nil {
			line = fmt.Sprintf("%q stands at %s", c.Key, line)
		}
		want = append(want, line)
	}
	slices.Sort(want)
	d.Rows = func(yield func(connector.Row, error) bool) {
		for i, c := range all {
			r := k.encode(t, c)
			r.Row, err = newer.Append(nil, &NewerRow{*c.Row, fmt.Sprint("extra ", i)})
			if !yield(r, err) {
				return
			}
		}
	}
	verdict, _, err := k.make(t, 0).Deliver(t.Context(), d)
	if err != nil || verdict != connector.Apply {
		t.Fatalf("rows of a newer build: verdict %s, %v", verdictName(verdict), err)
	}
	compareLines(t, "rows of a newer build", k.viewNewer(t), want)
}

func (s sinkSuite) wireOfDelete(t *testing.T) {
	k := s.setup(t)
	if k.wire == nil {
		t.Skip("what is delivered for a delete is not tried: the sink is a stream's, or has no NewWire")
	}
	row := changes(1, 1)[0].Row
	first := encoded(t, func(dst []byte, r *Row) ([]byte, error) { return k.wire(dst, "key", r) }, nil)
	if _, err := k.wire(nil, "another", row); err != nil {
		t.Fatal(err)
	}
	again, err := k.wire([]byte("before"), "key", nil)
	if err != nil || !bytes.Equal(again, append([]byte("before"), first...)) {
		t.Fatalf("for a delete NewWire's function appends %q, and another time %q (%v)", first, again, err)
	}
}

// twoOwners delivers in turns by two targets, both open. An error leaves the
// outcome unknown, as where one fences the other: then it is tried again.
func (s sinkSuite) twoOwners(t *testing.T) {
	k := s.setup(t)
	owners := []connector.Target{k.make(t, 0), k.open(t)}
	var all []Change
	for i := range 8 {
		c := k.withDeletes(changes(i, 4))
		all = append(all, c...)
		d := next(connector.Position(i+1), c)
		first := k.deliverHard(t, owners[(i/2)%2], d)
		second := k.deliverHard(t, owners[(i/2+1)%2], d)
		if first == connector.Disagree || second != connector.Skip {
			t.Fatalf("delivering %v: verdict %s by one owner, then %s by the other", d.to, verdictName(first), verdictName(second))
		}
		k.stands(t, owners[i%2], d.to)
	}
	k.sees(t, "eight deliveries by two owners", all)
}

// ready prepares targets in the middle of another's deliveries: one that takes over
// behind them, and one that comes to nothing.
func (s sinkSuite) ready(t *testing.T) {
	k := s.setup(t)
	owner := k.make(t, 0)
	heir, ok := k.open(t).(connector.ReadyTarget)
	if !ok {
		t.Skip("getting ready is not tried: the sink's targets are no ReadyTargets")
	}
	inVain := k.open(t).(connector.ReadyTarget)
	first, second, third := changes(0, 3), changes(1, 3), changes(2, 3)
	k.deliver(t, owner, next(1, first), connector.Apply)
	for _, target := range []connector.ReadyTarget{heir, inVain, heir} {
		if err := target.Ready(t.Context()); err != nil {
			t.Fatalf("getting ready: %v", err)
		}
	}
	k.stands(t, inVain, stage{1, 0})
	k.deliver(t, owner, next(2, second), connector.Apply) // at its first try
	k.sees(t, "two deliveries, while others got ready", first, second)
	if verdict := k.deliverHard(t, heir, next(2, second)); verdict != connector.Skip {
		t.Fatalf("the one that got ready delivers position 2 again: verdict %s", verdictName(verdict))
	}
	k.deliver(t, heir, next(3, third), connector.Apply)
	k.stands(t, inVain, stage{3, 0})
	k.sees(t, "three deliveries, the last by one that got ready", first, second, third)
}

func (s sinkSuite) groupOffsets(t *testing.T) {
	k := s.setup(t)
	before := k.make(t, 0)
	target := k.open(t)
	group, ok := target.(connector.GroupTarget)
	if !ok {
		t.Skip("offsets of groups are not tried: the sink's targets are no GroupTargets")
	}
	if name := before.(connector.GroupTarget).Cluster(); name == "" || name != group.Cluster() {
		t.Fatalf("the system is called %q, then %q", name, group.Cluster())
	}
	if k.Groups == nil {
		t.Skip("offsets of groups are not tried: the fixture has no Groups")
	}
	first, second := changes(0, 3), changes(1, 3)
	for _, step := range []struct {
		what     string
		delivery delivery
		tells    int64
		expected connector.Verdict
		has      int64
	}{
		{"with rows", next(1, first), 2, connector.Apply, 2},
		{"skipped", next(1, first), 3, connector.Skip, 2},
		{"that doesn't fit", next(3, second), 4, connector.Disagree, 2},
		{"without rows", next(2, nil), 5, connector.Apply, 5},
		{"with rows, once more", next(3, second), 6, connector.Apply, 6},
	} {
		d := k.frozen(t, "first", step.delivery)
		d.Offsets = k.Groups.Offsets(step.tells)
		verdict, _, err := target.Deliver(t.Context(), d)
		if err != nil || verdict != step.expected {
			t.Fatalf("a delivery %s: verdict %s, %v", step.what, verdictName(verdict), err)
		}
		for _, g := range d.Offsets {
			want := map[string]int64{}
			for part := range g.Offsets {
				want[part] = step.has
			}
			if got := k.Groups.Read(t, g.Group); !reflect.DeepEqual(got, want) {
				t.Fatalf("after a delivery %s, group %s is at %v, expected %v", step.what, g.Group, got, want)
			}
		}
	}
	k.sees(t, "deliveries with offsets", first, second)
}
