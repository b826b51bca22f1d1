package epoch

// Fill is how far a sink is filled by a branch that is not live yet (D10): what the
// branch puts out as a follower is delivered as parts of the position of its base.
type Fill struct {
	// Branch is the one whose epochs fill the sink.
	Branch string `json:"branch"`
	// Parts is the number of parts up to this epoch, Delivered the number of those that
	// the sink has.
	Parts     int `json:"parts"`
	Delivered int `json:"delivered"`
	// Through is the newest epoch of the branch of which the sink has all parts.
	Through Epoch `json:"through"`
}

// PartsOf is the number of parts in which a sink gets what an epoch has put out.
func (s SinkState) PartsOf() int {
	switch {
	case len(s.Outbox) == 0:
		return 0
	case len(s.Parts) > 0:
		return len(s.Outbox)
	}
	return 1
}

// Same tells whether two say the same; both may be nil.
func (f *Fill) Same(other *Fill) bool {
	if f == nil || other == nil {
		return f == other
	}
	return *f == *other
}

// Fills tells whether a branch that is not live fills a sink, by what its newest epoch
// says of it and what the live branch says, if that has a sink of the name. As long as
// nothing was delivered there by a live branch, but under a record that this one
// replaces, it may.
func (s SinkState) Fills(branch string, live SinkState) bool {
	return s.Fill != nil && s.Fill.Branch == branch && (live.Record == "" || live.Record == s.Takes)
}

// StandingView is what is known of a record that stands where a sink's first one is to
// be made, and that no manifest of the own branch names.
type StandingView struct {
	// Own is the branch of who makes the record, Live whether it is live, and Start where
	// the record is to stand.
	Own   string
	Live  bool
	Start Position
	// Branch is that of the record, At where it stands. Ended says that the branch has
	// ended, WasLive that it is live or has been: by a look at the live records behind
	// the one at its end.
	Branch         string
	At             Place
	Ended, WasLive bool
	// Untouched says that nothing was delivered under it.
	Untouched bool
}

// StandingStep is what is to be done with such a record.
type StandingStep int

// The steps.
const (
	AdoptRecord   StandingStep = iota // an owner before this one has made it, and died
	ReplaceRecord                     // a branch has left it that filled the sink in vain
	BeingFilled                       // another branch is about to fill the sink, which is live or may be yet
	StrangeRecord                     // nobody can have left it
)

// DecideStanding is rule D10, for a record that another has made.
func DecideStanding(v StandingView) StandingStep {
	switch {
	case v.Branch == v.Own || v.Live && v.WasLive:
		switch {
		case v.At == Place{Position: v.Start}:
			return AdoptRecord
		case v.Untouched: // it was made for another start, and never noted
			return ReplaceRecord
		}
		return StrangeRecord
	case v.Live || v.Ended && !v.WasLive:
		return ReplaceRecord
	default:
		return BeingFilled
	}
}
