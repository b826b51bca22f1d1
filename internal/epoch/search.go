package epoch

// HeadSearch finds the last of a log's names by asking for few of them: they
// are present without a gap from the floor up to the head. It asks for names
// farther and farther from where it began until one is absent, then halves the
// way between. It is a value without I/O: ask [HeadSearch.Probe], tell
// [HeadSearch.Answer], until Probe says that it is done.
//
// The log may grow meanwhile; the answer then was the head at some moment of
// the search. If the floor rises meanwhile the answer means nothing.
type HeadSearch struct {
	low    Epoch // the floor, or the highest name known to be present
	high   Epoch // the lowest name known to be absent, if bounded
	step   Epoch
	probe  Epoch
	bound  bool // high is known
	seen   bool // low is known to be present
	closed bool
}

// SearchHead begins a search in a log with this floor. The hint is an epoch
// that is thought to be near the head; it is only ever a matter of speed.
func SearchHead(floor, hint Epoch) *HeadSearch {
	return &HeadSearch{low: floor, probe: max(floor, hint), step: 1}
}

// Probe returns the name to look for next, until it is done.
func (s *HeadSearch) Probe() (name Epoch, more bool) { return s.probe, !s.closed }

// Answer says whether the name that was probed is present.
func (s *HeadSearch) Answer(present bool) {
	if present {
		s.low, s.seen = s.probe, true
	} else {
		s.high, s.bound = s.probe, true
	}
	s.next()
}

func (s *HeadSearch) next() {
	switch {
	case s.bound && s.high == s.low: // not even the floor is there
		s.closed = true
	case !s.bound:
		s.probe = s.low + s.step
		if s.probe < s.low { // past the last number there is
			s.probe = AllEpochs
		}
		s.step *= 2
	case s.high-s.low > 1:
		s.probe = s.low + (s.high-s.low)/2
	case !s.seen: // between the floor and high there is nothing left but the floor
		s.probe = s.low
	default:
		s.closed = true
	}
}

// Head returns the last name that is present; ok is false if there is none.
func (s *HeadSearch) Head() (head Epoch, ok bool) { return s.low, s.closed && s.seen }
