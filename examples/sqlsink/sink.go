// Package sqlsink is a worked example of a connector of one's own: sinks that
// write to a table of PostgreSQL through plain database/sql, exactly once.
// docs/connectors.md walks through it.
//
// The table is there beforehand, and the sink's own. A row is a struct, whose
// fields go to the columns of their names; so do those of a key that is a struct,
// and any other key goes to the column "key".
package sqlsink

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

const (
	// A session that falls silent, works or waits for longer is ended by the
	// server, so that a process that was stopped doesn't hold a lock for ever.
	timeouts = `select set_config('idle_in_transaction_session_timeout', '5s', true),
		set_config('statement_timeout', '30s', true), set_config('lock_timeout', '10s', true)`
	// What a delivery has at the most, so that it fits into one statement.
	partRows, partBytes = 10_000, 4 << 20
	// recordFormat is that of the rows of sluice_records.
	recordFormat = 1

	makeRecords = `create table if not exists sluice_records (job_id text, task text, sink text, format int not null,
		written_table text not null, job text not null, record jsonb not null, primary key (job_id, task, sink))`
	// Of two processes that make a record, one waits until the other has.
	makeAlone  = `select pg_advisory_xact_lock(hashtext('sluice_records'))`
	makeRecord = `insert into sluice_records values ($1, $2, $3, $4, $5, $6, $7::text::jsonb) on conflict do nothing`
	readRecord = `select format, record::text from sluice_records where job_id = $1 and task = $2 and sink = $3`
	moveRecord = `update sluice_records set record = $4::text::jsonb where job_id = $1 and task = $2 and sink = $3`
	findOther  = `select format('job %s (%s), sink %s, table %s', job, job_id, sink, written_table) from sluice_records
		where job_id <> $1 and (written_table = $2 or job = $3 and sink = $4) limit 1`
	// The name of the table in full, so that one table has one name.
	findTable = `select format('%I.%I', n.nspname, c.relname), to_regclass('sluice_records') is not null
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = $1::text::regclass`
)

// Append appends a stream's records to a table, a row each. T is a struct.
func Append[T any](db *sql.DB, table string) connector.StreamSink[T] {
	return appendSink[T]{place{db, table, "append"}}
}

// Upsert keeps a row for each entry of a table: its key, and the fields of S, a
// struct. An index on the key's columns is for the table's maker to add.
func Upsert[K comparable, S any](db *sql.DB, table string) connector.TableSink[K, S] {
	return upsertSink[K, S]{place{db, table, "upsert"}}
}

// place is the half of a sink that knows no types of Go.
type place struct {
	db          *sql.DB
	table, mode string
}

type appendSink[T any] struct{ place }

type upsertSink[K comparable, S any] struct{ place }

// Rows implements [connector.StreamSink].
func (s appendSink[T]) Rows() (connector.Rows[T], error) {
	t, err := rowType[T](s.table)
	if err != nil {
		return connector.Rows[T]{}, err
	}
	return connector.Rows[T]{Schema: t.Schema(), NewAppend: func() func([]byte, *T) ([]byte, error) { return t.Append }}, nil
}

// TableRows implements [connector.TableSink].
func (s upsertSink[K, S]) TableRows() (connector.TableRows[K, S], error) {
	t, err := rowType[S](s.table)
	if err != nil {
		return connector.TableRows[K, S]{}, err
	}
	row := func(dst []byte, _ K, v *S) ([]byte, error) { return t.Append(dst, v) }
	return connector.TableRows[K, S]{Schema: t.Schema(), NewAppend: func() func([]byte, K, *S) ([]byte, error) { return row }}, nil
}

// rowType derives the schema of rows, and refuses early what no table can take.
func rowType[R any](table string) (*schema.Type[R], error) {
	t, err := schema.Of[R]("row")
	if err == nil {
		_, err = columns(t.Schema())
	}
	if err != nil {
		return nil, fmt.Errorf("rows of table %s: %w", table, err)
	}
	return t, nil
}

// Describe implements [connector.Sink].
func (p place) Describe() connector.Description {
	return connector.Description{Connector: "example.sql", Contract: 1, Target: p.table, Parameters: []connector.Parameter{{Name: "mode", Value: p.mode}}}
}

// PartLimits implements [connector.PartedSink].
func (p place) PartLimits() (rows, bytes int64) { return partRows, partBytes }

// Open implements [connector.Sink].
func (p place) Open(ctx context.Context, _ connector.Opening, key connector.RecordKey) (connector.Target, error) {
	t := &target{db: p.db, key: []any{key.JobID, key.Task, key.Sink}}
	err := t.transaction(ctx, func(tx *sql.Tx) error {
		var made bool
		if err := tx.QueryRowContext(ctx, findTable, p.table).Scan(&t.table, &made); err != nil || made {
			return err
		}
		if _, err := tx.ExecContext(ctx, makeAlone); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, makeRecords)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening table %s: %w", p.table, err)
	}
	return t, nil
}

// target is a table that one task of a job delivers to.
type target struct {
	db    *sql.DB
	key   []any  // job id, task, sink
	table string // the name in full, quoted
}

// Close implements [connector.Target]. The connections are their maker's.
func (t *target) Close() error { return nil }

// Record implements [connector.Target].
func (t *target) Record(ctx context.Context) (*connector.SinkRecord, error) {
	return t.read(t.db.QueryRowContext(ctx, readRecord, t.key...))
}

func (t *target) read(row *sql.Row) (*connector.SinkRecord, error) {
	var format int
	var text string
	if err := row.Scan(&format, &text); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r connector.SinkRecord
	if err := json.Unmarshal([]byte(text), &r, json.RejectUnknownMembers(true)); err != nil || format != recordFormat {
		return nil, fmt.Errorf("%w: sluice_records has %s in format %d for %v, this build knows format %d only", connector.ErrRecord, text, format, t.key, recordFormat)
	}
	return &r, nil
}

// Make implements [connector.Target].
func (t *target) Make(ctx context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	var found *connector.SinkRecord
	err := t.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, makeAlone); err != nil {
			return err
		}
		var other string
		err := tx.QueryRowContext(ctx, findOther, t.key[0], t.table, first.Job, t.key[2]).Scan(&other)
		if err == nil {
			return fmt.Errorf("%w: sluice_records has %s; this is %v of job %s: choose another table or name, or remove the row of a job that is gone for good",
				connector.ErrRecord, other, t.key, first.Job)
		} else if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		text, err := json.Marshal(first)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, makeRecord, append(t.key, recordFormat, t.table, first.Job, string(text))...); err != nil {
			return err
		}
		found, err = t.read(tx.QueryRowContext(ctx, readRecord, t.key...))
		if err == nil && found == nil {
			err = errors.New("the record is gone right after it was made")
		}
		return err
	})
	if err != nil {
		return connector.SinkRecord{}, fmt.Errorf("making the record of table %s: %w", t.table, err)
	}
	return *found, nil
}

// Deliver implements [connector.Target].
func (t *target) Deliver(ctx context.Context, d *connector.Delivery) (verdict connector.Verdict, found *connector.SinkRecord, err error) {
	err = t.transaction(ctx, func(tx *sql.Tx) error {
		// The lock comes before the decision, so that it is made by what the last
		// deliverer has left.
		found, err = t.read(tx.QueryRowContext(ctx, readRecord+" for update", t.key...))
		if err != nil {
			return err
		}
		if verdict = d.Decide(found); found == nil {
			verdict = connector.Disagree // no row, no lock
		}
		if verdict != connector.Apply {
			return nil
		}
		if err := t.write(ctx, tx, d); err != nil {
			return err
		}
		text, err := json.Marshal(d.Record)
		if err == nil {
			_, err = tx.ExecContext(ctx, moveRecord, append(t.key, string(text))...)
		}
		return err
	})
	if err != nil {
		return connector.Disagree, nil, fmt.Errorf("delivering position %d to table %s: %w", d.Record.Position, t.table, err)
	}
	return verdict, found, nil
}

// transaction does something wholly or not at all. It tries once: after an error,
// also of the commit itself, nobody knows which of the two it was.
func (t *target) transaction(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing once it is committed
	if _, err := tx.ExecContext(ctx, timeouts); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// write writes the rows, by the schemas that they were frozen with: the build that
// froze them may have been another. PostgreSQL takes JSON apart by the columns'
// types.
func (t *target) write(ctx context.Context, tx *sql.Tx, d *connector.Delivery) error {
	if d.Schema == nil {
		return nil // there are no rows
	}
	key := d.Key
	if key != nil && key.Kind() != schema.KindRecord {
		key = schema.Record("key", schema.Field{Name: "key", Type: key}) // encoded as its one field is
	}
	keys, rows, err := renderRows(key, d)
	if err != nil {
		return err
	}
	names, err := columns(d.Schema)
	if err == nil && key != nil {
		var of []string
		if of, err = columns(key); err == nil {
			_, err = tx.ExecContext(ctx, "delete from "+t.table+" t using json_populate_recordset(null::"+t.table+", $1::text::json) k where (t."+
				strings.Join(of, ", t.")+") = (k."+strings.Join(of, ", k.")+")", keys)
		}
		names = append(of, names...)
	}
	if err != nil {
		return err
	}
	list := strings.Join(names, ", ")
	_, err = tx.ExecContext(ctx, "insert into "+t.table+" ("+list+") select "+list+" from json_populate_recordset(null::"+t.table+", $1::text::json)", rows)
	return err
}

// renderRows writes as JSON the keys that are put or deleted, and the rows that
// are put or appended, with their keys.
func renderRows(key *schema.Schema, d *connector.Delivery) (keys, rows string, err error) {
	keyJSON, rowJSON := schema.JSON(schema.Record("none")), schema.JSON(d.Schema)
	if key != nil {
		keyJSON = schema.JSON(key)
	}
	var k, r, allKeys, allRows []byte
	for row, err := range d.Rows {
		if err == nil {
			k, _, err = keyJSON(k[:0], row.Key)
		}
		if err != nil {
			return "", "", err
		}
		allKeys = append(append(allKeys, k...), ',')
		if row.Op == connector.Delete {
			continue
		}
		if r, _, err = rowJSON(r[:0], row.Row); err != nil {
			return "", "", err
		}
		if allRows = append(allRows, k[:len(k)-1]...); key != nil {
			allRows = append(allRows, ',')
		}
		allRows = append(append(allRows, r[1:]...), ',')
	}
	return "[" + string(bytes.TrimSuffix(allKeys, []byte(","))) + "]", "[" + string(bytes.TrimSuffix(allRows, []byte(","))) + "]", nil
}

// columns quotes the names of a record's fields: letters, digits and "_".
func columns(s *schema.Schema) (names []string, err error) {
	for _, f := range s.Fields() {
		t, _ := f.Type.NonNull()
		if k := t.Kind(); (k == schema.KindBytes || k == schema.KindFixed) && t.Logical() == "" {
			return nil, fmt.Errorf("field %s is bytes, whose JSON isn't PostgreSQL's; make it a string", f.Name)
		}
		names = append(names, `"`+f.Name+`"`)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("expected a struct with fields, found a %s", s.Word())
	}
	return names, nil
}
