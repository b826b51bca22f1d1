package connectortest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
)

type sinkSuite struct {
	setup func(t *testing.T) *sink
}

func (s sinkSuite) cases() []testCase {
	return []testCase{
		{"describe", "a description is part of the job's version: one that changes by itself makes every restart an upgrade", s.describe},
		{"no record", "a sink without a record has never been made; one that seems to have one would be taken for another's", s.noRecord},
		{"make", "a record that is made twice forgets what was delivered after the first time", s.make},
		{"make races", "of two processes that make a record, one must win, and both must see which", s.makeRaces},
		{"another's target", "two jobs that write to one target mix their rows; the second must be refused", s.anothers},
		{"another job's name", "a job whose store was lost and made anew begins from nothing: it must not deliver again under its old name", s.anothersName},
		{"without record", "a delivery before the record is made could not be told from none", s.withoutRecord},
		{"in order", "each delivery is seen once, in the order of the positions", s.inOrder},
		{"from a start", "a sink that is new at a cut starts at the cut's position, not at 0", s.fromStart},
		{"again", "after a crash the last delivery is tried again", s.again},
		{"restart", "the record must outlive the process", s.restart},
		{"disagree", "what doesn't fit must be left alone until a person has looked", s.disagree},
		{"damaged record", "a record that can't be read can't be gone by, and trying again doesn't help: a person has to look", s.damaged},
		{"lost records", "what keeps the records is gone, or was left behind in a move: a sink that begins anew would deliver twice, or leave out", s.lost},
		{"empty", "an epoch without rows for a sink moves its record all the same: the next one begins where it ended", s.empty},
		{"parts", "a large delivery is applied in parts, each on the one before it", s.parts},
		{"part limits", "a job freezes the parts' ends by the sink's limits", s.partLimits},
		{"gap", "a delivery may cover many positions, after a gap that a person consented to", s.gap},
		{"large", "a delivery may be larger than any buffer", s.large},
		{"rows fail", "an outbox that can't be read must not be delivered in half", s.rowsFail},
		{"refused row", "a row that the system refuses is refused at each try: the job stops and names it, and the delivery stays owed until a person has mended one of the two", s.refusedRow},
		{"tries once", "after an error the outcome is unknown: whoever tries again looks first whether the job is still its own", s.triesOnce},
		{"cancelled", "a stop in the middle of a delivery must not leave half of it", s.cancelled},
		{"another build's rows", "an older or newer build's outbox is delivered by the schema that it was frozen with", s.anotherBuild},
		{"a newer build's rows", "after a way back the older build delivers what the newer one has frozen, all of its fields", s.newerBuild},
		{"wire of a delete", "a key that is gone has no value: what the sink delivers for it is made of the key alone", s.wireOfDelete},
		{"delivered meanwhile", "a process that was suspended must not repeat what others have delivered since", s.meanwhile},
		{"two owners", "an old owner that doesn't know it yet delivers beside the new one: each position is applied once, whoever brings it", s.twoOwners},
		{"ready", "a build that is about to take over prepares while the old one delivers, and may be given up: nobody may see anything of it", s.ready},
		{"race", "the old owner and the new one may deliver the same position at once", s.race},
		{"group offsets", "people see by its offsets how far a group has read: they move with the rows, or not at all", s.groupOffsets},
		{"replace", "what a branch has filled that was given up must go before another begins, and a record of anybody else must not", s.replace},
		{"crash in make", "a crash at any step of making the record leaves none or one", s.crashInMake},
		{"crash in deliver", "a crash at any step of a delivery leaves all of it or nothing, and the next try completes it", s.crashInDeliver},
		{"broken call", "a call fails, nobody knows whether it took effect, and the process lives on: the record tells, at the next try", s.brokenCall},
	}
}

func (s sinkSuite) describe(t *testing.T) {
	k := s.setup(t)
	d := k.Describe()
	if d.Connector == "" || d.Contract < 1 || d.Target == "" {
		t.Fatalf("no kind, contract or target in %+v", d)
	}
	if again := k.Describe(); !reflect.DeepEqual(d, again) {
		t.Fatalf("described as %+v, then as %+v", d, again)
	}
	if other := s.setup(t).Describe(); !reflect.DeepEqual(d.Parameters, other.Parameters) {
		t.Fatalf("parameters %+v, then %+v", d.Parameters, other.Parameters)
	}
}

func (s sinkSuite) noRecord(t *testing.T) {
	found, err := s.setup(t).open(t).Record(t.Context())
	if err != nil || found != nil {
		t.Fatalf("a sink that was never made has the record %+v (%v)", found, err)
	}
}

func (s sinkSuite) make(t *testing.T) {
	k := s.setup(t)
	k.make(t, 0)
	second := k.open(t)
	made, err := second.Make(t.Context(), record("second", stage{7, 0}))
	if err != nil {
		t.Fatal(err)
	}
	if want := record("first", stage{}); !reflect.DeepEqual(made, want) {
		t.Fatalf("the second to make it got %+v, expected %+v", made, want)
	}
	k.stands(t, second, stage{})
	k.sees(t, "nothing delivered")
}

func (s sinkSuite) makeRaces(t *testing.T) {
	k := s.setup(t)
	const racers = 8
	made := make([]connector.SinkRecord, racers)
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		target := k.open(t)
		wg.Go(func() { made[i], errs[i] = target.Make(t.Context(), record(fmt.Sprint("racer ", i), stage{})) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("racer %d: %v", i, err)
		}
	}
	found, err := k.open(t).Record(t.Context())
	if err != nil || found == nil {
		t.Fatalf("record %+v, %v", found, err)
	}
	for i := range made {
		if !reflect.DeepEqual(made[i], *found) {
			t.Fatalf("racer %d got %+v, the record is %+v", i, made[i], *found)
		}
	}
}

func (s sinkSuite) anothers(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	k.deliver(t, target, next(1, changes(0, 2)), connector.Apply)
	foreign := key
	foreign.JobID = "a different job"
	other, err := k.Open(t.Context(), k.opening, foreign)
	if err == nil {
		defer other.Close()
		_, err = other.Make(t.Context(), record("second", stage{}))
	}
	if !errors.Is(err, connector.ErrRecord) {
		t.Fatalf("another job makes its record for the same target: %v, expected an error that matches ErrRecord", err)
	}
	k.stands(t, target, stage{1, 0})
}

func (s sinkSuite) withoutRecord(t *testing.T) {
	k := s.setup(t)
	d := k.frozen(t, "first", next(1, changes(0, 2)))
	asked := false
	d.Decide = func(found *connector.SinkRecord) connector.Verdict {
		asked = true
		if found != nil {
			t.Errorf("found the record %+v", found)
		}
		return connector.Disagree
	}
	verdict, found, err := k.open(t).Deliver(t.Context(), d)
	if err != nil || verdict != connector.Disagree || found != nil || !asked {
		t.Fatalf("verdict %s, record %+v, asked %v, %v", verdictName(verdict), found, asked, err)
	}
	k.sees(t, "without a record")
}

func (s sinkSuite) inOrder(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	var all []Change
	for i := range 12 {
		c := k.withDeletes(changes(i, i))
		k.deliver(t, target, next(connector.Position(i+1), c), connector.Apply)
		all = append(all, c...)
		k.stands(t, target, stage{connector.Position(i + 1), 0})
	}
	k.sees(t, "12 deliveries", all)
}

func (s sinkSuite) fromStart(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 41)
	k.stands(t, target, stage{41, 0})
	k.deliver(t, target, next(42, changes(1, 3)), connector.Apply)
	k.stands(t, target, stage{42, 0})
	k.sees(t, "one delivery", changes(1, 3))
}

func (s sinkSuite) again(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	first, second := changes(0, 5), changes(1, 4)
	k.deliver(t, target, next(1, first), connector.Apply)
	k.deliver(t, target, next(1, first), connector.Skip)
	k.deliver(t, target, next(2, second), connector.Apply)
	k.deliver(t, target, next(2, second), connector.Skip)
	k.deliver(t, target, next(1, first), connector.Skip)
	k.stands(t, target, stage{2, 0})
	k.sees(t, "two deliveries, tried again", first, second)
}

func (s sinkSuite) restart(t *testing.T) {
	k := s.setup(t)
	first, second := changes(0, 5), changes(1, 4)
	k.deliver(t, k.make(t, 0), next(1, first), connector.Apply)
	target := k.open(t)
	k.stands(t, target, stage{1, 0})
	k.deliver(t, target, next(1, first), connector.Skip)
	k.deliver(t, target, next(2, second), connector.Apply)
	k.stands(t, k.open(t), stage{2, 0})
	k.sees(t, "two deliveries by two processes", first, second)
}

func (s sinkSuite) disagree(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	first := changes(0, 5)
	k.deliver(t, target, next(1, first), connector.Apply)
	k.deliver(t, target, next(3, changes(1, 5)), connector.Disagree)
	verdict, found, err := target.Deliver(t.Context(), k.frozen(t, "another id", next(2, changes(2, 5))))
	if err != nil || verdict != connector.Disagree {
		t.Fatalf("with another id: verdict %s, %v", verdictName(verdict), err)
	}
	if want := record("first", stage{1, 0}); found == nil || !reflect.DeepEqual(*found, want) {
		t.Fatalf("found the record %+v, expected %+v", found, want)
	}
	k.stands(t, target, stage{1, 0})
	k.sees(t, "two deliveries that don't fit", first)
}

func (s sinkSuite) empty(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	k.deliver(t, target, next(1, nil), connector.Apply)
	k.stands(t, target, stage{1, 0})
	k.deliver(t, target, next(1, nil), connector.Skip)
	last := changes(0, 3)
	k.deliver(t, target, next(2, last), connector.Apply)
	k.deliver(t, target, next(3, nil), connector.Apply)
	k.stands(t, k.open(t), stage{3, 0})
	k.sees(t, "empty deliveries around one", last)
}

func (s sinkSuite) parts(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	a, b, c, d := changes(0, 3), changes(1, 3), changes(2, 3), changes(3, 3)
	first := delivery{stage{0, 0}, stage{0, 1}, a}
	second := delivery{stage{0, 1}, stage{0, 2}, b}
	k.deliver(t, target, second, connector.Disagree)
	k.deliver(t, target, first, connector.Apply)
	k.stands(t, target, stage{0, 1})
	k.deliver(t, target, first, connector.Skip)
	k.deliver(t, target, second, connector.Apply)
	k.deliver(t, k.open(t), delivery{stage{0, 2}, stage{1, 0}, c}, connector.Apply)
	k.deliver(t, target, second, connector.Skip)
	k.stands(t, target, stage{1, 0})
	k.deliver(t, target, next(2, d), connector.Apply)
	k.sees(t, "three parts and a delivery", a, b, c, d)
}

func (s sinkSuite) gap(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	first, second := changes(0, 3), changes(1, 3)
	k.deliver(t, target, next(1, first), connector.Apply)
	k.deliver(t, target, delivery{stage{1, 0}, stage{900, 0}, second}, connector.Apply)
	k.deliver(t, target, next(2, changes(2, 3)), connector.Skip)
	k.stands(t, target, stage{900, 0})
	k.sees(t, "a delivery over 899 positions", first, second)
}

func (s sinkSuite) large(t *testing.T) {
	k := s.setup(t)
	all := changes(0, 20_000)
	k.deliver(t, k.make(t, 0), next(1, all), connector.Apply)
	k.sees(t, "a large delivery", all)
}

func (s sinkSuite) rowsFail(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	all := changes(0, 2000)
	d := k.frozen(t, "first", next(1, all))
	whole, broken := d.Rows, errors.New("the outbox is damaged")
	d.Rows = func(yield func(connector.Row, error) bool) {
		n := 0
		for r := range whole {
			if n++; n == 1500 {
				yield(connector.Row{}, broken)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
	if _, _, err := target.Deliver(t.Context(), d); !errors.Is(err, broken) {
		t.Fatalf("delivering rows that fail: %v", err)
	}
	k.stands(t, k.open(t), stage{})
	k.sees(t, "a delivery that failed")
	k.deliver(t, k.open(t), next(1, all), connector.Apply)
	k.sees(t, "the delivery, whole", all)
}

func (s sinkSuite) cancelled(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	all := changes(0, 2000)
	d := k.frozen(t, "first", next(1, all))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	whole := d.Rows
	d.Rows = func(yield func(connector.Row, error) bool) {
		n := 0
		for r := range whole {
			if n++; n == 1500 {
				cancel()
			}
			if !yield(r, nil) {
				return
			}
		}
	}
	verdict, _, err := target.Deliver(ctx, d)
	if err == nil && verdict != connector.Apply {
		t.Fatalf("verdict %s", verdictName(verdict))
	}
	if err != nil {
		k.sees(t, "a delivery that was cancelled")
		k.deliver(t, k.open(t), next(1, all), connector.Apply)
	}
	k.stands(t, k.open(t), stage{1, 0})
	k.sees(t, "the delivery, whole", all)
}

// olderRow is Row as an older version of the job had it.
type olderRow struct {
	ID   int64
	Name string
}

func (s sinkSuite) anotherBuild(t *testing.T) {
	k := s.setup(t)
	target := k.make(t, 0)
	older, err := schema.Of[olderRow]("row")
	if err != nil {
		t.Fatal(err)
	}
	d := k.frozen(t, "first", next(1, nil))
	d.Key, d.Schema = k.key, older.Schema()
	var want []Change
	for i, c := range changes(0, 3) {
		c.Row = &Row{ID: int64(i), Name: "older"}
		want = append(want, c)
	}
	d.Rows = func(yield func(connector.Row, error) bool) {
		for _, c := range want {
			r := k.encode(t, c)
			r.Row, err = older.Append(nil, &olderRow{c.Row.ID, c.Row.Name})
			if !yield(r, err) {
				return
			}
		}
	}
	verdict, _, err := target.Deliver(t.Context(), d)
	if err != nil || verdict != connector.Apply {
		t.Fatalf("rows of an older build: verdict %s, %v", verdictName(verdict), err)
	}
	k.sees(t, "rows of an older build", want)
}

func (s sinkSuite) meanwhile(t *testing.T) {
	k := s.setup(t)
	if k.Exclusive {
		t.Skip("a delivery that comes between two others is not tried: by Exclusive, this sink lets none in meanwhile")
	}
	slow, fast := k.make(t, 0), k.open(t)
	first, second, third := changes(0, 3), changes(1, 3), changes(2, 3)
	d := k.frozen(t, "first", next(1, first))
	d.Decide = func(found *connector.SinkRecord) connector.Verdict {
		verdict := decide("first", next(1, first), found)
		k.deliver(t, fast, next(1, first), connector.Apply)
		k.deliver(t, fast, next(2, second), connector.Apply)
		return verdict
	}
	// Whatever it believes of it, nothing may be there twice.
	if _, _, err := slow.Deliver(t.Context(), d); err != nil {
		t.Logf("the suspended process got: %v", err)
	}
	k.stands(t, fast, stage{2, 0})
	k.deliver(t, fast, next(3, third), connector.Apply)
	k.sees(t, "with a process suspended in between", first, second, third)
}

func (s sinkSuite) race(t *testing.T) {
	k := s.setup(t)
	k.make(t, 0)
	const racers, rounds = 4, 5
	var all []Change
	deliveries := make([]delivery, rounds)
	for i := range deliveries {
		c := changes(i, 20)
		deliveries[i] = next(connector.Position(i+1), c)
		all = append(all, c...)
	}
	var wg sync.WaitGroup
	for range racers {
		target := k.open(t)
		wg.Go(func() {
			for _, d := range deliveries {
				if k.deliverHard(t, target, d) == connector.Disagree {
					return
				}
			}
		})
	}
	wg.Wait()
	k.stands(t, k.open(t), stage{rounds, 0})
	k.sees(t, "deliveries by four processes at once", all)
}

// The pauses between two tries of deliverHard are random, and longer from one to the
// next up to a bound: processes that go on at once fence one another for ever.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// deliverHard delivers as an engine does: an error leaves the outcome unknown, so it
// tries again after a while. What won't pass fails the test, and is Disagree.
func (s *sink) deliverHard(t *testing.T, target connector.Target, d delivery) connector.Verdict {
	const tries = 50
	pause := firstPause
	for try := 1; ; try++ {
		verdict, found, err := target.Deliver(t.Context(), s.frozen(t, "first", d))
		switch {
		case err == nil && verdict == connector.Disagree:
			t.Errorf("delivering %v: the record %+v disagrees", d.to, found)
			return connector.Disagree
		case err == nil:
			return verdict
		case try == tries || errors.Is(err, connector.ErrRecord) || errors.Is(err, connector.ErrRejected):
			t.Errorf("delivering %v, try %d: %v", d.to, try, err)
			return connector.Disagree
		}
		if err := pauseUpTo(t.Context(), pause); err != nil {
			t.Errorf("delivering %v: %v", d.to, err)
			return connector.Disagree
		}
		pause = min(2*pause, lastPause)
	}
}

// pauseUpTo waits for a random part of a time.
func pauseUpTo(ctx context.Context, most time.Duration) error {
	world := env.Real()
	var b [8]byte
	if _, err := io.ReadFull(world.Random, b[:]); err != nil {
		return err
	}
	return env.Pause(ctx, world.Clock, time.Duration(binary.LittleEndian.Uint64(b[:])%uint64(most)))
}

func (s sinkSuite) replace(t *testing.T) {
	k := s.setup(t)
	made := k.open(t)
	target, ok := made.(connector.EmptyTarget)
	if !ok {
		t.Skip("the sink can't be emptied: it is no connector.EmptyTarget")
	}
	empty := func(what string, want bool) {
		t.Helper()
		if got, err := target.Empty(t.Context()); err != nil || got != want {
			t.Fatalf("%s: empty is %t (%v), expected %t", what, got, err, want)
		}
	}
	empty("before anything", true)
	target = k.make(t, 0).(connector.EmptyTarget)
	empty("with a record", true)
	rows := changes(0, 20)
	k.deliver(t, target, delivery{stage{}, stage{0, 1}, rows}, connector.Apply)
	empty("with rows", false)

	anew := record("second", stage{7, 0})
	stands, err := target.Replace(t.Context(), "another", anew)
	if want := record("first", stage{0, 1}); err != nil || !reflect.DeepEqual(stands, want) {
		t.Fatalf("replacing a record that isn't there: %+v (%v), expected %+v", stands, err, want)
	}
	k.sees(t, "a record that isn't there", rows)
	if _, err := target.Replace(t.Context(), "first", anew); errors.Is(err, connector.ErrKept) {
		k.stands(t, made, stage{0, 1})
		k.sees(t, "rows that can't be removed", rows)
		return
	}
	for range 2 { // the second finds it done
		if stands, err = target.Replace(t.Context(), "first", anew); err != nil || !reflect.DeepEqual(stands, anew) {
			t.Fatalf("replacing the record: %+v (%v), expected %+v", stands, err, anew)
		}
		if found, err := k.open(t).Record(t.Context()); err != nil || !reflect.DeepEqual(*found, anew) {
			t.Fatalf("the record is %+v (%v), expected %+v", found, err, anew)
		}
		k.sees(t, "replaced")
	}
	// Whoever filled it finds another's record.
	d := k.frozen(t, "first", delivery{stage{0, 1}, stage{0, 2}, rows})
	if verdict, _, err := made.Deliver(t.Context(), d); err == nil && verdict != connector.Disagree {
		t.Fatalf("under the replaced record: verdict %s", verdictName(verdict))
	}
	k.sees(t, "under the replaced record")
	more := changes(1, 20)
	verdict, _, err := k.open(t).Deliver(t.Context(), k.frozen(t, "second", delivery{stage{7, 0}, stage{8, 0}, more}))
	if err != nil || verdict != connector.Apply {
		t.Fatalf("delivering under the new record: verdict %s, %v", verdictName(verdict), err)
	}
	k.sees(t, "under the new record", more)
}
