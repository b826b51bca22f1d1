package connectortest

import (
	"fmt"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

// maxCalls bounds how many steps the crash cases try.
const maxCalls = 1000

// Crash is how a process ends at a call to the world. No later call succeeds.
type Crash int

// The crashes.
const (
	// Before: the call has no effect.
	Before Crash = iota
	// After: the call takes effect, but its reply is lost.
	After
	// PowerLoss: the call has no effect, and what was not made durable is gone.
	// A sink whose other end outlives the process treats it as Before.
	PowerLoss
)

// String says how it crashes.
func (c Crash) String() string { return [...]string{"before it", "after it", "with a power loss"}[c] }

// everyCrash calls try for a crash of each kind at each step, until there are
// no more steps.
func (s sinkSuite) everyCrash(t *testing.T, try func(t *testing.T, k *sink, crash func() (connector.Target, func() bool)) (more bool)) {
	if k := s.setup(t); k.Crash == nil && k.CrashSink == nil {
		t.Skip("what a crash leaves is not tried: the fixture has no Crash and no CrashSink")
	}
	everyStep(t, []Crash{Before, After, PowerLoss}, func(t *testing.T, call int, how Crash) (more bool) {
		k := s.setup(t)
		return try(t, k, func() (connector.Target, func() bool) { return k.openCrashing(t, call, how) })
	})
}

// everyStep calls try for each step in each way, until there are no more steps.
func everyStep(t *testing.T, ways []Crash, try func(t *testing.T, call int, how Crash) (more bool)) {
	for _, how := range ways {
		for call := 1; ; call++ {
			if call > maxCalls {
				t.Fatalf("more than %d steps", maxCalls)
			}
			more := false
			t.Run(fmt.Sprintf("step %d, %v", call, how), func(t *testing.T) { more = try(t, call, how) })
			if !more {
				break
			}
		}
	}
}

// openCrashing opens the sink in a process that crashes; the target is nil if it
// does so in Open.
func (s *sink) openCrashing(t *testing.T, call int, how Crash) (_ connector.Target, crashed func() bool) {
	mortal, o := s.Sink, s.opening
	if s.CrashSink != nil {
		mortal, crashed = s.CrashSink(t, call, how)
	} else {
		o, crashed = s.Crash(o, call, how)
	}
	target, err := mortal.Open(t.Context(), o, key)
	if err != nil {
		return nil, crashed
	}
	t.Cleanup(func() { target.Close() })
	return target, crashed
}

func (s sinkSuite) crashInMake(t *testing.T) {
	s.everyCrash(t, func(t *testing.T, k *sink, crash func() (connector.Target, func() bool)) bool {
		all := changes(0, 3)
		mortal, crashed := crash()
		id := ""
		if mortal != nil {
			if made, err := mortal.Make(t.Context(), record("first", stage{})); err == nil {
				id = made.ID
				_, _, _ = mortal.Deliver(t.Context(), k.frozen(t, id, next(1, all)))
			}
		}
		target := k.open(t)
		made, err := target.Make(t.Context(), record("second", stage{}))
		if err != nil {
			t.Fatalf("making the record after a crash: %v", err)
		}
		if id != "" && made.ID != id {
			t.Fatalf("the record %q was made, and then %q", id, made.ID)
		}
		verdict, _, err := target.Deliver(t.Context(), k.frozen(t, made.ID, next(1, all)))
		if err != nil || verdict == connector.Disagree {
			t.Fatalf("delivering after a crash: verdict %s, %v", verdictName(verdict), err)
		}
		k.sees(t, "after a crash", all)
		return crashed()
	})
}

func (s sinkSuite) crashInDeliver(t *testing.T) {
	s.everyCrash(t, func(t *testing.T, k *sink, crash func() (connector.Target, func() bool)) bool {
		first, second, third := changes(0, 3), k.withDeletes(changes(1, 300)), changes(2, 3)
		k.deliver(t, k.make(t, 0), next(1, first), connector.Apply)
		mortal, crashed := crash()
		if mortal != nil {
			verdict, _, err := mortal.Deliver(t.Context(), k.frozen(t, "first", next(2, second)))
			if err == nil && verdict != connector.Apply {
				t.Fatalf("verdict %s in a crash", verdictName(verdict))
			}
			if err == nil {
				k.stands(t, k.open(t), stage{2, 0})
			}
		}
		target := k.open(t)
		verdict, _, err := target.Deliver(t.Context(), k.frozen(t, "first", next(2, second)))
		if err != nil || verdict == connector.Disagree {
			t.Fatalf("delivering again after a crash: verdict %s, %v", verdictName(verdict), err)
		}
		k.stands(t, target, stage{2, 0})
		k.sees(t, "after a crash", first, second)
		k.deliver(t, target, next(3, third), connector.Apply)
		k.sees(t, "after a crash and the next delivery", first, second, third)
		return crashed()
	})
}

func (s sinkSuite) brokenCall(t *testing.T) {
	if s.setup(t).Break == nil {
		t.Skip("a call that fails in a process that lives on is not tried: the fixture has no Break")
	}
	everyStep(t, []Crash{Before, After}, func(t *testing.T, call int, how Crash) bool {
		k := s.setup(t)
		brittle, o, broken := k.Break(t, call, how)
		var target connector.Target
		again(t, "opening the sink", func() (err error) {
			target, err = brittle.Open(t.Context(), o, key)
			return err
		})
		defer target.Close()
		again(t, "making the record", func() error {
			made, err := target.Make(t.Context(), record("first", stage{}))
			if err == nil && made.ID != "first" {
				t.Fatalf("made the record %+v", made)
			}
			return err
		})
		first, second := changes(0, 3), k.withDeletes(changes(1, 30))
		for i, c := range [][]Change{first, second} {
			again(t, "delivering", func() error {
				d := k.frozen(t, "first", next(connector.Position(i+1), c))
				asked, answer := 0, d.Decide
				d.Decide = func(found *connector.SinkRecord) connector.Verdict {
					asked++
					return answer(found)
				}
				verdict, found, err := target.Deliver(t.Context(), d)
				if asked > 1 {
					t.Fatalf("one call of Deliver asked for %d decisions: it tries again by itself", asked)
				}
				if err == nil && verdict == connector.Disagree {
					t.Fatalf("the record %+v disagrees", found)
				}
				return err
			})
			k.stands(t, k.open(t), stage{connector.Position(i + 1), 0})
		}
		k.sees(t, "two deliveries with a broken call", first, second)
		return broken()
	})
}

// again does something until it succeeds. One broken call may spoil several tries,
// where others go by the same connection.
func again(t *testing.T, what string, do func() error) {
	t.Helper()
	const tries = 4
	var err error
	for range tries {
		if err = do(); err == nil {
			return
		}
	}
	t.Fatalf("%s, tried %d times: %v", what, tries, err)
}
