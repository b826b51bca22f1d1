package fsck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// checkRecords finds records that are missing by what others say of them, and
// manifests that live records and heartbeats tell of.
func (c *checker) checkRecords(logs []*log) {
	r := &c.records
	c.checkLives(logs)
	c.checkLayouts(logs)
	for _, hash := range slices.Sorted(maps.Keys(r.named)) {
		if _, ok := r.versions[hash]; !ok {
			c.found(epoch.VersionPath(hash), "a version, since "+r.named[hash]+" names it", "none", "what the job was in this version can't be compared with a build")
		}
	}
	for _, l := range logs {
		if _, ok := r.branches[l.Branch]; !ok && (l.some || l.Gone) {
			r.branches[l.Branch] = nil // once for all of its tasks
			c.found(epoch.BranchPath(l.Branch), "the branch's record, since the branch has epochs", "none", fmt.Sprintf("branch %s can't be run", l.Branch))
		}
		if beat, ok := r.beats[place{l.Branch, l.Task}]; ok && !l.Gone && (!l.some || beat.Epoch > l.last) {
			c.found(l.path(l.next()), fmt.Sprintf("a manifest, since the heartbeat of owner %s tells of epoch %d", beat.Owner, beat.Epoch), "none", l.unreadable(l.next())...)
		}
	}
	for n := range missing(1, max(r.asked, highest(r.requests)), r.requests) {
		c.found(epoch.ControlPath(n), "a request, since a later one is there or a manifest notes it", "none", "processes don't see the requests behind it")
	}
}

// next is the epoch behind the last.
func (l *log) next() epoch.Epoch {
	if !l.some {
		return l.Floor
	}
	return l.last + 1
}

// checkLives finds live records, and the seals that they tell of, missing.
func (c *checker) checkLives(logs []*log) {
	r := &c.records
	there := map[uint64]bool{}
	for n, live := range r.lives {
		there[n] = true
		if live != nil {
			c.checkLive(logs, live)
		}
	}
	newest := highest(there)
	why := "a live record, since later ones are there"
	if r.livesIn != "" && (len(there) == 0 || uint64(r.newest) > newest) {
		newest = uint64(r.newest)
		why = "a live record, since " + r.livesIn + " was written under it"
	}
	if len(there) == 0 && r.livesIn == "" {
		return
	}
	for n := range missing(0, newest, there) {
		c.found(epoch.LivePath(epoch.Generation(n)), why, "none", "it can't be told which branch is live, and where the one before it ended")
	}
}

// checkLive holds a live record against the logs that it ends and begins with.
func (c *checker) checkLive(logs []*log, live *epoch.LiveRecord) {
	said := fmt.Sprintf("since live record %d ", live.N)
	if live.Ends != nil {
		for task, final := range live.Ends.Tasks {
			l := logOf(logs, live.Ends.Branch, task)
			if !l.Gone && l.some && l.last <= final.Epoch {
				c.found(l.path(l.next()), fmt.Sprintf("an entry, %ssays that this log was sealed behind epoch %d", said, final.Epoch), "none", l.unreadable(l.next())...)
			}
		}
	}
	for task, e := range live.Covers {
		if l := logOf(logs, live.Branch, task); !l.Gone && (!l.some || l.last < e) {
			c.found(l.path(l.next()), fmt.Sprintf("a manifest, %stells of epoch %d", said, e), "none", l.unreadable(l.next())...)
		}
	}
}

// checkLayouts finds layouts missing that branches name.
func (c *checker) checkLayouts(logs []*log) {
	named := map[uint64]string{}
	if len(logs) > 0 {
		named[0] = "the job has epochs"
	}
	for name, b := range c.records.branches {
		if b != nil {
			named[uint64(b.Layout)] = "branch " + name + " has it"
		}
	}
	for k, why := range named {
		if !c.records.layouts[k] {
			c.found(epoch.LayoutPath(int(k)), "a layout, since "+why, "none", "it can't be told which task owns what")
		}
	}
}

func highest(numbers map[uint64]bool) (most uint64) {
	for n := range numbers {
		most = max(most, n)
	}
	return most
}

// maxMissing bounds the numbers that are told to be missing in a row.
const maxMissing = 100

// missing goes through the first numbers of a range that aren't there.
func missing(from, to uint64, there map[uint64]bool) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for n, told := from, 0; n <= to && told < maxMissing; n++ {
			if there[n] {
				continue
			}
			if told++; !yield(n) {
				return
			}
		}
	}
}
