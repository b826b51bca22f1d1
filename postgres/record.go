package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// recordTable holds a row for each job, task and sink that writes to a schema:
// what was delivered last.
const recordTable = "sluice_delivery"

// recordFormat is the version of the record's form.
const recordFormat = 1

// The server's codes that are looked at.
const (
	noTable         = "42P01"
	noColumn        = "42703"
	tableIsThere    = "42P07"
	objectIsThere   = "42710"
	valueIsThere    = "23505"
	updatedAtOnce   = "XX000"
	noPrivilege     = "42501"
	lockTimedOut    = "55P03"
	mostRaces       = 10 // tries to create what others create at once
	recordColumns   = "format, id, position, part, job, target, live, branch, epoch, manifest"
	recordCondition = " where job_id = $1 and task = $2 and sink = $3"
)

// createRecords is the record's table.
func createRecords(table string) string {
	return `create table if not exists ` + table + ` (
	job_id text not null,
	task text not null,
	sink text not null,
	format integer not null,
	id text not null,
	position bigint not null,
	part bigint not null,
	job text not null,
	target text not null,
	live bigint not null,
	branch text not null,
	epoch bigint not null,
	manifest text not null,
	updated timestamp with time zone not null default now(),
	primary key (job_id, task, sink)
)`
}

// raceSafe runs a statement that creates something if it isn't there, which may
// fail when another session does the same at once.
func raceSafe(ctx context.Context, c *session, sql string) (err error) {
	for range mostRaces {
		if _, err = c.exec(ctx, sql); err == nil {
			return nil
		}
		switch code(err) {
		case tableIsThere, objectIsThere, valueIsThere, updatedAtOnce, "42701":
		default:
			return err
		}
	}
	return err
}

// records is the record's table with its schema before it.
func (t *target) records() string { return quote(t.settings.schema, recordTable) }

func (t *target) keyArgs() []any { return []any{t.key.JobID, t.key.Task, t.key.Sink} }

// makeRecords makes the record's table if it isn't there. Whoever may not create
// tables can't even ask for one that is.
func (t *target) makeRecords(ctx context.Context, c *session) error {
	there := false
	err := c.query(ctx, func(row pgx.Rows) error { return row.Scan(&there) }, "select to_regclass($1) is not null", t.records())
	if there || err != nil {
		return err
	}
	return raceSafe(ctx, c, createRecords(t.records()))
}

// readRecord reads the record; nil if there is none. locked keeps it from others
// until the transaction ends.
func (t *target) readRecord(ctx context.Context, c *session, locked bool) (*connector.SinkRecord, error) {
	sql := "select " + recordColumns + " from " + t.records() + recordCondition
	if locked {
		sql += " for update"
	}
	var found *connector.SinkRecord
	err := c.query(ctx, func(row pgx.Rows) (err error) {
		found, err = t.scanRecord(row)
		return err
	}, sql, t.keyArgs()...)
	switch code(err) {
	case noTable:
		return nil, nil
	case noColumn:
		return nil, fmt.Errorf("%w: table %s is no table of records: %w", connector.ErrRecord, t.records(), err)
	}
	return found, err
}

func (t *target) scanRecord(row pgx.Rows) (*connector.SinkRecord, error) {
	var format, position, part, live, epoch *int64
	var id, job, name, branch, manifest *string
	err := row.Scan(&format, &id, &position, &part, &job, &name, &live, &branch, &epoch, &manifest)
	if err != nil {
		return nil, t.recordError(fmt.Errorf("its columns have other types: %w", err))
	}
	if format != nil && *format != recordFormat {
		return nil, t.recordError(fmt.Errorf("it is of format %d, this build knows format %d; run the build that wrote it", *format, recordFormat))
	}
	for _, n := range []*int64{format, position, part, live, epoch} {
		if n == nil || *n < 0 {
			return nil, t.recordError(fmt.Errorf("a number in it is missing or negative"))
		}
	}
	for _, s := range []*string{id, job, name, branch, manifest} {
		if s == nil {
			return nil, t.recordError(fmt.Errorf("a text in it is missing"))
		}
	}
	return &connector.SinkRecord{
		Position: connector.Position(*position), Part: int(*part), ID: *id, Job: *job, Target: *name,
		Live: uint64(*live), Branch: *branch, Epoch: uint64(*epoch), Manifest: *manifest,
	}, nil
}

func (t *target) recordError(cause error) error {
	return fmt.Errorf("%w: table %s, job_id %s, task %s, sink %s: %w", connector.ErrRecord, t.records(), t.key.JobID, t.key.Task, t.key.Sink, cause)
}

// recordArgs are the record's columns for a statement, behind the key.
func (t *target) recordArgs(r connector.SinkRecord) ([]any, error) {
	for _, n := range []uint64{uint64(r.Position), r.Live, r.Epoch} {
		if n > math.MaxInt64 {
			return nil, fmt.Errorf("a sink's record can't hold the number %d", n)
		}
	}
	return append(t.keyArgs(), int64(recordFormat), r.ID, int64(r.Position), int64(r.Part), r.Job, r.Target, int64(r.Live), r.Branch, int64(r.Epoch), r.Manifest), nil
}

// insertRecord makes the record unless there is one.
func (t *target) insertRecord(ctx context.Context, c *session, first connector.SinkRecord) error {
	args, err := t.recordArgs(first)
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, "insert into "+t.records()+" (job_id, task, sink, "+recordColumns+
		") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) on conflict (job_id, task, sink) do nothing", args...)
	return err
}

// updateRecord sets the record, which this transaction has locked.
func (t *target) updateRecord(ctx context.Context, c *session, r connector.SinkRecord) error {
	args, err := t.recordArgs(r)
	if err != nil {
		return err
	}
	n, err := c.exec(ctx, "update "+t.records()+" set ("+recordColumns+", updated) = ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now())"+recordCondition, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d records were updated in table %s, expected 1; does a trigger or a row's policy stand in the way?", n, t.records())
	}
	return err
}

// refuseStrangers makes sure that no other job writes to this target, or has
// made a record for a sink of this name under this job's name.
func (t *target) refuseStrangers(ctx context.Context, c *session, first connector.SinkRecord) error {
	var stranger error
	err := c.query(ctx, func(row pgx.Rows) error {
		var id, job, sink, name string
		if err := row.Scan(&id, &job, &sink, &name); err != nil {
			return err
		}
		stranger = fmt.Errorf("%w: table %s has the record of job_id %s (%s, sink %s, target %s), and this is job_id %s (%s, sink %s, target %s): two jobs would mix their rows; give one a table of its own, or delete that record if its job is gone for good",
			connector.ErrRecord, t.records(), id, job, sink, name, t.key.JobID, first.Job, t.key.Sink, first.Target)
		return nil
	}, "select job_id, job, sink, target from "+t.records()+" where job_id <> $1 and (target = $2 or (job = $3 and sink = $4)) order by job_id desc",
		t.key.JobID, first.Target, first.Job, t.key.Sink)
	return together(err, stranger)
}
