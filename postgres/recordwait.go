package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
)

// feeding is a session that holds the record, and waits for rows of a COPY.
type feeding struct {
	begun time.Time // the COPY, by the server's clock
	bytes int64     // that it has had
	since time.Time // since when it was seen so, by this process's clock
}

// lockRecord reads the record and keeps it from others until the transaction ends. Of a
// process that is suspended while it sends rows, none of the server's bounds ends the
// session: it works, as the server sees it. So whoever waits for it does, once no row has
// come for as long as a transaction may be idle (H6b).
func (t *target) lockRecord(ctx context.Context, c *session) (found *connector.SinkRecord, err error) {
	waiter := c.conn.PgConn().PID()
	err = t.beside(ctx, func() (err error) {
		found, err = t.readRecord(ctx, c, true)
		return err
	}, func(ctx context.Context, c *session) error { return t.endSuspended(ctx, c, waiter) })
	return found, err
}

// endSuspended ends sessions that keep another one waiting, and get no rows.
func (t *target) endSuspended(ctx context.Context, c *session, waiter uint32) error {
	now := t.clock.Now()
	seen := map[int32]feeding{}
	err := c.query(ctx, func(row pgx.Rows) error {
		var pid int32
		f := feeding{since: now}
		err := row.Scan(&pid, &f.begun, &f.bytes)
		if before, ok := t.feeding[pid]; ok && before.begun.Equal(f.begun) && before.bytes == f.bytes {
			f.since = before.since
		}
		seen[pid] = f
		return err
	}, `select a.pid, a.query_start, p.bytes_processed from unnest(pg_blocking_pids($1::bigint::integer)) as b (pid)
join pg_catalog.pg_stat_activity a on a.pid = b.pid join pg_catalog.pg_stat_progress_copy p on p.pid = a.pid
where a.wait_event = 'ClientRead' and a.query_start is not null`, int64(waiter))
	if err != nil {
		return err
	}
	t.feeding = seen
	for pid, f := range seen {
		if now.Sub(f.since) < t.settings.timeouts.idle {
			continue
		}
		if _, err := c.exec(ctx, "select pg_terminate_backend($1)", pid); err != nil {
			return err
		}
		t.log.Warn("a session was ended that kept a sink's record, and got no rows any more from its process",
			"sink", t.key.Sink, "what", fmt.Sprintf("process %d of the server, after %v", pid, now.Sub(f.since).Round(time.Millisecond)))
	}
	return nil
}
