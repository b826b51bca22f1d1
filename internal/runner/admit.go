package runner

import (
	"context"
	"time"
)

// admit is called before an epoch is opened: it waits while a restore would have
// to read too many segments, or a sink has too much to catch up with. From
// slowFrom segments on it waits as long again as an epoch takes.
func (c *committer) admit(ctx context.Context) error {
	slowed := false
	var pace <-chan time.Time // once it begins to wait
	for {
		step, changed := c.reserve(slowed)
		if step == opens {
			break
		}
		if step == slows && pace == nil {
			timer := c.r.o.Env.Clock.NewTimer(c.r.o.EpochEvery)
			defer timer.Stop()
			pace = timer.C()
		}
		select {
		case <-changed:
		case <-pace:
			slowed = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, s := range c.r.sinks {
		if s.deliver == nil {
			continue // it follows
		}
		if err := s.deliver.Wait(ctx, undelivered); err != nil {
			return err
		}
	}
	return nil
}

// admission is what admit does about the next epoch.
type admission int

const (
	opens admission = iota
	slows           // waits as long again as an epoch takes, or for a merge
	waits           // for a merge
)

// decideAdmission decides it from the number of segments of the fullest state,
// and the epochs that will add one each.
func decideAdmission(segments, ahead int, slowed bool) admission {
	switch {
	case segments+ahead+1 > segmentsAtMost:
		return waits
	case segments >= slowFrom && !slowed:
		return slows
	default:
		return opens
	}
}

// reserve counts an epoch as opened if it may be; otherwise changed says when to
// look again.
func (c *committer) reserve(slowed bool) (step admission, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fullest := 0
	for _, s := range c.segments {
		fullest = max(fullest, len(s))
	}
	if step = decideAdmission(fullest, c.ahead, slowed); step == opens {
		c.ahead++
	}
	return step, c.changed
}

// wake lets admit look again; c.mu is held.
func (c *committer) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}
