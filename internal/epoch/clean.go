package epoch

import (
	"math"
	"slices"
)

// AllPositions is above every position.
const AllPositions Position = math.MaxUint64

// Retention is how much of a log is kept besides what is still needed.
type Retention struct {
	// Micros is the age of epochs, reckoned from the log's newest, in
	// microseconds.
	Micros int64
	// Epochs is the number of epochs.
	Epochs Epoch
}

// Trace is what the choice of a floor needs of a manifest.
type Trace struct {
	Epoch    Epoch
	Time     int64 // microseconds since 1970 UTC
	Position Position
	Data     bool // its kind is data
	Live     bool // it was written under a live record
}

// TraceOf takes down what a floor's choice needs of a manifest.
func TraceOf(m Manifest) Trace {
	return Trace{Epoch: m.Epoch, Time: m.Time, Position: m.Position, Data: m.Kind == Data, Live: m.Live != nil}
}

// Deliveries is what is known of how far a log's outboxes have been delivered.
type Deliveries struct {
	// Live says that the log's branch is the live one, Sealed that it has ended.
	Live, Sealed bool
	// WasLive says that the branch has been live.
	WasLive bool
	// Own are the sinks of the log's newest manifest, Newest those of the live
	// branch's, which alone says what has been delivered.
	Own, Newest map[string]SinkState
	// Branch is the log's.
	Branch string
	// Settled are sinks whose outboxes nobody waits for any more: a live record
	// says that a person consented, or a record that they are drained.
	Settled map[string]bool
}

// Owed returns the position above which epochs must be kept that the log wrote as the
// live branch, for their outboxes (H12), and from which of its own epochs on those that
// it wrote as a follower, for sinks that it has filled before its cut (D10). Nothing is
// owed above [AllPositions], nor from [AllEpochs] on.
//
// A sink asks for each position after its own, also for those without a row. A
// sink that the live branch lacks is owed what its own log last knew, until
// somebody says that it is settled.
func (d Deliveries) Owed() (live Position, filling Epoch) { return d.owed(allRules) }

func (d Deliveries) owed(on rules) (live Position, filling Epoch) {
	live, filling = AllPositions, AllEpochs
	if on&ruleOwed == 0 {
		return live, filling
	}
	for name, own := range d.Own {
		known, has := d.Newest[name]
		if !has {
			if on&ruleOwnSink == 0 {
				continue
			}
			known = own
		}
		if known.Dropped == consented || d.Settled[name] {
			continue
		}
		if d.Live || d.WasLive {
			live = min(live, max(known.Start, known.Confirmed))
		}
		if f := d.fills(own, d.Newest[name]); f != nil {
			filling = min(filling, f.Through)
		}
	}
	return live, filling
}

// consented is what stands in a sink's Dropped once a person gave up its rest.
const consented = "consented"

// fills is how far the branch has filled a sink that it fills, or has: one that ends
// before it is live leaves that, and so does one that finds the name taken.
func (d Deliveries) fills(own, newest SinkState) *Fill {
	f := own.Fill
	switch {
	case f == nil || f.Branch != d.Branch:
		return nil
	case d.Live || d.WasLive:
		if newest.Fill == nil || newest.Fill.Branch != d.Branch {
			return nil // it has all, or another's
		}
		return newest.Fill
	case d.Sealed || !own.Fills(d.Branch, newest):
		return nil
	}
	return f
}

// FloorView is what clean-up knows of a log when it chooses a floor.
type FloorView struct {
	// Floor is the newest floor.
	Floor Epoch
	// Log are the epochs up to the newest that is no seal, consecutive, from
	// one on before which nothing matters any more ([FloorView.Needs]), or from
	// the floor.
	Log []Trace
	Retention
	// Owed and Filling are [Deliveries.Owed]'s answer.
	Owed    Position
	Filling Epoch
	// Covered are the positions that unsealed followers have covered.
	Covered []Position
	// Held is the oldest epoch that a sink which is being written anew still compares
	// with (D11); nil: none.
	Held *Epoch
	// End is what is known of a log that is sealed; nil while it isn't.
	End *End
}

// End is what keeps a log that is sealed from going altogether.
type End struct {
	// Micros is the time since the seal.
	Micros int64
	// Live says that its branch is named by the newest live record, LastEnded
	// that this record says where it ended: a rollback starts there.
	Live, LastEnded bool
	// Pinned says that a pin or a savepoint names the branch, Awaited that a
	// branch which has no base yet is to start from it.
	Pinned, Awaited bool
}

// Choice is a floor, and why it isn't higher.
type Choice struct {
	Floor Epoch
	// Kept is the number of epochs kept by age and number, Owed of those kept
	// besides for deliveries, Followed for followers.
	Kept, Owed, Followed Epoch
}

// Needs tells whether epochs before this one of the log can matter to the choice.
func (v FloorView) Needs(oldest Trace) bool {
	return v.keeps(oldest) || oldest.Position > v.neededAbove() || oldest.Epoch > v.Filling
}

// neededAbove is the position up to which nobody needs an epoch.
func (v FloorView) neededAbove() Position {
	return slices.Min(append([]Position{v.Owed}, v.Covered...))
}

// keeps tells whether age or number keep an epoch. A clock that was set back
// makes epochs that seem to come: they are as old as those that seem to have
// been.
func (v FloorView) keeps(t Trace) bool {
	newest := v.Log[len(v.Log)-1]
	apart := newest.Time - t.Time
	if apart < 0 {
		apart = -apart
	}
	return newest.Epoch-t.Epoch < max(v.Retention.Epochs, 1) || apart <= v.Retention.Micros
}

// DecideFloor is rule G1. The floor never falls; that of a sealed log is
// [AllEpochs] once nothing asks for any of it.
func DecideFloor(v FloorView) Choice { return v.decide(allRules) }

func (v FloorView) decide(on rules) Choice {
	if len(v.Log) == 0 {
		c := Choice{Floor: v.Floor}
		if v.mayEnd(on) {
			c.Floor = AllEpochs
		}
		return c
	}
	i := len(v.Log) - 1
	newest := v.Log[i].Epoch
	for i > 0 && v.keeps(v.Log[i-1]) {
		i--
	}
	kept := v.Log[i].Epoch
	owed, followed := v.oldest(v.owes), AllEpochs
	if owed > 0 && owed != AllEpochs {
		owed-- // a deliverer reads back to where the sink stands
	}
	if on&ruleFollowed != 0 {
		followed = v.oldest(v.isFollowed)
	}
	if owed == AllEpochs && followed == AllEpochs && v.mayEnd(on) {
		return Choice{Floor: AllEpochs}
	}
	c := Choice{Floor: kept, Kept: newest - kept + 1}
	if owed < c.Floor {
		c.Owed, c.Floor = c.Floor-owed, owed
	}
	if followed < c.Floor {
		c.Followed, c.Floor = c.Floor-followed, followed
	}
	if v.Held != nil && on&ruleHeld != 0 {
		c.Floor = min(c.Floor, *v.Held)
	}
	c.Floor = max(c.Floor, v.Floor)
	return c
}

// oldest is the oldest epoch that is needed.
func (v FloorView) oldest(needed func(Trace) bool) Epoch {
	if i := slices.IndexFunc(v.Log, needed); i >= 0 {
		return v.Log[i].Epoch
	}
	return AllEpochs
}

func (v FloorView) owes(t Trace) bool {
	return t.Data && (t.Live && t.Position > v.Owed || !t.Live && t.Epoch > v.Filling)
}

func (v FloorView) isFollowed(t Trace) bool {
	return t.Live && slices.ContainsFunc(v.Covered, func(covered Position) bool { return t.Position > covered })
}

// mayEnd tells whether a log may go altogether.
func (v FloorView) mayEnd(on rules) bool {
	e := v.End
	if e == nil || v.Held != nil && on&ruleHeld != 0 {
		return false
	}
	if on&ruleFinal == 0 {
		return true
	}
	return !e.Live && !e.LastEnded && !e.Pinned && !e.Awaited && e.Micros > v.Retention.Micros
}

// ObjectView is what clean-up knows of a data object of a log.
type ObjectView struct {
	// Number and Owner are the epoch and the owner in its name.
	Number Epoch
	Owner  string
	// Kept says that an epoch from the floor on, a pinned one, or one of another
	// branch refers to it; Referred that an epoch under the floor does.
	Kept, Referred bool
	// Head and HeadOwner are the log's newest epoch and its owner, read after
	// the object had been listed. Ended says that nothing can follow it.
	Head      Epoch
	HeadOwner string
	Ended     bool
}

// DecideObject is rule G7: whether a data object may go. One that was never
// referred to may still be, by its owner's next manifest, unless that owner has
// lost the log (H10). Outboxes that are owed hold back the floor, so that they
// are kept.
func DecideObject(v ObjectView) bool { return v.decide(allRules) }

func (v ObjectView) decide(on rules) bool {
	switch {
	case v.Kept:
		return false
	case v.Referred || v.Ended:
		return true
	}
	taken := v.Number <= v.Head || on&ruleNameTaken == 0
	lost := v.Owner != v.HeadOwner || on&ruleHeadOwner == 0
	return taken && lost
}

// ManifestView is what clean-up knows of a manifest.
type ManifestView struct {
	Trace
	Floor Epoch
	// Pinned says that a pin or a savepoint names it.
	Pinned bool
	// From is the oldest epoch of this log that an unsealed branch has pinned;
	// [AllEpochs] if there is none. Covered are the positions that unsealed
	// followers have covered.
	From    Epoch
	Covered []Position
}

// DecideManifest is rule G8: whether a manifest may go.
func DecideManifest(v ManifestView) bool {
	covered := !slices.ContainsFunc(v.Covered, func(p Position) bool { return v.Live && v.Position > p })
	return v.Epoch < v.Floor && !v.Pinned && v.Epoch < v.From && covered
}

// rules are parts of the decisions that tests switch off, to see what they are
// for.
type rules uint

const (
	ruleOwed      rules = 1 << iota // an outbox that is owed holds the floor back
	ruleOwnSink                     // only the sink itself, or a consent, says that it isn't owed
	ruleFollowed                    // what a follower has not covered holds the floor back
	ruleHeld                        // so does what a sink that is written anew compares with
	ruleFinal                       // a sealed log goes only when nothing can start from it
	ruleNameTaken                   // an object goes only once its epoch's name is taken
	ruleHeadOwner                   // an object of the head's owner is the owner's

	allRules rules = 1<<iota - 1
)
