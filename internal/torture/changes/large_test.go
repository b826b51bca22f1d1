package changes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state/statetest"
	"github.com/sluicestream/sluice/store"
)

// A large state with three entries that can't be migrated: a plan of all names
// these three, one of a sample says how much it has tried, and a run changes
// nothing.
func TestThreeOfMany(t *testing.T) {
	t.Parallel()
	users := 50_000
	if os.Getenv("SLUICE_TORTURE") != "" {
		users = 1_000_000
	}
	w := newWorld(t)
	bad := []int{users / 7, users / 2, users - 1}
	var text strings.Builder
	for i := range users {
		cents := 1000 + i%100
		if slices.Contains(bad, i) {
			cents = 7
		}
		fmt.Fprintf(&text, `{"User":"user-%07d","Shop":"s","Number":1,"Cents":%d,"Note":"n"}`+"\n", i, cents)
	}
	w.append([]string{strings.TrimSuffix(text.String(), "\n")})
	w.mustRun("base", "run")
	before := w.head()

	plan := func(args ...string) (tried, failed int64, keys []string) {
		t.Helper()
		r := w.run("function that fails", append([]string{"plan", "--json"}, args...)...)
		var p struct {
			Lines []struct {
				Part, Name, Verdict string
				Trial               *struct {
					Tried, Failed int64
					Failures      []struct{ Key string }
				}
			}
		}
		if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
			t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
		}
		for _, l := range p.Lines {
			if l.Part != "state" || l.Name != "cents" || l.Trial == nil {
				continue
			}
			for _, f := range l.Trial.Failures {
				keys = append(keys, f.Key)
			}
			slices.Sort(keys)
			if len(keys) > 0 != (r.code == 24) {
				t.Fatalf("exit code %d with %d failures\n%s", r.code, len(keys), r.stdout)
			}
			return l.Trial.Tried, l.Trial.Failed, keys
		}
		t.Fatalf("the state cents was not tried\n%s%s", r.stdout, r.stderr)
		return 0, 0, nil
	}
	var want []string
	for _, i := range bad {
		want = append(want, fmt.Sprintf("user-%07d", i))
	}
	if tried, failed, keys := plan("--all"); tried != int64(users) || failed != 3 || !slices.Equal(keys, want) {
		t.Errorf("of all: tried %d, failed %d: %q; want %d and %q", tried, failed, keys, users, want)
	}
	if tried, failed, keys := plan(); tried < 1000 || tried > 1200 || failed != int64(len(keys)) {
		t.Errorf("of a sample: tried %d, failed %d: %q", tried, failed, keys)
	}
	r := w.run("function that fails", "run")
	if r.code != 13 || !slices.ContainsFunc(want, func(key string) bool { return strings.Contains(r.stderr, "key "+key) }) {
		t.Errorf("the run: exit code %d\n%s", r.code, r.stderr)
	}
	after := w.head()
	if after.Version != before.Version || after.Build != before.Build || after.Sources["events"].Partitions["events.jsonl"] != before.Sources["events"].Partitions["events.jsonl"] {
		t.Errorf("the run has changed the version or the offsets:\n%+v\n%+v", after, before)
	}
	if a, b := after.State["cents"], before.State["cents"]; a.Value != b.Value || !slices.Equal(a.Segments, b.Segments) {
		t.Errorf("the run has changed the state:\n%+v\n%+v", a, b)
	}
	w.mustRun("base", "run")
}

// head is the job's newest manifest.
func (w *world) head() epoch.Manifest {
	w.t.Helper()
	return statetest.Head(w.t, w.store(), "changes")
}

func (w *world) store() store.Store {
	w.t.Helper()
	st, err := store.OpenFolder(env.Real(), filepath.Join(w.folder, "store"))
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}
