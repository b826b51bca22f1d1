package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// constraintQuery asks for what a table demands of its rows beyond the columns'
// types: conditions, references, and unique columns other than the key's.
const constraintQuery = `select conname::text || ' ' || pg_get_constraintdef(oid), contype in ('p', 'u'),
	array(select a.attname::text from pg_catalog.pg_attribute a where a.attrelid = conrelid and a.attnum = any (conkey) order by 1)
from pg_catalog.pg_constraint where conrelid = $1 and contype in ('c', 'f', 'x', 'p', 'u') order by conname`

// mostTold bounds how many of a table's constraints the log tells of.
const mostTold = 10

// tellConstraints says in the log which rows the table would refuse, since one of
// them stops the job.
func (t *target) tellConstraints(ctx context.Context, c *session, r *relation) error {
	if t.mode == deleteMode || !r.isTable() {
		return nil
	}
	keys := slices.Sorted(slices.Values(t.keyNames()))
	var told []string
	more := false
	err := c.query(ctx, func(row pgx.Rows) error {
		var text string
		var unique bool
		var columns []string
		if err := row.Scan(&text, &unique, &columns); err != nil {
			return err
		}
		slices.Sort(columns)
		switch {
		case unique && t.mode == upsertMode && slices.Equal(columns, keys):
		case len(told) == mostTold:
			more = true
		default:
			told = append(told, shorten(text))
		}
		return nil
	}, constraintQuery, r.oid)
	if err != nil || len(told) == 0 {
		return err
	}
	if more {
		told = append(told, "…")
	}
	t.log.Info("the table has constraints, and a row that violates one stops the job", "sink", t.key.Sink, "what", t.name()+": "+strings.Join(told, "; "))
	return nil
}
