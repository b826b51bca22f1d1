package epoch

// StandbyView is what a start knows of a branch that somebody may own.
type StandbyView struct {
	Head Head
	// Beat is the owner's heartbeat; nil if there is none.
	Beat *Heartbeat
	// Gone says that the head's writer was a process of this machine, and that
	// there is no such process any more.
	Gone bool
	// Still is the time for which neither head nor heartbeat has changed, as far
	// as this process has looked; Lease is how long it has to be. Both are in
	// microseconds.
	Still, Lease int64
	// TakeOver says that a person wants the branch now.
	TakeOver bool
}

// DecideStandby is rule T5: whether the owner need not be waited for any longer.
// A heartbeat of another owner than the head's says nothing about this one.
func DecideStandby(v StandbyView) (take bool) {
	switch {
	case v.TakeOver, v.Head.Sealed(), v.Gone:
		return true
	case v.Beat != nil && v.Beat.Released && v.Beat.Owner == v.Head.Manifest.Owner:
		return true
	default:
		return v.Still >= v.Lease
	}
}

// LeaseOf is the lease that counts, in microseconds: an owner that beats more slowly than the one
// who waits would have it is no less alive.
func LeaseOf(own int64, beat *Heartbeat) int64 {
	if beat == nil {
		return own
	}
	return max(own, beat.Lease)
}
