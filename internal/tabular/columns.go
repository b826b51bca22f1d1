package tabular

import (
	"fmt"
	"slices"
	"strings"
)

// chosen are the columns of a file, of those of a layout.
type chosen struct {
	columns []column
	from    []int // for each, which of the file's; -1: none
	absent  []Absent
}

// choose finds out whether a file has its parts whole, and finds the columns by
// their names.
func (l Layout) choose(names []string, o ReadOptions, flatOnly bool) (chosen, error) {
	columns := l.flat()
	var derived []string
	if !flatOnly && l.isWhole(names) {
		columns, derived = l.whole(), l.Derived
	}
	at := map[string]int{}
	var faults []string
	for i, name := range names {
		if _, ok := at[name]; ok {
			faults = append(faults, fmt.Sprintf("column %s stands there twice", showName(name)))
		}
		at[name] = i
	}
	c := chosen{columns: columns, from: make([]int, len(columns))}
	taken := make([]bool, len(names))
	for i, col := range columns {
		c.from[i] = -1
		for _, name := range append([]string{col.name}, col.others...) {
			place, ok := at[name]
			switch {
			case !ok || taken[place]:
			case c.from[i] < 0:
				c.from[i], taken[place] = place, true
			default:
				faults = append(faults, fmt.Sprintf("columns %s and %s are one", showName(names[c.from[i]]), showName(name)))
				taken[place] = true
			}
		}
		switch {
		case c.from[i] >= 0:
		case col.standard == "":
			faults = append(faults, fmt.Sprintf("column %s (%s) is missing", col.name, col.typ.Word()))
		default:
			c.absent = append(c.absent, absentOf(col, ""))
		}
	}
	misnamed := map[string]bool{}
	for i, name := range names {
		if taken[i] || at[name] != i || slices.Contains(derived, name) {
			continue
		}
		meant := slices.IndexFunc(c.absent, func(a Absent) bool { return strings.EqualFold(a.Column, name) })
		switch {
		case meant >= 0: // nobody leaves that out on purpose
			misnamed[c.absent[meant].Column] = true
			faults = append(faults, fmt.Sprintf("column %s is named %s", c.absent[meant].Column, showName(name)))
		case !o.Ignore:
			faults = append(faults, fmt.Sprintf("column %s has no place", showName(name)))
		}
	}
	for _, a := range c.absent {
		if a.Implied && !o.Defaults && !misnamed[a.Column] {
			faults = append(faults, a.fault())
		}
	}
	return c, columnsError(faults)
}

// columnsError is nil without faults.
func columnsError(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	if len(faults) > mostFaults {
		faults = append(faults[:mostFaults:mostFaults], fmt.Sprintf("and %d more", len(faults)-mostFaults))
	}
	return &ColumnsError{Faults: faults}
}

// mostFaults bounds how many columns an error lists.
const mostFaults = 20

// showName is a column's name of a file, which may be anything.
func showName(name string) string {
	if len(name) > shownBytes {
		name = name[:shownBytes] + "…"
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// isWhole tells whether a file has a column for each part that it must have.
func (l Layout) isWhole(names []string) bool {
	return !slices.ContainsFunc(l.Parts, func(p Part) bool {
		return !slices.Contains(names, p.Name) && (p.Default == "" || p.Flat)
	})
}
