package upgrades

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// viewKeys are more than are written anew with one epoch.
const viewKeys = 60_000

// spent is a row of a version's table.
type spent struct{ Count, Sum, Version int64 }

// shown is a build that shows its table, spend_v1 or spend_v2, under the name spend.
func (w *way) shown(db, schema string, version int64) *sluice.Job {
	on := kafka.On(kafka.Connect(kafka.Brokers(w.cluster.Addr)))
	job := sluice.NewJob(wayJob)
	table := fmt.Sprint("spend_v", version)
	job.From("inputs", kafka.Topic("inputs", codec.JSON[input](), on)).KeyBy(func(i input) string { return i.Key }).
		Fold(sluice.NewState[string, Plain]("totals"), func(p *Plain, i input) { p.Count++; p.Sum += i.Amount }).
		To(table, postgres.Upsert(table, func(_ string, p Plain) spent { return spent{p.Count, p.Sum, version} },
			postgres.Database(db), postgres.Schema(schema), postgres.Key("key"), postgres.CreateTable(), postgres.View("spend")))
	return job
}

// reader reads a view again and again.
type reader struct {
	view     string
	stop     context.CancelFunc
	ended    chan error
	switches atomic.Int64 // how often it has seen another version than before
	last     atomic.Pointer[seen]
}

// seen is what a reader saw at once.
type seen struct{ rows, least, most, inputs, amount int64 }

// read begins to read the view, as soon as that is there, until the test ends.
func (w *way) read(db *services.Database, schema string) *reader {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{view: schema + ".spend", stop: stop, ended: make(chan error, 1)}
	c, err := pgx.Connect(ctx, db.URL(""))
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer c.Close(context.Background())
		for ctx.Err() == nil {
			if err := r.look(c); err != nil {
				r.ended <- err
				return
			}
		}
		r.ended <- nil
	}()
	w.t.Cleanup(stop)
	return r
}

// look reads the view once: all rows are there, of one version, and no input that was
// seen before is missing.
func (r *reader) look(c *pgx.Conn) error {
	var s seen
	err := c.QueryRow(context.Background(), "select count(*), min(version), max(version), sum(count)::bigint, sum(sum)::bigint from "+r.view).
		Scan(&s.rows, &s.least, &s.most, &s.inputs, &s.amount)
	before := r.last.Load()
	switch {
	case err != nil:
		return err
	case s.rows != viewKeys || s.least != s.most:
		return fmt.Errorf("the view shows %d rows of versions %d to %d, want %d of one version", s.rows, s.least, s.most, viewKeys)
	case before != nil && s.inputs < before.inputs:
		return fmt.Errorf("the view shows %d inputs under version %d, and has shown %d under version %d", s.inputs, s.least, before.inputs, before.least)
	case before != nil && s.least != before.least:
		r.switches.Add(1)
	}
	r.last.Store(&s)
	return nil
}

// sees waits until the reader has seen a version that counts all inputs.
func (w *way) sees(r *reader, version int64) {
	w.t.Helper()
	want := seen{rows: viewKeys, least: version, most: version}
	for _, c := range recount(w.fed, nil) {
		want.inputs += c.Count
		want.amount += c.Sum
	}
	w.await(fmt.Sprintf("readers of the view see version %d", version), func() bool {
		select {
		case err := <-r.ended:
			w.t.Fatal(errors.Join(errors.New("the reader has ended"), err))
		default:
		}
		s := r.last.Load()
		return s != nil && *s == want
	}, func() string { return fmt.Sprintf("last %+v, want %+v", r.last.Load(), want) })
}

// TestViewOfAnUpgrade has each build write a table of its own, and a view that shows one of
// them: readers see all rows of the old one, then all of the new one, and go back as well.
func TestViewOfAnUpgrade(t *testing.T) {
	db := database(t)
	w := newWay(t)
	schema := services.Unique("view")
	if _, err := db.Run(t.Context(), "", "create schema "+schema); err != nil {
		t.Fatal(err)
	}
	old := w.run("the old build", w.shown(db.URL(""), schema, 1), sluice.Options{})
	keys := make([]string, viewKeys)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	w.feedKeys(keys...)
	w.await("the view is there", func() bool {
		out, err := db.Run(t.Context(), "", fmt.Sprintf("select to_regclass('%[1]s.spend') is not null and (select count(*) from %[1]s.spend_v1) = %[2]d", schema, viewKeys))
		return err == nil && out == "t"
	}, nil)
	r := w.read(db, schema)
	w.feed(30)
	w.sees(r, 1)

	all := map[string]string{"spend_v2": "all"}
	u := w.upgrade("the new build", w.shown(db.URL(""), schema, 2), sluice.Options{Rewrite: all}, sluice.Upgrade{Auto: true})
	w.feed(30)
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedKeys(odd) // the other keys' rows are those that are written anew
	w.sees(r, 2)
	w.feed(30)
	w.sees(r, 2)
	if n := r.switches.Load(); n != 1 {
		t.Errorf("the view was pointed elsewhere %d times, want once", n)
	}

	// All rows are written anew, so that what its sink has missed is no loss.
	back := w.rollback("the old build again", w.shown(db.URL(""), schema, 1), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.feed(30)
	w.awaitLive(2, epoch.Rollback)
	u.endsWith(12)
	w.feedKeys(odd)
	w.sees(r, 1)
	w.feed(30)
	w.sees(r, 1)
	if n := r.switches.Load(); n != 2 {
		t.Errorf("the view was pointed elsewhere %d times, want twice", n)
	}
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	back.stops()
}
