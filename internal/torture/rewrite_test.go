package torture

import (
	"fmt"
	"strings"
	"testing"
)

// leastManifests is how many manifests there must be while the second version takes
// over and writes the table's sink anew, in parts.
const leastManifests = 6

// A second version that is killed before or after any of its manifests, on the way to
// having written its table's sink anew, goes on from there: at the end each key has the
// second version's row, and none came twice but once while it was written anew.
func TestKilledWhileATableIsWrittenAnew(t *testing.T) {
	t.Parallel()
	for _, s := range stages(t) {
		if s.name != "version" {
			continue
		}
		reached := &reached{left: map[string]bool{}}
		t.Run("kill", func(t *testing.T) {
			for _, step := range sortedKeys(s.times) {
				if !strings.HasPrefix(step, "link manifest") {
					continue
				}
				if s.times[step] < leastManifests {
					t.Errorf("%q came %d times, expected %d or more", step, s.times[step], leastManifests)
				}
				for nth := 1; nth <= s.times[step]; nth++ {
					t.Run(fmt.Sprintf("%s %d", step, nth), func(t *testing.T) {
						t.Parallel()
						death{s, step, nth}.die(t, reached)
					})
				}
			}
		})
		t.Logf("%d kills", reached.kills)
		return
	}
	t.Error("no chapter has the second version")
}
