package epoch

// SealStep is what comes next in ending a log.
type SealStep int

// The steps of ending a log.
const (
	PutSeal   SealStep = iota // create a seal behind the head
	SealDone                  // a seal is there, whoever's
	LogGone                   // the log has ended, and was cleaned away since
	LookAgain                 // read the head anew
)

// DecideSeal is rule U6 for a log whose head has been read. A log without epochs is
// ended at name 0, so that no base can come (H11b).
func DecideSeal(head Head, gone bool) (step SealStep, name Epoch) {
	switch {
	case gone:
		return LogGone, 0
	case head.Sealed():
		return SealDone, head.Seal.Epoch
	case head.Hash == "": // not even a base
		return PutSeal, 0
	default:
		return PutSeal, head.Manifest.Epoch + 1
	}
}

// DecideLostSeal is what follows the create of a seal. After a lost race the next
// name is tried at once, without covering what has won first (H17). A seal under the
// floor is none (H11a), and one that another put counts once the head has been read
// with it.
func DecideLostSeal(verdict Verdict) SealStep {
	switch verdict {
	case Committed:
		return SealDone
	case Fenced:
		return PutSeal
	default:
		return LookAgain
	}
}
