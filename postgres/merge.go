package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/connector"
)

// passing is the temporary table that a delivery's rows pass through, gone its
// column that tells which keys are deleted: no column of a row has a blank in
// its name.
const (
	passing = "sluice_rows"
	gone    = "sluice gone"
)

// write writes a delivery's rows.
func (t *target) write(ctx context.Context, c *session, d *connector.Delivery) error {
	rows := startRows(t.mode, d)
	defer rows.stop()
	if err := rows.peek(); err != nil || rows.none {
		return err
	}
	p, err := t.planFor(ctx, c, d)
	if err != nil {
		return err
	}
	into := t.quoted()
	if !p.direct {
		into = quote("pg_temp", passing)
		if err := c.script(ctx, t.createPassing(p)); err != nil {
			return err
		}
	}
	rows.begin(p)
	if err := t.copy(ctx, c, p, rows, into); err != nil {
		return err
	}
	if p.direct {
		return nil
	}
	for _, sql := range t.merges(p, rows, d.SkipEqual) {
		if err := c.script(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// createPassing makes the temporary table. Its columns are of the same types,
// and all may be null: of a deleted row only the key is known.
func (t *target) createPassing(p *deliveryPlan) string {
	var columns []string
	if t.mode == upsertMode {
		columns = append(columns, quote(gone)+" boolean")
	}
	for _, c := range p.columns {
		columns = append(columns, quote(c.name)+" "+c.typ.sql)
	}
	return "create temporary table " + quote(passing) + " (" + strings.Join(columns, ", ") + ") on commit drop"
}

// copy sends the rows.
func (t *target) copy(ctx context.Context, c *session, p *deliveryPlan, rows *copyRows, into string) error {
	columns := quoteAll("", names(p.columns))
	if t.mode == upsertMode {
		columns = quote(gone) + ", " + columns
	}
	copied, err := c.copy(ctx, rows, "copy "+into+" ("+columns+") from stdin with (format binary)")
	if fault := rows.stop(); fault != nil {
		return fault // the server only says that it was told to stop
	}
	// Of the table itself, a trigger may leave rows out.
	if sent := rows.puts + rows.deletes; err == nil && !p.direct && copied != sent {
		return fmt.Errorf("%d rows were sent, and %d copied", sent, copied)
	}
	return err
}

// merges are the statements that bring the rows from the temporary table into
// the table; rows that it has already may be left out.
func (t *target) merges(p *deliveryPlan, rows *copyRows, skipEqual bool) (statements []string) {
	from := quote("pg_temp", passing)
	if t.mode != upsertMode {
		return []string{t.merge(p, from, t.mode == deleteMode)}
	}
	if rows.deletes > 0 {
		statements = append(statements, t.merge(p, from, true))
	}
	if rows.puts > 0 {
		put := t.merge(p, from, false)
		if rest := p.columns[len(p.keys):]; skipEqual && len(rest) > 0 {
			put += " where " + t.differs(rest)
		}
		statements = append(statements, put)
	}
	return statements
}

// differs is the condition that a row which is there differs from the one that is to
// be put. Types without an equality, as json, have a text.
func (t *target) differs(columns []tableColumn) string {
	var any []string
	for _, c := range columns {
		any = append(any, t.quoted()+"."+quote(c.name)+"::text is distinct from excluded."+quote(c.name)+"::text")
	}
	return strings.Join(any, " or ")
}

// merge is the statement that deletes, or else puts, the rows of from: the
// temporary table or a part of it.
func (t *target) merge(p *deliveryPlan, from string, deletes bool) string {
	columns := quoteAll("", names(p.columns))
	var same []string
	for _, k := range p.keys {
		same = append(same, "t."+quote(k.name)+" = r."+quote(k.name))
	}
	where, put := strings.Join(same, " and "), ""
	if t.mode == upsertMode {
		where, put = "r."+quote(gone)+" and "+where, " where not "+quote(gone)
	}
	if deletes {
		return "delete from " + t.quoted() + " t using " + from + " r where " + where
	}
	insert := "insert into " + t.quoted() + " (" + columns + ") select " + columns + " from " + from + " r" + put
	if t.mode == insertMode {
		return insert
	}
	action := "nothing"
	var sets []string
	for _, c := range p.columns[len(p.keys):] {
		sets = append(sets, quote(c.name)+" = excluded."+quote(c.name))
	}
	if len(sets) > 0 {
		action = "update set " + strings.Join(sets, ", ")
	}
	return insert + " on conflict (" + quoteAll("", names(p.keys)) + ") do " + action
}
