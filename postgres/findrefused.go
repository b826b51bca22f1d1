package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// The bounds on how a row is shown.
const (
	mostShown  = 4   // columns of a row without a key
	longestOne = 100 // bytes of a value
)

// refuser looks for the row of a delivery that the server refuses: the rows are
// written once more, in part, within a transaction that is never committed.
type refuser struct {
	*target
	c *session
	p *deliveryPlan
}

// findRefused says which row of a delivery is refused; empty if it can't be told.
func (t *target) findRefused(ctx context.Context, d *connector.Delivery) (row string) {
	_ = t.run(ctx, func(ctx context.Context, c *session) error {
		return c.transaction(ctx, func(ctx context.Context) (commit bool, err error) {
			row, err = t.refusedIn(ctx, c, d)
			return false, err
		})
	}) // without an answer the error says less
	return row
}

func (t *target) refusedIn(ctx context.Context, c *session, d *connector.Delivery) (string, error) {
	rows := startRows(t.mode, d)
	defer rows.stop()
	if err := rows.peek(); err != nil || rows.none {
		return "", err
	}
	found, err := t.planFor(ctx, c, d)
	if err != nil {
		return "", err
	}
	plan := *found
	plan.direct = false
	if err := c.script(ctx, t.createPassing(&plan)); err != nil {
		return "", err
	}
	rows.begin(&plan)
	if err := t.copy(ctx, c, &plan, rows, quote("pg_temp", passing)); err != nil {
		return "", err
	}
	r := refuser{target: t, c: c, p: &plan}
	return r.find(ctx, rows.puts, rows.deletes)
}

// find finds the first row without which the ones before it are taken. Deletes
// come before puts, as in a delivery.
func (r *refuser) find(ctx context.Context, puts, deletes int64) (string, error) {
	refused, err := r.refuses(ctx, deletes, 0)
	if err != nil {
		return "", err
	}
	if refused {
		n, err := r.search(deletes, func(n int64) (bool, error) { return r.refuses(ctx, n, 0) })
		if err != nil {
			return "", err
		}
		return r.show(ctx, n, true)
	}
	if refused, err = r.refuses(ctx, deletes, puts); err != nil || !refused {
		return "", err
	}
	n, err := r.search(puts, func(n int64) (bool, error) { return r.refuses(ctx, deletes, n) })
	if err != nil {
		return "", err
	}
	return r.show(ctx, n, false)
}

// search returns the fewest of n rows that are refused; all of them are.
func (r *refuser) search(n int64, refuses func(n int64) (bool, error)) (int64, error) {
	taken, refused := int64(0), n
	for refused-taken > 1 {
		half := taken + (refused-taken)/2
		is, err := refuses(half)
		if err != nil {
			return 0, err
		}
		if is {
			refused = half
		} else {
			taken = half
		}
	}
	return refused, nil
}

// refuses tells whether the server refuses the first rows of each kind. What is
// else the matter is an error.
func (r *refuser) refuses(ctx context.Context, deletes, puts int64) (bool, error) {
	if err := r.c.script(ctx, "savepoint sluice"); err != nil {
		return false, err
	}
	var statements []string
	if deletes > 0 {
		statements = append(statements, r.merge(r.p, r.first(deletes, true), true))
	}
	if puts > 0 {
		statements = append(statements, r.merge(r.p, r.first(puts, false), r.mode == deleteMode))
	}
	err := r.c.script(ctx, strings.Join(append(statements, "set constraints all immediate"), "; "))
	if err != nil && !aboutRow(code(err)) {
		return false, err
	}
	return err != nil, r.c.script(ctx, "rollback to savepoint sluice")
}

// first is the first n rows that are put or deleted, as a table.
func (r *refuser) first(n int64, deleted bool) string {
	return "(select * from " + quote("pg_temp", passing) + r.kind(deleted) + " order by ctid limit " + strconv.FormatInt(n, 10) + ")"
}

func (r *refuser) kind(deleted bool) string {
	switch {
	case r.mode != upsertMode:
		return ""
	case deleted:
		return " where " + quote(gone)
	}
	return " where not " + quote(gone)
}

// show names the n-th row that is put or deleted: by its key, or if it has none,
// by its number and some columns.
func (r *refuser) show(ctx context.Context, n int64, deleted bool) (string, error) {
	columns, number := r.p.keys, ""
	if r.mode == insertMode {
		columns, number = r.p.columns[:min(mostShown, len(r.p.columns))], fmt.Sprintf("%d of the delivery: ", n)
	}
	texts := make([]*string, len(columns))
	into, asked := make([]any, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		into[i], asked[i] = &texts[i], quote(c.name)+"::text"
	}
	err := r.c.query(ctx, func(row pgx.Rows) error { return row.Scan(into...) },
		"select "+strings.Join(asked, ", ")+" from "+quote("pg_temp", passing)+r.kind(deleted)+" order by ctid limit 1 offset "+strconv.FormatInt(n-1, 10))
	if err != nil {
		return "", err
	}
	shown := make([]string, len(columns))
	for i, c := range columns {
		shown[i] = c.name + " = null"
		if texts[i] != nil {
			shown[i] = c.name + " = " + shorten(oneLine(*texts[i]))
		}
	}
	return number + strings.Join(shown, ", "), nil
}

// shorten cuts a value off that is long.
func shorten(text string) string {
	if len(text) <= longestOne {
		return text
	}
	cut := longestOne
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// misfitRow is a row that was not sent, since a column can't take it.
type misfitRow struct {
	column, row string
	cause       error
}

// Error implements error.
func (e *misfitRow) Error() string {
	return fmt.Sprintf("row %s, column %s: %v", e.row, e.column, e.cause)
}

// Unwrap returns the cause.
func (e *misfitRow) Unwrap() error { return e.cause }

// located says which row an error is about.
func (r *copyRows) located(row *connector.Row, err error) error {
	bad, ok := errors.AsType[*cellError](err)
	if !ok || !isMisfit(err) {
		return fmt.Errorf("row %d: %w", r.number, err)
	}
	shown := fmt.Sprintf("%d of the delivery", r.number+1)
	if r.mode == upsertMode {
		if text, err := r.plan.keyText(row.Key); err == nil {
			shown = text
		}
	}
	return &misfitRow{column: bad.column, row: shown, cause: bad.cause}
}
