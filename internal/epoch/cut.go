package epoch

import (
	"fmt"
	"maps"
	"slices"
)

// Where a sink starts that is new at a cut.
const (
	StartCut  = "cut"  // with the positions behind the cut
	StartBase = "base" // with what the branch wrote from its base on
)

// What became of a sink's rest, or of a gap, at a cut.
const (
	Consented = consented  // a person gave it up
	ToDrain   = "to drain" // a build that has the sink is to deliver it
)

// CutView is what a branch knows of itself and of the live one when it wants to go
// live.
type CutView struct {
	// Branch is its own.
	Branch string
	// Live is the newest live record, read before the heads of its branch.
	Live LiveRecord
	// Finals are the ends of the live branch's logs by task, Own the branch's own.
	Finals, Own map[string]Head
	// Sinks are those that the branch's build has.
	Sinks []string
	// Settled is what a person or the branch's record says of sinks: where new ones
	// start, of which a gap or a lost rest is consented to.
	Settled map[string]SinkConsent
	// Rewrite has each table's sink of the build, with what a person wants to be written
	// anew of it; empty: nothing in particular.
	Rewrite map[string]RewriteMode
	// Unread are sources that the version of one of the two branches does not read.
	Unread map[string]bool
	// OtherOffsets says that a person wants the branch's own offsets although they
	// are not those of the end (fresh).
	OtherOffsets bool
	// Replace says that a person wants the build although it was replaced (rollback).
	Replace bool
}

// CutStep is what comes next in going live.
type CutStep int

// The steps of going live.
const (
	PutLive       CutStep = iota // U7: create the next live record
	NoteFinals                   // first an open that notes what the finals note
	CoverFinal                   // follow on: the end is not covered exactly
	SealFirst                    // U6: a log of the live branch has not ended
	IsLive                       // U8: the newest live record names this branch
	CutTooLate                   // the branch itself has ended
	CutSuperseded                // its build was replaced: a standby doesn't undo an upgrade
)

// DecideCut is rule U7, and H13 to H15: a branch goes live only behind seals of all
// logs of the live one, whose ends it covers exactly, and notes.
func DecideCut(v CutView) (CutStep, error) { return v.decide(allCutRules) }

func (v CutView) decide(on cutRules) (CutStep, error) {
	if v.Live.Branch == v.Branch {
		return IsLive, nil
	}
	step := PutLive
	for task, final := range v.Finals {
		own := v.Own[task]
		switch {
		case own.Sealed() && on&ruleOwnEnd != 0:
			return CutTooLate, nil
		case !v.Replace && hasBuild(final.Manifest.Superseded, own.Manifest.Build) && on&ruleReplaced != 0:
			return CutSuperseded, nil
		case !final.Sealed() && on&ruleSealFirst != 0:
			return SealFirst, nil
		case !v.covers(own.Manifest, final.Manifest) && on&ruleExactCover != 0:
			step = CoverFinal
		case step == PutLive:
			noted, err := v.noted(own.Manifest, final)
			if err != nil {
				return 0, err
			}
			if !noted && on&ruleNotes != 0 {
				step = NoteFinals
			}
		}
	}
	return step, nil
}

func (v CutView) covers(own, final Manifest) bool {
	if v.OtherOffsets {
		return own.Position == final.Position && own.Covers[final.Task] == final.Position
	}
	return AtEnd(own, final, v.Unread)
}

// cutRules are parts of the decision that tests switch off.
type cutRules uint

const (
	ruleSealFirst  cutRules = 1 << iota // the branch before has ended
	ruleExactCover                      // its end is covered, no more and no less
	ruleNotes                           // what its end notes is noted
	ruleOwnEnd                          // a branch that was given up stays so
	ruleReplaced                        // a build that was replaced stays so

	allCutRules cutRules = 1<<iota - 1
)

// noted tells whether a manifest says all that a final does.
func (v CutView) noted(own Manifest, final Head) (bool, error) {
	want, err := v.Note(own, final)
	if err != nil {
		return false, err
	}
	return want.Request == own.Request && slices.Equal(want.Superseded, own.Superseded) &&
		maps.EqualFunc(want.Sinks, withoutOutboxes(own.Sinks), sameSink), nil
}

func sameSink(a, b SinkState) bool {
	return a.Rewrite.Equal(b.Rewrite) && a.Record == b.Record && a.Start == b.Start && a.Confirmed == b.Confirmed && a.Dropped == b.Dropped && a.Note == b.Note && a.Takes == b.Takes && a.Fill.Same(b.Fill) && a.Span.Equal(b.Span)
}

// Note is the payload of the open that notes what a final does, behind own: whose
// deliveries stand where, which builds were replaced (that of the final's writer
// too: a build that ended between its two opens would else come back), and what was
// settled about sinks. The error is a [GapError] if a sink is not.
func (v CutView) Note(own Manifest, final Head) (Manifest, error) {
	f := final.Manifest
	m := Opening(own, own.Build, nil)
	m.Request, m.Unmet = max(own.Request, f.Request), f.Unmet
	m.Superseded = Supersede(Covering(own.Superseded, f, own.Build), f.WriterBuild, own.Build)
	m.Sinks = copiedSinks(v.Branch, own.Sinks, f.Sinks)
	for name := range maps.Keys(m.Sinks) {
		s, err := v.settle(name, own, m.Sinks[name], f)
		if err != nil {
			return m, err
		}
		m.Sinks[name] = s
	}
	for _, name := range v.Sinks {
		if _, known := m.Sinks[name]; !known {
			if m.Sinks == nil {
				m.Sinks = map[string]SinkState{}
			}
			m.Sinks[name] = SinkState{Start: f.Position, Confirmed: f.Position}
		}
	}
	for name, s := range m.Sinks {
		if v.fills(name, own, f) {
			continue // what is left of its rows goes on
		}
		s.Rewrite = nil // of a sink that the build lacks nobody can write a row
		if wish, table := v.Rewrite[name]; table {
			s.Rewrite = Rewriting(wish, own.Sinks[name].Rewrite, f.Sinks[name].Rewrite, EndOf(final))
		}
		m.Sinks[name] = s
	}
	return m, nil
}

// settle is what becomes of a sink at the cut: one that the build lacks is dropped, and
// its rest drained if nothing else is said; one that is back begins behind a gap, and one
// that no live branch has named begins at the cut, behind what has filled it.
func (v CutView) settle(name string, own Manifest, s SinkState, final Manifest) (SinkState, error) {
	chain, named := final.Sinks[name]
	has, said := slices.Contains(v.Sinks, name), v.Settled[name]
	switch {
	case v.fills(name, own, final):
		s.Start = final.Position
	case !named && s.Record == "":
		s.Start, s.Confirmed = final.Position, final.Position
	case !named:
	case !has && chain.Dropped != "":
	case !has:
		if s.Dropped = said.Dropped; s.Dropped == "" {
			s.Dropped = ToDrain // a build that has it delivers the rest
		}
	case chain.Dropped == "": // it goes on
	case said.Gap == "" && chain.Confirmed < final.Position:
		return s, &GapError{Branch: v.Branch, Sink: name, From: chain.Confirmed, To: final.Position}
	default:
		s.Dropped, s.Start = "", final.Position
	}
	return s, nil
}

// fills tells whether a sink is one that the branch has filled.
func (v CutView) fills(name string, own, final Manifest) bool {
	return slices.Contains(v.Sinks, name) && own.Sinks[name].Fills(v.Branch, final.Sinks[name])
}

// Record is the live record with which the branch goes live, once DecideCut says
// that it may. The caller fills in the format, the job, who and when.
func (v CutView) Record(kind BranchKind, layout int) LiveRecord {
	r := LiveRecord{
		N: v.Live.N + 1, Kind: kind, Branch: v.Branch, Layout: layout,
		Ends: EndsOf(v.Live, v.Finals), Covers: map[string]Epoch{}, Sinks: v.consents(),
	}
	for task, own := range v.Own {
		r.Covers[task] = own.Manifest.Epoch
	}
	return r
}

// EndsOf is where a generation has ended. One that had nothing of its own and whose
// branch has been cleaned away ends where the one before it did (H16): the finals
// are then those.
func EndsOf(live LiveRecord, finals map[string]Head) *Ends {
	e := &Ends{Live: live.N, Branch: live.Branch, Tasks: map[string]Final{}}
	for task, head := range finals {
		e.Branch = head.Manifest.Branch
		e.Tasks[task] = Final{head.Manifest.Epoch, head.Manifest.Position, head.Hash}
	}
	return e
}

// Before is where the generation before has ended: a rollback starts there. ok is
// false for a job's first.
func (l LiveRecord) Before() (p Point, ok bool) {
	if l.Ends == nil {
		return p, false
	}
	p = Point{l.Ends.Branch, map[string]Epoch{}}
	for task, final := range l.Ends.Tasks {
		p.Tasks[task] = final.Epoch
	}
	return p, true
}

// consents are what the live record says of sinks, of what was settled: only what
// came to pass.
func (v CutView) consents() map[string]SinkConsent {
	all := map[string]SinkConsent{}
	for name, own := range v.sinksOf() {
		chain, named := v.chainOf(name)
		has := slices.Contains(v.Sinks, name)
		switch {
		case !has && chain.Dropped == "" && own.Dropped != "":
			all[name] = SinkConsent{Dropped: own.Dropped}
		case !has:
		case own.Fills(v.Branch, chain):
			all[name] = SinkConsent{Start: StartBase}
		case !named:
			all[name] = SinkConsent{Start: StartCut}
		case chain.Dropped != "":
			all[name] = SinkConsent{Gap: Consented}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// sinksOf are the branch's sinks, of all its tasks.
func (v CutView) sinksOf() map[string]SinkState {
	all := map[string]SinkState{}
	for _, head := range v.Own {
		maps.Copy(all, head.Manifest.Sinks)
	}
	return all
}

// chainOf is what the ended branch said of a sink.
func (v CutView) chainOf(sink string) (s SinkState, named bool) {
	for _, head := range v.Finals {
		if s, named = head.Manifest.Sinks[sink]; named {
			return s, true
		}
	}
	return s, false
}

// GapError says that a cut would leave deliveries out, and nobody has said that this
// is right: a sink is back after generations that did not have it.
type GapError struct {
	Branch, Sink string
	// From and To are the positions between which deliveries would be missing.
	From, To Position
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("branch %s can't go live: sink %s is back after an absence, in which it did not get positions %d to %d. Allow that with --gap %s, or give it a new name and target.",
		e.Branch, e.Sink, e.From+1, e.To, e.Sink)
}

// ExitCode is the exit code of the command line.
func (e *GapError) ExitCode() int { return 13 }
