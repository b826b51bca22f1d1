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
	t := &target{sink: s, database: d}
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

// look looks at the table, as opening does, and makes nothing: neither it nor the
// columns that it lacks.
func (t *target) look(ctx context.Context, c *session) error {
	if err := c.script(ctx, "set default_transaction_read_only = on"); err != nil {
		return err
	}
	if err := t.checkDatabase(ctx, c); err != nil {
		return t.refuse(err)
	}
	r, err := t.inspect(ctx, c)
	if err != nil {
		return err
	}
	if r == nil && !t.settings.create {
		return t.noTable()
	}
	if r == nil {
		return nil // opening makes it
	}
	if _, err = t.compare(ctx, c, r); err != nil {
		err = t.refuse(err)
	}
	return err
}
