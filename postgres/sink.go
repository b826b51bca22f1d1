package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
)

// mode is what a sink does with rows.
type mode string

const (
	insertMode mode = "insert"
	upsertMode mode = "upsert"
	deleteMode mode = "delete"
)

// sink is the half of a sink that knows no types of Go. It holds what its build
// writes; outboxes of other builds tell what they hold themselves.
type sink struct {
	settings settings
	mode     mode
	table    string
	// columns are the row's, keys the key's, which come from the row for
	// deleting streams, and are none for inserting ones.
	columns, keys []column
	// keyFields are the columns' names by the fields of the key's schema, if it
	// is a record.
	keyFields map[string]string
	// rows is the schema of the rows.
	rows *schema.Schema
	// fault is what was wrong with the types and settings.
	fault error
}

func newSink(m mode, table string, opts []Option) *sink {
	s := &sink{settings: newSettings(opts), mode: m}
	s.table = s.settings.splitTable(table)
	s.fault = s.settings.check()
	if err := checkName(s.table); err != nil {
		s.fault = together(fmt.Errorf("the table: %w", err), s.fault)
	}
	switch {
	case s.settings.view == "":
	case s.settings.view == s.table:
		s.fault = together(s.fault, fmt.Errorf("postgres.View(%q): the table has that name", s.table))
	case m == deleteMode:
		s.fault = together(s.fault, fmt.Errorf("postgres.View(%q): a sink that deletes rows has none of its own to show", s.settings.view))
	}
	return s
}

// name is the table with its schema before it.
func (s *sink) name() string { return s.settings.schema + "." + s.table }

// typeFault notes what is wrong with a type.
func (s *sink) typeFault(t reflect.Type, err error) {
	if err != nil {
		s.fault = together(s.fault, fmt.Errorf("PostgreSQL table %s, type %v: %w", s.name(), t, err))
	}
}

// derive derives the columns of the rows' type.
func derive[R any](s *sink, single string) *schema.Type[R] {
	t := reflect.TypeFor[R]()
	row, err := schema.Of[R]("row")
	if err != nil {
		s.typeFault(t, err)
		return nil
	}
	columns, err := columnsOf(t, row.Schema(), single)
	s.typeFault(t, err)
	if err != nil {
		return nil
	}
	s.columns, s.rows = columns, rowSchema(row.Schema(), columns)
	return row
}

// singleColumn is the column of rows that are one value.
const singleColumn = "value"

// Insert appends a row to a table for each of a stream's records. The columns
// are the fields of T; a T that is no struct has the column "value".
//
// table may have its schema before it: "reports.alerts".
func Insert[T any](table string, opts ...Option) connector.StreamSink[T] {
	s := streamSink[T]{sink: newSink(insertMode, table, opts)}
	if key := s.settings.key; key != "" {
		s.fault = together(s.fault, fmt.Errorf("postgres.Key(%q): rows that are inserted have no key", key))
	}
	s.row = derive[T](s.sink, singleColumn)
	return s
}

// Delete deletes the rows of a table whose keys a stream holds. The columns that
// have to be equal are those of the fields of T that are tagged as key; without
// a tag, of all. A T that is no struct needs the option [Key].
func Delete[T any](table string, opts ...Option) connector.StreamSink[T] {
	s := streamSink[T]{sink: newSink(deleteMode, table, opts)}
	single := s.settings.key
	if single == "" {
		single = singleColumn
	}
	s.row = derive[T](s.sink, single)
	for _, c := range s.columns {
		if c.key {
			s.keys = append(s.keys, c)
		}
	}
	if len(s.keys) == 0 {
		s.keys = s.columns
	}
	var faults []error
	for _, c := range s.keys {
		if c.nullable() {
			faults = append(faults, fmt.Errorf("field %s: a key's column is never null, and %v may be nil", c.field, c.goType))
		}
		faults = append(faults, checkKey(&c))
	}
	s.typeFault(reflect.TypeFor[T](), together(faults...))
	return s
}

type streamSink[T any] struct {
	*sink
	row *schema.Type[T]
}

// Rows implements [connector.StreamSink].
func (s streamSink[T]) Rows() (connector.Rows[T], error) {
	if s.fault != nil {
		return connector.Rows[T]{}, s.fault
	}
	return connector.Rows[T]{
		Schema: s.rows,
		NewAppend: func() func(dst []byte, v *T) ([]byte, error) {
			check, err := newChecker(s.name(), s.columns, 0)
			return func(dst []byte, v *T) ([]byte, error) {
				if err != nil {
					return dst, err
				}
				from := len(dst)
				dst, err := s.row.Append(dst, v)
				if err != nil {
					return dst, err
				}
				return dst, check.check(dst[from:])
			}
		},
	}, nil
}

// Upsert keeps a table of PostgreSQL equal to a job's table: the row that row
// makes of an entry is inserted or updated, and deleted when the entry is gone.
//
// The key's columns come from K alone. A struct's fields are columns of the same
// name; any other K is the column of the row's field that is tagged as key, or
// the one that [Key] names. Fields of the row that are key columns must have the
// key's type; what they hold is not looked at. The table needs a primary key or
// a unique constraint on exactly the key's columns.
//
// table may have its schema before it: "reports.spend".
func Upsert[K comparable, S, R any](table string, row func(K, S) R, opts ...Option) connector.TableSink[K, S] {
	s := tableSink[K, S, R]{sink: newSink(upsertMode, table, opts), make: row}
	s.row = derive[R](s.sink, singleColumn)
	key, err := schema.KeyOf[K]("key")
	if err != nil {
		s.typeFault(reflect.TypeFor[K](), err)
		return s
	}
	s.key = key
	s.deriveKey(reflect.TypeFor[K](), reflect.TypeFor[R](), key.Schema())
	return s
}

type tableSink[K comparable, S, R any] struct {
	*sink
	make func(K, S) R
	row  *schema.Type[R]
	key  *schema.Key[K]
}

// deriveKey derives the key's columns.
func (s *sink) deriveKey(k, row reflect.Type, key *schema.Schema) {
	var err error
	if key.Kind() == schema.KindRecord {
		s.keys, err = s.structKey(k, key)
	} else {
		s.keys, err = s.scalarKey(k, key)
	}
	s.typeFault(k, err)
	if err != nil {
		return
	}
	var faults []error
	for i := range s.keys {
		faults = append(faults, checkKey(&s.keys[i]))
	}
	for i := range s.columns {
		c := &s.columns[i]
		isKey := false
		for _, k := range s.keys {
			if k.name != c.name {
				continue
			}
			if isKey, c.ignored = true, true; k.goType != c.goType {
				faults = append(faults, fmt.Errorf("field %s: column %s is the key's, a %v, and this is a %v", c.field, c.name, k.goType, c.goType))
			}
		}
		if c.key && !isKey {
			faults = append(faults, fmt.Errorf("field %s: column %s is tagged as key, and is none of the key's: the key's columns come from the key's type alone", c.field, c.name))
		}
	}
	s.typeFault(row, together(faults...))
}

// structKey derives the columns of a struct's fields. A tag of the row's field
// gives a column its type.
func (s *sink) structKey(k reflect.Type, key *schema.Schema) ([]column, error) {
	if s.settings.key != "" {
		return nil, fmt.Errorf("postgres.Key(%q): the key is a struct, whose fields name the columns", s.settings.key)
	}
	for _, f := range key.Fields() {
		if !isScalar(f.Type) {
			return nil, fmt.Errorf("field %s: a field of a key has to be one value, this one is a %s", f.Name, f.Type.Word())
		}
	}
	keys, err := columnsOf(k, key, "")
	s.keyFields = map[string]string{}
	for i, f := range key.Fields() {
		if i < len(keys) {
			s.keyFields[f.Name] = keys[i].name
			keys[i] = s.typedAsInRow(keys[i])
		}
	}
	return keys, err
}

// scalarKey finds the column of a key that is one value.
func (s *sink) scalarKey(k reflect.Type, key *schema.Schema) ([]column, error) {
	name := s.settings.key
	for _, c := range s.columns {
		switch {
		case !c.key:
		case name == "" || name == c.name:
			name = c.name
		case s.settings.key != "":
			return nil, fmt.Errorf("field %s is tagged as key, and postgres.Key names the column %s", c.field, name)
		default:
			return nil, fmt.Errorf("field %s: a key that is one value has one column, and %s is tagged as key too", c.field, name)
		}
	}
	if name == "" {
		return nil, errors.New("no column for the key: tag a field of the row, `pg:\",key\"`, or name it with postgres.Key")
	}
	c := s.typedAsInRow(column{name: name, field: "the key", goType: k, schema: key, want: defaultType(key)})
	return []column{c}, checkColumn(&c)
}

// typedAsInRow gives a key's column the type that a tag of the row's field has.
func (s *sink) typedAsInRow(key column) column {
	for _, c := range s.columns {
		if c.name == key.name && c.tagged && !key.tagged {
			if _, err := newEncoder(key.schema, c.want); err == nil {
				key.want, key.tagged = c.want, true
			}
		}
	}
	return key
}

// maxIndexed bounds a key's columns together, a little below what a B-tree
// takes.
const maxIndexed = 2600

// TableRows implements [connector.TableSink].
func (s tableSink[K, S, R]) TableRows() (connector.TableRows[K, S], error) {
	if s.fault != nil {
		return connector.TableRows[K, S]{}, s.fault
	}
	return connector.TableRows[K, S]{
		Schema:   s.rows,
		Function: connector.FunctionName(s.make),
		NewAppend: func() func(dst []byte, k K, v *S) ([]byte, error) {
			checkKey, keyErr := newChecker(s.name(), s.keys, maxIndexed)
			check, err := newChecker(s.name(), s.columns, 0)
			err = together(keyErr, err)
			row := new(R) // used again, since Append takes its address
			var scratch []byte
			return func(dst []byte, k K, v *S) ([]byte, error) {
				if err != nil {
					return dst, err
				}
				if len(checkKey.plan) > 0 {
					scratch = s.key.Append(scratch[:0], k)
					if err := checkKey.check(scratch); err != nil {
						return dst, err
					}
				}
				*row = s.make(k, *v)
				from := len(dst)
				dst, err := s.row.Append(dst, row)
				if err != nil {
					return dst, err
				}
				return dst, check.check(dst[from:])
			}
		},
	}, nil
}

// SkipsEqual implements [connector.EqualSkipper].
func (*sink) SkipsEqual() {}

// Describe implements [connector.Sink]. The target is the table with its schema:
// what is the same table under whatever name of host or database it is reached.
func (s *sink) Describe() connector.Description {
	d := connector.Description{
		Connector:  "postgres",
		Contract:   1,
		Target:     s.name(),
		Parameters: []connector.Parameter{{Name: "mode", Value: string(s.mode)}},
	}
	if len(s.keys) > 0 {
		names := make([]string, len(s.keys))
		for i, c := range s.keys {
			names[i] = c.name
		}
		d.Parameters = append(d.Parameters, connector.Parameter{Name: "key", Value: strings.Join(names, " ")})
	}
	if s.settings.view != "" {
		d.Parameters = append(d.Parameters, connector.Parameter{Name: "view", Value: s.viewName()})
	}
	for _, c := range s.columns {
		if c.tagged {
			d.Parameters = append(d.Parameters, connector.Parameter{Name: "type of " + c.name, Value: c.want.sql})
		}
	}
	return d
}

// Open implements [connector.Sink]. It connects, and compares the table with
// what the build writes: columns that are missing are added, what would lose or
// reject rows is a [*ColumnError]. Without a connection, the error is a
// [*ConnectError].
func (s *sink) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d, err := newDatabase(&s.settings, o)
	if err != nil {
		return nil, err
	}
	world := o.Env
	if world == nil {
		world = env.Real()
	}
	t := &target{sink: s, database: d, log: log, key: key, clock: world.Clock}
	if err := t.run(ctx, t.prepare); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}
