package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// owned is a folder of the job steps that several processes run.
type owned struct {
	t      *testing.T
	folder string
	fed    int
}

func newOwned(t *testing.T) *owned {
	o := &owned{t: t, folder: quickFolder(t)}
	o.feed(30)
	return o
}

// feed appends orders to the input.
func (o *owned) feed(orders int) {
	o.t.Helper()
	feedSteps(o.t, o.folder, o.fed, o.fed+orders)
	o.fed += orders
}

// longLease is one that no test waits for.
const longLease = "10m"

// start starts a process that follows the input.
func (o *owned) start(args ...string) *process {
	o.t.Helper()
	return startSteps(o.t, o.folder, slices.Concat([]string{"run", "-follow", "-keep-epochs", "-1", "-lease", longLease}, args)...)
}

// finish reads all that there is, and verifies the outputs and the log: an owner
// that has been followed by another one never comes back.
func (o *owned) finish(args ...string) {
	o.t.Helper()
	p := startSteps(o.t, o.folder, slices.Concat([]string{"run", "-keep-epochs", "-1"}, args)...)
	if code := p.wait(o.t); code != 0 {
		o.t.Fatalf("the last run: exit code %d\n%s", code, p.said())
	}
	verifySteps(o.t, o.folder)
	o.owners()
}

// owners lists the owners of the log, in their order.
func (o *owned) owners() (owners []string) {
	o.t.Helper()
	j := openJournal(filepath.Join(o.folder, "store"), "steps")
	j.read(o.t)
	now := int64(0)
	for _, m := range j.manifests {
		if m.Kind == "base" { // whoever makes it may find another one quicker
			continue
		}
		if m.Now < now {
			o.t.Errorf("epoch %d: its clock is behind that of the epoch before", m.Epoch)
		}
		now = m.Now
		if len(owners) > 0 && owners[len(owners)-1] == m.Owner {
			continue
		}
		if slices.Contains(owners, m.Owner) {
			o.t.Errorf("epoch %d is of owner %s, which another one has followed before", m.Epoch, m.Owner)
		}
		owners = append(owners, m.Owner)
	}
	return owners
}

// says fails unless a process has printed all of the texts.
func (o *owned) says(p *process, texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.said(), text) {
			o.t.Errorf("the job does not say %q:\n%s", text, p.said())
		}
	}
}

// TestAStandbyTakesOver starts a second process: it waits, and goes on when the
// first one is killed, whatever the lease, since that is known to be gone.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	first := o.start()
	first.must(t, "committed", 2)
	second := o.start()
	second.must(t, "standing by", 1)
	if strings.Contains(second.said(), "msg=opened") {
		t.Errorf("the second process has not waited:\n%s", second.said())
	}
	first.kill()
	second.must(t, "msg=opened", 1)
	o.feed(30)
	second.must(t, "committed", 2)
	second.kill()
	o.finish()
	if n := len(o.owners()); n != 3 {
		t.Errorf("%d owners, expected the two and that of the last run", n)
	}
}

// TestLeasesDontMindTheWall has an owner and a standby whose wall clocks leap by
// years at each reading: the standby goes on waiting while the owner works.
func TestLeasesDontMindTheWall(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	args := []string{"-leaps", "-epoch", "50ms", "-lease", "20s"}
	first := o.start(args...)
	first.must(t, "committed", 1)
	second := o.start(args...)
	second.must(t, "standing by", 1)
	had := strings.Count(first.said(), "committed")
	for n := 1; n <= 5; n++ {
		o.feed(3)
		first.must(t, "committed", had+n)
	}
	if strings.Contains(second.said(), "msg=opened") {
		t.Errorf("the standby has taken over from an owner that lives:\n%s", second.said())
	}
	first.kill()
	second.must(t, "msg=opened", 1)
	second.kill()
	o.finish("-leaps")
}

// TestTakeOver takes the branch from an owner that lives: that one stops, and
// says why.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	first := o.start()
	first.must(t, "committed", 2)
	second := o.start("-takeover")
	second.must(t, "msg=opened", 1)
	o.feed(30) // the first one finds out when it commits
	if code := first.wait(t); code != 11 {
		t.Errorf("the first process: exit code %d, expected 11\n%s", code, first.said())
	}
	o.says(first, "error: steps: branch main", fmt.Sprint(second.cmd.Process.Pid))
	second.must(t, "committed", 1)
	second.kill()
	o.finish()
}

// TestStopFromElsewhere stops the owner and a standby by a command.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	first := o.start("-lease", "600ms")
	first.must(t, "committed", 2)
	second := o.start("-lease", "10s")
	second.must(t, "standing by", 1)
	stop := startSteps(t, o.folder, "stop", "--store", "store")
	for name, p := range map[string]*process{"stop": stop, "the owner": first, "the standby": second} {
		if code := p.wait(t); code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, code, p.said())
		}
	}
	o.finish()
}

// loops are two copies of the job, each restarted as soon as it ends.
type loops struct {
	*owned
	pair     [2]*process
	restarts int
}

// restart is what a supervisor's loop does: nothing but start again.
func (l *loops) restart(i int) {
	l.t.Helper()
	l.pair[i] = l.start()
	l.restarts++
}

// owner waits until one of the two has opened the branch, and says which. One
// that was fenced starts again.
func (l *loops) owner() int {
	l.t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	for {
		var changed [2]<-chan struct{}
		for i, p := range l.pair {
			p.mu.Lock()
			found := strings.Contains(p.output.String(), "msg=opened")
			changed[i] = p.changed
			p.mu.Unlock()
			if found && !p.over() {
				return i
			}
		}
		select {
		case <-changed[0]:
		case <-changed[1]:
		case <-l.pair[0].ended:
			l.fenced(0)
		case <-l.pair[1].ended:
			l.fenced(1)
		case <-hung.C:
			l.t.Logf("the other one:\n%s", l.pair[1].said())
			l.pair[0].trace(l.t)
		}
	}
}

// fenced restarts a copy that has ended by itself, for which there is only one
// good reason.
func (l *loops) fenced(i int) {
	l.t.Helper()
	if code := l.pair[i].wait(l.t); code != 11 {
		l.t.Fatalf("a copy has ended with exit code %d\n%s", code, l.pair[i].said())
	}
	l.restart(i)
}

// TestRestartedAtOnce kills one of two copies, or both, again and again. One of
// them owns the branch at a time, nothing is repeated, and they don't take it
// from each other.
func TestRestartedAtOnce(t *testing.T) {
	t.Parallel()
	restarts := 15
	if os.Getenv("SLUICE_TORTURE") != "" {
		restarts = 100
	}
	rng := rand.New(rand.NewPCG(7, 7))
	l := &loops{owned: newOwned(t)}
	l.pair = [2]*process{l.start(), l.start()}
	for l.restarts < restarts {
		owner := l.owner()
		l.feed(3)
		if !l.pair[owner].says(t, "committed", 1) {
			continue // it is fenced
		}
		victims := [][]int{{0, 1}, {1 - owner}, {owner}, {owner}}[rng.IntN(4)]
		for _, v := range victims {
			l.pair[v].kill()
		}
		for _, v := range victims {
			l.restart(v)
		}
	}
	l.owner()
	for _, p := range l.pair {
		p.kill()
	}
	l.finish()
	owners := len(l.owners())
	t.Logf("%d restarts, %d owners", l.restarts, owners)
	if owners > l.restarts+3 { // the two that began, and the last run
		t.Errorf("%d owners after %d restarts", owners, l.restarts)
	}
}

// TestTwoStartsAtOnce starts two processes when the owner has died: one goes on,
// the other stands by. It does not take the branch from one that lives.
func TestTwoStartsAtOnce(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("SLUICE_TORTURE") != "" {
		rounds = 50
	}
	o := newOwned(t)
	p := o.start()
	p.must(t, "committed", 1)
	p.kill()
	for round := 1; round <= rounds; round++ {
		l := &loops{owned: o, pair: [2]*process{o.start(), o.start()}}
		owner := l.owner()
		l.pair[1-owner].until(t, func(said string) bool {
			return strings.Contains(said, "standing by") || strings.Contains(said, "msg=opened")
		})
		l.pair[1-owner].kill() // first: it would rightly go on once the other is gone
		l.pair[owner].kill()
		if n := len(o.owners()); n != 1+round {
			t.Fatalf("round %d: %d owners, expected one more in each round: two starts have taken the branch one from the other\n%s\n%s",
				round, n, l.pair[0].said(), l.pair[1].said())
		}
	}
	o.finish()
}

// TestWokenAtEachStep stops a process at a step by SIGSTOP, lets another one take
// over and finish, and wakes the first: it changes nothing.
func TestWokenAtEachStep(t *testing.T) {
	t.Parallel()
	s := stages(t)[1]
	steps := sortedKeys(s.times)
	every := len(steps) / 16
	if os.Getenv("SLUICE_TORTURE") != "" {
		every = 1
	}
	t.Run("wake", func(t *testing.T) {
		for i := 0; i < len(steps); i += every {
			nth := 1 + i%s.times[steps[i]]
			t.Run(fmt.Sprintf("%s %d", steps[i], nth), func(t *testing.T) {
				t.Parallel()
				wake(t, s, steps[i], nth)
			})
		}
	})
}

func wake(t *testing.T, s *stage, step string, nth int) {
	folder := quickFolder(t)
	copyFolder(t, folder, s.before)
	first := startSteps(t, folder, "run", "-keep-epochs", "-1", "-at", step, "-nth", strconv.Itoa(nth), "-pause")
	first.says(t, "paused", 1)
	second := startSteps(t, folder, "run", "-keep-epochs", "-1", "-takeover")
	if code := second.wait(t); code != 0 {
		t.Errorf("the process that took over: exit code %d\n%s", code, second.said())
	}
	verifySteps(t, folder)
	before := snapshot(t, filepath.Join(folder, "out"))
	first.signal(syscall.SIGCONT)
	// It is fenced; or it had nothing more to write; or it comes after the other.
	if code := first.wait(t); code != 11 && code != 0 {
		t.Errorf("the process that woke: exit code %d\n%s", code, first.said())
	}
	verifySteps(t, folder)
	for path, text := range snapshot(t, filepath.Join(folder, "out")) {
		if had, ok := before[path]; (!ok || had != text) && !strings.Contains(path, "/.sluice/") {
			t.Errorf("%s was changed by the process that woke", path)
		}
	}
	o := &owned{t: t, folder: folder}
	o.owners()
}

// TestASinkThatHangs tells a job to stop whose sink does not come back. The open
// epoch is committed; where the sink does end when it is told to, so does the
// job, with deliveries pending; otherwise a supervisor kills it. The next run
// delivers.
func TestASinkThatHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag string
		code int
	}{
		{"-waiting", 10},
		{"-hanging", -1},
	} {
		t.Run(c.flag, func(t *testing.T) {
			t.Parallel()
			o := newOwned(t)
			p := o.start(c.flag, "-grace", "200ms")
			p.must(t, "hanging", 1)
			p.must(t, "committed", 2)
			p.signal(syscall.SIGTERM)
			if c.code == -1 {
				p.kill()
			}
			if code := p.wait(t); code != c.code {
				t.Errorf("exit code %d, expected %d\n%s", code, c.code, p.said())
			}
			if c.code == 10 {
				o.says(p, "deliveries pending", "receipts")
			}
			o.finish()
		})
	}
}
