package plan

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// What is stored, and what this build has instead.
type (
	purse struct {
		Number int64
		Note   string
	}
	wallet struct {
		Number int64
		Note   string
		VIP    bool
	}
)

// sack is a stored entry of tests: a nil purse deletes.
type sack struct {
	key   string
	value *purse
}

func sackOf(n int64, note string) sack {
	return sack{fmt.Sprintf("user-%07d", n), &purse{n, note}}
}

// shelf is a job with one state.
type shelf struct {
	t    testing.TB
	st   *store.Memory
	job  *epoch.Job
	form state.Form
	head epoch.Manifest
}

func typeOf[T any](t testing.TB) *schema.Type[T] {
	t.Helper()
	typ, err := schema.Of[T]("purses")
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func textSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(`"string"`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	st := store.NewMemory()
	job, err := epoch.OpenJob(context.Background(), env.Real(), st, "bank", "")
	if err != nil {
		t.Fatal(err)
	}
	x := &shelf{t: t, st: st, job: job, form: state.Form{Name: "purses", Key: textSchema(t), Value: typeOf[purse](t).Schema()}}
	x.head = epoch.Manifest{Branch: epoch.MainBranch, Task: epoch.FirstTask, Epoch: 7, State: map[string]epoch.StateEntry{"purses": {}}}
	return x
}

func appendKey(dst []byte, key *string) []byte {
	return append(binary.AppendVarint(dst, int64(len(*key))), *key...)
}

// segment adds a segment, which is newer than those before.
func (x *shelf) segment(sacks ...sack) {
	x.t.Helper()
	typ := typeOf[purse](x.t)
	var c state.Changes
	for _, s := range sacks {
		key := appendKey(nil, &s.key)
		c.Begin(epoch.Slot(xxhash.Sum64(key) >> 48))
		c.Buf = append(c.Buf, key...)
		c.Value()
		if s.value == nil {
			c.Buf = append(c.Buf, 0)
			continue
		}
		var err error
		if c.Buf, err = typ.Append(append(c.Buf, 2), s.value); err != nil {
			x.t.Fatal(err)
		}
	}
	entry := x.head.State["purses"]
	s, err := state.Write(context.Background(), x.st, "bank", fmt.Sprintf("s-%d.avro", len(entry.Segments)), x.form, []*state.Changes{&c}, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	entry.Segments = append(entry.Segments, s)
	x.head.State["purses"] = entry
}

func numbered(from, n int64, note string) (out []sack) {
	for i := range n {
		out = append(out, sackOf(from+i, note))
	}
	return out
}

func (x *shelf) stored(name string) *carry.Stored {
	if name != "purses" {
		return nil
	}
	return &carry.Stored{Name: name, Kind: "value", Form: x.form}
}

// way is how values S of string keys come from what is stored.
func wayTo[S any](x *shelf, spec carry.Spec[string, S]) *carry.Way {
	x.t.Helper()
	typ := typeOf[S](x.t)
	c, err := carry.New(carry.Target{Kind: "value", Form: state.Form{Name: "purses", Key: x.form.Key, Value: typ.Schema()}},
		carry.Codec[string, S]{AppendKey: appendKey, Value: typ}, spec)
	if err != nil {
		x.t.Fatal(err)
	}
	return c.Find(x.stored)
}

// migrating is the way of a function.
func migrating(x *shelf, f func(purse) (wallet, error)) *carry.Way {
	x.t.Helper()
	way := wayTo(x, carry.Spec[string, wallet]{Chain: carry.First(f)})
	if way.Verdict != carry.Migrates {
		x.t.Fatalf("the way's verdict is %s", way.Verdict)
	}
	return way
}

// honest refuses what has a bad note.
func honest(p purse) (wallet, error) {
	if strings.HasPrefix(p.Note, "bad") {
		return wallet{}, fmt.Errorf("note %.10q", p.Note)
	}
	return wallet{Number: p.Number, Note: p.Note}, nil
}

func (x *shelf) try(way *carry.Way, o TrialOptions) *Trial {
	x.t.Helper()
	o.Env, o.Job = env.Real(), x.job
	o.Look = func(context.Context) (epoch.Manifest, map[string]*carry.Way, error) {
		return x.head, map[string]*carry.Way{"purses": way}, nil
	}
	trials, err := Try(context.Background(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	return trials["purses"]
}

// entries is 1,000,000 in the long tests.
func entries() int64 {
	if os.Getenv("SLUICE_TORTURE") == "1" {
		return 1_000_000
	}
	return 50_000
}

// Three of all entries can't be migrated: who tries all of them names these three,
// and who tries a sample says how many it tried.
func TestThreeOfAllCantBeMigrated(t *testing.T) {
	x, n := newShelf(t), entries()
	all := numbered(0, n, "fine")
	bad := []int64{0, n / 3, n - 1}
	for _, i := range bad {
		all[i].value.Note = "bad"
	}
	x.segment(all...)
	way := migrating(x, honest)

	got := x.try(way, TrialOptions{All: true})
	if got.Entries != n || got.Tried != n || got.Failed != 3 || !got.All || len(got.Failures) != 3 {
		t.Fatalf("all: %+v", got)
	}
	var keys []string
	for _, f := range got.Failures {
		keys = append(keys, f.Key)
		if !strings.HasSuffix(f.Why, `honest: note "bad"`) {
			t.Errorf("%s: why %q", f.Key, f.Why)
		}
	}
	slices.Sort(keys)
	var want []string
	for _, i := range bad {
		want = append(want, fmt.Sprintf("user-%07d", i))
	}
	if !slices.Equal(keys, want) {
		t.Errorf("named are %v, want %v", keys, want)
	}
	if grown := got.After - got.Before; grown != n-3 { // a Boolean for each
		t.Errorf("%d bytes became %d, want %d more", got.Before, got.After, n-3)
	}
	if got.Seconds <= 0 || got.MeetUnknown || got.Meet != 0 || got.Dropped != 0 {
		t.Errorf("%+v", got)
	}

	sample := x.try(way, TrialOptions{})
	if sample.Entries != n || sample.Tried != 1000 || sample.All || sample.Failed > 3 || sample.Seconds <= 0 {
		t.Errorf("a sample: %+v", sample)
	}
}

// tasted has a function note what it is called with.
func tasted(x *shelf) (*carry.Way, func() []purse) {
	var mu sync.Mutex
	var all []purse
	way := migrating(x, func(p purse) (wallet, error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p)
		return wallet{Number: p.Number}, nil
	})
	return way, func() []purse { return all }
}

func TestSampleIsSpread(t *testing.T) {
	x := newShelf(t)
	const n = 40_000
	x.segment(numbered(0, n, "old")...)
	way, got := tasted(x)
	if trial := x.try(way, TrialOptions{Sample: 500, Workers: 3}); trial.Tried != 500 || trial.Entries != n {
		t.Fatalf("%+v", trial)
	}
	counts, numbers := [8]int{}, map[int64]bool{}
	for _, p := range got() {
		key := fmt.Sprintf("user-%07d", p.Number)
		counts[xxhash.Sum64(appendKey(nil, &key))>>61]++
		numbers[p.Number] = true
	}
	if len(numbers) != 500 {
		t.Errorf("%d entries were tried, want 500 of which none twice", len(numbers))
	}
	for i, c := range counts {
		if c < 50 { // of 62; 50 are the largest, wherever they are
			t.Errorf("%d of part %d of the slots, want about 62", c, i)
		}
	}
	again, second := tasted(x)
	x.try(again, TrialOptions{Sample: 500, Workers: 1})
	byNumber := func(a, b purse) int { return cmp.Compare(a.Number, b.Number) }
	first := slices.SortedFunc(slices.Values(got()), byNumber)
	if !slices.Equal(first, slices.SortedFunc(slices.Values(second()), byNumber)) {
		t.Error("another sample with one worker than with three")
	}
}

// The largest values, and those that have been there for the longest time, are in a
// sample however few they are.
func TestSampleHasTheSpecialOnes(t *testing.T) {
	x := newShelf(t)
	x.segment(numbered(0, 40, "oldest")...)
	rest := numbered(40, 30_000, "usual")
	rest[20_000].value.Note = strings.Repeat("large", 300)
	rest[7].value.Note = strings.Repeat("large", 200)
	x.segment(rest...)
	way, got := tasted(x)
	if trial := x.try(way, TrialOptions{Sample: 100}); trial.Tried != 100 {
		t.Fatalf("%+v", trial)
	}
	large, oldest := 0, 0
	for _, p := range got() {
		switch {
		case strings.HasPrefix(p.Note, "large"):
			large++
		case p.Note == "oldest":
			oldest++
		}
	}
	if large != 2 || oldest < 5 {
		t.Errorf("of 100, %d were large and %d were the oldest; want 2 and about 10", large, oldest)
	}
}

// What was written over or deleted is not tried.
func TestTrialOfWhatThereIs(t *testing.T) {
	x := newShelf(t)
	x.segment(numbered(0, 3000, "bad")...)
	x.segment(numbered(0, 2000, "mended")...)
	var gone []sack
	for _, s := range numbered(2000, 1000, "") {
		gone = append(gone, sack{key: s.key})
	}
	x.segment(gone...)
	way := migrating(x, honest)
	for _, o := range []TrialOptions{{All: true}, {Sample: 300}, {Sample: 1900}} {
		want := int64(2000)
		if !o.All {
			want = int64(o.Sample)
		}
		if got := x.try(way, o); got.Tried != want || got.Failed != 0 {
			t.Errorf("%+v: %+v; want %d, all fine", o, got, want)
		}
	}
	if got := x.try(way, TrialOptions{Sample: 6000}); got.Entries != 2000 || got.Tried != 2000 || got.All {
		t.Errorf("a sample larger than the state: %+v", got)
	}
}

// A state that stays as it is is decoded, no more.
func TestTrialOfTheSame(t *testing.T) {
	x := newShelf(t)
	x.segment(numbered(0, 2000, "fine")...)
	way := wayTo(x, carry.Spec[string, purse]{})
	got := x.try(way, TrialOptions{Sample: 100})
	if way.Verdict != carry.Same || got.Tried != 100 || got.Failed != 0 || got.Seconds != 0 || got.Before != got.After || got.Growth() != 1 {
		t.Errorf("%s: %+v", way.Verdict, got)
	}
	resolving := wayTo(x, carry.Spec[string, wallet]{})
	got = x.try(resolving, TrialOptions{Sample: 100})
	if resolving.Verdict != carry.Resolves || got.Tried != 100 || got.Failed != 0 || got.After-got.Before != 100 || got.Seconds <= 0 {
		t.Errorf("%s: %+v", resolving.Verdict, got)
	}
}

func TestTrialOfNothing(t *testing.T) {
	x := newShelf(t)
	if got := x.try(migrating(x, honest), TrialOptions{}); got.Tried != 0 || got.Entries != 0 || got.Growth() != 1 || got.Seconds != 0 {
		t.Errorf("a state without entries: %+v", got)
	}
	refused := wayTo(x, carry.Spec[string, struct{ Number bool }]{})
	if got := x.try(refused, TrialOptions{}); refused.Verdict != carry.Refused || got != nil {
		t.Errorf("%s: %+v", refused.Verdict, got)
	}
}

// rekeying gives each entry the tens of its number as its key; what lies below 100 is
// dropped.
func rekeying(x *shelf, merge func(earlier *wallet, later wallet)) *carry.Way {
	x.t.Helper()
	spec := carry.Spec[string, wallet]{Chain: carry.First(honest), Merge: merge}
	spec.Keys = &carry.Keys[string, wallet]{Function: "tens", Open: func(_, _ *schema.Schema) (func(key, _ []byte, w wallet) (iter.Seq2[string, wallet], error), error) {
		return func(_, _ []byte, w wallet) (iter.Seq2[string, wallet], error) {
			return func(yield func(string, wallet) bool) {
				if w.Number >= 100 {
					yield(fmt.Sprintf("t%d", w.Number/10), w)
				}
			}, nil
		}, nil
	}}
	typ := typeOf[wallet](x.t)
	c, err := carry.New(carry.Target{Kind: "value", KeyMeaning: 1, Form: state.Form{Name: "purses", Key: x.form.Key, Value: typ.Schema()}},
		carry.Codec[string, wallet]{AppendKey: appendKey, Value: typ}, spec)
	if err != nil {
		x.t.Fatal(err)
	}
	return c.Find(x.stored)
}

func TestRowsThatMeet(t *testing.T) {
	x := newShelf(t)
	x.segment(numbered(0, 5000, "")...)
	got := x.try(rekeying(x, nil), TrialOptions{All: true})
	// 4,900 entries come to 490 keys, ten to each.
	if got.Failed != 0 || got.Dropped != 100 || got.Meet != 4410 || got.MeetUnknown || len(got.Meeting) == 0 || len(got.Meeting) > mostFailures {
		t.Errorf("all: %+v", got)
	}
	for _, key := range got.Meeting {
		if len(key) < 3 || len(key) > 4 || key[0] != 't' {
			t.Errorf("key %q is named", key)
		}
	}
	if got := x.try(rekeying(x, nil), TrialOptions{Sample: 100}); got.Meet != 0 || !got.MeetUnknown {
		t.Errorf("a sample: %+v", got)
	}
	merging := rekeying(x, func(earlier *wallet, later wallet) {})
	if got := x.try(merging, TrialOptions{All: true}); got.Meet != 0 || got.MeetUnknown || got.Dropped != 100 {
		t.Errorf("with a function for that: %+v", got)
	}
	m := newMeeting(rekeying(x, nil))
	m.limit = 1
	m.meet([]byte("\x02a\x02b\x02a"), []keyEnd{{2, 2}, {4, 4}, {6, 6}})
	var full Trial
	m.addTo(&full)
	if full.Meet != 1 || !slices.Equal(full.Meeting, []string{"a"}) || !full.MeetUnknown {
		t.Errorf("more rows than are remembered: %+v", full)
	}
}

// A function that panics fails on the entry, no more; the first failures are named.
func TestManyFailures(t *testing.T) {
	x := newShelf(t)
	x.segment(numbered(0, 300, "")...)
	got := x.try(migrating(x, func(p purse) (wallet, error) { panic("no") }), TrialOptions{All: true})
	if got.Tried != 300 || got.Failed != 300 || len(got.Failures) != mostFailures || !strings.Contains(got.Failures[0].Why, "panic: no") || got.After != 0 {
		t.Errorf("%+v", got)
	}
	// They are named in the order of their slots.
	slotOf := func(f Failure) uint64 { return xxhash.Sum64(appendKey(nil, &f.Key)) >> 48 }
	if !slices.IsSortedFunc(got.Failures, func(a, b Failure) int { return cmp.Compare(slotOf(a), slotOf(b)) }) {
		t.Errorf("%v", got.Failures)
	}
}

// A list of a few keys has its entries in a few slots.
func TestSampleOfAFewSlots(t *testing.T) {
	ctx, x := context.Background(), newShelf(t)
	long, err := schema.Parse([]byte(`"long"`))
	if err != nil {
		t.Fatal(err)
	}
	x.form.Element = long
	typ := typeOf[purse](t)
	var c state.Changes
	for _, key := range []string{"a", "b", "c"} {
		encoded := appendKey(nil, &key)
		for i := range int64(2000) {
			c.Begin(epoch.Slot(xxhash.Sum64(encoded) >> 48))
			c.Buf = binary.AppendVarint(append(c.Buf, encoded...), i)
			c.Value()
			if c.Buf, err = typ.Append(append(c.Buf, 2), &purse{Number: i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := state.Write(ctx, x.st, "bank", "list.avro", x.form, []*state.Changes{&c}, 0)
	if err != nil {
		t.Fatal(err)
	}
	x.head.State["purses"] = epoch.StateEntry{Segments: []epoch.Segment{s}}
	to := typeOf[wallet](t)
	carrier, err := carry.New(carry.Target{Kind: "map", Form: state.Form{Name: "purses", Key: x.form.Key, Element: long, Value: to.Schema()}},
		carry.Codec[string, wallet]{AppendKey: appendKey, AppendElement: func(dst []byte, _ *string) []byte { return dst }, Value: to}, carry.Spec[string, wallet]{})
	if err != nil {
		t.Fatal(err)
	}
	way := carrier.Find(func(name string) *carry.Stored { return &carry.Stored{Name: name, Kind: "map", Form: x.form} })
	if got := x.try(way, TrialOptions{Sample: 500}); got.Tried != 500 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if got := x.try(way, TrialOptions{All: true}); got.Tried != 6000 {
		t.Errorf("all: %+v", got)
	}
}

// An epoch that is cleaned away meanwhile is not damage: trials begin again with a
// newer one (S4), but not for ever.
func TestTrialMeetsCleaning(t *testing.T) {
	ctx, x := context.Background(), newShelf(t)
	x.segment(numbered(0, 100, "")...)
	way := migrating(x, honest)
	lost := x.head
	lost.State = map[string]epoch.StateEntry{"purses": {Segments: []epoch.Segment{{Path: "gone.avro", Slots: epoch.AllSlots, Rows: 1, Bytes: 9}}}}
	looks := 0
	try := func(good int) (map[string]*Trial, error) {
		looks = 0
		return Try(ctx, TrialOptions{Env: env.Real(), Job: x.job, Look: func(context.Context) (epoch.Manifest, map[string]*carry.Way, error) {
			m := lost
			if looks++; looks >= good {
				m = x.head
				m.Epoch = 9
			}
			return m, map[string]*carry.Way{"purses": way}, nil
		}})
	}
	var damaged *epoch.DamagedError
	if _, err := try(2); !errors.As(err, &damaged) || looks != 1 {
		t.Errorf("an object is missing: error %v after %d looks, want a DamagedError", err, looks)
	}
	if err := x.job.PutFloor(ctx, epoch.MainBranch, epoch.FirstTask, 9); err != nil {
		t.Fatal(err)
	}
	if got, err := try(3); err != nil || looks != 3 || got["purses"].Tried != 100 {
		t.Errorf("cleaned away twice: %v, error %v, %d looks", got, err, looks)
	}
	var cleaned *epoch.CleanedError
	if _, err := try(100); !errors.As(err, &cleaned) || looks != mostLooks {
		t.Errorf("cleaned away each time: error %v after %d looks", err, looks)
	}
	ended, end := context.WithCancel(ctx)
	end()
	_, err := Try(ended, TrialOptions{Env: env.Real(), Job: x.job, Look: func(context.Context) (epoch.Manifest, map[string]*carry.Way, error) {
		return x.head, map[string]*carry.Way{"purses": way}, nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: error %v", err)
	}
}

func TestAttach(t *testing.T) {
	lineOfAll := func(trial *Trial, aside map[string]error) *Line {
		p := &Plan{Lines: []*Line{{Part: SinkPart, Name: "purses"}, {Part: StatePart, Name: "purses", Verdict: Migrates}}}
		p.Attach(map[string]*Trial{"purses": trial, "unknown": {}}, aside)
		if p.Lines[0].Trial != nil || p.Lines[1].Trial != trial {
			t.Errorf("the trial is attached to %+v", p.Lines)
		}
		return p.Lines[1]
	}
	lineOf := func(trial *Trial) *Line { return lineOfAll(trial, nil) }
	if l := lineOf(&Trial{Tried: 10}); l.Verdict != Migrates || len(l.Refusals) > 0 {
		t.Errorf("nothing failed: %+v", l)
	}
	failing := &Trial{Tried: 10, Failed: 3, Failures: []Failure{{"ann", "f: no"}, {"bob", "f: never"}}}
	l := lineOf(failing)
	want := []string{"purses, key ann: f: no", "purses, key bob: f: never", "purses: 1 more of the 10 tried entries"}
	if l.Verdict != Refused || !slices.Equal(l.Causes, want) || !strings.Contains(l.Do, "--set-aside purses=FILE") {
		t.Errorf("%+v", l)
	}
	if l := lineOfAll(failing, map[string]error{"purses": nil}); l.Verdict != Migrates || !slices.Equal(l.Notes, []string{"3 of 10 tried entries can't be carried over, and would be set aside"}) {
		t.Errorf("set aside: %+v", l)
	}
	taken := map[string]error{"purses": errors.New("a file is there")}
	if l := lineOfAll(failing, taken); l.Verdict != Refused || !slices.Equal(l.Causes, []string{"purses: entries can't be set aside: a file is there"}) {
		t.Errorf("a file in the way: %+v", l)
	}
	if l := lineOfAll(&Trial{Tried: 10}, taken); l.Verdict != Migrates || len(l.Causes) > 0 {
		t.Errorf("a file in the way of nothing: %+v", l)
	}
	l = lineOf(&Trial{Tried: 10, All: true, Meet: 4, Meeting: []string{"t1", "t2"}})
	if l.Verdict != Refused || !slices.Equal(l.Causes, []string{"purses: 4 entries come to keys that others have come to: t1, t2"}) {
		t.Errorf("%+v", l)
	}
}
