package epoch

import "slices"

// FollowView is what a follower knows of what it follows, for one task.
type FollowView struct {
	// Branch is its own, Covers the position that it has covered.
	Branch string
	Covers Position
	// Chain are the generations, read after a seal was seen, if one was.
	Chain []Link
	// Ahead are the followed log's epochs behind the one that is covered, in their
	// order and as far as they have been read; Sealed says that they are the last.
	Ahead  []Manifest
	Sealed bool
	// Gone says that the next one was cleaned away before it was covered.
	Gone bool
	// Most is how many positions may be covered in one step.
	Most int
}

// FollowStep is what a follower does next.
type FollowStep int

// The steps of a follower.
const (
	Cover          FollowStep = iota // commit an epoch that covers the first of what is ahead
	AwaitEpoch                       // all is covered; the followed branch goes on
	AwaitSuccessor                   // all is covered, and the branch has ended: U7, or Q3
	BeLive                           // the newest generation is this branch: U8
	TimetableGone                    // H20: it can't go on without a person's consent
)

// DecideFollow is rule U5: what comes next, and for Cover how many of the epochs
// ahead. Many may be covered in one step, opens behind them included, for what these
// note. An epoch with edits begins a step, so that edits stand at the begin of the
// epoch which covers them as well.
func DecideFollow(v FollowView) (step FollowStep, n int) { return v.decide(allFollowRules) }

func (v FollowView) decide(on followRules) (step FollowStep, n int) {
	link, ok := Holder(v.Chain, v.Covers)
	if ok && link.Branch == v.Branch {
		return BeLive, 0
	}
	n = v.reach(on)
	switch {
	case v.Gone && on&ruleTimetable != 0:
		return TimetableGone, 0
	case n > 0:
		return Cover, n
	case v.Sealed:
		return AwaitSuccessor, 0
	default:
		return AwaitEpoch, 0
	}
}

// reach is how many of the epochs ahead one step takes: none without data.
func (v FollowView) reach(on followRules) int {
	data, n := 0, 0
	for i, m := range v.Ahead {
		if m.Kind != Data {
			if data > 0 {
				n = i + 1
			}
			continue
		}
		if data == max(v.Most, 1) || data > 0 && len(m.Edits) > 0 && on&ruleEdits != 0 {
			break
		}
		data++
		n = i + 1
	}
	return n
}

// followRules are parts of the decision that tests switch off.
type followRules uint

const (
	ruleTimetable followRules = 1 << iota // what is gone is not passed over
	ruleEdits                             // an epoch with edits begins a step

	allFollowRules followRules = 1<<iota - 1
)

// Following is the payload of the epoch with which a follower covers epochs of the
// branch that it follows, the data epochs of which are at least one: own is its
// newest manifest. What the live branch knows is copied: how far deliveries are
// (H22a), which request is done, which builds are replaced, and what was deleted.
// Sources, states, watermarks and outboxes are the follower's own, for the caller to
// fill in.
func Following(own Manifest, covered []Manifest) Manifest {
	last := covered[len(covered)-1]
	m := Manifest{
		Kind: Data, Position: last.Position, Now: max(own.Now, last.Now), Version: own.Version, Build: own.Build,
		Covers: map[string]Position{last.Task: last.Position}, Superseded: own.Superseded,
		Sources: own.Sources, Watermarks: own.Watermarks, Windows: own.Windows, State: own.State, Partial: own.Partial,
		Request: max(own.Request, last.Request), Unmet: last.Unmet, Sinks: copiedSinks(own.Branch, own.Sinks, last.Sinks),
	}
	for _, c := range covered {
		m.Edits, m.EditsOf = append(m.Edits, c.Edits...), max(m.EditsOf, c.EditsOf)
		m.Superseded = Covering(m.Superseded, c, own.Build)
	}
	return m
}

// Covering is the list of replaced builds of an epoch that covers another: its own
// branch's list, that of the other, and the other's build, without its own.
func Covering(list []Build, covered Manifest, own Build) []Build {
	for _, b := range covered.Superseded {
		list = Supersede(list, b, own)
	}
	return Supersede(list, covered.Build, own)
}

// copiedSinks are a follower's sinks with all that the live branch says of them.
// Those that no live branch has named are the follower's own, and so are those that it
// fills.
func copiedSinks(branch string, own, live map[string]SinkState) map[string]SinkState {
	sinks := withoutOutboxes(own)
	for name, s := range live {
		if own[name].Fills(branch, s) {
			continue
		}
		if sinks == nil {
			sinks = map[string]SinkState{}
		}
		s.Outbox, s.Parts, s.Rewrote, s.Rewrite = nil, nil, nil, own[name].Rewrite
		sinks[name] = s
	}
	return sinks
}

// BaseOf is the payload of the base of a branch that starts from an epoch: all that
// this stands for, by another build, and the sinks that are new and filled from here on.
// What this build keeps in another form is for the caller to replace.
func BaseOf(from Head, me Build, branch string, starts map[string]string) Manifest {
	f := from.Manifest
	m := Manifest{
		Kind: Base, Parent: from.Hash, Position: f.Position, Version: me.Version, Build: me, Now: f.Now,
		Covers: map[string]Position{f.Task: f.Position}, Superseded: Covering(nil, f, me),
		Sources: f.Sources, Watermarks: f.Watermarks, Windows: f.Windows, State: f.State, Partial: f.Partial, Request: f.Request,
		Unmet: f.Unmet, Sinks: copiedSinks("", nil, f.Sinks),
	}
	for name, start := range starts {
		if _, known := m.Sinks[name]; known || start != StartBase {
			continue
		}
		if m.Sinks == nil {
			m.Sinks = map[string]SinkState{}
		}
		m.Sinks[name] = SinkState{Start: f.Position, Confirmed: f.Position, Fill: &Fill{Branch: branch}}
	}
	return m
}

// AtEnd tells whether a follower stands exactly where a log has ended: at its
// position, and for each source that both have at its offsets (U7). unread are sources
// that the version of one of the two does not read: their offsets are old ones, or its
// alone (H20a).
func AtEnd(own, final Manifest, unread map[string]bool) bool {
	if own.Position != final.Position || own.Covers[final.Task] != final.Position {
		return false
	}
	for name, source := range final.Sources {
		mine, both := own.Sources[name]
		if !both || unread[name] {
			continue
		}
		for partition, at := range source.Partitions {
			if mine.Partitions[partition].Next != at.Next {
				return false
			}
		}
		for partition := range mine.Partitions {
			if _, known := source.Partitions[partition]; !known {
				return false
			}
		}
	}
	return true
}

// hasBuild tells whether a list has a build.
func hasBuild(list []Build, b Build) bool { return slices.Contains(list, b) }

// Within tells whether no offset of an epoch's sources lies beyond given ones; a source
// that is not given is this epoch's alone.
func Within(sources, given map[string]SourceState) bool {
	for name, s := range sources {
		limits, both := given[name]
		if !both {
			continue
		}
		for partition, at := range s.Partitions {
			if limit, noted := limits.Partitions[partition]; !noted || at.Next > limit.Next {
				return false
			}
		}
	}
	return true
}
