package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// Empty implements [connector.EmptyTarget].
func (t *target) Empty(ctx context.Context) (empty bool, err error) {
	err = t.run(ctx, func(ctx context.Context, c *session) error {
		return c.query(ctx, func(row pgx.Rows) error { return row.Scan(&empty) }, "select not exists (select from "+t.quoted()+")")
	})
	if code(err) == noTable { // the first delivery would say so
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("looking whether table %s is empty: %w", t.name(), err)
	}
	return empty, err
}

// Replace implements [connector.EmptyTarget], in one transaction.
func (t *target) Replace(ctx context.Context, old string, first connector.SinkRecord) (connector.SinkRecord, error) {
	var stands *connector.SinkRecord
	err := t.run(ctx, func(ctx context.Context, c *session) error {
		return c.transaction(ctx, func(ctx context.Context) (commit bool, err error) {
			if stands, err = t.lockRecord(ctx, c); err != nil || stands == nil || stands.ID != old {
				return false, err
			}
			if _, err := c.exec(ctx, "delete from "+t.quoted()); err != nil {
				return false, err
			}
			stands = &first
			return true, t.updateRecord(ctx, c, first)
		})
	})
	if err != nil {
		return connector.SinkRecord{}, fmt.Errorf("emptying table %s: %w", t.name(), err)
	}
	if stands == nil {
		return connector.SinkRecord{}, fmt.Errorf("%w: table %s has no record of sink %s, expected %s", connector.ErrRecord, t.records(), t.key.Sink, old)
	}
	return *stands, nil
}
