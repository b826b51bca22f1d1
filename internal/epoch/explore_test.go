package epoch

import (
	"fmt"
	"hash/maphash"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// An exploration goes through every state that a few processes, a store and a sink can
// come to, breadth first: any process moves next, by one call to the store or the sink,
// or is killed, or a call fails. What the processes do is decided by the real
// functions. The first state that breaks a promise ends it, and the steps that lead
// there are the shortest history that goes wrong.

// explored is what came of an exploration.
type explored struct {
	states, steps int
	// harm is the promise that was broken, history how.
	harm    string
	history []string
	// full says that there were more states than the exploration may visit.
	full bool
	// reached counts what states have come to.
	reached map[string]int
}

// visit is how a state was reached first.
type visit struct {
	from  int32
	act   act
	picks picks
}

// explorer remembers the states that it has seen, by two hashes of their keys.
type explorer struct {
	s      *setting
	seeds  [2]maphash.Seed
	known  map[[2]uint64]int32
	visits []visit
	ends   []bool     // by state: all is read and delivered, or nothing can be said
	back   [][2]int32 // steps without a failure: to, from
	steps  int
	key    []byte
}

// explore visits every state of a setting, up to a number of them.
func explore(s *setting, most int) explored {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // states come and go
	x := &explorer{s: s, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, known: map[[2]uint64]int32{}}
	first := newMoment(s)
	x.note(first, visit{from: -1})
	waiting := []*moment{first}
	out := explored{reached: map[string]int{}}
	for at := int32(0); len(waiting) > 0; at++ {
		w := waiting[0]
		waiting[0], waiting = nil, waiting[1:]
		if w.harm != "" {
			out.harm, out.history = w.harm, x.history(at)
			break
		}
		w.count(out.reached)
		if w.stopped {
			continue // a person decides
		}
		if out.full = len(x.visits) > most; out.full {
			break
		}
		for n := range w.next {
			x.steps++
			to, isNew := x.note(n, visit{at, n.by, n.c.picks()})
			if isNew {
				waiting = append(waiting, n)
			}
			if n.left == w.left {
				x.back = append(x.back, [2]int32{to, at})
			}
		}
	}
	if out.harm == "" && !out.full && s.endsWell {
		if at := x.wedged(); at >= 0 {
			out.harm, out.history = "the job never goes on, even if nothing fails any more", x.history(at)
		}
	}
	out.states, out.steps = len(x.visits), x.steps
	return out
}

// note tells the number of a state, and whether it is new.
func (x *explorer) note(w *moment, v visit) (at int32, isNew bool) {
	x.key = w.key(x.key[:0])
	sum := [2]uint64{maphash.Bytes(x.seeds[0], x.key), maphash.Bytes(x.seeds[1], x.key)}
	if at, ok := x.known[sum]; ok {
		return at, false
	}
	at = int32(len(x.visits))
	x.known[sum] = at
	x.visits = append(x.visits, v)
	x.ends = append(x.ends, w.stopped || w.atBound() || w.harm == "" && w.finished())
	return at, true
}

// wedged is the first state from which no steps without a failure lead to an end;
// -1 if there is none.
func (x *explorer) wedged() int32 {
	into := make([][]int32, len(x.visits))
	for _, e := range x.back {
		into[e[0]] = append(into[e[0]], e[1])
	}
	well := slices.Clone(x.ends)
	var todo []int32
	for at, ok := range well {
		if ok {
			todo = append(todo, int32(at))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range into[at] {
			if !well[from] {
				well[from] = true
				todo = append(todo, from)
			}
		}
	}
	return int32(slices.Index(well, false))
}

// history tells the steps to a state, by going them again.
func (x *explorer) history(at int32) []string {
	var way []visit
	for ; x.visits[at].from >= 0; at = x.visits[at].from {
		way = append(way, x.visits[at])
	}
	slices.Reverse(way)
	w := newMoment(x.s)
	var told []string
	for _, v := range way {
		w = w.clone()
		var words []string
		w.words, w.c = &words, choicesOf(v.picks)
		w.do(v.act)
		told = append(told, strings.Join(words, "; "))
	}
	return told
}

// picks are the choices that were made within a step, four bits each, behind their
// number.
type picks uint32

// chooser goes through all ways in which the choices within a step can be made.
type chooser struct {
	taken, wide []uint8
	at          int
}

// pick is one of n.
func (c *chooser) pick(n int) int {
	if n < 2 {
		return 0
	}
	if c.at == len(c.taken) {
		c.taken, c.wide = append(c.taken, 0), append(c.wide, uint8(n))
	}
	c.at++
	return int(c.taken[c.at-1])
}

// turn goes on to the next way; false if there is none.
func (c *chooser) turn() bool {
	c.at = 0
	for n := len(c.taken) - 1; n >= 0; n-- {
		if c.taken[n]+1 < c.wide[n] {
			c.taken[n]++
			c.taken, c.wide = c.taken[:n+1], c.wide[:n+1]
			return true
		}
	}
	return false
}

func (c *chooser) picks() (p picks) {
	for _, n := range slices.Backward(c.taken) {
		p = p<<4 | picks(n)
	}
	return p<<4 | picks(len(c.taken))
}

func choicesOf(p picks) *chooser {
	c := &chooser{}
	n := int(p & 15)
	for range n {
		p >>= 4
		c.taken, c.wide = append(c.taken, uint8(p&15)), append(c.wide, 16)
	}
	return c
}

// fairly lets the processes move in turns, one step each, without a failure, and tells
// how many steps it took until all was done; -1 if that never came.
func fairly(w *moment, done func(*moment) bool, most int) int {
	for n := range most {
		if w.harm != "" {
			return -1
		}
		if done(w) {
			return n
		}
		who := uint8(n % len(w.procs))
		if next := w.moved(act{stepping, who}); next != nil {
			w = next
		} else if next := w.moved(act{restarting, who}); next != nil {
			w = next
		}
	}
	return -1
}

// moved is the state behind a move, with the choices that are given and else the first
// of each; nil if it isn't possible.
func (w *moment) moved(a act, choices ...uint8) *moment {
	next := w.clone()
	next.c = &chooser{taken: choices, wide: choices}
	if !next.do(a) {
		return nil
	}
	return next
}

// tell writes a history as the protocol does: a numbered list.
func tell(harm string, history []string) string {
	var b strings.Builder
	for i, step := range history {
		fmt.Fprintf(&b, "%d %s. ", i+1, step)
	}
	fmt.Fprintf(&b, "=> %s", harm)
	return b.String()
}

// atLength tells whether the long tests run.
func atLength() bool { return os.Getenv("SLUICE_TORTURE") == "1" }

// mostStates bounds an exploration: one that has more is no check, and fails.
const mostStates = 5_000_000

// skipUnderRace: an exploration is one goroutine, and ten times as slow.
func skipUnderRace(t *testing.T) {
	if underRace {
		t.Skip("an exploration is one goroutine: the race detector has nothing to find")
	}
}

// TestExplore visits every state of each setting, and finds no harm.
func TestExplore(t *testing.T) {
	skipUnderRace(t)
	states, steps := 0, 0
	for _, s := range settings(atLength()) {
		t.Run(s.name, func(t *testing.T) {
			r := explore(s, mostStates)
			t.Logf("%d states, %d steps, reached %v", r.states, r.steps, r.reached)
			states, steps = states+r.states, steps+r.steps
			if r.harm != "" {
				t.Errorf("goes wrong:\n%s", tell(r.harm, r.history))
			}
			if r.full {
				t.Errorf("more than %d states: nothing was proved; make the setting smaller", mostStates)
			}
			for _, what := range s.reaches {
				if r.reached[what] == 0 {
					t.Errorf("no state has reached %q: the setting is too small to show anything", what)
				}
			}
		})
	}
	t.Logf("in all %d states, %d steps", states, steps)
}

// TestExploreWithout switches rules off, one at a time: each exploration then finds
// a history that goes wrong, and prints the shortest.
func TestExploreWithout(t *testing.T) {
	skipUnderRace(t)
	states := 0
	for _, c := range flaws() {
		t.Run(c.name, func(t *testing.T) {
			s := c.in(false)
			s.without = c.without
			r := explore(s, mostStates)
			states += r.states
			if r.harm == "" {
				t.Errorf("without the rule nothing goes wrong in %d states: the exploration can't see it", r.states)
				return
			}
			t.Logf("%d states: %s", r.states, tell(r.harm, r.history))
			if !strings.Contains(r.harm, c.harm) {
				t.Errorf("without the rule another promise is broken: %q, not %q", r.harm, c.harm)
			}
		})
	}
	t.Logf("in all %d states", states)
}
