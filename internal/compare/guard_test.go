package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

func TestGuards(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	equal := Guard{RequireEqual: true}
	most := func(v float64) Guard { return Guard{MaxChanged: share(v)} }
	result := func(c Counts) []Result {
		return []Result{{Sink: "a", Counts: Counts{Equal: 1_000_000}}, {Sink: "b", Counts: c}}
	}
	for _, c := range []struct {
		what string
		g    Guard
		r    []Result
		want []string
	}{
		{"no guard", Guard{}, result(Counts{Changed: 5}), nil},
		{"nothing", equal, nil, nil},
		{"equal rows", equal, result(Counts{Equal: 5, CameAndWent: 2, Wires: 1}), nil},
		{"a changed row", equal, result(Counts{Equal: 5, Changed: 1}), []string{"sink b: expected equal rows, found 1 of 6 that differ"}},
		{"a row of one side", equal, result(Counts{Equal: 5, OnlyNew: 2, OnlyOld: 1}), []string{"sink b: expected equal rows, found 3 of 8 that differ"}},
		{"untold rows", equal, result(Counts{Equal: 5, Untold: 1, UntoldOld: 3, UntoldNew: 4}), []string{"sink b: expected equal rows, and 3 old and 4 new ones were not compared"}},
		{
			"epochs that were left out", equal,
			[]Result{{Sink: "a", Counts: Counts{Equal: 5, Untold: 1}, Reasons: []string{"the outputs were cleaned up", "and more"}}},
			[]string{"sink a: expected equal rows, and 0 old and 0 new ones were not compared: the outputs were cleaned up; and more"},
		},
		{
			"a column of one side", equal,
			[]Result{{Sink: "a", Schemas: []schema.Difference{{Path: "N", Change: schema.Widened}, {Path: "City", Change: schema.Added, New: "string"}}}},
			[]string{"sink a: expected the same columns, found City: added (string); ignore the column if it may differ"},
		},
		{"none may differ", most(0), result(Counts{Equal: 5}), nil},
		{"none may differ, one does", most(0), result(Counts{Equal: 9, OnlyOld: 1}), []string{"sink b: expected at most 0% of the rows to differ, found 10%: 1 of 10"}},
		{"just so many", most(0.29), result(Counts{Equal: 71, Changed: 29}), nil},
		{"one more, whatever another sink has", most(0.29), result(Counts{Equal: 71, Changed: 30}), []string{"sink b: expected at most 29% of the rows to differ, found 29.7%: 30 of 101"}},
		{"untold rows that don't matter", most(0.5), result(Counts{Equal: 20, Changed: 1, UntoldOld: 4, UntoldNew: 4}), nil},
		{"untold rows that may", most(0.3), result(Counts{Equal: 20, Changed: 1, UntoldOld: 4, UntoldNew: 5}), []string{"sink b: expected at most 30% of the rows to differ, found 1 of 21, and 4 old and 5 new ones that were not compared"}},
		{"all untold", most(0.3), result(Counts{UntoldOld: 4}), []string{"sink b: expected at most 30% of the rows to differ, found 0 of 0, and 4 old and 0 new ones that were not compared"}},
		{"a share that is none", most(math.NaN()), result(Counts{Changed: 1}), []string{"sink b: expected at most NaN% of the rows to differ, found 100%: 1 of 1"}},
		{"any share", most(1), result(Counts{Changed: 7, UntoldNew: 3}), nil},
	} {
		got := c.g.Judge(c.r)
		if !slices.Equal(got.Reasons, c.want) || got.Pass != (len(c.want) == 0) {
			t.Errorf("%s: %+v, want %q", c.what, got, c.want)
		}
	}
	all := Sum(result(Counts{Equal: 1, Changed: 2, OnlyOld: 3, OnlyNew: 4, DeletesOnlyOld: 5, DeletesOnlyNew: 6, CameAndWent: 7, Wires: 8, Untold: 9, UntoldOld: 10, UntoldNew: 11}))
	if want := (Counts{1_000_001, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}); all != want {
		t.Errorf("the sum is %+v", all)
	}
}
