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

// together makes one error, of one line, of several; those that are nil are left
// out.
func together(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// oneLine takes the line breaks out of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
