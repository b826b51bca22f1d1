package epoch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The writing anew of a table's sink (D11), gone through move by move: keys come and go,
// parts are written, other versions take over, by an upgrade or by going back. Deliveries
// are in order and exact here: what may happen to them is in the settings.

// The table: half of the keys in each half of the slots.
const (
	rewriteKeys     = 2
	rewriteHalf     = Slot(1) << 15
	rewriteVersions = 3
)

// The keys that versions have no row of, whatever they read.
var unseen = map[int]int{1: -1, 2: 1, 3: 0}

// aTable is the state of a job with one table and its sink.
type aTable struct {
	version    int // that is live
	generation int
	alive      [rewriteKeys]bool // by the inputs
	rows       [rewriteKeys]int  // the version of the row that the sink has; 0: none
	rewrite    *Rewrite
	// ends are what generations have ended with: their version, and which keys they had.
	ends []anEnd
	// asked says that a pass over all rows was asked for, since when the rows of all
	// keys have to be right once nothing is left to do.
	asked bool
	// left are keys of which a change has left rows that no pass was asked to remove: the
	// new version lacks them, and rows are written as keys are touched.
	left [rewriteKeys]bool
	by   string // how it came here
	from *aTable
}

type anEnd struct {
	end     LogEnd
	version int
	keys    [rewriteKeys]bool
	left    [rewriteKeys]bool // by changes before
}

func (a *aTable) key() string {
	k := fmt.Sprint(a.version, a.generation, a.alive, a.rows, a.asked, a.left)
	if a.rewrite != nil {
		k += fmt.Sprint(*a.rewrite)
	}
	for _, e := range a.ends {
		k += fmt.Sprint(e.version, e.keys, e.left)
	}
	return k
}

// has tells whether a version's table has a key.
func (a *aTable) has(version, key int) bool { return a.alive[key] && unseen[version] != key }

func (a *aTable) next(by string, change func(n *aTable)) *aTable {
	n := *a
	n.ends, n.by, n.from = slices.Clone(a.ends), by, a
	change(&n)
	return &n
}

// touch has an input put or delete a key.
func (a *aTable) touch(key int) *aTable {
	return a.next(fmt.Sprintf("an input turns key %d", key), func(n *aTable) {
		n.alive[key] = !a.alive[key]
		if unseen[a.version] == key {
			return // which this version doesn't look at
		}
		n.left[key] = false
		if n.rows[key] = 0; n.alive[key] {
			n.rows[key] = a.version
		}
	})
}

// part writes the rows of the half that comes next.
func (a *aTable) part(off string) *aTable {
	first, last := 0, a.rewrite.Cursor+rewriteHalf-1
	if a.rewrite.Cursor > 0 {
		first = rewriteKeys / 2
	}
	return a.next(fmt.Sprintf("the rows of slots up to %d are written anew", last), func(n *aTable) {
		for key := first; key < first+rewriteKeys/2; key++ {
			if a.has(a.version, key) {
				n.rows[key] = a.version
			} else if a.ended(key) && off != "D11: keys of ends stay" {
				n.rows[key] = 0
			}
		}
		n.rewrite = a.rewrite.Passed(last)
	})
}

// ended tells whether one of the ends that the pass compares with has a key.
func (a *aTable) ended(key int) bool {
	return slices.ContainsFunc(a.ends, func(e anEnd) bool { return slices.Contains(a.rewrite.Ends(), e.end) && e.keys[key] })
}

// change has another version take over; own is what its branch says of the rewriting.
func (a *aTable) change(by string, version int, wish RewriteMode, own *Rewrite, off string) *aTable {
	e := anEnd{end: LogEnd{Branch: fmt.Sprint("b", a.generation), Task: FirstTask, Epoch: Epoch(a.generation)}, version: a.version, left: a.left}
	for key := range rewriteKeys {
		e.keys[key] = a.has(a.version, key)
	}
	return a.next(by, func(n *aTable) {
		n.ends = append(n.ends, e)
		n.version, n.generation = version, a.generation+1
		unfinished := a.rewrite
		if off == "D11: what is unfinished is forgotten" {
			unfinished = nil
		}
		n.rewrite = Rewriting(wish, own, unfinished, e.end)
		switch {
		case n.rewrite == nil:
		case off == "D11: ends that come later are not compared with":
			n.rewrite.Later = nil
		case off == "D11: a wish goes on where the pass was" && unfinished != nil:
			n.rewrite.Cursor = unfinished.Cursor
		}
		n.asked = wish == RewriteAll || a.asked && a.rewrite != nil
		for key := range rewriteKeys {
			if !n.asked && n.rows[key] != 0 && !n.has(version, key) {
				n.left[key] = true
			}
		}
	})
}

// back goes back to the version of an end, whose branch knows all ends since then.
func (a *aTable) back(at int, off string) *aTable {
	var own *Rewrite
	ends := a.ends[at:]
	if off == "D11: a rollback knows of the last end alone" {
		ends = nil
	}
	for _, e := range ends {
		own = Rewriting(RewriteAll, own, nil, e.end)
	}
	version := a.ends[at].version
	n := a.change(fmt.Sprintf("a rollback to version %d", version), version, RewriteAll, own, off)
	n.left = a.ends[at].left // what was left since then has been an end's
	return n
}

// moves are the states behind one move.
func (a *aTable) moves(off string) (all []*aTable) {
	for key := range rewriteKeys {
		all = append(all, a.touch(key))
	}
	if a.rewrite != nil {
		all = append(all, a.part(off))
	}
	if a.generation == more(atLength(), 3, 4) {
		return all
	}
	if to := a.version + 1; to <= rewriteVersions {
		all = append(all,
			a.change(fmt.Sprintf("an upgrade to version %d", to), to, RewriteTouched, nil, off),
			a.change(fmt.Sprintf("an upgrade to version %d, rows and all", to), to, RewriteAll, nil, off))
	}
	for at, e := range a.ends {
		if e.version < a.version {
			all = append(all, a.back(at, off))
		}
	}
	return all
}

// wrong says which row is not right although nothing is left to do.
func (a *aTable) wrong() string {
	if !a.asked || a.rewrite != nil {
		return ""
	}
	for key, row := range a.rows {
		switch has := a.has(a.version, key); {
		case has && row != a.version:
			return fmt.Sprintf("key %d has a row of version %d, and version %d is live", key, row, a.version)
		case !has && row != 0 && !a.left[key]:
			return fmt.Sprintf("key %d has a row of version %d, and the table lacks it", key, row)
		}
	}
	return ""
}

// exploreRewriting visits all states, breadth first, up to the first that is wrong.
func exploreRewriting(off string) (states int, harm string, history []string) {
	first := &aTable{version: 1}
	known := map[string]bool{first.key(): true}
	for waiting := []*aTable{first}; len(waiting) > 0; waiting = waiting[1:] {
		a := waiting[0]
		if harm = a.wrong(); harm != "" {
			for ; a.from != nil; a = a.from {
				history = append(history, a.by)
			}
			slices.Reverse(history)
			return len(known), harm, history
		}
		for _, n := range a.moves(off) {
			if k := n.key(); !known[k] {
				known[k] = true
				waiting = append(waiting, n)
			}
		}
	}
	return len(known), "", nil
}

// TestExploreRewriting: once a pass over all rows is through, each key's row is that of
// the live version, or gone, whatever came in between.
func TestExploreRewriting(t *testing.T) {
	skipUnderRace(t)
	states, harm, history := exploreRewriting("")
	t.Logf("%d states", states)
	if harm != "" {
		t.Errorf("goes wrong:\n%s", tell(harm, history))
	}
}

// TestExploreRewritingWithout switches rules off, one at a time.
func TestExploreRewritingWithout(t *testing.T) {
	skipUnderRace(t)
	for off, want := range map[string]string{
		"D11: keys of ends stay":                          "the table lacks it",
		"D11: what is unfinished is forgotten":            "the table lacks it",
		"D11: ends that come later are not compared with": "the table lacks it",
		"D11: a wish goes on where the pass was":          "the table lacks it",
		"D11: a rollback knows of the last end alone":     "the table lacks it",
	} {
		t.Run(off, func(t *testing.T) {
			states, harm, history := exploreRewriting(off)
			if harm == "" {
				t.Fatalf("without the rule nothing goes wrong in %d states: the exploration can't see it", states)
			}
			t.Logf("%d states: %s", states, tell(harm, history))
			if !strings.Contains(harm, want) {
				t.Errorf("without the rule another promise is broken: %q, not %q", harm, want)
			}
		})
	}
}
