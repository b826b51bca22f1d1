package upgrades

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/torture/topics"
)

// newest is the number of the newest live record.
func (h *history) newest() int {
	h.t.Helper()
	records, err := filepath.Glob(h.object("live", "*.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	return len(records) - 1
}

// TestSupervisors has loops start both builds at once again whatever they end with, while
// they are killed: the live build changes when a person changes what is to be run, and
// never otherwise.
func TestSupervisors(t *testing.T) {
	t.Parallel()
	kills, ends := 5, 45 // in each part: kills of the live build, and ends of the one that was replaced
	if torture() {
		kills, ends = 100, 500
	}
	seed, _ := seedOf(t)
	h := newHistory(t, seed, startBroker(t), nil)
	h.steps = []step{{1, "run", "first"}, {2, "upgrade", "upgrade"}, {1, "rollback", "rollback"}}
	stop := h.feed()
	replaced := make([]int, len(h.steps)) // how many lives each loop had when it was
	for n, s := range h.steps {
		if at := h.newest(); at != n-1 {
			t.Fatalf("generation %d is live before anybody has asked for %d", at, n)
		}
		if n == 2 { // the rollback takes the place of the old build's command
			h.keepers[0].loops(false)
			h.keepers[0].end()
		}
		h.note("%s of version %d", s.command, s.version)
		h.keep(s).loops(true)
		for range h.rng.IntN(5) { // on its way
			h.kill()
		}
		h.awaitLive(n)
		h.awaitEpoch(n)
		if n > 0 {
			replaced[n-1] = len(h.keepers[n-1].lives())
		}
		h.shake(n, kills, func() bool { return n == 0 || len(byThemselves(h.keepers[n-1], replaced[n-1])) >= ends })
	}
	for n, k := range h.keepers[:2] {
		k.loops(false)
		if n == 1 {
			k.end()
		}
		for _, code := range byThemselves(k, replaced[n]) {
			if code != superseded {
				t.Errorf("%s has ended with exit code %d since it was replaced, want %d", k.what, code, superseded)
			}
		}
	}
	last := h.keepers[2]
	h.awaitGrowth(2)
	stop()
	last.loops(false)
	h.drain(h.steps[2], last)
	h.verify()
}

// kill kills one of the processes, whichever runs then.
func (h *history) kill() (killed *keeper) {
	h.pause(250 * time.Millisecond)
	k := h.keepers[h.rng.IntN(len(h.keepers))]
	if !k.runs() {
		return nil
	}
	h.note("kill %s", k.what)
	k.signal(syscall.SIGKILL)
	return k
}

// byThemselves are the exit codes of a keeper's processes, behind so many, that were not
// killed.
func byThemselves(k *keeper, behind int) []int {
	return slices.DeleteFunc(k.lives()[behind:], func(code int) bool { return code == signalled })
}

// shake kills processes at random moments, while the loops start them again, and sees
// that the generation stays live that is.
func (h *history) shake(n, kills int, enough func() bool) {
	h.t.Helper()
	for killed := 0; killed < kills || !enough(); {
		if h.kill() == h.keepers[n] {
			killed++
		}
		if at := h.newest(); at != n {
			h.t.Fatalf("generation %d is live, and nobody has asked for another than %d", at, n)
		}
	}
	h.awaitGrowth(n)
}

// TestSupersededStays has a supervisor that restarts whatever ends: the old build stays
// once it was replaced, alive and not ready, and so does each that is started in its
// place.
func TestSupersededStays(t *testing.T) {
	t.Parallel()
	seed, _ := seedOf(t)
	h := newHistory(t, seed, startBroker(t), nil)
	h.steps = []step{{1, "run", "first"}, {2, "upgrade", "upgrade"}}
	stop := h.feed()
	addr := freeAddr(t)
	old := h.keep(h.steps[0], "--on-superseded", "wait", "--listen", addr)
	old.loops(true)
	h.awaitAnswers(addr, http.StatusOK, http.StatusOK)
	h.awaitEpoch(0)
	h.keep(h.steps[1])
	h.awaitLive(1)
	for range 4 {
		h.awaitAnswers(addr, http.StatusOK, http.StatusServiceUnavailable)
		pid := old.pid()
		for range 3 {
			h.awaitGrowth(1)
			if alive, ready := answer(addr, "healthz"), answer(addr, "readyz"); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
				t.Fatalf("the replaced build answers %d whether it is alive and %d whether it is ready, want 200 and 503", alive, ready)
			}
		}
		if old.pid() != pid || pid == 0 {
			t.Fatalf("the replaced build does not stay: process %d is %d now", pid, old.pid())
		}
		old.signal(syscall.SIGKILL)
		topics.Eventually(t, "the old build is started again", func() bool { now := old.pid(); return now != 0 && now != pid })
	}
	topics.Eventually(t, "the last one knows that it was replaced", func() bool { return strings.Contains(reason(addr), "superseded") })
	old.loops(false)
	old.signal(syscall.SIGTERM)
	if code := old.awaitEnd(t); code != superseded {
		t.Errorf("the old build has ended with exit code %d once it was told to, want %d", code, superseded)
	}
	h.awaitGrowth(1)
	stop()
	h.drain(h.steps[1], h.keepers[1])
	h.verify()
}

// TestBranchCreate begins a branch by a command of its own, and leaves it there; the
// upgrade goes on with it, as if its process had been killed.
func TestBranchCreate(t *testing.T) {
	t.Parallel()
	seed, _ := seedOf(t)
	h := newHistory(t, seed, startBroker(t), nil)
	h.steps = []step{{1, "run", "first"}, {2, "upgrade", "upgrade"}}
	stop := h.feed()
	h.keep(h.steps[0])
	h.awaitLive(0)
	h.awaitEpoch(0)
	out, err := h.command(2, "branch", "create", "--store", h.store, "--volatile", "--listen", "", "--lease", "600ms").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	branch := lines[len(lines)-1]
	manifests, err := filepath.Glob(h.object("branches", branch, "*", "*.json"))
	if err != nil || !strings.HasPrefix(branch, "upgrade-") || len(manifests) == 0 || h.newest() != 0 {
		t.Fatalf("branch %q has manifests %v (%v), and generation %d is live", branch, manifests, err, h.newest())
	}
	h.keep(h.steps[1])
	h.awaitLive(1)
	data, err := os.ReadFile(h.object("live", "1.json"))
	if err != nil || !strings.Contains(string(data), branch) {
		t.Errorf("live is another branch than %s: %s (%v)", branch, data, err)
	}
	h.awaitGrowth(1)
	stop()
	h.drain(h.steps[1], h.keepers[1])
	h.verify()
}

// freeAddr is an address at which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answer is the status of a path of a process's; 0: there is nobody.
func answer(addr, path string) int {
	r, err := http.Get(fmt.Sprintf("http://%s/%s", addr, path))
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	return r.StatusCode
}

// reason is why a process is not ready.
func reason(addr string) string {
	r, err := http.Get(fmt.Sprintf("http://%s/readyz", addr))
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// awaitAnswers waits until a process answers so whether it is alive, and whether ready.
func (h *history) awaitAnswers(addr string, alive, ready int) {
	h.t.Helper()
	topics.Eventually(h.t, fmt.Sprintf("it answers %d and %d", alive, ready), func() bool {
		return answer(addr, "healthz") == alive && answer(addr, "readyz") == ready
	})
}

// stopped tells whether a process stands still since SIGSTOP.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := stat[slices.Index(stat, ')')+2:]
	return fields[0] == 'T'
}
