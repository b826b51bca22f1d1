package engine

import (
	"bytes"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Forget is what a run is asked to delete.
type Forget struct {
	// Request is the number of the request.
	Request uint64
	// Edits are its entries.
	Edits []epoch.Edit
}

// forgetPart is what one epoch deletes: of the requests up to one, or a part of one
// behind which others come.
type forgetPart struct {
	edits        []epoch.Edit
	upTo, partOf uint64 // one of the two is 0
}

// forgetQueue holds what was asked and no epoch has taken up yet. Who asks never
// waits: the sequencer may be waiting for him.
type forgetQueue struct {
	more chan struct{} // has room for one
	mu   sync.Mutex
	all  []Forget
}

// Forget asks the run to delete entries, before the first record of an epoch that
// is still to be opened. It is to be called with requests in their order. What no
// committed epoch has in its Edits was not done.
func (r *Run) Forget(f Forget) {
	q := r.forgets
	q.mu.Lock()
	q.all = append(q.all, f)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take returns the oldest requests, or a part of the oldest: as many as one epoch's
// edits may have.
func (q *forgetQueue) take() (p forgetPart, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.all) > 0 && len(q.all[0].Edits) > epoch.MaxEdits {
		first := &q.all[0]
		p.partOf, p.edits = first.Request, first.Edits[:epoch.MaxEdits:epoch.MaxEdits]
		first.Edits = first.Edits[epoch.MaxEdits:]
		return p, true
	}
	for len(q.all) > 0 && (!ok || len(p.edits)+len(q.all[0].Edits) <= epoch.MaxEdits) {
		p.upTo, p.edits = q.all[0].Request, append(p.edits, q.all[0].Edits...)
		q.all, ok = q.all[1:], true
	}
	return p, ok
}

// edits are the hashes of keys to be deleted, by state and slot.
type edits map[string]map[epoch.Slot]map[string]bool

func editsOf(asked []epoch.Edit) edits {
	all := edits{}
	for _, e := range asked {
		if all[e.State] == nil {
			all[e.State] = map[epoch.Slot]map[string]bool{}
		}
		if all[e.State][e.Slot] == nil {
			all[e.State][e.Slot] = map[string]bool{}
		}
		all[e.State][e.Slot][e.Hash] = true
	}
	return all
}

// deleteEntries deletes what the batch's edits name of the shard's tables.
func (s *shard) deleteEntries() {
	b := s.in.batch
	for _, t := range s.in.tables {
		b.epoch.Forgotten.Add(t.forget(s.stage.run.o.JobID, b.edits))
	}
}

// doomed is an entry that is to be deleted, with its encoded row.
type doomed struct {
	number       uint32
	key, element []byte
}

// forget deletes the table's entries whose keys are named, as an operator would:
// what the epoch puts out for it comes with its end. It goes through the whole
// table, since of a key only a hash is known; the order in which entries go is that
// of their encoding, so that a list loses its first value first.
func (t *Table[R, S]) forget(jobID string, e edits) int64 {
	slots := e[t.spec.Name]
	if len(slots) == 0 {
		return 0
	}
	var found []doomed
	for n := range t.made {
		entry := t.at(n)
		if !entry.present {
			continue
		}
		hashes := slots[SlotOf(entry.hash)]
		if hashes == nil {
			continue
		}
		if d := (doomed{number: n, key: t.spec.appendKey(nil, &entry.row)}); hashes[epoch.EditHash(jobID, d.key)] {
			if t.spec.appendElement != nil {
				d.element = t.spec.appendElement(nil, &entry.row)
			}
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b doomed) int {
		if !bytes.Equal(a.key, b.key) || t.spec.compareElements == nil {
			return t.spec.compareKeys(a.key, b.key)
		}
		return t.spec.compareElements(a.element, b.element)
	})
	for _, d := range found {
		entry := t.at(d.number)
		t.remove(t.update(entry.hash, entry.row))
	}
	return int64(len(found))
}
