package upgrade

import "github.com/sluicestream/sluice/internal/epoch"

// View is what a branch that follows knows when it has covered all that there is, and
// has committed it.
type View struct {
	// Step is what the timetable says.
	Step epoch.FollowStep
	// Asked says that a person wants the cut, Auto that it is wanted as soon as may be.
	Asked, Auto bool
	// Gone says that the owner of the followed branch gives no sign of life, and that
	// this branch is there to stand in for it.
	Gone bool
	// Soaked says that the branch has followed for as long as it is to.
	Soaked bool
	// Objections are what guards have against the cut.
	Objections []string
	// Sealed says that this process has ended the followed branch.
	Sealed bool
}

// Move is what a branch that follows does next.
type Move int

// The moves.
const (
	Wait Move = iota // look again
	Seal             // U6: end the followed branch
	Lead             // U7, U8: go live
)

// Decide decides it.
func Decide(v View) Move {
	switch v.Step {
	case epoch.BeLive:
		return Lead
	case epoch.AwaitSuccessor:
		if v.Sealed || v.willing() {
			return Lead
		}
	case epoch.AwaitEpoch:
		if v.willing() {
			return Seal
		}
	}
	return Wait
}

// Wants tells whether guards are to be asked.
func (v View) Wants() bool {
	return v.Step != epoch.BeLive && !v.Sealed && (v.Asked || v.Gone || v.Auto && v.Soaked || v.Step == epoch.AwaitSuccessor)
}

// willing tells whether this branch is to take the live one's place now.
func (v View) willing() bool {
	return len(v.Objections) == 0 && (v.Asked || v.Gone || v.Auto && v.Soaked)
}
