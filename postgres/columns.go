package postgres

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/schema"
)

// column is one that a build writes.
type column struct {
	name string
	// field is the Go field's path, for errors; avro its name in the type's own
	// schema; schema that of its values.
	field  string
	avro   string
	goType reflect.Type
	schema *schema.Schema
	// want is the type that the column is to have, tagged whether a tag says so.
	want   columnType
	tagged bool
	key    bool
	// ignored tells of a row's field that the key's columns stand for.
	ignored bool
}

func (c *column) nullable() bool {
	_, nullable := c.schema.NonNull()
	return nullable
}

// goField is a struct's field, as far as it becomes a column.
type goField struct {
	path string
	name string
	typ  reflect.Type
	pg   string
}

var (
	timeType = reflect.TypeFor[time.Time]()
	ratType  = reflect.TypeFor[big.Rat]()
)

// goFields lists a struct's fields as package schema does: embedded structs
// count as their fields.
func goFields(t reflect.Type, path string) (fields []goField) {
	for f := range t.Fields() {
		avro, _, _ := strings.Cut(f.Tag.Get("avro"), ",")
		switch {
		case f.Name == "_" || f.Tag.Get("avro") == "-":
		case f.Anonymous && avro == "" && f.Type.Kind() == reflect.Struct && f.Type != timeType && f.Type != ratType:
			fields = append(fields, goFields(f.Type, path+f.Name+".")...)
		default:
			fields = append(fields, goField{path + f.Name, f.Name, f.Type, f.Tag.Get("pg")})
		}
	}
	return fields
}

// columnsOf derives the columns of a Go type whose schema is s. A type that is
// no struct has one column, of the name single.
func columnsOf(t reflect.Type, s *schema.Schema, single string) ([]column, error) {
	if s.Kind() != schema.KindRecord {
		c := column{name: single, goType: t, schema: s, want: defaultType(s)}
		return []column{c}, checkColumn(&c)
	}
	var columns []column
	var faults []error
	goFields := goFields(t, "")
	for i, f := range s.Fields() {
		c, err := newColumn(goFields[i], f.Type)
		c.avro = f.Name
		if err == nil && slices.ContainsFunc(columns, func(o column) bool { return o.name == c.name }) {
			err = fmt.Errorf("two fields have the column %s: a tag such as `pg:\"name\"` gives one another", c.name)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("field %s: %w", goFields[i].path, err))
		}
		columns = append(columns, c)
	}
	if len(columns) == 0 {
		faults = append(faults, errors.New("the struct has no field for a column"))
	}
	return columns, together(faults...)
}

func newColumn(f goField, s *schema.Schema) (column, error) {
	c := column{field: f.path, goType: f.typ, schema: s, want: defaultType(s)}
	name, options := cutTag(f.pg)
	if name == "-" {
		return c, errors.New("the tag `pg:\"-\"` would leave a part of the row without a column; `avro:\"-\"` leaves the field out of the row")
	}
	if c.name = name; name == "" {
		c.name = snakeCase(f.name)
	}
	for _, option := range options {
		typ, isType := strings.CutPrefix(option, "type=")
		switch {
		case option == "key":
			c.key = true
		case isType:
			var err error
			if c.want, err = parseType(typ); err != nil {
				return c, err
			}
			c.tagged = true
		default:
			return c, fmt.Errorf("the tag's option %q is unknown; there are key and type=", option)
		}
	}
	return c, checkColumn(&c)
}

// checkColumn refuses a name, or a type that the values can't be written to.
func checkColumn(c *column) error {
	if err := checkName(c.name); err != nil {
		return fmt.Errorf("%w; a tag such as `pg:\"name\"` gives another", err)
	}
	if _, err := newEncoder(c.schema, c.want); err != nil {
		return fmt.Errorf("%w; without type= it is %s", err, defaultType(c.schema).sql)
	}
	return nil
}

// cutTag takes a tag apart: the name, and the options, in whose parentheses
// commas don't separate.
func cutTag(tag string) (name string, options []string) {
	depth, from := 0, 0
	for i, c := range tag + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0 || i == len(tag):
			options = append(options, strings.TrimSpace(tag[from:i]))
			from = i + 1
		}
	}
	return options[0], options[1:]
}

// checkKey refuses types that make one of two keys.
func checkKey(c *column) error {
	switch c.want.kind {
	case dateKind, jsonKind, jsonbKind, arrayKind:
		return fmt.Errorf("field %s: a key's column can't be %s, in which keys that differ may be equal", c.field, c.want.sql)
	}
	return nil
}

// rowSchema is the schema of the rows: the columns' names and the fields' types.
// So any build can tell which columns another's outbox has.
func rowSchema(s *schema.Schema, columns []column) *schema.Schema {
	fields := make([]schema.Field, len(columns))
	if s.Kind() == schema.KindRecord {
		copy(fields, s.Fields())
	}
	for i, c := range columns {
		fields[i].Name, fields[i].Type = c.name, c.schema
	}
	return schema.Record("row", fields...)
}
