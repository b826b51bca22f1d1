package state

import (
	"context"
	"iter"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Read iterates over what a state's segments, the oldest first, hold in a range
// of slots: the entries that there are, in the order of slots, keys and
// elements. An entry holds until the next one. The first error ends the
// iteration; a segment that is missing or not what the manifest says gives a
// *[epoch.DamagedError]. Whoever stops early, or reads fewer than all slots,
// relies on the check sums of the blocks: the hash of a segment is known at its
// end only.
func Read(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment, slots epoch.Slots) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var within []epoch.Segment
		for _, s := range segments {
			if overlap(s.Slots, slots) {
				within = append(within, s)
			}
		}
		m, err := openMerger(ctx, st, job, f, within)
		if err != nil {
			yield(nil, err)
			return
		}
		defer m.close()
		m.entries(ctx, slots, yield)
	}
}

// entries yields the entries in a range of slots, of which the merger stands
// before the first or further ahead. It returns whether to go on behind them.
func (m *merger) entries(ctx context.Context, slots epoch.Slots, yield func(*Entry, error) bool) bool {
	var e Entry
	for {
		c, err := m.nextEntry(ctx, slots)
		if err != nil {
			yield(nil, err)
			return false
		}
		if c == nil {
			return true
		}
		m.split.entry(&e, c.record, c.at)
		if !yield(&e, nil) {
			return false
		}
	}
}

// nextEntry goes to the next entry in a range of slots, and returns nil behind the
// last.
func (m *merger) nextEntry(ctx context.Context, slots epoch.Slots) (*cursor, error) {
	for {
		c, err := m.next(ctx)
		if err != nil || c == nil || c.at.slot > slots.Last {
			return nil, err
		}
		if c.at.slot >= slots.First && c.record[c.at.branch] != branchDeleted {
			return c, nil
		}
	}
}

// overlap tells whether two ranges have a slot in common.
func overlap(a, b epoch.Slots) bool { return a.First <= b.Last && b.First <= a.Last }
