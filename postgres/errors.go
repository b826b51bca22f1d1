package postgres

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// ColumnError says that a table doesn't fit the rows that a build writes to it,
// or a column can't take a value.
type ColumnError struct {
	// Table is the table with its schema before it, Column the column; empty if
	// it is about the table as a whole.
	Table, Column string
	// Expected and Found say what should be there, and what is.
	Expected, Found string
	// Repair is the way out.
	Repair string
}

// Error implements error.
func (e *ColumnError) Error() string {
	place := "table " + e.Table
	if e.Column != "" {
		place += ", column " + e.Column
	}
	text := fmt.Sprintf("%s: expected %s, found %s", place, e.Expected, e.Found)
	if e.Repair != "" {
		text += "; " + e.Repair
	}
	return text
}

// ValueError says that a column can't take a value. A record whose row has one
// is a bad record.
type ValueError struct {
	// Table is the table with its schema before it, Column the column.
	Table, Column string
	// Reason says what was expected and what was found.
	Reason string
}

// Error implements error.
func (e *ValueError) Error() string {
	return fmt.Sprintf("table %s, column %s: %s", e.Table, e.Column, e.Reason)
}

// DeniedError says that the server doesn't let the job's user write, and has not for
// a while. Nothing of the delivery was written. It matches [connector.ErrRejected].
type DeniedError struct {
	// Table is the table with its schema before it, User the user.
	Table, User string
	// Missing says which privilege is missing, and the statement that gives it; nil if
	// that can't be told.
	Missing error
	// Cause is what the server says.
	Cause error
}

// Error implements error.
func (e *DeniedError) Error() string {
	way := fmt.Sprintf("run: grant … on %s to %s, with what it names, or see to it that row-level security doesn't apply to the user", e.Table, e.User)
	if e.Missing != nil {
		way = e.Missing.Error()
	}
	return fmt.Sprintf("table %s: expected that user %s may write, found for %v: %v; %s; start again after that", e.Table, e.User, othersWithin, e.Cause, way)
}

// Unwrap returns the cause, what is missing, and what it comes to.
func (e *DeniedError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Cause, e.Missing, connector.ErrRejected}, func(err error) bool { return err == nil })
}

// DependentsError says that a view can't be pointed at a table, since its columns
// change, so that it would have to be dropped, and others depend on it. Nothing was
// changed.
type DependentsError struct {
	// View and Table have their schemas before them.
	View, Table string
	// Dependents are what depends on the view, as the server calls it, the first of
	// them if they are many.
	Dependents []string
}

// Error implements error.
func (e *DependentsError) Error() string {
	return fmt.Sprintf("view %s: expected nothing that depends on it, since its columns change to those of table %s and it has to be dropped for that, found %s; give the table all columns that the view has, or drop these and make them anew after the change",
		e.View, e.Table, strings.Join(e.Dependents, ", "))
}

// BlockedError says that a view could not be pointed at a table yet, since others
// hold it. The delivery is tried again.
type BlockedError struct {
	// View and Table have their schemas before them.
	View, Table string
	// Blockers are the sessions that were waited for, as far as that could be found
	// out.
	Blockers []Blocker
	// Cause is what the server says.
	Cause error
}

// Blocker is a session that others wait for.
type Blocker struct {
	// PID is the number of its process on the server.
	PID int32
	// User, Application and State are its own; empty if they may not be seen.
	User, Application, State string
	// Since is when its newest query has begun; zero if that may not be seen.
	Since time.Time
}

// String describes the session in a few words.
func (b Blocker) String() string {
	text := fmt.Sprintf("process %d", b.PID)
	var more []string
	for _, part := range []struct{ name, value string }{{"user", b.User}, {"application", b.Application}, {"", b.State}} {
		if part.value != "" {
			more = append(more, strings.TrimSpace(part.name+" "+part.value))
		}
	}
	if !b.Since.IsZero() {
		more = append(more, "its query of "+b.Since.UTC().Format(time.RFC3339))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// Error implements error.
func (e *BlockedError) Error() string {
	text := fmt.Sprintf("view %s is to be pointed at table %s: %v", e.View, e.Table, e.Cause)
	if len(e.Blockers) == 0 {
		return text
	}
	return fmt.Sprintf("%s; it waits for %s; let it end, or run: select pg_terminate_backend(%d)", text, described(e.Blockers), e.Blockers[0].PID)
}

func described(blockers []Blocker) string {
	texts := make([]string, len(blockers))
	for i, b := range blockers {
		texts[i] = b.String()
	}
	return strings.Join(texts, ", ")
}

// Unwrap returns the cause.
func (e *BlockedError) Unwrap() error { return e.Cause }

// ConnectError says that there is no connection to the database. It never holds
// a password.
type ConnectError struct {
	// Host is the server's address, with its port; Database and User are the
	// names that it was asked for.
	Host, Database, User string
	// Reason says what is the matter, in one line.
	Reason string
	// Cause is the server's answer, or the network's error.
	Cause error
}

// Error implements error.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("PostgreSQL at %s, database %s, user %s: %s", e.Host, e.Database, e.User, e.Reason)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Cause }

// RefusedError says that a sink can't be opened, for more than one reason.
type RefusedError struct {
	// Table is the table with its schema before it.
	Table string
	// Reasons are the reasons, a [*ColumnError] where it is a column's or the
	// table's.
	Reasons []error
}

// Error has all reasons, in one line, which names the table first.
func (e *RefusedError) Error() string {
	text, table := several(e.Reasons).Error(), "table "+e.Table
	if strings.HasPrefix(text, table+",") || strings.HasPrefix(text, table+":") {
		return text
	}
	return table + ": " + text
}

// Summary is what the error says without the reasons, and Details are these: for
// those who show them as a list.
func (e *RefusedError) Summary() string {
	return fmt.Sprintf("table %s does not fit the rows that this build writes to it, for %d reasons. Nothing was changed. Mend what they name, and start again.", e.Table, len(e.Reasons))
}

// Details has one line for each reason.
func (e *RefusedError) Details() []string {
	lines := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		lines[i] = oneLine(r.Error())
	}
	return lines
}

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

// refuse makes a [*RefusedError] of several errors, and leaves one as it is.
func (t *target) refuse(err error) error {
	if reasons, ok := err.(several); ok {
		return &RefusedError{Table: t.name(), Reasons: reasons}
	}
	return err
}

// several are errors that are told as one, in one line.
type several []error

// Error implements error.
func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all of them.
func (s several) Unwrap() []error { return s }

// together makes one error, of one line, of several; those that are nil are left
// out.
func together(errs ...error) error {
	var all several
	for _, err := range errs {
		if more, ok := err.(several); ok {
			all = append(all, more...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// oneLine takes the line breaks out of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
