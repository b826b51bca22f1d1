package fsck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// maxRounds bounds how often a log is looked at again because its floor rose.
const maxRounds = 10

// use is a kept manifest's need of a file that isn't what it must be.
type use struct {
	file        file
	first, last epoch.Epoch
	position    epoch.Position
}

// settle decides which of the suspected files are damage, now that all have been
// read: those that a manifest which is kept refers to (S4). It finds the newest
// epoch of each log that is whole.
func (c *checker) settle(ctx context.Context, logs []*log) error {
	for _, l := range logs {
		if len(c.suspects) == 0 {
			if l.Epochs > 0 && l.Head == l.head.Epoch && l.head.JobID != "" {
				l.Whole = &l.Head
			}
			continue
		}
		uses, err := c.usesIn(ctx, l)
		if err != nil {
			return err
		}
		for _, u := range uses {
			c.blame(u.file.path, l.breaks(u))
		}
	}
	if err := c.settlePinned(ctx); err != nil {
		return err
	}
	for _, f := range c.suspects {
		if len(f.Breaks) > 0 {
			c.add(f)
		}
	}
	return nil
}

// usesIn are the uses of suspected files in a log, by path.
func (c *checker) usesIn(ctx context.Context, l *log) (uses map[string]*use, err error) {
	for range maxRounds {
		floor, err := c.floor(ctx, l)
		if err != nil {
			return nil, err
		}
		if uses, err = c.lookFrom(ctx, l, floor); err != nil {
			return nil, err
		}
		again, err := c.floor(ctx, l)
		if err != nil {
			return nil, err
		}
		if again == floor {
			return uses, nil
		}
	}
	return nil, fmt.Errorf("%s: %s: the floor rose %d times while it was checked: something cleans this log up in a loop", c.job, l, maxRounds)
}

func (c *checker) lookFrom(ctx context.Context, l *log, floor epoch.Epoch) (map[string]*use, error) {
	uses := map[string]*use{}
	l.Whole = nil
	for e := floor; l.some && e <= l.last; e++ {
		m, _, o, _, err := c.entry(ctx, l, e)
		if err != nil {
			return nil, err
		}
		if o != good || m.Kind == epoch.Seal {
			continue
		}
		restorable := true
		for _, f := range c.filesOf(m) {
			if _, suspected := c.suspects[f.path]; !suspected {
				continue
			}
			restorable = restorable && f.state == nil
			if u := uses[f.path]; u != nil {
				u.last = e
			} else {
				uses[f.path] = &use{file: f, first: e, last: e, position: m.Position}
			}
		}
		if restorable {
			l.Whole = &m.Epoch
		}
	}
	return uses, nil
}

// breaks says what can't be done without a file.
func (l *log) breaks(u *use) string {
	epochs := fmt.Sprintf("epoch %d", u.first)
	if u.last > u.first {
		epochs = fmt.Sprintf("epochs %d to %d", u.first, u.last)
	}
	switch {
	case u.file.state != nil:
		return fmt.Sprintf("%s: state %s of %s can't be restored", l, u.file.name, epochs)
	case l.head.Sinks[u.file.name].Confirmed >= u.position:
		return fmt.Sprintf("%s: position %d of sink %s, which has been delivered, can't be delivered again or compared", l, u.position, u.file.name)
	}
	return fmt.Sprintf("%s: position %d can't be delivered to sink %s, nor any after it", l, u.position, u.file.name)
}

// blame notes what a suspected file breaks: so it is damage.
func (c *checker) blame(path, breaks string) {
	f := c.suspects[path]
	f.Breaks = append(f.Breaks, breaks)
	c.suspects[path] = f
}

// readPinned has the files of pinned epochs read, also of those under the floor.
func (c *checker) readPinned(ctx context.Context, logs []*log) error {
	for _, p := range c.records.pins {
		for task, e := range p.point.Tasks {
			l := logOf(logs, p.point.Branch, task)
			if l.some && e >= l.Floor && e <= l.last {
				continue // it was read, or found missing
			}
			m, _, o, wrong, err := c.entry(ctx, l, e)
			if err != nil {
				return err
			}
			if o == absent {
				wrong = fault{"a manifest, since " + p.what + " points to it", "none"}
			}
			if o == good {
				for _, f := range c.filesOf(m) {
					if err := c.enqueue(ctx, f); err != nil {
						return err
					}
				}
				continue
			}
			if stands, err := c.store.Exists(ctx, c.object(p.path)); err != nil {
				return fmt.Errorf("%s: %w", c.job, err)
			} else if stands {
				c.found(l.path(e), wrong.expected, wrong.found, p.what+" can't be restored")
			}
		}
	}
	return nil
}

// logOf is one of the logs, or one that isn't there.
func logOf(logs []*log, branch, task string) *log {
	i := slices.IndexFunc(logs, func(l *log) bool { return l.Branch == branch && l.Task == task })
	if i < 0 {
		return &log{Log: Log{Branch: branch, Task: task}}
	}
	return logs[i]
}

// settlePinned blames suspected files for the pins and savepoints that need them.
func (c *checker) settlePinned(ctx context.Context) error {
	if len(c.suspects) == 0 {
		return nil
	}
	for _, p := range c.records.pins {
		for task, e := range p.point.Tasks {
			m, _, o, _, err := c.entry(ctx, logOf(nil, p.point.Branch, task), e)
			if err != nil {
				return err
			}
			stands, err := c.store.Exists(ctx, c.object(p.path))
			if err != nil {
				return fmt.Errorf("%s: %w", c.job, err)
			}
			if o != good || !stands {
				continue
			}
			for _, f := range c.filesOf(m) {
				if _, suspected := c.suspects[f.path]; !suspected {
					continue
				}
				if f.state != nil {
					c.blame(f.path, p.what+" can't be restored")
				} else {
					c.blame(f.path, fmt.Sprintf("what %s put out to sink %s can't be compared", p.what, f.name))
				}
			}
		}
	}
	return nil
}

// countLeftOvers counts the files that no kept manifest refers to.
func (c *checker) countLeftOvers(ctx context.Context, logs []*log) error {
	for _, l := range logs {
		folder := c.object(epoch.LogPath(l.Branch, l.Task) + "data/")
		for after := ""; ; {
			listed, err := c.store.List(ctx, folder, after, page)
			if err != nil {
				return fmt.Errorf("%s: %w", c.job, err)
			}
			for _, f := range listed {
				after = f.Name
				if _, ok := c.referred[short(strings.TrimPrefix(f.Name, c.job+"/"))]; !ok {
					c.report.LeftOvers++
					c.report.LeftOverBytes += f.Size
				}
			}
			if len(listed) < page {
				break
			}
		}
	}
	return nil
}
