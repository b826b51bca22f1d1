package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
)

// The classes of errors, and the codes, that are about what a row holds.
const (
	dataClass      = "22"
	integrityClass = "23"
	tooLarge       = "54000" // for an index, or for a page
	notNull        = "23502"
	foreignKey     = "23503"
	notUnique      = "23505"
	violatesCheck  = "23514"
	excluded       = "23P01"
	raised         = "P0001" // by a trigger
)

// othersWithin is how long a row is tried again that other rows stand in the way
// of, or that lacks another, or that a trigger refuses: somebody else may be about to
// change these, such as another sink of the job. A privilege that is taken away may be
// given back as long.
const othersWithin = 30 * time.Second

// RejectedError says that the server refuses a row for what it holds. Nothing of
// its delivery was written. It matches [connector.ErrRejected].
type RejectedError struct {
	// Table is the table with its schema before it; Constraint and Column are what
	// is violated, as far as the server says.
	Table, Constraint, Column string
	// Row says which row it is: by its key, or by its number in the delivery.
	Row string
	// Code is the server's code for the error; empty if the row was not sent, since
	// the column can't take it.
	Code string
	// Repair is the way out.
	Repair string
	// Cause is what the server says.
	Cause error
}

// Error implements error.
func (e *RejectedError) Error() string {
	place := "table " + e.Table
	if e.Constraint != "" {
		place += ", constraint " + e.Constraint
	}
	if e.Column != "" {
		place += ", column " + e.Column
	}
	if e.Row != "" {
		place += ", row " + e.Row
	}
	return fmt.Sprintf("%s: %v; %s; start again after that", place, e.Cause, e.Repair)
}

// Unwrap returns the cause, and what it comes to.
func (e *RejectedError) Unwrap() []error { return []error{e.Cause, connector.ErrRejected} }

// refusal is a delivery that a row of is refused, since when.
type refusal struct {
	position connector.Position
	part     int
	since    time.Time
}

// rejectedRow makes of an error of writing a delivery's rows one that stops the job,
// if trying again can't help; else nil.
func (t *target) rejectedRow(ctx context.Context, d *connector.Delivery, err error) *RejectedError {
	if bad, ok := errors.AsType[*misfitRow](err); ok {
		return &RejectedError{Table: t.name(), Column: bad.column, Row: bad.row, Cause: bad.cause, Repair: "give the column a type that holds it"}
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !aboutRow(refused.Code) || t.mayPass(d, refused.Code) {
		return nil
	}
	e := &RejectedError{Table: t.name(), Constraint: refused.ConstraintName, Column: refused.ColumnName, Code: refused.Code, Cause: err}
	if refused.TableName != "" && refused.SchemaName+"."+refused.TableName != t.name() {
		e.Table += " (and " + refused.SchemaName + "." + refused.TableName + ")"
	}
	e.Repair = t.repair(refused)
	e.Row = t.findRefused(ctx, d)
	return e
}

// aboutRow tells whether a code is about what a row holds.
func aboutRow(code string) bool {
	return strings.HasPrefix(code, dataClass) || strings.HasPrefix(code, integrityClass) || code == tooLarge || code == raised
}

// mayPass tells whether a refusal depends on other rows, and these have not had
// their time to change.
func (t *target) mayPass(d *connector.Delivery, code string) bool {
	switch code {
	case foreignKey, notUnique, excluded, raised, noPrivilege:
	default:
		return false
	}
	now := t.clock.Now()
	if r := t.refused; r == nil || r.position != d.Record.Position || r.part != d.Record.Part {
		t.refused = &refusal{position: d.Record.Position, part: d.Record.Part, since: now}
	}
	return now.Sub(t.refused.since) < othersWithin
}

// repair is the way out of a refusal.
func (t *target) repair(refused *pgconn.PgError) string {
	drop := ""
	if refused.ConstraintName != "" {
		drop = ", or run: alter table " + quote(refused.SchemaName, refused.TableName) + " drop constraint " + quote(refused.ConstraintName)
	}
	switch refused.Code {
	case notNull:
		return "run: alter table " + quote(refused.SchemaName, refused.TableName) + " alter column " + quote(refused.ColumnName) + " drop not null"
	case foreignKey:
		return "bring the row that it refers to" + drop
	case notUnique, excluded:
		return "mend the row that stands in its way" + drop
	case violatesCheck:
		if refused.TableName == "" {
			return "give the column a type without this condition" // a domain
		}
		return strings.TrimPrefix(drop, ", or ")
	case tooLarge:
		return "let no index have the column"
	case raised:
		return "change the trigger that raises this, or what it looks at"
	}
	return "give the column a type that holds it"
}
