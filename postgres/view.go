package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// viewTable holds a row for each view of a schema that sinks have made: whose it is,
// and which delivery pointed it where it points.
const viewTable = "sluice_view"

// viewFormat is the version of its rows' form.
const viewFormat = 1

// createViews is the views' table.
func createViews(table string) string {
	return `create table if not exists ` + table + ` (
	view text primary key,
	format integer not null,
	job_id text not null,
	job text not null,
	sink text not null,
	target text not null,
	live bigint not null,
	position bigint not null,
	pointed timestamp with time zone not null default now()
)`
}

// views is the views' table with its schema before it.
func (t *target) views() string { return quote(t.settings.schema, viewTable) }

// viewName is the view with its schema before it.
func (s *sink) viewName() string { return s.settings.schema + "." + s.settings.view }

// quotedView is the view as SQL writes it.
func (t *target) quotedView() string { return quote(t.settings.schema, t.settings.view) }

// pointing is a delivery that points a view at a table.
type pointing struct {
	jobID, job, sink, target string
	live, position           uint64
}

// pointingOf is a delivery as one that points the view.
func (t *target) pointingOf(r connector.SinkRecord) pointing {
	return pointing{t.key.JobID, r.Job, t.key.Sink, t.name(), r.Live, uint64(r.Position)}
}

// after tells whether a delivery comes after another of its job. Generations tell it
// of upgrades and rollbacks, positions of a build that took over in place: what a
// sink that it lacks still has to deliver lies before.
func (p pointing) after(other pointing) bool {
	return p.live > other.live || p.live == other.live && p.position > other.position
}

// viewColumn is a column as far as a view can't be replaced by one in which it is
// another.
type viewColumn struct {
	name      string
	typeOID   uint32
	modifier  int32
	collation uint32
}

// viewState is what stands in the database under a view's name.
type viewState struct {
	oid     uint32 // of a view; 0: there is none
	other   string // what else has the name; empty: nothing
	kept    bool   // whether there is a table of views
	last    *pointing
	columns []viewColumn
}

// viewStep is what a delivery does with its view.
type viewStep int

const (
	leaveView viewStep = iota // it points where it should
	pointView
	refuseView // it isn't this job's
)

// decideView decides what a delivery does with its view, once the sink's table has
// these columns. An older process, which still delivers its rest, leaves the view to
// the newer one, also one that is gone.
func decideView(found viewState, own pointing, table []viewColumn) viewStep {
	last := found.last
	ours := last != nil && last.jobID == own.jobID
	switch {
	case found.other != "" || found.oid != 0 && !ours:
		return refuseView
	case !ours:
		return pointView
	case last.sink == own.sink && last.target == own.target:
		if found.oid == 0 || lacks(found.columns, table) {
			return pointView
		}
		return leaveView
	case own.after(*last):
		return pointView
	}
	return leaveView
}

// lacks tells whether the table has columns that can be added behind the view's.
func lacks(view, table []viewColumn) bool {
	arranged, replaceable := arrange(view, table)
	return replaceable && len(arranged) > len(view)
}

// arrange puts a table's columns in an order for a view: that of the view that is
// there, and behind it what that lacks. Where one of the view's is missing or has
// another type, the view can't be replaced by the new one, only dropped.
func arrange(view, table []viewColumn) (columns []viewColumn, replaceable bool) {
	for _, c := range view {
		if !slices.Contains(table, c) {
			return table, false
		}
	}
	columns = slices.Clone(view)
	for _, c := range table {
		if !slices.Contains(view, c) {
			columns = append(columns, c)
		}
	}
	return columns, true
}

// readView reads what stands under the view's name.
func (t *target) readView(ctx context.Context, c *session) (v viewState, err error) {
	err = c.query(ctx, func(row pgx.Rows) error { return row.Scan(&v.oid, &v.other, &v.kept) }, `select
	coalesce(max(c.oid::bigint) filter (where c.relkind = 'v'), 0),
	coalesce(max(pg_describe_object('pg_class'::regclass, c.oid, 0)) filter (where c.relkind <> 'v'), max(pg_describe_object('pg_type'::regclass, y.oid, 0)), ''),
	to_regclass($3) is not null
from pg_catalog.pg_namespace n
left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = $2
left join pg_catalog.pg_type y on y.typnamespace = n.oid and y.typname = $2 and y.typrelid = 0 and y.typcategory <> 'A'
where n.nspname = $1`, t.settings.schema, t.settings.view, t.views())
	if err != nil {
		return v, err
	}
	if v.kept {
		if v.last, err = t.readPointing(ctx, c); err != nil {
			return v, err
		}
	}
	if v.oid != 0 {
		v.columns, err = viewColumns(ctx, c, v.oid)
	}
	return v, err
}

// readPointing reads which delivery pointed the view last; nil: none.
func (t *target) readPointing(ctx context.Context, c *session) (last *pointing, err error) {
	err = c.query(ctx, func(row pgx.Rows) error {
		var p pointing
		var format, live, position int64
		if err := row.Scan(&format, &p.jobID, &p.job, &p.sink, &p.target, &live, &position); err != nil {
			return err
		}
		if format != viewFormat || live < 0 || position < 0 {
			return fmt.Errorf("table %s, view %s: expected format %d and no negative number, found format %d, live %d, position %d; run the build that wrote it, or restore the row",
				t.views(), t.settings.view, viewFormat, format, live, position)
		}
		p.live, p.position = uint64(live), uint64(position)
		last = &p
		return nil
	}, "select format, job_id, job, sink, target, live, position from "+t.views()+" where view = $1", t.settings.view)
	return last, err
}

// viewColumns are the columns of a table or a view, as a view has them.
func viewColumns(ctx context.Context, c *session, oid uint32) (columns []viewColumn, err error) {
	err = c.query(ctx, func(row pgx.Rows) error {
		var f viewColumn
		err := row.Scan(&f.name, &f.typeOID, &f.modifier, &f.collation)
		columns = append(columns, f)
		return err
	}, `select attname::text, atttypid, atttypmod, attcollation from pg_catalog.pg_attribute
where attrelid = $1 and attnum > 0 and not attisdropped order by attnum`, oid)
	return columns, err
}

// strangeView says why the view isn't this job's to point.
func (t *target) strangeView(v viewState) error {
	switch {
	case v.other != "":
		return fmt.Errorf("view %s: something else has that name, %s; give postgres.View another", t.viewName(), v.other)
	case v.last != nil:
		return fmt.Errorf("view %s: it is that of job_id %s (%s, sink %s), and this is job_id %s; give postgres.View another name, or drop it if that job is gone for good: drop view %s",
			t.viewName(), v.last.jobID, v.last.job, v.last.sink, t.key.JobID, t.quotedView())
	}
	return fmt.Errorf("view %s: no job has made it, and so none may point it elsewhere; give postgres.View another name, or make room: alter view %s rename to …", t.viewName(), t.quotedView())
}
