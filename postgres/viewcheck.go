package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// checkView tells beforehand what would keep a delivery from pointing the view at
// the table: r, nil if it is to be made, with the columns that are to be added.
func (t *target) checkView(ctx context.Context, c *session, r *relation, missing []column) error {
	if t.settings.view == "" {
		return nil
	}
	if err := t.mayKeepViews(ctx, c); err != nil {
		return err
	}
	v, err := t.readView(ctx, c)
	if err != nil {
		return err
	}
	ours := v.last != nil && v.last.jobID == t.key.JobID
	switch {
	case v.other != "" || v.oid != 0 && !ours:
		return t.strangeView(v)
	case v.oid == 0:
		return together(t.mayPoint(ctx, c, v, true), t.ownerReads(ctx, c, r, v))
	case r != nil && v.last.sink == t.key.Sink && v.last.target == t.name() && len(missing) == 0:
		return nil // it stays as it is
	}
	table, err := t.columnsToBe(ctx, c, r, missing)
	if err != nil {
		return err
	}
	_, replaceable := arrange(v.columns, table)
	faults := []error{t.mayPoint(ctx, c, v, !replaceable), t.ownerReads(ctx, c, r, v)}
	if !replaceable {
		faults = append(faults, t.checkDependents(ctx, c, v.oid))
	}
	return together(faults...)
}

// columnsToBe are the table's columns once those are added that it lacks.
func (t *target) columnsToBe(ctx context.Context, c *session, r *relation, missing []column) (columns []viewColumn, err error) {
	if r != nil {
		if columns, err = viewColumns(ctx, c, r.oid); err != nil {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return columns, nil
	}
	nulls := make([]string, len(missing))
	for i, m := range missing {
		nulls[i] = "null::" + m.want.sql
	}
	results, err := c.answers(ctx, "select "+strings.Join(nulls, ", "))
	if err != nil {
		return nil, fmt.Errorf("table %s: looking up the types of columns to be added: %w", t.name(), err)
	}
	var oids []uint32
	for i, f := range results[0].FieldDescriptions {
		columns = append(columns, viewColumn{name: missing[i].name, typeOID: f.DataTypeOID, modifier: f.TypeModifier})
		oids = append(oids, f.DataTypeOID)
	}
	added := columns[len(columns)-len(oids):]
	return columns, c.query(ctx, func(row pgx.Rows) error {
		var oid, collation uint32
		err := row.Scan(&oid, &collation)
		for i := range added {
			if added[i].typeOID == oid {
				added[i].collation = collation
			}
		}
		return err
	}, "select oid, typcollation from pg_catalog.pg_type where oid = any ($1)", oids)
}

// mayKeepViews tells what the user lacks for keeping what was pointed where.
func (t *target) mayKeepViews(ctx context.Context, c *session) error {
	var there, mayKeep, mayCreate bool
	err := c.query(ctx, func(row pgx.Rows) error { return row.Scan(&there, &mayKeep, &mayCreate) }, `select k.oid is not null,
	coalesce(has_table_privilege(k.oid, 'select') and has_table_privilege(k.oid, 'insert') and has_table_privilege(k.oid, 'update'), false),
	has_schema_privilege(n.oid, 'create')
from pg_catalog.pg_namespace n left join pg_catalog.pg_class k on k.relnamespace = n.oid and k.relname = $2
where n.nspname = $1`, t.settings.schema, viewTable)
	switch {
	case err != nil:
		return err
	case there && !mayKeep:
		return fmt.Errorf("table %s: the user may not read, insert and update; run: grant select, insert, update on %s to %s", t.views(), t.views(), t.user)
	case !there && !mayCreate:
		return fmt.Errorf("schema %s: the user may not create table %s, where sinks remember their views; run: grant create on schema %s to %s", t.settings.schema, viewTable, quote(t.settings.schema), t.user)
	}
	return nil
}

// mayPoint tells what the user lacks for pointing the view; anew: it has to be
// created, rather than replaced.
func (t *target) mayPoint(ctx context.Context, c *session, v viewState, anew bool) error {
	var mayCreate, isOwner, ownerMayCreate bool
	var owner string
	err := c.query(ctx, func(row pgx.Rows) error { return row.Scan(&mayCreate, &isOwner, &owner, &ownerMayCreate) }, `select
	has_schema_privilege(n.oid, 'create'), c.oid is null or pg_has_role(c.relowner, 'usage'), coalesce(pg_get_userbyid(c.relowner)::text, ''),
	c.oid is null or has_schema_privilege(c.relowner, n.oid, 'create')
from pg_catalog.pg_namespace n left join pg_catalog.pg_class c on c.oid = $2
where n.nspname = $1`, t.settings.schema, v.oid)
	schema := quote(t.settings.schema)
	switch {
	case err != nil:
		return err
	case !isOwner:
		return fmt.Errorf("view %s: only its owner may point it elsewhere; run: alter view %s owner to %s, or: grant %s to %s", t.viewName(), t.quotedView(), t.user, quote(owner), t.user)
	case anew && !mayCreate:
		return fmt.Errorf("schema %s: the user may not create view %s; run: grant create on schema %s to %s", t.settings.schema, t.settings.view, schema, t.user)
	case anew && !ownerMayCreate:
		return fmt.Errorf("view %s: its columns change, so that it is created anew, and its owner %s may not create in the schema; run: grant create on schema %s to %s", t.viewName(), owner, schema, quote(owner))
	}
	return nil
}

// ownerReads tells whether the view's owner may read the table: readers of a view
// read what is below it with its owner's privileges.
func (t *target) ownerReads(ctx context.Context, c *session, r *relation, v viewState) error {
	if r == nil {
		return nil // it is looked at again once it is made
	}
	owner, reads := "", true
	err := c.query(ctx, func(row pgx.Rows) error { return row.Scan(&owner, &reads) }, `select
	pg_get_userbyid(o.oid)::text, (select coalesce(bool_and(has_column_privilege(o.oid, a.attrelid, a.attnum, 'select')), true)
	from pg_catalog.pg_attribute a where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped)
from pg_catalog.pg_roles o
where o.oid = coalesce((select relowner from pg_catalog.pg_class where oid = $2), (select oid from pg_catalog.pg_roles where rolname = current_user))`, r.oid, v.oid)
	if err != nil || reads {
		return err
	}
	return fmt.Errorf("view %s: its owner %s may not read table %s, so that nobody could through the view; run: grant select on %s to %s", t.viewName(), owner, t.name(), t.quoted(), quote(owner))
}

// mostDependents bounds how many of a view's dependents an error names.
const mostDependents = 20

// checkDependents tells what would stand in the way of dropping the view.
func (t *target) checkDependents(ctx context.Context, c *session, view uint32) error {
	var dependents []string
	more := false
	err := c.query(ctx, func(row pgx.Rows) error {
		var text string
		err := row.Scan(&text)
		if more = len(dependents) == mostDependents; !more {
			dependents = append(dependents, text)
		}
		return err
	}, dependentsQuery, view, mostDependents+1)
	if err != nil || len(dependents) == 0 {
		return err
	}
	if more {
		dependents = append(dependents, "…")
	}
	return &DependentsError{View: t.viewName(), Table: t.name(), Dependents: dependents}
}

// dependentsQuery asks for what depends on a view or on the type of its rows, but for
// what it consists of: other views by their own names, rather than their rules'.
const dependentsQuery = `select distinct case
	when w.ev_class is not null and w.rulename = '_RETURN' then pg_describe_object('pg_class'::regclass, w.ev_class, 0)
	else pg_describe_object(d.classid, d.objid, d.objsubid) end
from pg_catalog.pg_class c
join pg_catalog.pg_type y on y.oid = c.reltype
join pg_catalog.pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
	or d.refclassid = 'pg_type'::regclass and d.refobjid in (y.oid, y.typarray)
left join pg_catalog.pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
where c.oid = $1
	and not (w.ev_class is not null and w.ev_class = c.oid and w.rulename = '_RETURN')
	and not (d.classid = 'pg_type'::regclass and d.objid in (y.oid, y.typarray))
order by 1 limit $2`
