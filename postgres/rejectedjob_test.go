package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/postgres"
)

// A row that the table refuses ends the job with an error, whenever it is started;
// once the table takes it, the next start delivers what was owed, each row once.
func TestJobEndsAtARefusedRow(t *testing.T) {
	d := newDesk(t)
	d.lines("create table @.sums (user_id text primary key, cents bigint check (cents < 100))")
	type sum struct{ Cents int64 }
	job := func() *sluice.Job {
		job := sluice.NewJob("sums")
		job.From("orders", file.JSONLines[Order](d.orders)).
			KeyBy(func(o Order) string { return o.User }).
			Fold(sluice.NewState[string, sum]("sums"), func(s *sum, o Order) { s.Cents += o.Cents }).
			To("out", postgres.Upsert("sums", func(_ string, s sum) sum { return s }, d.options(postgres.Key("user_id"))...))
		return job
	}
	d.add(`{"User":"ann","Cents":5}`, `{"User":"bob","Cents":500}`)
	for range 2 {
		err := d.run(job())
		rejected, ok := errors.AsType[*sluice.RejectedError](err)
		if !ok || rejected.Sink != "out" || !errors.Is(err, connector.ErrRejected) {
			t.Fatalf("got %v, expected a RejectedError", err)
		}
		for _, says := range []string{"constraint sums_cents_check, row user_id = bob: ", "nothing was written or lost", "drop constraint"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("it doesn't say %q: %v", says, err)
			}
		}
		if rejected.ExitCode() != 15 { // a supervisor doesn't start it again
			t.Error("the exit code is", rejected.ExitCode())
		}
		d.expect("select count(*) from @.sums", "0")
	}
	d.lines("alter table @.sums drop constraint sums_cents_check")
	d.add(`{"User":"ann","Cents":1}`)
	if err := d.run(job()); err != nil {
		t.Fatal(err)
	}
	d.expect("select user_id, cents from @.sums order by 1", "ann|6", "bob|500")
}
