package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// noticeable is how long a lock is waited for before anybody looks for whom, if nothing
// ends the wait before.
const noticeable = time.Second

// mostBlockers bounds how many of those that are waited for are named.
const mostBlockers = 5

// watched runs f, which takes the view's locks. While it waits, another session looks
// for whom: readers that come later wait as well.
func (t *target) watched(ctx context.Context, c *session, f func() error) error {
	var last []Blocker
	waiter := c.conn.PgConn().PID()
	err := t.beside(ctx, f, func(ctx context.Context, c *session) error {
		seen, err := blockersOf(ctx, c, waiter)
		if err != nil || len(seen) == 0 {
			return err
		}
		if last == nil {
			t.log.Warn("a view waits for others, and its readers wait for it", "sink", t.key.Sink, "what", t.viewName()+" waits for "+described(seen))
		}
		last = seen
		return nil
	})
	if code(err) == lockTimedOut {
		return &BlockedError{View: t.viewName(), Table: t.name(), Blockers: last, Cause: err}
	}
	return err
}

// beside runs f, which may wait for locks; if it does for long, look is called from time
// to time with another session. What that can't find out is left out.
func (t *target) beside(ctx context.Context, f func() error, look func(ctx context.Context, c *session) error) error {
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		pause := min(noticeable, t.settings.timeouts.lock/4)
		d := &database{config: t.database.config, timeouts: t.settings.timeouts}
		defer d.drop(looking)
		for {
			timer := t.clock.NewTimer(pause)
			select {
			case <-timer.C():
			case <-looking.Done():
				timer.Stop()
				return
			}
			_ = d.run(looking, look)
		}
	})
	err := f()
	stop()
	looks.Wait()
	return err
}

// blockersOf finds for whom a session waits.
func blockersOf(ctx context.Context, c *session, waiter uint32) (all []Blocker, err error) {
	err = c.query(ctx, func(row pgx.Rows) error {
		var b Blocker
		var since *time.Time
		err := row.Scan(&b.PID, &b.User, &b.Application, &b.State, &since)
		if since != nil {
			b.Since = *since
		}
		all = append(all, b)
		return err
	}, `select b.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''), a.query_start
from unnest(pg_blocking_pids($1::bigint::integer)) as b (pid) left join pg_catalog.pg_stat_activity a on a.pid = b.pid
where b.pid <> 0 order by a.query_start, b.pid limit $2`, int64(waiter), mostBlockers)
	return all, err
}
