package epoch

// EndedView is what a process knows of a branch that has ended: read after the seal
// was seen.
type EndedView struct {
	// Final is the branch's last manifest, Branch its name.
	Final Manifest
	// Live is the newest live record, Now the build that its branch runs.
	Live LiveRecord
	Now  Build
	// Me is this build. Replace says that a person wants it although it was
	// replaced, Resume that a person wants the job to go on now.
	Me              Build
	Replace, Resume bool
	// Owner says that this process wrote the branch's last epochs, WasLive that the
	// branch is or was the live one: otherwise it was given up.
	Owner, WasLive bool
	// Still is for how long no live record has come, as far as this process has
	// looked, After how long that has to be. Both are in microseconds.
	Still, After int64
}

// EndedStep is what a process does about a branch that has ended.
type EndedStep int

// The steps behind a seal.
const (
	DeliverRest   EndedStep = iota // D6: its last owner delivers its own epochs, and looks again
	AwaitHeir                      // look again
	ResumeNow                      // Q3: a new branch from the final epoch
	EndSuperseded                  // Q2: another build is live, or has replaced this one
	StandByAgain                   // T1: the same build is live elsewhere
	EndGivenUp                     // the branch followed, and was given up
)

// DecideEnded is rule Q, and D6.
func DecideEnded(v EndedView) EndedStep {
	replaced := hasBuild(v.Final.Superseded, v.Me) && !v.Replace
	switch {
	case !v.WasLive:
		return EndGivenUp
	case v.Live.Branch != v.Final.Branch && v.Now == v.Me:
		return StandByAgain
	case v.Live.Branch != v.Final.Branch:
		return EndSuperseded
	case !replaced && (v.Resume || v.Still >= v.After):
		return ResumeNow
	case v.Owner:
		return DeliverRest
	case replaced:
		return EndSuperseded
	default:
		return AwaitHeir
	}
}
