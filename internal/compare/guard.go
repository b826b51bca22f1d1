package compare

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicestream/sluice/schema"
)

// Guard is what has to hold of a comparison for a cut. Its zero value lets
// everything pass.
type Guard struct {
	// RequireEqual wants all rows to be equal, and every column on both sides that is
	// not ignored.
	RequireEqual bool
	// MaxChanged is the largest share of rows of each sink, from 0 to 1, that may
	// differ; nil: any.
	MaxChanged *float64
}

// Verdict is what a guard says.
type Verdict struct {
	// Pass tells whether what the guard wants holds.
	Pass bool
	// Reasons say for each sink why it doesn't, in a line each.
	Reasons []string
}

// Judge holds the results of all sinks against the guard. Rows that were not
// compared count as both: the verdict passes only if it would whatever they are.
func (g Guard) Judge(results []Result) Verdict {
	var v Verdict
	for _, r := range results {
		v.Reasons = append(v.Reasons, g.objections(&r)...)
	}
	v.Pass = len(v.Reasons) == 0
	return v
}

func (g Guard) objections(r *Result) (reasons []string) {
	object := func(format string, args ...any) {
		reasons = append(reasons, "sink "+r.Sink+": "+fmt.Sprintf(format, args...))
	}
	if g.RequireEqual {
		if n := r.Different(); n > 0 {
			object("expected equal rows, found %d of %d that differ", n, r.Compared())
		}
		for _, d := range r.Schemas {
			if d.Change == schema.Added || d.Change == schema.Removed {
				object("expected the same columns, found %s; ignore the column if it may differ", d)
			}
		}
		if r.Untold > 0 {
			object("expected equal rows, and %d old and %d new ones were not compared%s", r.UntoldOld, r.UntoldNew, why(r.Reasons))
		}
	}
	if g.MaxChanged == nil {
		return reasons
	}
	bound := *g.MaxChanged
	untold := r.UntoldOld + r.UntoldNew // as many differ at the most
	switch different, all := r.Different(), r.Compared(); {
	case exceeds(different, all+untold, bound):
		object("expected at most %s of the rows to differ, found %s: %d of %d", percent(bound), percent(float64(different)/float64(max(all, 1))), different, all)
	case exceeds(different+untold, all+untold, bound):
		object("expected at most %s of the rows to differ, found %d of %d, and %d old and %d new ones that were not compared", percent(bound), different, all, r.UntoldOld, r.UntoldNew)
	}
	return reasons
}

// why says why rows were not compared, as far as that is known.
func why(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(reasons, "; ")
}

// rounding is by how much a share that is no binary fraction may be off: 29 of 100 is
// not more than 0.29.
const rounding = 1e-12

// exceeds tells whether n of all is a larger share than bound. If the bound is no
// number, everything is.
func exceeds(n, all int64, bound float64) bool {
	return n > 0 && !(float64(n) <= bound*float64(all)*(1+rounding))
}

// percent writes a share for people.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + "%" }
