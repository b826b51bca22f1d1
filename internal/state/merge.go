package state

import (
	"context"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Merge creates one segment at a path below the job's folder with what several
// adjacent ones hold, the oldest first: of each row the newest record, byte for
// byte. oldest says that no segment is older than these: then deletes have
// nothing left to delete, and are dropped. A segment that is missing or not
// what the manifest says is a *[epoch.DamagedError], and nothing is created.
func Merge(ctx context.Context, st store.Store, job, path string, f Form, segments []epoch.Segment, oldest bool) (epoch.Segment, error) {
	var rows, size, memory int64
	for _, s := range segments {
		rows, size, memory = rows+s.Rows, size+s.Bytes, memory+s.Memory
	}
	m, err := openMerger(ctx, st, job, f, segments)
	if err != nil {
		return epoch.Segment{}, err
	}
	defer m.close()
	w, err := newSegment(ctx, st, job, path, f, size, oldest)
	if err != nil {
		return epoch.Segment{}, err
	}
	defer w.up.abort()
	for {
		c, err := m.next(ctx)
		if err != nil {
			return epoch.Segment{}, err
		}
		if c == nil {
			break
		}
		if oldest && c.record[c.at.branch] == branchDeleted {
			continue
		}
		if err := w.append(c.at.slot, c.record[:c.at.end]); err != nil {
			return epoch.Segment{}, err
		}
	}
	return w.commit(ctx, func(left int64) int64 { return share(memory, left, rows) })
}

// share is the part of memory that left of rows take, if all take the same.
func share(memory, left, rows int64) int64 {
	if rows == 0 {
		return 0
	}
	return int64(float64(memory) * (float64(left) / float64(rows)))
}
