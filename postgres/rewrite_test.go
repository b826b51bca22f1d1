package postgres_test

import (
	"log/slog"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/postgres"
)

// priced is a row whose columns have an equality in PostgreSQL, or only a text.
type priced struct {
	Cents int64
	Share float64
	Last  Order // json
	Note  *string
}

// pricedState is the state of the second version.
type pricedState struct {
	Spend
	Seen bool
}

func (s *pricedState) Add(o Order) { s.Spend.Add(o); s.Seen = true }

// pricedJob is a version of a job; the second one has other rows for who paid more
// than 100 cents.
func pricedJob(d *desk, second bool) *sluice.Job {
	job := sluice.NewJob("priced")
	keyed := job.From("orders", file.JSONLines[Order](d.orders)).KeyBy(func(o Order) string { return o.User })
	row := func(s Spend) priced {
		return priced{Cents: s.Cents, Share: float64(s.Cents) / 3, Last: Order{"x", s.Cents}}
	}
	if !second {
		keyed.Fold(sluice.NewState[string, Spend]("priced"), (*Spend).Add).
			To("priced", postgres.Upsert("priced", func(_ string, s Spend) priced { return row(s) }, d.options(postgres.Key("user_id"))...))
		return job
	}
	keyed.Fold(sluice.NewState[string, pricedState]("priced"), (*pricedState).Add).
		To("priced", postgres.Upsert("priced", func(_ string, s pricedState) priced {
			r := row(s.Spend)
			if note := "much"; s.Cents > 100 {
				r.Note = &note
			}
			return r
		}, d.options(postgres.Key("user_id"))...))
	return job
}

// Of a table that is written anew "changed", rows that are there already are not
// touched; with "all" they are written.
func TestRewriteChanged(t *testing.T) {
	d := newDesk(t)
	d.lines("create table @.priced (user_id text primary key, cents bigint not null, share double precision not null, last json not null, note text); create table @.touched (user_id text)")
	d.add(`{"User":"ann","Cents":500}`, `{"User":"bob","Cents":100}`, `{"User":"eve","Cents":50}`)
	if err := d.run(pricedJob(d, false)); err != nil {
		t.Fatal(err)
	}
	d.lines("create function @.touch() returns trigger language plpgsql as $$ begin insert into @.touched values (new.user_id); return new; end $$; " +
		"create trigger touch after update on @.priced for each row execute function @.touch()")
	d.lines("delete from @.priced where user_id = 'eve'") // somebody else did; it comes back
	o := sluice.Options{Store: d.store, Log: slog.New(slog.DiscardHandler), Rewrite: map[string]string{"priced": "changed"}}
	if err := pricedJob(d, true).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	d.expect("select user_id from @.touched", "ann")
	d.expect("select user_id, cents, note from @.priced order by 1", "ann|500|much", "bob|100|", "eve|50|")

	o.Rewrite["priced"], o.Replace, o.Drop = "all", true, []string{"priced.Seen"}
	d.lines("delete from @.touched")
	if err := pricedJob(d, false).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	d.expect("select user_id from @.touched order by 1", "ann", "bob", "eve")
	d.expect("select user_id, cents, note from @.priced order by 1", "ann|500|", "bob|100|", "eve|50|")
}
