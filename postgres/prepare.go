package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/schema"
)

// prepare makes sure that the table takes what the build writes.
func (t *target) prepare(ctx context.Context, c *session) error {
	r, missing, err := t.examine(ctx, c)
	if err != nil {
		return err
	}
	if r == nil {
		if err := t.makeTable(ctx, c); err != nil {
			return err
		}
		if r, missing, err = t.examine(ctx, c); err == nil && r == nil {
			err = fmt.Errorf("table %s is gone right after it was created", t.name())
		}
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		if err := t.addColumns(ctx, c, missing); err != nil {
			return err
		}
	}
	if t.settings.view != "" {
		if err := raceSafe(ctx, c, createViews(t.views())); err != nil {
			return fmt.Errorf("table %s for the sinks' views: %w", t.views(), err)
		}
	}
	return t.tellConstraints(ctx, c, r)
}

// examine compares the table and its view with what the build writes, and changes
// nothing. It returns the columns that the table lacks. Without the table, if it is
// to be made, r is nil.
func (t *target) examine(ctx context.Context, c *session) (r *relation, missing []column, err error) {
	if err := t.checkDatabase(ctx, c); err != nil {
		return nil, nil, t.refuse(err)
	}
	if r, err = t.inspect(ctx, c); err != nil {
		return nil, nil, err
	}
	if r == nil && !t.settings.create {
		return nil, nil, t.noTable()
	}
	missing = t.writes()
	if r != nil {
		missing, err = t.compare(ctx, c, r)
	}
	if err = together(err, t.checkView(ctx, c, r, missing)); err != nil {
		return nil, nil, t.refuse(err)
	}
	return r, missing, nil
}

// checkDatabase looks at what is needed besides the table.
func (t *target) checkDatabase(ctx context.Context, c *session) error {
	var encoding, database, user string
	var temporary, schemaIsThere, mayCreate, recordsAreThere, mayKeep bool
	err := c.query(ctx, func(row pgx.Rows) error {
		return row.Scan(&encoding, &database, &user, &temporary, &schemaIsThere, &mayCreate, &recordsAreThere, &mayKeep)
	}, `select current_setting('server_encoding'), current_database()::text, current_user::text, has_database_privilege(current_database(), 'temporary'),
		n.oid is not null, coalesce(has_schema_privilege(n.oid, 'create'), false), r.oid is not null,
		coalesce(has_table_privilege(r.oid, 'select') and has_table_privilege(r.oid, 'insert') and has_table_privilege(r.oid, 'update'), false)
	from (select 1) as one
	left join pg_catalog.pg_namespace n on n.nspname = $1
	left join pg_catalog.pg_class r on r.relnamespace = n.oid and r.relname = $2`, t.settings.schema, recordTable)
	if err != nil {
		return err
	}
	t.user = quote(user)
	var faults []error
	if encoding != "UTF8" && encoding != "SQL_ASCII" {
		faults = append(faults, fmt.Errorf("PostgreSQL database %s: expected the encoding UTF8, found %s, which doesn't hold every text", database, encoding))
	}
	if !temporary {
		faults = append(faults, fmt.Errorf("PostgreSQL database %s: user %s may not make temporary tables; run: grant temporary on database %s to %s", database, user, quote(database), quote(user)))
	}
	switch {
	case !schemaIsThere:
		faults = append(faults, fmt.Errorf("PostgreSQL database %s has no schema %s; run: create schema %s", database, t.settings.schema, quote(t.settings.schema)))
	case !recordsAreThere && !mayCreate:
		faults = append(faults, fmt.Errorf("schema %s: user %s may not create table %s, where sinks remember what was delivered; run: grant create on schema %s to %s", t.settings.schema, user, recordTable, quote(t.settings.schema), quote(user)))
	case recordsAreThere && !mayKeep:
		faults = append(faults, fmt.Errorf("table %s: user %s may not read, insert and update; run: grant select, insert, update on %s to %s", t.records(), user, t.records(), quote(user)))
	}
	return together(faults...)
}

// makeTable makes the table.
func (t *target) makeTable(ctx context.Context, c *session) error {
	if err := raceSafe(ctx, c, t.createTable()); err != nil {
		return fmt.Errorf("creating table %s: %w", t.name(), err)
	}
	return nil
}

func (t *target) noTable() error {
	return fmt.Errorf("table %s isn't there; give the sink the option postgres.CreateTable(), or run: %s", t.name(), t.createTable())
}

// createTable is what creates the table. Only the key's columns are never null:
// a later or an earlier build may lack any other.
func (t *target) createTable() string {
	var lines []string
	for _, c := range t.writes() {
		line := quote(c.name) + " " + c.want.sql
		if t.isKey(c.name) {
			line += " not null"
		}
		lines = append(lines, line)
	}
	if t.mode != insertMode {
		lines = append(lines, "primary key ("+quoteAll("", t.keyNames())+")")
	}
	return "create table if not exists " + t.quoted() + " (" + strings.Join(lines, ", ") + ")"
}

// quoted is the table as SQL writes it.
func (t *target) quoted() string { return quote(t.settings.schema, t.table) }

func (s *sink) keyNames() []string {
	names := make([]string, len(s.keys))
	for i, c := range s.keys {
		names[i] = c.name
	}
	return names
}

func (s *sink) isKey(name string) bool {
	return s.mode != insertMode && slices.ContainsFunc(s.keys, func(c column) bool { return c.name == name })
}

// writes are the columns that the build writes: the key's, then the row's.
func (s *sink) writes() []column {
	switch s.mode {
	case insertMode:
		return s.columns
	case deleteMode:
		return s.keys
	}
	all := slices.Clone(s.keys)
	for _, c := range s.columns {
		if !c.ignored {
			all = append(all, c)
		}
	}
	return all
}

// compare compares the table with what the build writes, and returns the columns
// that can be added. The error holds every difference.
func (t *target) compare(ctx context.Context, c *session, r *relation) (missing []column, err error) {
	faults := t.compareTable(r)
	for _, w := range t.writes() {
		f := r.column(w.name)
		switch {
		case f != nil:
			faults = append(faults, t.compareColumn(f, w))
		case t.isKey(w.name):
			faults = append(faults, t.difference(w.name, "a column of type "+w.want.sql+" for the key", "none", "name the key's column by a tag or postgres.Key, or add it to the table"))
		default:
			missing = append(missing, w)
		}
	}
	if t.mode != deleteMode {
		for i := range r.columns {
			if f := &r.columns[i]; f.rejectsMissing() && !slices.ContainsFunc(t.writes(), func(w column) bool { return w.name == f.name }) {
				faults = append(faults, t.rejected(f))
			}
		}
	}
	if t.mode == upsertMode && r.isTable() {
		unique, err := isUnique(ctx, c, r.oid, t.keyNames())
		if err != nil {
			return nil, err
		}
		if keys := quoteAll("", t.keyNames()); !unique {
			faults = append(faults, t.difference("", "a unique constraint on exactly ("+keys+"), not deferrable and without conditions", "none",
				"run: alter table "+t.quoted()+" add primary key ("+keys+")"))
		}
	}
	return missing, together(faults...)
}

// compareTable looks at what the table is, and what may be done with it.
func (t *target) compareTable(r *relation) (faults []error) {
	fault := func(expected, found, repair string) {
		faults = append(faults, t.difference("", expected, found, repair))
	}
	switch {
	case t.mode == upsertMode && !r.isTable():
		fault("a table, whose keys can be unique", "a view, or a table elsewhere", "name the table below it")
	case t.mode == insertMode && !r.isTable() && !r.takesInsert:
		fault("a table, or a view that takes inserts", "a view without a rule or trigger for that", "name the table below it, or give the view a trigger instead of insert")
	case t.mode == deleteMode && !r.isTable() && !r.takesDelete:
		fault("a table, or a view that takes deletes", "a view without a rule or trigger for that", "name the table below it, or give the view a trigger instead of delete")
	}
	if !r.mayUse {
		fault("the privilege usage on schema "+t.settings.schema, "none", "run: grant usage on schema "+quote(t.settings.schema)+" to "+t.user)
	}
	if t.mode != insertMode && !r.mayDelete {
		fault("the privilege delete", "none", "run: grant delete on "+t.quoted()+" to "+t.user)
	}
	return faults
}

func (t *target) difference(column, expected, found, repair string) error {
	return &ColumnError{Table: t.name(), Column: column, Expected: expected, Found: found, Repair: repair}
}

// rejectsMissing tells whether a row without this column can't be inserted.
func (f *tableColumn) rejectsMissing() bool {
	return f.notNull && !f.hasDefault && f.generated == ""
}

func (t *target) rejected(f *tableColumn) error {
	return t.difference(f.name, "a column that may be null or has a default, since the rows lack it", f.shown+" not null",
		"run: alter table "+t.quoted()+" alter column "+quote(f.name)+" drop not null")
}

// compareColumn compares a column with what is written to it.
func (t *target) compareColumn(f *tableColumn, w column) error {
	isKey := t.isKey(w.name)
	switch {
	case t.mode == deleteMode:
		return together(t.compareType(f, w, isKey), t.needs(f.mayRead, f, "select"))
	case f.generated != "":
		return t.difference(f.name, "a column that rows can set", "a generated column", "leave the field out of the row with the tag `avro:\"-\"`")
	case f.identity == "a":
		return t.difference(f.name, "a column that rows can set", "a column generated always as identity", "run: alter table "+t.quoted()+" alter column "+quote(f.name)+" set generated by default")
	case f.notNull && w.nullable():
		return t.difference(f.name, "a column that may be null, since field "+w.field+" may be nil", f.shown+" not null", "run: alter table "+t.quoted()+" alter column "+quote(f.name)+" drop not null")
	}
	return together(
		t.compareType(f, w, isKey),
		t.needs(f.mayInsert, f, "insert"),
		t.needs(f.mayUpdate || t.mode == insertMode || isKey, f, "update"),
		t.needs(f.mayRead || t.mode == insertMode || !isKey, f, "select"),
	)
}

func (t *target) needs(has bool, f *tableColumn, privilege string) error {
	if has {
		return nil
	}
	return t.difference(f.name, "the privilege "+privilege, "none", "run: grant "+privilege+" on "+t.quoted()+" to "+t.user)
}

// compareType tells whether the column takes every value that is written to it.
func (t *target) compareType(f *tableColumn, w column, isKey bool) error {
	_, err := newEncoder(w.schema, f.typ)
	inner, _ := w.schema.NonNull()
	holds := f.typ.holds(w.want) || inner.Kind() == schema.KindEnum && f.typ.kind == enumKind
	switch {
	case isKey && (f.folds || f.typ.folds):
		return t.difference(f.name, "a column in which keys that differ are different", f.shown+", for which texts that differ may be equal", "use text, with a deterministic collation")
	case err == nil && holds:
		return nil
	case inner.Kind() == schema.KindEnum && f.typ.kind == enumKind:
		return t.difference(f.name, "an enum with "+strings.Join(inner.Symbols(), ", "), f.shown+" with "+strings.Join(f.typ.labels, ", "), "run: alter type … add value, for each that is missing")
	}
	return t.difference(f.name, w.want.sql, f.shown, "run: alter table "+t.quoted()+" alter column "+quote(f.name)+" type "+w.want.sql+", or, if it holds enough, give field "+w.field+" the tag `pg:\",type="+f.shown+"\"`")
}

// addColumns adds what the table lacks. A column that another session adds at
// once is as good.
func (t *target) addColumns(ctx context.Context, c *session, missing []column) error {
	var adds, names []string
	for _, m := range missing {
		adds = append(adds, "add column if not exists "+quote(m.name)+" "+m.want.sql)
		names = append(names, m.name)
	}
	if err := raceSafe(ctx, c, "alter table "+t.quoted()+" "+strings.Join(adds, ", ")); err != nil {
		if code(err) == noPrivilege {
			err = fmt.Errorf("only its owner may: let the owner run: alter table %s %s: %w", t.quoted(), strings.Join(adds, ", "), err)
		}
		return fmt.Errorf("table %s lacks %s; adding it: %w", t.name(), strings.Join(names, ", "), err)
	}
	t.log.Info("columns were added to the table", "sink", t.key.Sink, "what", t.name()+" "+strings.Join(names, ", "))
	return nil
}
