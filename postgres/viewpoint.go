package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// showRows points the view at the table, in the transaction of a delivery that comes
// after the one which pointed it elsewhere. It is the last that a transaction does:
// from here on readers of the view wait.
func (t *target) showRows(ctx context.Context, c *session, d *connector.Delivery) error {
	if t.settings.view == "" || d.Filling || d.Record.Part > 0 {
		return nil // the table is not whole yet
	}
	r, err := t.inspect(ctx, c)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("table %s isn't there any more", t.name())
	}
	own := t.pointingOf(d.Record)
	_, step, err := t.viewStep(ctx, c, r, own)
	if err != nil || step == leaveView {
		return err
	}
	return t.watched(ctx, c, func() error {
		// Nobody else points it from here on. What was read before may have changed.
		if _, err := c.exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", "sluice view "+t.viewName()); err != nil {
			return err
		}
		v, step, err := t.viewStep(ctx, c, r, own)
		if err != nil || step == leaveView {
			return err
		}
		if err := t.point(ctx, c, r, v); err != nil {
			return err
		}
		if err := t.keepPointing(ctx, c, own); err != nil {
			return err
		}
		t.log.Info("the view is pointed at the table", "sink", t.key.Sink, "what", t.viewName()+" → "+t.name(), "position", own.position)
		return nil
	})
}

// viewStep reads how the view stands, and decides.
func (t *target) viewStep(ctx context.Context, c *session, r *relation, own pointing) (viewState, viewStep, error) {
	v, err := t.readView(ctx, c)
	if err != nil {
		return v, leaveView, err
	}
	table, err := viewColumns(ctx, c, r.oid)
	if err != nil {
		return v, leaveView, err
	}
	step := decideView(v, own, table)
	if step == refuseView {
		err = t.strangeView(v)
	}
	return v, step, err
}

// point makes the view one of the table.
func (t *target) point(ctx context.Context, c *session, r *relation, v viewState) error {
	table, err := viewColumns(ctx, c, r.oid)
	if err != nil {
		return err
	}
	columns, replaceable := arrange(v.columns, table)
	names := make([]string, len(columns))
	for i, f := range columns {
		names[i] = f.name
	}
	options, err := viewOptions(ctx, c, v.oid)
	if err != nil {
		return err
	}
	create := "view " + t.quotedView() + options + " as select " + quoteAll("", names) + " from " + t.quoted()
	if replaceable {
		return t.viewFailed(c.script(ctx, "create or replace "+create))
	}
	if err := t.checkDependents(ctx, c, v.oid); err != nil {
		return err
	}
	belongings, err := t.belongings(ctx, c, v.oid, names)
	if err != nil {
		return err
	}
	owner, err := texts(ctx, c, "select format('alter view %s owner to %s', $2::text, relowner::regrole) from pg_catalog.pg_class where oid = $1 and pg_get_userbyid(relowner) <> current_user", v.oid, t.quotedView())
	if err != nil {
		return err
	}
	anew := append([]string{"drop view " + t.quotedView(), "create " + create}, owner...)
	if err := c.script(ctx, strings.Join(anew, "; ")); err != nil {
		return t.viewFailed(err)
	}
	// What default privileges have granted on the new view goes.
	revokes, err := texts(ctx, c, `select distinct format('revoke all on %s from %s', $1::text, case grantee when 0 then 'public' else grantee::regrole::text end)
from pg_catalog.pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) where c.oid = $1::regclass`, t.quotedView())
	if err != nil {
		return err
	}
	return t.viewFailed(c.script(ctx, strings.Join(append(revokes, belongings...), "; ")))
}

func (t *target) viewFailed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pointing view %s at table %s: %w", t.viewName(), t.name(), err)
}

// viewOptions are the options of a view as SQL writes them behind its name, which
// are lost when it is replaced without.
func viewOptions(ctx context.Context, c *session, view uint32) (options string, err error) {
	all, err := texts(ctx, c, `select format('%I = %L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1))
from pg_catalog.pg_class c, unnest(c.reloptions) o where c.oid = $1`, view)
	if len(all) > 0 {
		options = " with (" + strings.Join(all, ", ") + ")"
	}
	return options, err
}

// belongings are the statements that give a view which is made anew, with columns of
// these names, what it had: its grants and comments. Those of columns that are gone
// go with them.
func (t *target) belongings(ctx context.Context, c *session, view uint32, columns []string) ([]string, error) {
	return texts(ctx, c, `with v as (select * from pg_catalog.pg_class where oid = $1),
	f as (select a.* from pg_catalog.pg_attribute a join v on a.attrelid = v.oid where a.attnum > 0 and not a.attisdropped and a.attname::text = any ($3))
select s from (
	select 1, format('grant %s on %s to %s%s', lower(privilege_type), $2::text, case grantee when 0 then 'public' else grantee::regrole::text end, case when is_grantable then ' with grant option' else '' end)
	from v, aclexplode(coalesce(relacl, acldefault('r', relowner)))
	union all
	select 1, format('grant %s (%I) on %s to %s%s', lower(privilege_type), attname, $2::text, case grantee when 0 then 'public' else grantee::regrole::text end, case when is_grantable then ' with grant option' else '' end)
	from f, aclexplode(attacl)
	union all
	select 2, format('comment on view %s is %L', $2::text, description) from v join pg_catalog.pg_description on objoid = v.oid and classoid = 'pg_class'::regclass and objsubid = 0
	union all
	select 2, format('comment on column %s.%I is %L', $2::text, attname, description) from f join pg_catalog.pg_description on objoid = attrelid and classoid = 'pg_class'::regclass and objsubid = attnum
) as all_of_it (n, s) order by n, s`, view, t.quotedView(), columns)
}

// texts are the answers of a query with one column.
func texts(ctx context.Context, c *session, sql string, args ...any) (all []string, err error) {
	err = c.query(ctx, func(row pgx.Rows) error {
		var text string
		err := row.Scan(&text)
		all = append(all, text)
		return err
	}, sql, args...)
	return all, err
}

// keepPointing keeps which delivery has pointed the view.
func (t *target) keepPointing(ctx context.Context, c *session, own pointing) error {
	if err := c.script(ctx, createViews(t.views())); err != nil {
		return err
	}
	_, err := c.exec(ctx, "insert into "+t.views()+` as v (view, format, job_id, job, sink, target, live, position) values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (view) do update set (format, job_id, job, sink, target, live, position, pointed) =
	(excluded.format, excluded.job_id, excluded.job, excluded.sink, excluded.target, excluded.live, excluded.position, now())`,
		t.settings.view, viewFormat, own.jobID, own.job, own.sink, own.target, int64(own.live), int64(own.position))
	return err
}
