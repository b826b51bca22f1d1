package sluice_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// A league's top 3 players by score: a state that keeps three entries of each key,
// the greatest first.
func ExampleNewSortedState() {
	d := newDesk()
	defer d.clear()
	// Players of one score stand side by side, so that the name is part of the order.
	type Rank struct {
		Score  int64
		Player string
	}
	type Result struct {
		League string
		Rank
	}
	type Top struct{ League, Players string }
	top := sluice.NewSortedState[string, Rank, bool]("top", 3).Descending()
	os.WriteFile(d.path("results.jsonl"), []byte(`{"League":"north","Player":"ann","Score":50}
{"League":"north","Player":"bob","Score":70}
{"League":"south","Player":"eve","Score":10}
{"League":"north","Player":"cid","Score":40}
{"League":"north","Player":"dot","Score":60}
{"League":"north","Player":"fay","Score":20}
`), 0o644)

	job := sluice.NewJob("league")
	job.From("results", file.JSONLines[Result](d.path("results.jsonl"))).
		KeyBy(func(r Result) string { return r.League }).
		Process(func(p *sluice.Setup[string, Top]) func(*sluice.Context[string, Top], Result) {
			top := p.Sorted(top)
			return func(c *sluice.Context[string, Top], r Result) {
				if dropped, was := top.Put(r.Rank, true); was && dropped == r.Rank {
					return // it is behind the third
				}
				var players []string
				for rank := range top.All() {
					players = append(players, fmt.Sprintf("%s %d", rank.Player, rank.Score))
				}
				c.Emit(Top{c.Key(), strings.Join(players, ", ")})
			}
		}).
		To("top", file.Append[Top](d.path("top")))
	d.run(job)
	d.print("top")
	// Output:
	// {"League":"north","Players":"ann 50"}
	// {"League":"north","Players":"bob 70, ann 50"}
	// {"League":"south","Players":"eve 10"}
	// {"League":"north","Players":"bob 70, ann 50, cid 40"}
	// {"League":"north","Players":"bob 70, dot 60, ann 50"}
}
