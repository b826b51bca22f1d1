// Package entries is what the builds of the job intake have in common: a job
// that adds up what it reads of one file of each kind.
package entries

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Entry is a line of JSON.
type Entry struct {
	User   string
	Points int64
	Detail Detail
}

// Detail is what an entry may say besides.
type Detail struct{ Marks []int64 }

// Row is a record of CSV.
type Row struct {
	User   string
	Points int64
}

// Total is the state.
type Total struct{ Entries, Points int64 }

// Job adds up the entries of its files by user.
func Job() *sluice.Job {
	job := sluice.NewJob("intake")
	plain := job.From("plain", file.JSONLines[Entry]("in/plain.jsonl"))
	packed := job.From("packed", file.JSONLines[Entry]("in/packed.jsonl.gz"))
	rows := job.From("rows", file.CSV[Row]("in/rows.csv")).
		Map(func(r Row) Entry { return Entry{User: r.User, Points: r.Points} })
	plain.Merge(packed).Merge(rows).
		KeyBy(func(e Entry) string { return e.User }).
		Fold(sluice.NewState[string, Total]("totals"), func(t *Total, e Entry) { t.Entries++; t.Points += e.Points }).
		To("totals", file.Upsert("out/totals", func(_ string, t Total) Total { return t }))
	return job
}
