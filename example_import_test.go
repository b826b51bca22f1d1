package sluice_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// imports imports a file into a new job in the desk's folder, which begins with its
// input's first record.
func (d desk) imports(job *sluice.Job, path, rows string) {
	s, err := store.OpenFolder(env.Real(), d.path("sluice-data"))
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(d.path(path), []byte(rows), 0o644); err != nil {
		panic(err)
	}
	done, err := job.Import(context.Background(), sluice.Options{Store: s, Volatile: true, Log: slog.New(slog.DiscardHandler)}, sluice.Import{
		Files:   []sluice.ImportFile{{State: "spend", Path: d.path(path)}},
		Offsets: map[string]int64{"orders.jsonl": 0},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(done.States[0].Entries, "entries")
}

// A job begins with what another system knew of its users, by the names of the
// columns, and reads its orders from there on.
func ExampleJob_Import() {
	d := newDesk()
	defer d.clear()
	job := func() *sluice.Job { return spending(d) }
	d.imports(job(), "old.csv", "key,Orders,Cents\nann,100,50000\n")
	d.run(job())
	d.print("out")
	// Output:
	// 1 entries
	// {"op":"put","key":"ann","row":{"Orders":103,"Cents":51250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
}

// oldUser is a row of another system, which kept what was paid and what was sent
// back apart.
type oldUser struct {
	User           string
	Paid, Returned int64
}

// A state whose rows were something else says what becomes of them.
func ExampleState_Import() {
	d := newDesk()
	defer d.clear()
	spend := sluice.NewState[string, Spend]("spend").Import(func(u oldUser) iter.Seq2[string, Spend] {
		return func(yield func(string, Spend) bool) {
			yield(u.User, Spend{Orders: 100, Cents: u.Paid - u.Returned})
		}
	})
	job := func() *sluice.Job {
		job := sluice.NewJob("spend")
		d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
		return job
	}
	d.imports(job(), "old.jsonl", `{"User":"ann","Paid":60000,"Returned":10000}`)
	d.run(job())
	d.print("out")
	// Output:
	// 1 entries
	// {"op":"put","key":"ann","row":{"Orders":103,"Cents":51250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
}
