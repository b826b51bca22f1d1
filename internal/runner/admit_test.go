package runner

import "testing"

// TestAdmission: three epochs may be under way; reading slows from ten segments
// on, and stops before thirteen could come to be.
func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		segments, ahead int
		slowed          bool
		step            admission
	}{
		{0, 0, false, opens}, {9, 2, false, opens}, {9, 3, false, waits},
		{10, 0, false, slows}, {10, 1, false, slows}, {10, 1, true, opens}, {10, 2, true, waits},
		{11, 0, false, slows}, {11, 0, true, opens}, {11, 1, true, waits}, {12, 0, true, waits},
	} {
		if step := decideAdmission(c.segments, c.ahead, c.slowed); step != c.step {
			t.Errorf("%d segments, %d epochs ahead, slowed %v: %d, want %d", c.segments, c.ahead, c.slowed, step, c.step)
		}
	}
}
