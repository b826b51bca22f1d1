package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// table is what is printed in columns.
type table struct {
	columns []column
	rows    [][]string
}

// column is one of a table's; numbers stand at its right.
type column struct {
	name    string
	numbers bool
	asIs    bool                             // the name is somebody's own, and not written in capitals
	paint   func(cell, padded string) string // colours a cell; nil: none
}

func text(name string) column   { return column{name: name} }
func number(name string) column { return column{name: name, numbers: true} }

func newTable(columns ...column) *table { return &table{columns: columns} }

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// gap stands between columns.
const gap = "  "

// write prints the table, the names of its columns first.
func (t *table) write(w io.Writer) error {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		if names[i] = c.name; !c.asIs {
			names[i] = strings.ToUpper(c.name)
		}
	}
	widths := make([]int, len(t.columns))
	for _, row := range append([][]string{names}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	style := stylesFor(w)
	var b strings.Builder
	b.WriteString(style.head(t.line(names, widths, false)) + "\n")
	for _, row := range t.rows {
		b.WriteString(t.line(row, widths, true) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *table) line(cells []string, widths []int, painted bool) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(gap)
		}
		padded := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if t.columns[i].numbers {
			padded += cell
		} else {
			padded = cell + padded
		}
		if paint := t.columns[i].paint; paint != nil && painted {
			padded = paint(cell, padded)
		}
		b.WriteString(padded)
	}
	return strings.TrimRight(b.String(), " ")
}

// count writes a number with its thousands apart: 1,234,567.
func count[N ~int | ~int64 | ~uint64](n N) string {
	digits := fmt.Sprint(n)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// size writes a number of bytes: 512 B, 1.5 KiB.
func size(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), -1
	for value >= 1<<10 && unit < 5 {
		value /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}

// moment writes a time of the store, in microseconds since 1970, for people.
func moment(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000Z")
}

// stamp writes a time of the store for machines.
func stamp(micros int64) string {
	return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)
}

// short cuts a hash down to what people compare.
func short(hash string) string { return hash[:min(len(hash), 12)] }

// writeTables writes those tables that have rows, each behind an empty line.
func writeTables(w io.Writer, tables ...*table) error {
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}
