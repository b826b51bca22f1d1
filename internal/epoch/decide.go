package epoch

import (
	"bytes"
	"slices"
)

// Answer is what a store says to a create.
type Answer int

// The answers to a create.
const (
	Created  Answer = iota
	Taken           // the name exists
	Doubtful        // it may have been created, or may be later
)

// Outcome is what an answer means.
type Outcome int

// The outcomes of a create.
const (
	Mine   Outcome = iota // the object is there, with the bytes tried
	Theirs                // the name holds other bytes
	Look                  // read the name and decide again
	Again                 // put the same bytes again
)

// DecideCreate is rule S1. A name once tried with some bytes is only ever tried
// with those; a doubtful create is therefore put again, which settles it or
// meets what is there. Mine means equal bytes, nothing less: an attempt of
// one's own that landed late may hold what one no longer has in memory.
// Found is nil until the name has been read.
func DecideCreate(answer Answer, tried, found []byte) Outcome {
	switch {
	case answer == Created:
		return Mine
	case answer == Doubtful:
		return Again
	case found == nil:
		return Look
	case bytes.Equal(tried, found):
		return Mine
	default:
		return Theirs
	}
}

// Verdict is where a create in a log leaves who made it.
type Verdict int

// The verdicts on a create in a log.
const (
	Committed Verdict = iota
	Fenced            // another owner has the name
	Sealed            // a seal has the name
	Void              // the name was freed by clean-up, whatever it holds now
	Vanished          // the name was taken, is not now, and no floor says why
)

// DecideCommit is rules C2, C3 and S6, for an entry of any kind: what a create
// at the name of an epoch means, given what holds the name (nil: nothing, or
// one's own) and the newest floor, read after the create. A name under the
// floor proves nothing: it may have been freed and taken again by a process
// that slept, so not even a seal there is believed.
func DecideCommit(name Epoch, outcome Outcome, holder *Manifest, floor Epoch) Verdict {
	switch {
	case floor > name:
		return Void
	case outcome == Mine:
		return Committed
	case holder == nil:
		return Vanished
	case holder.Kind == Seal:
		return Sealed
	default:
		return Fenced
	}
}

// NextPosition is the position of an entry after parent. Only data of a live
// branch moves it on; a follower's data takes the position of what it covers.
func NextPosition(kind Kind, live bool, parent, covered Position) Position {
	switch {
	case kind != Data:
		return parent
	case live:
		return parent + 1
	default:
		return covered
	}
}

// TakeView is what a process knows of a branch that it wants to own.
type TakeView struct {
	Head Head
	// NewerLive says that a live record newer than the one first read was there
	// after the seal had been seen.
	NewerLive bool
	Me        Build
	// Replace says that a person wants this build although it was replaced.
	Replace bool
}

// TakeStep is what comes next in taking a branch.
type TakeStep int

// The steps of taking a branch.
const (
	PutOpen          TakeStep = iota // T3: create the opening epoch
	StartOver                        // T1: the branch was followed by another
	RefuseSealed                     // it has ended, and nothing has followed (yet)
	RefuseSuperseded                 // this build was replaced
	RefuseFenced                     // another process took it in the same moment
)

// DecideTake is rules T1 and T2, once the head is found.
func DecideTake(v TakeView) TakeStep {
	switch {
	case v.Head.Sealed() && v.NewerLive:
		return StartOver
	case v.Head.Sealed():
		return RefuseSealed
	case slices.Contains(v.Head.Manifest.Superseded, v.Me) && !v.Replace:
		return RefuseSuperseded
	default:
		return PutOpen
	}
}

// DecideLostOpen is what to do when an opening epoch lost its name. The owner
// before may have been committing: its next epoch is just a newer head to take
// over from. Anybody else has taken the branch in the same moment, and taking
// it from him at once would only begin a duel.
func DecideLostOpen(head Manifest, holder *Manifest, verdict Verdict) TakeStep {
	if verdict == Fenced && holder.Owner != head.Owner {
		return RefuseFenced
	}
	return StartOver
}

// Supersede is rule T6's list: list and the build that was replaced, without
// the build that replaces it.
func Supersede(list []Build, replaced, own Build) []Build {
	var all []Build
	for _, b := range append(slices.Clone(list), replaced) {
		if b != own && b != (Build{}) && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// Opening is the payload of rule T3's entry: all that the head stands for, and
// nothing done. A build of the head's version makes the run its own; one of
// another version keeps the head's build until it has migrated the state (T6).
func Opening(head Manifest, me Build, live *Generation) Manifest {
	m := Manifest{
		Kind: Open, Position: head.Position, Version: head.Version, Build: head.Build, Superseded: head.Superseded,
		Live: live, Covers: head.Covers, Now: head.Now, Sources: head.Sources, Watermarks: head.Watermarks, Windows: head.Windows,
		State: head.State, Partial: head.Partial, Request: head.Request, Unmet: head.Unmet, Sinks: withoutOutboxes(head.Sinks),
	}
	if me.Version == head.Version {
		m.Build = me
		m.Superseded = Supersede(head.Superseded, head.Build, me)
	} else {
		m.WriterBuild = me
	}
	return m
}

func withoutOutboxes(sinks map[string]SinkState) map[string]SinkState {
	if sinks == nil {
		return nil
	}
	bare := make(map[string]SinkState, len(sinks))
	for name, s := range sinks {
		s.Outbox, s.Parts, s.Rewrote = nil, nil, nil
		bare[name] = s
	}
	return bare
}
