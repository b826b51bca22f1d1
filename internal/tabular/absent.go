package tabular

import (
	"fmt"
	"slices"
	"strings"
)

// Absent is a column that a file lacks, or a field of one, for which there is a
// default.
type Absent struct {
	// Column is its name, with the path of a field.
	Column string
	// Default is the default in Avro's JSON form.
	Default string
	// Implied says that the default is a zero value that nobody has set: it is taken
	// only if that is asked for.
	Implied bool

	word string // its type
}

func absentOf(c column, prefix string) Absent {
	return Absent{Column: prefix + c.name, Default: c.standard, Implied: c.implied, word: c.typ.Word()}
}

// fault says that the column should be there.
func (a Absent) fault() string {
	return fmt.Sprintf("column %s (%s) is missing, its tag has no default; --defaults takes %s", a.Column, a.word, a.Default)
}

// lacks collects the fields that a file's records lack, while what reads them is
// compiled.
type lacks struct {
	all  []Absent
	path []string
}

// at compiles what is found under a name.
func (l *lacks) at(name string, compile func() error) error {
	l.path = append(l.path, name)
	defer func() { l.path = l.path[:len(l.path)-1] }()
	return compile()
}

// add notes those columns of a record that it isn't read from.
func (l *lacks) add(columns []column, from []int) {
	prefix := strings.Join(append(slices.Clone(l.path), ""), ".")
	for i, c := range columns {
		if from[i] < 0 && c.standard != "" {
			l.all = append(l.all, absentOf(c, prefix))
		}
	}
}
