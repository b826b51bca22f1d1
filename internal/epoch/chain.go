package epoch

import "fmt"

// Link is a generation as one task has it: a piece of the chain of live branches.
// The data epochs of its branch whose positions lie above From, up to To, are those
// that count.
type Link struct {
	Live   Generation
	Kind   BranchKind
	Branch string
	// From is the position at which the generation before ended. To is the one at
	// which this ended; [AllPositions] while it is the newest.
	From, To Position
	// Final is the branch's last epoch and Hash that of its manifest, once the
	// generation has ended. The hash is empty if the branch had been cleaned away
	// by then: such a one has no positions.
	Final Epoch
	Hash  string
	// Sinks are what the cut to this generation has settled.
	Sinks map[string]SinkConsent
}

// Ended tells whether another generation has followed.
func (l Link) Ended() bool { return l.To != AllPositions }

// ChainOf makes the chain of a task's generations of all live records, from 0 on. It
// begins with the newest layout, since another has other tasks, and positions from 0
// (M5). A generation under which no epoch was written has no positions, and ends
// where the one before it did (H16). The error says which record doesn't fit.
func ChainOf(records []LiveRecord, task string) ([]Link, error) {
	var chain []Link
	for i, r := range records {
		if r.N != Generation(i) {
			return nil, fmt.Errorf("live record %d stands in the place of record %d", r.N, i)
		}
		next := Link{Live: r.N, Kind: r.Kind, Branch: r.Branch, To: AllPositions, Sinks: r.Sinks}
		if i > 0 && r.Layout != records[i-1].Layout {
			chain = nil
		}
		if len(chain) > 0 {
			last := &chain[len(chain)-1]
			if err := last.end(r, task, records[i-1]); err != nil {
				return nil, err
			}
			next.From = last.To
		}
		chain = append(chain, next)
	}
	return chain, nil
}

// end notes where a generation ended, by the record that followed it.
func (l *Link) end(next LiveRecord, task string, own LiveRecord) error {
	if next.Ends == nil || next.Ends.Live != l.Live {
		return fmt.Errorf("live record %d doesn't say where generation %d ended", next.N, l.Live)
	}
	final, ok := next.Ends.Tasks[task]
	gone := next.Ends.Branch != l.Branch
	switch {
	case !ok:
		return fmt.Errorf("live record %d doesn't say where task %s of generation %d ended", next.N, task, l.Live)
	case gone && (own.Ends == nil || next.Ends.Branch != own.Ends.Branch):
		return fmt.Errorf("live record %d ends branch %s, and generation %d is branch %s", next.N, next.Ends.Branch, l.Live, l.Branch)
	case final.Position < l.From || gone && final.Position != l.From:
		return fmt.Errorf("live record %d ends generation %d at position %d, and it began at %d", next.N, l.Live, final.Position, l.From)
	}
	l.To = final.Position
	if !gone {
		l.Final, l.Hash = final.Epoch, final.SHA256
	}
	return nil
}

// Holder is the generation whose epoch has the position behind one: where whoever
// has covered that goes on. It is the newest if none has it yet.
func Holder(chain []Link, covered Position) (Link, bool) {
	for _, l := range chain {
		if covered < l.To {
			return l, true
		}
	}
	return Link{}, false
}
