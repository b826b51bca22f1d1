// Package pages is what the builds of the job visits have in common. They
// differ in whether their folds panic, and in whether they have a sink for dead
// letters.
package pages

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Visit is a line of the input.
type Visit struct {
	User, Page string
	Seconds    int64
	Fault      string // where the broken builds fail on it
}

// Total is the state of both tables.
type Total struct{ Visits, Seconds int64 }

// Step is a visit behind the first table.
type Step struct {
	Visit
	Nth int64
}

// Job counts by user, and behind that by page. broken says that its functions
// panic on visits that ask for it.
func Job(broken bool) *sluice.Job {
	job := sluice.NewJob("visits")
	users := sluice.NewState[string, Total]("users")
	steps := job.From("visits", file.JSONLines[Visit]("in/*.jsonl")).
		KeyBy(func(v Visit) string { return v.User }).
		Process(func(p *sluice.Setup[string, Step]) func(*sluice.Context[string, Step], Visit) {
			total := p.State(users)
			return func(c *sluice.Context[string, Step], v Visit) {
				t := total.Update()
				t.add(v, broken && v.Fault == "user")
				c.Emit(Step{v, t.Visits})
			}
		})
	steps.To("steps", file.Append[Step]("out/steps"))
	steps.Table(users).To("users", file.Upsert("out/users", func(_ string, t Total) Total { return t }))
	steps.KeyBy(func(s Step) string { return s.Page }).
		Fold(sluice.NewState[string, Total]("pages"), func(t *Total, s Step) { t.add(s.Visit, broken && s.Fault == "page") }).
		To("pages", file.Upsert("out/pages", func(_ string, t Total) Total { return t }))
	return job
}

// add panics, if it is to, when it has changed one half.
func (t *Total) add(v Visit, fails bool) {
	t.Visits++
	if fails {
		panic("half done with " + v.User + " on " + v.Page)
	}
	t.Seconds += v.Seconds
}
