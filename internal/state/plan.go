package state

import "github.com/sluicestream/sluice/internal/epoch"

const (
	// mergeAt is the number of segments at which a merge begins: three epochs
	// may pass while it runs before there are ten.
	mergeAt = 7
	// mergeTo is the most that a merge leaves of them. More levels would rewrite
	// less, but leave a merge that takes long too little room.
	mergeTo = 5
	// besideAt and besideTo are the same for a second merge, among what came
	// while a long one runs: the long one's inputs stay until its end.
	besideAt = 9
	besideTo = 8
	// wholeAt is when everything is merged, however few segments there are: once
	// what stands behind the oldest has wholeAt hundredths of its bytes. Much of
	// that replaces what the oldest has, and without a bound would take several
	// times the room of the state itself. What comes while the merge runs is still
	// on top.
	wholeAt = 75
	// wholeBytes are the bytes below which that isn't worth the files.
	wholeBytes = 1 << 20
)

// PlanMerge decides which of a state's segments, the oldest first, are to be
// merged next: segments[from:to], if ok. It is asked when no merge of the state
// is running.
//
// It merges the newest ones, up to the one that is the cheapest to rewrite for
// what it takes in: the one with the most bytes behind it per byte of its own.
// So a large old segment is rewritten only once enough has gathered behind it,
// and how much is enough adapts itself to the state: the sizes come to fall by
// about the same factor from each segment to the next.
//
// Once there is much behind the oldest it merges all of them: a state takes no
// more than about two and a half times the room that it needs.
func PlanMerge(segments []epoch.Segment) (from, to int, ok bool) {
	if wasteful(segments) {
		return 0, len(segments), true
	}
	return plan(segments, 0, mergeAt, mergeTo)
}

// wasteful tells whether what stands behind the oldest segment has grown large
// against it.
func wasteful(segments []epoch.Segment) bool {
	if len(segments) < 2 {
		return false
	}
	behind := 0.0
	for _, s := range segments[1:] {
		behind += float64(s.Bytes)
	}
	oldest := float64(segments[0].Bytes)
	return behind+oldest >= wholeBytes && behind*100 >= oldest*wholeAt
}

// PlanBeside is PlanMerge while the merge that PlanMerge chose is running, of
// segments up to busy, not included: what came since is merged among itself if
// it gets too much. So few segments are left however long a merge takes, as
// long as merges can keep up at all. At most one merge runs beside the other,
// and PlanMerge is asked again when both have ended.
func PlanBeside(segments []epoch.Segment, busy int) (from, to int, ok bool) {
	return plan(segments, busy, besideAt, besideTo)
}

// plan chooses segments to merge, none before the given first, once there are
// as many as at, so that at most left remain, if that can be.
func plan(segments []epoch.Segment, first, at, left int) (from, to int, ok bool) {
	to = len(segments)
	if to < at || to-first < 2 {
		return 0, 0, false
	}
	last := min(max(left-1, first), to-2) // the newest to begin at
	behind, best := 0.0, -1.0
	for i := to - 1; i >= first; i-- {
		if i <= last {
			if gain := behind / (float64(segments[i].Bytes) + 1); gain >= best {
				from, best = i, gain
			}
		}
		behind += float64(segments[i].Bytes)
	}
	return from, to, true
}
