package upgrades

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/cutproxy"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/internal/torture/topics"
	"github.com/sluicestream/sluice/store"
)

// TestHung has the old process hang where it holds the most, while a build waits for the
// word to take over: nothing waits for it, and once it is woken it changes nothing.
func TestHung(t *testing.T) {
	t.Parallel()
	none := func(testing.TB) *services.Database { return nil }
	embedded := func(t *testing.T) string { return startBroker(t) }
	kafka := func(t *testing.T) string { return realKafka(t).Addr() }
	for name, c := range map[string]struct {
		kafka func(t *testing.T) string
		db    func(testing.TB) *services.Database
		hang  func(h *history) hanging
	}{
		"an epoch committed, not delivered":   {embedded, none, hangsAt("delivery")},
		"in a transaction of the broker here": {embedded, none, hangsAt("transaction")},
		"in a transaction of Kafka":           {kafka, none, hangsAt("transaction")},
		"before a commit of PostgreSQL":       {embedded, database, hangsBefore(isCommit)},
		"among rows for PostgreSQL":           {embedded, database, hangsBefore(endsCopy)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed, _ := seedOf(t)
			h := newHistory(t, seed, c.kafka(t), c.db(t))
			h.remote = false // the first process of a namespace can't stop itself
			h.steps = []step{{1, "run", "first"}, {2, "upgrade", "upgrade"}}
			h.outlive(c.hang(h))
		})
	}
}

// hanging is how the old process is made to hang.
type hanging struct {
	env  []string          // of that process
	arm  func(old *keeper) // it hangs where that comes next
	wake func(old *keeper)
}

// hangsAt has it stop by itself at a place of its own.
func hangsAt(place string) func(h *history) hanging {
	return func(h *history) hanging {
		file := filepath.Join(h.t.TempDir(), "stop")
		return hanging{
			env: []string{"TIDE_STOP=" + file},
			arm: func(*keeper) {
				whole := file + ".tmp"
				if err := os.WriteFile(whole, []byte(place), 0o666); err != nil {
					h.t.Fatal(err)
				}
				if err := os.Rename(whole, file); err != nil {
					h.t.Fatal(err)
				}
			},
			wake: func(old *keeper) { old.signal(syscall.SIGCONT) },
		}
	}
}

// hangsBefore stops it when it has sent a message to the database, which does not get
// that before the process is woken.
func hangsBefore(which func(m cutproxy.Message) bool) func(h *history) hanging {
	return func(h *history) hanging {
		var armed atomic.Pointer[keeper]
		proxy := cutproxy.Start(h.t, cutproxy.Options{Target: h.db.Addr(), Protocol: cutproxy.Postgres, Fate: func(int) cutproxy.Fate {
			return cutproxy.Fate{When: func(m cutproxy.Message) (cutproxy.Act, int64) {
				old := armed.Load()
				if old == nil || !which(m) || !armed.CompareAndSwap(old, nil) {
					return cutproxy.Pass, 0
				}
				old.signal(syscall.SIGSTOP)
				return cutproxy.Stall, 0
			}}
		}})
		return hanging{
			env: []string{"SLUICE_POSTGRES=" + strings.Replace(h.db.URL(""), h.db.Addr(), proxy.Addr(), 1)},
			arm: func(old *keeper) { armed.Store(old) },
			wake: func(old *keeper) {
				proxy.Release()
				old.signal(syscall.SIGCONT)
			},
		}
	}
}

// isCommit tells whether a message is the statement commit, by its size: no other one is
// so short.
func isCommit(m cutproxy.Message) bool {
	const size = 1 + 4 + len("commit\x00")
	return m.Way == cutproxy.ToServer && m.Type == 'Q' && m.Size() == int64(size)
}

// endsCopy tells whether a message ends the rows of a delivery.
func endsCopy(m cutproxy.Message) bool { return m.Way == cutproxy.ToServer && m.Type == 'c' }

// outlive is the history: the old process hangs, the new build takes over and puts rows
// out, and the old one is woken.
func (h *history) outlive(hang hanging) {
	h.t.Helper()
	stop := h.feed()
	starting := h.starting(h.steps[0])
	old := keep(h.t, "the old build", func() *exec.Cmd {
		cmd := starting()
		cmd.Env = append(cmd.Env, hang.env...)
		return cmd
	})
	h.keepers = append(h.keepers, old)
	h.awaitLive(0)
	h.awaitEpoch(0)
	heir := keep(h.t, "the new build", h.starting(h.steps[1]))
	h.keepers = append(h.keepers, heir)
	topics.Eventually(h.t, "the new build has caught up", func() bool { return strings.Contains(heir.said(), "caught up") })

	pid := old.pid()
	hang.arm(old)
	topics.Eventually(h.t, "the old build hangs", func() bool { return stopped(pid) })
	h.note("process %d hangs", pid)
	h.cutOver()
	h.awaitLive(1)
	topics.Eventually(h.t, "rows of the new build are there", func() bool { return h.showsNew() })
	if !stopped(pid) || old.pid() != pid {
		h.t.Fatal("the old build does not hang any more")
	}
	h.note("the new build has put rows out")
	hang.wake(old)
	if code := old.awaitEnd(h.t); code != superseded || old.starts != 1 {
		h.t.Errorf("the old build has ended with exit code %d at start %d, want %d at the first", code, old.starts, superseded)
	}
	h.awaitGrowth(1)
	stop()
	h.drain(h.steps[1], heir)
	h.verify()
}

// cutOver gives the word to the one branch that follows.
func (h *history) cutOver() {
	h.t.Helper()
	s, err := store.OpenFolder(env.Real(), h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	job, err := epoch.FindJob(h.t.Context(), env.Real(), s, h.name)
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := job.Branches(h.t.Context())
	if err != nil || len(all) != 2 {
		h.t.Fatalf("branches %v (%v), want main and one that follows", all, err)
	}
	for _, branch := range all {
		if branch != epoch.MainBranch {
			if _, err := job.AskCutover(h.t.Context(), branch, "a test"); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// showsNew tells whether readers of each sink that appends see rows of the second version.
func (h *history) showsNew() bool {
	h.t.Helper()
	seen := false
	for _, r := range h.cluster.Read(h.t, h.topic("audit")) {
		seen = seen || decode[audit](h.t, r.Value).Version == 2
	}
	if h.db == nil {
		return seen
	}
	return seen && h.query("select count(*) > 0 from " + h.name + "_audit where version = 2")[0] == "t"
}
