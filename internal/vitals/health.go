package vitals

import (
	"fmt"
	"time"
)

// quietLimit is how long a run loop may give no sign of life before it counts
// as hung. It goes round about once a second; the rest is room for a machine
// that swaps, and for a store that answers slowly.
const quietLimit = 3 * time.Minute

// Sick says why a process should be restarted: its text is the reason. It is
// empty while the process works, waits by right or stands by.
func (s Snapshot) Sick() string {
	switch {
	case s.Role == Stopped:
		return fmt.Sprintf("stopped %s ago; the process should have ended", s.RoleFor.Round(time.Second))
	case s.Role == Standby, s.Role == Superseded, s.Role == Stopping, s.Waiting != "", s.Quiet <= quietLimit:
		return "" // who stops waits for sinks, which no restart makes faster
	}
	return fmt.Sprintf("%s, but without a sign of life for %s, expected within %s; the log and /debug/pprof/goroutine?debug=2 show where it hangs",
		s.Role, s.Quiet.Round(time.Second), quietLimit)
}

// Unready says why a rolling restart should wait before it goes on to the next
// process: its text is the reason. It is empty while the process runs the job
// stands by for it or follows, since each means that the job is in good hands.
func (s Snapshot) Unready() string {
	if s.Role == Running || s.Role == Standby || s.Role == Follower {
		return s.Sick()
	}
	return fmt.Sprintf("%s for %s; expected running, following or standby", s.Role, s.RoleFor.Round(time.Second))
}
