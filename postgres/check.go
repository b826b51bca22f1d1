package postgres

import (
	"context"

	"github.com/sluicestream/sluice/connector"
)

// Check implements [connector.Checker]: it connects, and compares the table with
// what the build writes, in a session that can't write.
func (s *sink) Check(ctx context.Context, o connector.Opening) error {
	if s.fault != nil {
		return s.fault
	}
	d, err := newDatabase(&s.settings, o)
	if err != nil {
		return err
	}
	t := &target{sink: s, database: d, key: connector.RecordKey{JobID: o.JobID, Sink: o.Name}}
	defer t.Close()
	lost := true // until there is a connection
	err = t.run(ctx, func(ctx context.Context, c *session) error {
		err := t.look(ctx, c)
		lost = c.conn.IsClosed()
		return err
	})
	if lost {
		return connector.NotAsked(err)
	}
	return err
}

// look looks at the table and its view, as opening does, and makes nothing.
func (t *target) look(ctx context.Context, c *session) error {
	if err := c.script(ctx, "set default_transaction_read_only = on"); err != nil {
		return err
	}
	_, _, err := t.examine(ctx, c)
	return err
}
