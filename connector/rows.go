package connector

import "github.com/sluicestream/sluice/schema"

// RowsOf are rows that are the records themselves: a struct's fields, or the field
// "value" if T is no struct. The error says what of T has no schema.
func RowsOf[T any]() (Rows[T], error) {
	t, row, err := rowOf[T]()
	if err != nil {
		return Rows[T]{}, err
	}
	return Rows[T]{
		Schema:    row,
		NewAppend: func() func(dst []byte, v *T) ([]byte, error) { return t.Append },
	}, nil
}

// TableRowsOf are rows that a function makes of a table's entries. The error says
// what of R has no schema.
func TableRowsOf[K comparable, S, R any](make func(K, S) R) (TableRows[K, S], error) {
	t, row, err := rowOf[R]()
	if err != nil {
		return TableRows[K, S]{}, err
	}
	return TableRows[K, S]{
		Schema:   row,
		Function: FunctionName(make),
		NewAppend: func() func(dst []byte, k K, v *S) ([]byte, error) {
			row := new(R) // used again, since Append takes its address
			return func(dst []byte, k K, v *S) ([]byte, error) {
				*row = make(k, *v)
				return t.Append(dst, row)
			}
		},
	}, nil
}

// rowOf derives the schema of rows: a record in any case. A record of one field is
// encoded as the field alone, so that a type that is no struct needs no more than
// the name.
func rowOf[R any]() (*schema.Type[R], *schema.Schema, error) {
	t, err := schema.Of[R]("row")
	if err != nil {
		return nil, nil, err
	}
	if t.Schema().Kind() == schema.KindRecord {
		return t, t.Schema(), nil
	}
	return t, schema.Record("row", schema.Field{Name: "value", Type: t.Schema()}), nil
}
