package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// relation is a table or a view as it stands in the database.
type relation struct {
	oid         uint32
	kind        string // pg_class.relkind
	policies    bool   // rows are filtered for this user
	mayUse      bool   // the schema
	mayDelete   bool
	takesInsert bool // what is no table
	takesDelete bool
	columns     []tableColumn
}

// The kinds of relations.
const (
	plainTable       = "r"
	partitionedTable = "p"
)

func (r *relation) isTable() bool { return r.kind == plainTable || r.kind == partitionedTable }

func (r *relation) column(name string) *tableColumn {
	i := slices.IndexFunc(r.columns, func(c tableColumn) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &r.columns[i]
}

// tableColumn is a column as it stands in the database.
type tableColumn struct {
	name       string
	number     int16
	notNull    bool
	hasDefault bool
	identity   string // "a": values of its own always
	generated  string // not empty: computed
	folds      bool   // texts that differ may be equal
	mayRead    bool
	mayInsert  bool
	mayUpdate  bool
	shown      string // the type's name
	typeOID    uint32
	modifier   int32
	typ        columnType // its base type, if it is a domain
}

// relationQuery asks for a table, with a row for each column.
const relationQuery = `select c.oid, c.relkind::text, row_security_active(c.oid), has_schema_privilege(n.oid, 'usage'), has_table_privilege(c.oid, 'delete'),
	pg_relation_is_updatable(c.oid, true) & 8 <> 0, pg_relation_is_updatable(c.oid, true) & 16 <> 0,
	a.attname::text, a.attnum, a.attnotnull, a.atthasdef or a.attidentity <> '', a.attidentity::text, a.attgenerated::text,
	coalesce((select not collisdeterministic from pg_catalog.pg_collation where oid = a.attcollation), false),
	has_column_privilege(c.oid, a.attnum, 'select'), has_column_privilege(c.oid, a.attnum, 'insert'), has_column_privilege(c.oid, a.attnum, 'update'),
	format_type(a.atttypid, a.atttypmod), a.atttypid, a.atttypmod
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')
order by a.attnum`

// inspect reads what stands in the database under the table's name; nil if
// there is nothing.
func (t *target) inspect(ctx context.Context, c *session) (*relation, error) {
	var r *relation
	err := c.query(ctx, func(row pgx.Rows) error {
		if r == nil {
			r = &relation{}
		}
		var f tableColumn
		err := row.Scan(&r.oid, &r.kind, &r.policies, &r.mayUse, &r.mayDelete, &r.takesInsert, &r.takesDelete,
			&f.name, &f.number, &f.notNull, &f.hasDefault, &f.identity, &f.generated, &f.folds,
			&f.mayRead, &f.mayInsert, &f.mayUpdate, &f.shown, &f.typeOID, &f.modifier)
		r.columns = append(r.columns, f)
		return err
	}, relationQuery, t.settings.schema, t.table)
	if r == nil || err != nil {
		return nil, err
	}
	for i := range r.columns {
		f := &r.columns[i]
		if f.typ, err = typeOf(ctx, c, f.typeOID, f.modifier, f.shown, maxDomains); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// builtIn are PostgreSQL's own types by their number.
func builtIn(oid uint32) kind {
	switch oid {
	case pgtype.BoolOID:
		return booleanKind
	case pgtype.Int2OID:
		return smallintKind
	case pgtype.Int4OID:
		return integerKind
	case pgtype.Int8OID:
		return bigintKind
	case pgtype.Float4OID:
		return realKind
	case pgtype.Float8OID:
		return doubleKind
	case pgtype.NumericOID:
		return numericKind
	case pgtype.TextOID, pgtype.VarcharOID:
		return textKind
	case pgtype.ByteaOID:
		return byteaKind
	case pgtype.TimestamptzOID:
		return timestamptzKind
	case pgtype.TimestampOID:
		return timestampKind
	case pgtype.DateOID:
		return dateKind
	case pgtype.IntervalOID:
		return intervalKind
	case pgtype.UUIDOID:
		return uuidKind
	case pgtype.JSONOID:
		return jsonKind
	case pgtype.JSONBOID:
		return jsonbKind
	}
	return otherKind
}

// maxDomains bounds domains over domains, and arrays of them.
const maxDomains = 16

// typeOf finds what a type is. A domain is the type below it.
func typeOf(ctx context.Context, c *session, oid uint32, modifier int32, shown string, depth int) (columnType, error) {
	t := columnType{kind: builtIn(oid), sql: shown}
	if t.kind != otherKind {
		t.modify(modifier)
		return t, nil
	}
	if depth == 0 {
		return t, nil
	}
	var name, sort, category, below, element string
	var base, elementOID uint32
	var baseModifier int32
	err := c.query(ctx, func(row pgx.Rows) error {
		return row.Scan(&name, &sort, &category, &base, &baseModifier, &below, &elementOID, &element, &t.labels)
	}, `select typname::text, typtype::text, typcategory::text, typbasetype, typtypmod, format_type(typbasetype, typtypmod),
		typelem, format_type(typelem, $2), array(select enumlabel::text from pg_catalog.pg_enum where enumtypid = t.oid)
	from pg_catalog.pg_type t where oid = $1`, oid, modifier)
	switch {
	case err != nil:
		return t, err
	case sort == "d":
		return typeOf(ctx, c, base, baseModifier, below, depth-1)
	case sort == "e":
		t.kind = enumKind
		return t, nil
	case category == "A" && elementOID != 0:
		item, err := typeOf(ctx, c, elementOID, modifier, element, depth-1)
		t.kind, t.element, t.elementOID, t.labels = arrayKind, &item, elementOID, nil
		return t, err
	case name == "citext":
		t.kind, t.folds = textKind, true
	}
	t.labels = nil
	return t, nil
}

// modify takes in a type's modifier, which is -1 if there is none.
func (t *columnType) modify(modifier int32) {
	const header = 4 // is counted in the modifiers of texts and numerics
	if modifier < 0 {
		return
	}
	switch t.kind {
	case numericKind:
		t.precision = int((modifier - header) >> 16 & 0xffff)
		t.scale = int((modifier-header)&0x7ff^1024) - 1024
	case textKind:
		t.length = int(modifier - header)
	case timestamptzKind, timestampKind:
		t.rounds = modifier < microDigits
	case intervalKind:
		t.rounds = modifier&0xffff < microDigits || modifier>>16&0x7fff != 0x7fff
	}
}

// microDigits are the digits of a second's parts.
const microDigits = 6

// uniqueQuery asks for the columns of each index that an upsert can use.
const uniqueQuery = `select array(select a.attname::text from pg_catalog.pg_attribute a
	where a.attrelid = i.indrelid and a.attnum = any (i.indkey[0:i.indnkeyatts - 1]) order by 1)
from pg_catalog.pg_index i
where i.indrelid = $1 and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null`

// isUnique tells whether the table has a unique constraint on exactly these
// columns.
func isUnique(ctx context.Context, c *session, table uint32, columns []string) (unique bool, err error) {
	wanted := slices.Sorted(slices.Values(columns))
	err = c.query(ctx, func(row pgx.Rows) error {
		var names []string
		err := row.Scan(&names)
		slices.Sort(names)
		unique = unique || slices.Equal(names, wanted)
		return err
	}, uniqueQuery, table)
	return unique, err
}
