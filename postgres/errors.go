package postgres

import (
	"fmt"
	"strings"
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
