package golden

import (
	"fmt"
	"iter"
	"slices"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// The builds of the job moves have all of first, and more.

func first() *sluice.Job {
	job := sluice.NewJob("moves")
	begin(job)
	return job
}

func begin(job *sluice.Job) (*sluice.Stream[reading], *sluice.Table[room, mean]) {
	readings := job.From("readings", file.JSONLines[reading]("in/moves.jsonl"))
	readings.To("readings", file.Append[reading]("out/moves-readings"))
	readings.KeyBy(reading.meter).Process(func(p *sluice.Setup[string, reading]) func(*sluice.Context[string, reading], reading) {
		l := p.List(values)
		return func(_ *sluice.Context[string, reading], r reading) { l.Append(r.Value) }
	}).Discard()
	readings.KeyBy(reading.parity).Fold(parity, (*total).add).To("parity", file.Upsert("out/moves-parity", asTotal))
	return readings, readings.KeyBy(reading.room).Fold(sluice.NewState[room, mean]("totals"), (*mean).add)
}

// second has a new state, and two new sinks: a stream's and a table's.
func second() *sluice.Job {
	job := sluice.NewJob("moves")
	readings, means := begin(job)
	addSinks(readings, means, "rooms", "copies")
	readings.KeyBy(reading.floor).Fold(sluice.NewState[int64, total]("floors"), (*total).add)
	return job
}

func addSinks(readings *sluice.Stream[reading], means *sluice.Table[room, mean], sinks ...string) {
	if slices.Contains(sinks, "rooms") {
		means.To("rooms", file.Upsert("out/moves-rooms", func(_ room, m mean) mean { return m }))
	}
	if slices.Contains(sinks, "copies") {
		readings.To("copies", file.Append[reading]("out/moves-copies"))
	}
}

// third gives the new state other keys. Those behind it differ in their sinks alone.
func third() *sluice.Job  { return renaming("rooms", "copies") }
func fourth() *sluice.Job { return renaming("rooms") }
func fifth() *sluice.Job  { return renaming("copies") }

func renaming(sinks ...string) *sluice.Job {
	job := sluice.NewJob("moves")
	readings, means := begin(job)
	addSinks(readings, means, sinks...)
	named := sluice.NewState[string, total]("floors").Meaning(1).Migrate(sluice.Migrate(same).From(0)).MigrateKeys(renamed, nil)
	readings.KeyBy(reading.floorName).Meaning(1).Fold(named, (*total).add)
	return job
}

func (r reading) floor() int64      { return int64(r.Room.Floor) }
func (r reading) floorName() string { return nameOf(r.floor()) }

func nameOf(floor int64) string { return fmt.Sprint("floor ", floor) }

// same is a value in its new meaning.
func same(t total) (total, error) { return t, nil }

// renamed gives a floor's entry its name as the key.
func renamed(floor int64, t total) iter.Seq2[string, total] {
	return func(yield func(string, total) bool) { yield(nameOf(floor), t) }
}
