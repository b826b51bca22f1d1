package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// deliveryPlan is how outboxes of certain schemas are written to the table as it
// is now.
type deliveryPlan struct {
	key, row *schema.Schema
	table    relation
	// keyCells come from a row's key, rowCells from the row itself. values is how
	// many of the rowCells are written.
	keyCells, rowCells rowPlan
	values             int
	// columns are those of the cells that are written, in their order, keys the
	// first of them.
	columns, keys []tableColumn
	// direct tells that rows are copied into the table itself.
	direct bool
}

// keyText is a row's key, as JSON.
func (p *deliveryPlan) keyText(key []byte) (string, error) {
	text, _, err := schema.JSON(p.key)(nil, key)
	return "with the key " + shorten(string(text)), err
}

// planFor plans a delivery. Columns that the table lacks are added.
func (t *target) planFor(ctx context.Context, c *session, d *connector.Delivery) (*deliveryPlan, error) {
	for range mostRaces {
		r, err := t.inspect(ctx, c)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, fmt.Errorf("table %s isn't there any more", t.name())
		}
		if p := t.plan; p != nil && p.fits(d, r) {
			return p, nil
		}
		p, missing, err := t.newPlan(d, r)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			t.plan = p
			return p, nil
		}
		if err := t.addColumns(ctx, c, missing); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("table %s: columns that were added are gone again", t.name())
}

// fits tells whether the plan was made for these schemas and this table.
func (p *deliveryPlan) fits(d *connector.Delivery, r *relation) bool {
	return p.key.Equal(d.Key) && p.row.Equal(d.Schema) && p.table.kind == r.kind && p.table.policies == r.policies &&
		slices.EqualFunc(p.table.columns, r.columns, func(a, b tableColumn) bool {
			return a.name == b.name && a.typeOID == b.typeOID && a.modifier == b.modifier && a.notNull == b.notNull &&
				a.hasDefault == b.hasDefault && slices.Equal(a.typ.labels, b.typ.labels)
		})
}

// newPlan makes a plan, or lists the columns that have to be added first.
func (t *target) newPlan(d *connector.Delivery, r *relation) (p *deliveryPlan, missing []column, err error) {
	p = &deliveryPlan{key: d.Key, row: d.Schema, table: *r}
	p.direct = t.mode == insertMode && r.isTable() && !r.policies
	if t.mode == upsertMode {
		if err := t.planKey(p, d.Key); err != nil {
			return nil, nil, err
		}
	}
	if d.Schema != nil {
		if missing, err = t.planRow(p, d.Schema); err != nil || len(missing) > 0 {
			return nil, missing, err
		}
	}
	if t.mode == deleteMode {
		p.keys = p.columns
	}
	for i := range r.columns {
		written := slices.ContainsFunc(p.columns, func(w tableColumn) bool { return w.name == r.columns[i].name })
		if t.mode != deleteMode && !written && r.columns[i].rejectsMissing() {
			return nil, nil, t.rejected(&r.columns[i])
		}
	}
	return p, nil, nil
}

// planKey plans a table's key.
func (t *target) planKey(p *deliveryPlan, key *schema.Schema) error {
	if key == nil {
		return fmt.Errorf("the delivery has no schema for its keys")
	}
	if key.Kind() != schema.KindRecord {
		if len(t.keys) != 1 || t.keyFields != nil {
			return t.otherKey(key)
		}
		return t.addKeyCell(p, t.keys[0].name, key)
	}
	for _, f := range key.Fields() {
		name, ok := t.keyFields[f.Name]
		if !ok {
			return t.otherKey(key)
		}
		if err := t.addKeyCell(p, name, f.Type); err != nil {
			return err
		}
	}
	if len(p.keys) != len(t.keys) {
		return t.otherKey(key)
	}
	return nil
}

func (t *target) otherKey(key *schema.Schema) error {
	return fmt.Errorf("table %s: the delivery was frozen with the key %s, and this build's key has the columns %s; let the build that froze it deliver it", t.name(), key.Word(), strings.Join(t.keyNames(), ", "))
}

func (t *target) addKeyCell(p *deliveryPlan, name string, s *schema.Schema) error {
	f := p.table.column(name)
	if f == nil {
		return t.difference(name, "a column for the key", "none", "put it back, and its values")
	}
	e, err := t.encoderFor(f, s)
	if err != nil {
		return err
	}
	p.keyCells = append(p.keyCells, cell{column: name, encode: e.encode})
	p.columns, p.keys = append(p.columns, *f), append(p.keys, *f)
	return nil
}

func (t *target) encoderFor(f *tableColumn, s *schema.Schema) (encoder, error) {
	e, err := newEncoder(s, f.typ)
	if err != nil {
		return e, t.difference(f.name, "a type for "+s.Word(), f.shown, "give the column the type "+defaultType(s).sql)
	}
	return e, nil
}

// planRow plans a row by the schema that it was frozen with, whichever build did
// that. The key's columns are passed over, and for deleting streams all others.
func (t *target) planRow(p *deliveryPlan, row *schema.Schema) (missing []column, err error) {
	if row.Kind() != schema.KindRecord {
		return nil, fmt.Errorf("the delivery's rows are no records, but %s", row.Word())
	}
	for _, f := range row.Fields() {
		f.Name = t.columnFor(f.Name, &p.table)
		if t.isKey(f.Name) != (t.mode == deleteMode) {
			p.rowCells = append(p.rowCells, cell{column: f.Name, skip: schema.Skipper(f.Type)})
			continue
		}
		found := p.table.column(f.Name)
		if found == nil {
			missing = append(missing, t.missingColumn(f))
			continue
		}
		if found.generated != "" {
			return nil, t.difference(f.Name, "a column that rows can set", "a generated column", "run: alter table "+t.quoted()+" alter column "+quote(f.Name)+" drop expression")
		}
		e, err := t.encoderFor(found, f.Type)
		if err != nil {
			return nil, err
		}
		p.rowCells = append(p.rowCells, cell{column: f.Name, encode: e.encode})
		p.columns, p.values = append(p.columns, *found), p.values+1
	}
	if t.mode == deleteMode && p.values != len(t.keys) {
		return nil, fmt.Errorf("table %s: the delivery's rows lack one of the columns %s that tell which rows to delete", t.name(), strings.Join(t.keyNames(), ", "))
	}
	return missing, nil
}

// columnFor finds the column of a row's field. Rows of this package's sinks have
// fields that are named like the columns; those that another connector froze,
// before the sink was this one, have the names of the type's fields.
func (t *target) columnFor(field string, r *relation) string {
	if r.column(field) != nil {
		return field
	}
	for _, c := range t.columns {
		if c.name != field && c.avro == field {
			return c.name
		}
	}
	return field
}

// missingColumn is what another build's column becomes: this build's, if it has
// one, else by the schema alone.
func (t *target) missingColumn(f schema.Field) column {
	for _, c := range t.columns {
		if c.name == f.Name && c.schema.Equal(f.Type) {
			return c
		}
	}
	return column{name: f.Name, schema: f.Type, want: defaultType(f.Type)}
}

func names(columns []tableColumn) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.name
	}
	return all
}
