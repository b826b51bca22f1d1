package epoch

import (
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// TestOnAFolder goes through a job's first two lives on a real disk, each with
// a store of its own.
func TestOnAFolder(t *testing.T) {
	folder, e := t.TempDir(), env.Real()
	var owners []*Owner
	for life := range int64(2) {
		s, err := store.OpenFolder(e, folder)
		if err != nil {
			t.Fatal(err)
		}
		me := Identity{Build: Build{Executable: "exe"}, Version: testVersion(), Writer: ThisProcess()}
		o, err := openAndTake(t.Context(), e, s, me)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(3) {
			commit(t, o, life*3+i+1)
		}
		owners = append(owners, o)
	}
	log := checkLog(t, owners[1].Job(), MainBranch)
	if last := log[len(log)-1]; len(log) != 1+4+4 || last.Position != 6 || nextOf(last) != 6 {
		t.Errorf("%d entries, the last is %+v", len(log), last)
	}
	wantError[*FencedError](t, "the first owner", lastErr(owners[0].Commit(t.Context(), work(owners[0], 9))))
}
