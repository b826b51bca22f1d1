package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// TestGraph draws branches b, c and d that start from one epoch of main, and e that
// starts from c: columns join to the left, past those that go on.
func TestGraph(t *testing.T) {
	var g graph
	var got []string
	draw := func(at, next string) {
		var then *node
		if next != "" {
			n := nodeOf(next)
			then = &n
		}
		joins, line := g.add(nodeOf(at), "*", then)
		got = append(append(got, joins...), line)
	}
	draw("main 5", "main 4")
	draw("b 0", "main 3")
	draw("e 0", "c 1")
	draw("d 0", "main 3")
	draw("c 2", "c 1")
	draw("c 1", "c 0")
	draw("c 0", "main 3")
	draw("main 4", "main 3")
	draw("main 3", "main 2")
	draw("f 0", "gone 7")
	draw("main 2", "main 1")
	g.end("gone")
	draw("main 1", "")
	draw("other 0", "")
	want := strings.Split(strings.Trim(`
*
| *
| | *
| | | *
| | | | *
| | |_|/
| | * |
| | * |
* | | |
|_|_|/
|_|/
|/
*
| *
* |
*
*`, "\n"), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(g.columns) != 0 {
		t.Errorf("%d columns are left", len(g.columns))
	}
}

func nodeOf(text string) node {
	branch, number, _ := strings.Cut(text, " ")
	return node{branch, epoch.Epoch(number[0] - '0')}
}

// TestClocksApart: whatever the clocks say, an epoch is drawn behind all that start from
// it.
func TestClocksApart(t *testing.T) {
	at := func(branch string, e epoch.Epoch, time int64) *epoch.Manifest {
		return &epoch.Manifest{Branch: branch, Epoch: e, Time: time}
	}
	main := &strand{branch: "main", at: at("main", 4, 900)}
	next := &strand{branch: "next", base: &basePoint{"main", 4}, at: at("next", 0, 100)}
	later := &strand{branch: "later", base: &basePoint{"next", 1}, at: at("later", 7, 50)}
	all := []*strand{main, next, later}
	if got := newestStrand(all); got != next {
		t.Errorf("first %s, want next, from which nobody starts that is still to be drawn", got.branch)
	}
	if next.at = nil; newestStrand(all) != main {
		t.Error("then main is the newest")
	}
	if main.at = nil; newestStrand(all) != later {
		t.Error("then later alone is left")
	}
	main.at, main.base, next.at = at("main", 4, 1), &basePoint{"next", 0}, at("next", 0, 2)
	if got := newestStrand([]*strand{main, next}); got != next {
		t.Errorf("of branches that start from each other got %v", got)
	}
}

func TestPartialStatesOfFollowers(t *testing.T) {
	e, at := epoch.Epoch(3), epoch.Position(9)
	s := status{Branch: "main", Branches: []listedBranch{
		{Branch: "main", State: upgrade.Live, Epoch: &e, Position: &at, Partial: []partialStatus{{State: "spend", Why: "new"}}},
		{Branch: "next", State: upgrade.Follows, Epoch: &e, Position: &at, Partial: []partialStatus{{"seen", "it starts empty", "2026-01-31T12:00:00Z"}}},
		{Branch: "old", State: upgrade.GivenUp, Epoch: &e, Position: &at, Partial: []partialStatus{{State: "lost", Why: "given up"}}},
	}}
	var b strings.Builder
	if err := s.partialsOfOthers(styles{}).write(&b); err != nil {
		t.Fatal(err)
	}
	want := "BRANCH  PARTIAL STATE  UNTIL                 WHY\nnext    seen           2026-01-31 12:00:00Z  it starts empty\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
