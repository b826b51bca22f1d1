package postgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// target is a table that one task of a job delivers to.
type target struct {
	*sink
	database *database
	log      *slog.Logger
	key      connector.RecordKey
	clock    env.Clock
	plan     *deliveryPlan     // of the last delivery, for the next
	user     string            // who is connected, as SQL writes it
	refused  *refusal          // nil: no delivery is being refused
	feeding  map[int32]feeding // sessions that the record was waited for in vain, by their process
}

func (t *target) run(ctx context.Context, f func(ctx context.Context, c *session) error) error {
	return t.database.run(ctx, f)
}

// Close implements [connector.Target].
func (t *target) Close() error {
	t.database.drop(context.Background())
	return nil
}

// Record implements [connector.Target].
func (t *target) Record(ctx context.Context) (found *connector.SinkRecord, err error) {
	err = t.run(ctx, func(ctx context.Context, c *session) (err error) {
		found, err = t.readRecord(ctx, c, false)
		return err
	})
	return found, err
}

// Make implements [connector.Target]. Jobs that make records in one schema do so
// one after the other, so that each sees the others'.
func (t *target) Make(ctx context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	var made *connector.SinkRecord
	err := t.run(ctx, func(ctx context.Context, c *session) (err error) {
		if err := t.makeRecords(ctx, c); err != nil {
			return fmt.Errorf("table %s for the sinks' records: %w", t.records(), err)
		}
		return c.transaction(ctx, func(ctx context.Context) (bool, error) {
			if _, err := c.exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", "sluice records "+t.settings.schema); err != nil {
				return false, err
			}
			if made, err = t.readRecord(ctx, c, false); made != nil || err != nil {
				return false, err
			}
			if err := t.refuseStrangers(ctx, c, first); err != nil {
				return false, err
			}
			if err := t.insertRecord(ctx, c, first); err != nil {
				return false, err
			}
			made, err = t.readRecord(ctx, c, false)
			return true, err
		})
	})
	switch {
	case err != nil:
		return connector.SinkRecord{}, fmt.Errorf("making the record of sink %s: %w", t.key.Sink, err)
	case made == nil:
		return connector.SinkRecord{}, fmt.Errorf("table %s: the record of sink %s is gone right after it was made", t.records(), t.key.Sink)
	}
	return *made, nil
}

// Deliver implements [connector.Target]: one transaction, in which the record's
// row is locked first.
func (t *target) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	verdict := connector.Disagree
	var found *connector.SinkRecord
	rows := false // whether it is the rows that are being written, or committed
	err := t.run(ctx, func(ctx context.Context, c *session) error {
		return c.transaction(ctx, func(ctx context.Context) (commit bool, err error) {
			if found, err = t.lockRecord(ctx, c); err != nil {
				return false, err
			}
			verdict = d.Decide(found)
			if verdict == connector.Apply && found == nil {
				verdict = connector.Disagree // without a record nothing may be written
			}
			if verdict != connector.Apply {
				return false, nil
			}
			rows = true
			if err := t.write(ctx, c, d); err != nil {
				return false, err
			}
			rows = false
			if err := t.updateRecord(ctx, c, d.Record); err != nil {
				return false, err
			}
			if err := t.showRows(ctx, c, d); err != nil {
				return false, err
			}
			rows = true
			return true, nil
		})
	})
	if err != nil {
		return connector.Disagree, found, t.failed(ctx, d, rows, err)
	}
	t.refused = nil
	return verdict, found, nil
}

// failed is the error of a delivery: it says whether it can be tried again, and
// what is missing for that.
func (t *target) failed(ctx context.Context, d *connector.Delivery, rows bool, err error) error {
	if rows {
		if rejected := t.rejectedRow(ctx, d, err); rejected != nil {
			return fmt.Errorf("delivering position %d: %w", d.Record.Position, rejected)
		}
	}
	if code(err) == noPrivilege {
		missing := t.missingGrants(ctx)
		switch {
		case !t.mayPass(d, noPrivilege):
			err = &DeniedError{Table: t.name(), User: t.user, Missing: missing, Cause: err}
		case missing != nil:
			err = fmt.Errorf("%w: %w", err, missing)
		}
	}
	return fmt.Errorf("delivering position %d to table %s: %w", d.Record.Position, t.name(), err)
}

// missingGrants tells what the user may not do any more; nil if it can't be told.
func (t *target) missingGrants(ctx context.Context) (missing error) {
	err := t.run(ctx, func(ctx context.Context, c *session) error {
		if missing = t.checkDatabase(ctx, c); missing != nil {
			return nil
		}
		r, err := t.inspect(ctx, c)
		if r != nil && err == nil {
			_, missing = t.compare(ctx, c, r)
			missing = together(missing, t.checkView(ctx, c, r, nil))
		}
		return err
	})
	if err != nil {
		return nil
	}
	return missing
}
