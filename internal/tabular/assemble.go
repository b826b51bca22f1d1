package tabular

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicestream/sluice/schema"
)

// assembly puts rows together from the columns of a Parquet file.
//
// Every part of a row that may be missing or repeat has a cursor of its own in one
// column below it, its probe: the levels of the probe's values tell whether there
// is anything, and where an item ends. So parts that nobody wants need not be read.
type assembly struct {
	columns [][]parquet.Value // of the row in hand
	at      []int             // of each cursor, a place in its column
	probes  []int             // the columns of the cursors
	leaves  map[*parquet.Column][2]int
	depth   int
	lacks   lacks
}

// assembleFunc appends the encoding of a part whose items repeat at a level.
type assembleFunc func(dst []byte, level int) ([]byte, error)

func newAssembly(leaves map[*parquet.Column][2]int, columns int) *assembly {
	return &assembly{columns: make([][]parquet.Value, columns), leaves: leaves}
}

// leaves numbers a file's columns: for each node the first below it, and the one
// behind the last.
func leaves(root *parquet.Column) (all map[*parquet.Column][2]int, columns int) {
	all = map[*parquet.Column][2]int{}
	var number func(c *parquet.Column)
	number = func(c *parquet.Column) {
		first := columns
		if c.Leaf() {
			columns++
		}
		for _, below := range c.Columns() {
			number(below)
		}
		all[c] = [2]int{first, columns}
	}
	number(root)
	return all, columns
}

// begin takes a row in hand.
func (a *assembly) begin(row parquet.Row) error {
	for i := range a.columns {
		a.columns[i] = a.columns[i][:0]
	}
	clear(a.at)
	start := 0
	for i := range row {
		column := row[i].Column()
		if column < 0 || column >= len(a.columns) || len(a.columns[column]) > 0 && (i == 0 || row[i-1].Column() != column) {
			return fmt.Errorf("damaged Parquet: a row whose values are out of order")
		}
		if i == 0 || row[i-1].Column() != column {
			start = i
		}
		a.columns[column] = row[start : i+1 : i+1]
	}
	return nil
}

// cursor makes one for a node.
func (a *assembly) cursor(c *parquet.Column) (int, error) {
	below := a.leaves[c]
	if below[0] == below[1] {
		return 0, &misfit{"", "columns", "a group without any"}
	}
	a.probes = append(a.probes, below[0])
	a.at = append(a.at, 0)
	return len(a.at) - 1, nil
}

// value is the one that a cursor stands at.
func (a *assembly) value(cursor int) (*parquet.Value, error) {
	values := a.columns[a.probes[cursor]]
	if a.at[cursor] >= len(values) {
		return nil, fmt.Errorf("damaged Parquet: a column has fewer values than others")
	}
	return &values[a.at[cursor]], nil
}

// leave moves a cursor behind an item that repeats at a level.
func (a *assembly) leave(cursor, level int) {
	values := a.columns[a.probes[cursor]]
	for a.at[cursor]++; a.at[cursor] < len(values) && values[a.at[cursor]].RepetitionLevel() > level; {
		a.at[cursor]++
	}
}

// goesOn tells whether another item of the level follows.
func (a *assembly) goesOn(cursor, level int) bool {
	values := a.columns[a.probes[cursor]]
	return a.at[cursor] < len(values) && values[a.at[cursor]].RepetitionLevel() == level
}

// skip moves the cursors from first to last behind a part that isn't there: each of
// its columns has one value for it.
func (a *assembly) skip(first, last int) {
	for i := first; i < last; i++ {
		a.at[i]++
	}
}

// constant appends a column's default.
func constant(c column) (assembleFunc, error) {
	standard, err := defaultOf(c)
	if err == nil && standard == nil {
		err = &misfit{"", c.typ.Word(), "nothing"}
	}
	return func(dst []byte, _ int) ([]byte, error) { return append(dst, standard...), nil }, err
}

// deepestGroup bounds the nesting of a file's groups.
const deepestGroup = 200

// node compiles what reads the values of a node as those of a schema.
func (a *assembly) node(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	if a.depth++; a.depth > deepestGroup {
		return nil, &misfit{"", "groups that are nested less deep", fmt.Sprintf("more than %d levels", deepestGroup)}
	}
	defer func() { a.depth-- }()
	switch {
	case c.Repeated():
		return a.items(c, c, want, ignore)
	case c.Optional():
		return a.optional(c, want, ignore)
	}
	if want.Kind() == schema.KindUnion {
		return a.filled(c, want, ignore)
	}
	return a.present(c, want, ignore)
}

// filled is a value of a union that is not null.
func (a *assembly) filled(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	inner, nullable := want.NonNull()
	if !nullable || inner == want {
		if isJSON(c) {
			return a.present(c, want, ignore)
		}
		return nil, &misfit{"", want.Word(), wordOf(c)}
	}
	branch := int64(1)
	if want.Branches()[1].Kind() == schema.KindNull {
		branch = 0
	}
	read, err := a.present(c, inner, ignore)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, level int) ([]byte, error) {
		return read(binary.AppendVarint(dst, branch), level)
	}, nil
}

func (a *assembly) optional(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	cursor, err := a.cursor(c)
	if err != nil {
		return nil, err
	}
	null := slices.IndexFunc(want.Branches(), func(b *schema.Schema) bool { return b.Kind() == schema.KindNull })
	first := len(a.at)
	read := assembleFunc(nil)
	if want.Kind() == schema.KindUnion {
		read, err = a.filled(c, want, ignore)
	} else {
		read, err = a.present(c, want, ignore)
	}
	if err != nil {
		return nil, err
	}
	last := len(a.at)
	definition := c.MaxDefinitionLevel()
	return func(dst []byte, level int) ([]byte, error) {
		v, err := a.value(cursor)
		if err != nil {
			return dst, err
		}
		there := v.DefinitionLevel() >= definition
		a.leave(cursor, level)
		if there {
			return read(dst, level)
		}
		a.skip(first, last)
		if null < 0 {
			return dst, &misfit{"", want.Word(), "null"}
		}
		return binary.AppendVarint(dst, int64(null)), nil
	}, nil
}

// present compiles what reads a node's values where there is one.
func (a *assembly) present(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	if c.Leaf() {
		return a.leaf(c, want, ignore)
	}
	below := c.Columns()
	switch {
	case want.Kind() == schema.KindMap && len(below) == 1 && below[0].Repeated():
		return a.entries(below[0], schema.String(), want.Element(), ignore)
	case want.Logical() == schema.LogicalMap && len(below) == 1 && below[0].Repeated():
		fields := want.Element().Fields()
		return a.entries(below[0], fields[0].Type, fields[1].Type, ignore)
	case want.Kind() == schema.KindArray && len(below) == 1 && below[0].Repeated():
		item := below[0]
		if inner := item.Columns(); !item.Leaf() && len(inner) == 1 && item.Name() != "array" && item.Name() != c.Name()+"_tuple" {
			return a.items(item, inner[0], want, ignore)
		}
		return a.items(item, item, want, ignore)
	case want.Kind() == schema.KindRecord:
		return a.group(c, want, ignore)
	}
	return nil, &misfit{"", want.Word(), wordOf(c)}
}

func (a *assembly) group(c *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	below := c.Columns()
	written := make([]schema.Field, len(below))
	for i, b := range below {
		written[i].Name = b.Name()
	}
	var columns []column
	for _, f := range want.Fields() {
		columns = append(columns, fieldColumn(f))
	}
	from := match(written, columns)
	a.lacks.add(columns, from)
	for i, b := range below {
		if !ignore && !slices.Contains(from, i) {
			return nil, &misfit{showName(b.Name()), "no such field", wordOf(b)}
		}
	}
	reads := make([]assembleFunc, len(columns))
	for i, col := range columns {
		var err error
		if from[i] >= 0 {
			err = a.lacks.at(col.name, func() (err error) {
				reads[i], err = a.node(below[from[i]], col.typ, ignore)
				return err
			})
		} else {
			reads[i], err = constant(col)
		}
		if err != nil {
			return nil, within(col.name, err)
		}
	}
	return func(dst []byte, level int) (_ []byte, err error) {
		for i, read := range reads {
			if dst, err = read(dst, level); err != nil {
				return dst, within(columns[i].name, err)
			}
		}
		return dst, nil
	}, nil
}

// items compiles what reads a repeated node as an array of what stands at item,
// which is the node itself or the one below it.
func (a *assembly) items(c, item *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	if inner, nullable := want.NonNull(); nullable && inner != want {
		return nil, &misfit{"", want.Word(), wordOf(c)}
	}
	if want.Kind() != schema.KindArray {
		return nil, &misfit{"", want.Word(), wordOf(c)}
	}
	return a.repeated(c, func() (assembleFunc, error) {
		read, err := a.itemOf(c, item, want.Element(), ignore)
		return read, within("[]", err)
	})
}

func (a *assembly) itemOf(c, item *parquet.Column, want *schema.Schema, ignore bool) (assembleFunc, error) {
	switch {
	case item != c:
		return a.node(item, want, ignore)
	case want.Kind() == schema.KindUnion:
		return a.filled(item, want, ignore)
	}
	return a.present(item, want, ignore)
}

// entries compiles what reads a repeated group of keys and values as a map.
func (a *assembly) entries(c *parquet.Column, key, value *schema.Schema, ignore bool) (assembleFunc, error) {
	below := c.Columns()
	if len(below) != 2 {
		return nil, &misfit{"", "a map of keys and values", wordOf(c)}
	}
	k, v := below[0], below[1]
	if k.Name() == "value" {
		k, v = v, k
	}
	return a.repeated(c, func() (assembleFunc, error) {
		readKey, err := a.node(k, key, ignore)
		if err != nil {
			return nil, within("{key}", err)
		}
		readValue, err := a.node(v, value, ignore)
		if err != nil {
			return nil, within("{}", err)
		}
		return func(dst []byte, level int) ([]byte, error) {
			dst, err := readKey(dst, level)
			if err != nil {
				return dst, within("{key}", err)
			}
			dst, err = readValue(dst, level)
			return dst, within("{}", err)
		}, nil
	})
}

// repeated compiles what reads a repeated node as a block of items.
func (a *assembly) repeated(c *parquet.Column, compile func() (assembleFunc, error)) (assembleFunc, error) {
	cursor, err := a.cursor(c)
	if err != nil {
		return nil, err
	}
	first := len(a.at)
	read, err := compile()
	if err != nil {
		return nil, err
	}
	last := len(a.at)
	definition, own := c.MaxDefinitionLevel(), c.MaxRepetitionLevel()
	return func(dst []byte, _ int) ([]byte, error) {
		v, err := a.value(cursor)
		if err != nil {
			return dst, err
		}
		if v.DefinitionLevel() < definition {
			a.leave(cursor, own)
			a.skip(first, last)
			return append(dst, 0), nil
		}
		n := int64(1) // how many there are
		for a.leave(cursor, own); a.goesOn(cursor, own); a.leave(cursor, own) {
			n++
		}
		dst = binary.AppendVarint(dst, n)
		for range n {
			if dst, err = read(dst, own); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	}, nil
}
