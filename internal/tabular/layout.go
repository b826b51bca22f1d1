package tabular

import (
	"slices"

	"github.com/sluicestream/sluice/schema"
)

// Layout is what rows consist of.
type Layout struct {
	// Name is told in the metadata of Avro and Parquet files.
	Name string
	// Parts are the parts of each row, in the order of their encodings.
	Parts []Part
	// Derived are columns that a file with its parts whole may have besides: what
	// they hold comes from the others, and isn't read.
	Derived []string
}

// Part is a part of each row.
type Part struct {
	// Field is its name and type. Without a default it must be in a file that is
	// read.
	schema.Field
	// Flat says that in a flat file the fields of the part, if it is a record, are
	// columns of their own.
	Flat bool
	// Bare says that such columns need no prefix.
	Bare bool
}

// Entries is the layout of a state's entries: a key, an element unless that is nil,
// and a value. In a flat file the value's fields stand under their own names and
// the fields of keys and elements behind "key." and "element."; keys and elements
// have no defaults, since a row without one is none of the state's. A slot is the
// key's hash.
func Entries(state string, key, element, value *schema.Schema) Layout {
	l := Layout{Name: state, Parts: []Part{{Field: schema.Field{Name: "key", Type: key}, Flat: true}}, Derived: []string{"slot"}}
	if element != nil {
		l.Parts = append(l.Parts, Part{Field: schema.Field{Name: "element", Type: element}, Flat: true})
	}
	l.Parts = append(l.Parts, Part{Field: schema.Field{Name: "value", Type: value}, Flat: true, Bare: true})
	return l
}

// Records is the layout of rows that are records: its fields are the columns.
func Records(name string, record *schema.Schema) Layout {
	l := Layout{Name: name}
	for _, f := range record.Fields() {
		l.Parts = append(l.Parts, Part{Field: f})
	}
	return l
}

// Schema is the schema of the rows.
func (l Layout) Schema() *schema.Schema {
	fields := make([]schema.Field, len(l.Parts))
	for i, p := range l.Parts {
		fields[i] = p.Field
	}
	return schema.Record("sluice.export", fields...)
}

// column is a column of a file, and a piece of a row.
type column struct {
	name     string
	others   []string // names under which it is found too
	typ      *schema.Schema
	standard string // default, in Avro's JSON form; "" means none
	implied  bool   // the default is a zero value that nobody has set
}

// fieldColumn is the column of a field.
func fieldColumn(f schema.Field) column {
	return column{f.Name, f.Aliases, f.Type, f.Default, f.Implied()}
}

// whole are the columns of a file that has a column for each part.
func (l Layout) whole() []column {
	out := make([]column, len(l.Parts))
	for i, p := range l.Parts {
		out[i] = fieldColumn(p.Field)
	}
	return out
}

// flat are the columns of a file without records in it.
func (l Layout) flat() []column {
	count := map[string]int{}
	for _, p := range l.Parts {
		if !p.flattened() {
			count[p.Name]++
			continue
		}
		for _, f := range p.Type.Fields() {
			count[f.Name]++
		}
	}
	var taken []string // by parts before
	var out []column
	for _, p := range l.Parts {
		if !p.flattened() {
			out = append(out, fieldColumn(p.Field))
			taken = append(taken, p.Name)
			continue
		}
		fields := p.Type.Fields()
		bare := p.Bare && !slices.ContainsFunc(fields, func(f schema.Field) bool { return slices.Contains(taken, f.Name) })
		for _, f := range fields {
			c := column{name: p.Name + "." + f.Name, typ: f.Type}
			if p.Bare {
				c.standard, c.implied, c.others = f.Default, f.Implied(), append(c.others, f.Aliases...)
			}
			if count[f.Name] == 1 {
				c.others = append(c.others, f.Name)
			}
			if bare {
				c.others = append(c.others, c.name)
				c.name = f.Name
			}
			out = append(out, c)
			taken = append(taken, c.name)
		}
	}
	return out
}

// flattened tells whether the part's fields are columns of a flat file.
func (p Part) flattened() bool { return p.Flat && p.Type.Kind() == schema.KindRecord }
