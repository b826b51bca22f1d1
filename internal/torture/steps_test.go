package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// chapter is one process in the life of the job steps, at whose steps it is
// killed.
type chapter struct {
	name string
	// orders are the numbers of the input's first and last order that come before
	// the chapter.
	orders [2]int
	// args start the process, after those that the test gives.
	args []string
	// beside is what others do while it runs; it may end at any moment.
	beside func(t *testing.T, folder string, start func() *process) *process
	// after are the arguments of the run that goes on when it was killed.
	after []string
	// ends is the exit code of the process if it is not killed.
	ends int
	// changes says that a short run kills behind each change that others see, not only
	// at steps that no chapter before has had.
	changes bool
}

// chapters are the life of the job: from nothing to an end, a restart with more
// input and a recovery, another version of the job that takes over in place, a
// request to stop, a standby that takes over from an owner which dies with
// deliveries pending, an upgrade and a rollback beside an owner that works, and an
// owner that an upgrade or a rollback takes the job from; then an upgrade that fills a new
// sink before it takes over. Few epochs are kept, so that
// clean-up has its part in each; but a rollback needs all since the upgrade.
func chapters() []chapter {
	second := []string{"-second"}
	upgrade, rollback := []string{"-third", "-upgrade"}, []string{"-second", "-rollback"}
	again, back := append(slices.Clone(upgrade), "-replace"), append(slices.Clone(rollback), "-again")
	fill := []string{"-fourth", "-upgrade", "-backfill"}
	return []chapter{
		{name: "fresh", orders: [2]int{0, 45}, beside: alone},
		{name: "restart", orders: [2]int{45, 90}, beside: alone},
		{name: "version", orders: [2]int{90, 120}, args: second, beside: alone, after: second},
		{name: "stop", orders: [2]int{120, 150}, args: []string{"-second", "-follow", "-lease", "300ms"}, beside: asked, after: second},
		{name: "standby", orders: [2]int{150, 180}, args: []string{"-second", "-lease", "2s"}, beside: relieved, after: second},
		{name: "upgrade", orders: [2]int{180, 195}, args: changing(upgrade), beside: following("-second", 195), after: upgrade, changes: true},
		{name: "rollback", orders: [2]int{205, 215}, args: changing(rollback), beside: following("-third", 215), after: rollback, changes: true},
		{name: "upgraded", orders: [2]int{225, 235}, args: owning("-second"), beside: replaced(again, 235), after: []string{"-third"}, ends: 12},
		{name: "rolled back", orders: [2]int{245, 255}, args: owning("-third"), beside: replaced(back, 255), after: second, ends: 12},
		{name: "filled", orders: [2]int{265, 275}, args: changing(fill), beside: following("-second", 275), after: fill, changes: true},
	}
}

// fedMeanwhile is how many orders of each user come while a branch follows.
const fedMeanwhile = 10

// changing are the arguments of an upgrade or a rollback that follows for a while.
func changing(change []string) []string {
	return append(slices.Clone(change), "-follow", "-lease", "300ms", "-soak", "200ms", "-epoch", "20ms", "-keep-epochs", "1000")
}

// owning are the arguments of an owner that another version is to take the job from.
func owning(version string) []string {
	return []string{version, "-follow", "-lease", "300ms", "-epoch", "20ms", "-keep-epochs", "1000"}
}

// following is a chapter whose process follows an owner of another version, while
// orders come, and takes the job from it.
func following(version string, fed int) func(*testing.T, string, func() *process) *process {
	return func(t *testing.T, folder string, start func() *process) *process {
		t.Helper()
		owner := startSteps(t, folder, slices.Concat([]string{"run"}, owning(version))...)
		owner.must(t, "committed", 1)
		p := start()
		p.says(t, "caught up", 1)
		feedSteps(t, folder, fed, fed+fedMeanwhile)
		drained(t, folder, p)
		t.Cleanup(func() {
			if code := owner.wait(t); code != 12 {
				t.Errorf("the owner ended with exit code %d, expected 12\n%s", code, owner.said())
			}
		})
		return p
	}
}

// replaced is a chapter whose process owns the job until another version takes it.
func replaced(change []string, fed int) func(*testing.T, string, func() *process) *process {
	return func(t *testing.T, folder string, start func() *process) *process {
		t.Helper()
		p := start()
		p.says(t, "committed", 1)
		heir := startSteps(t, folder, slices.Concat([]string{"run"}, changing(change))...)
		heir.must(t, "caught up", 1)
		feedSteps(t, folder, fed, fed+fedMeanwhile)
		heir.must(t, "msg=live", 1)
		drained(t, folder, heir)
		if code := heir.wait(t); code != 0 {
			t.Fatalf("what took the job ended with exit code %d\n%s", code, heir.said())
		}
		return p
	}
}

// drained has a process that has gone live read all there is, and end.
func drained(t *testing.T, folder string, p *process) {
	t.Helper()
	if !p.says(t, "msg=live", 1) {
		return
	}
	for !p.over() {
		startSteps(t, folder, "stop", "--drain", "--store", "store", "--wait", "1s").wait(t)
	}
}

// alone is a chapter that nobody else has a part in.
func alone(_ *testing.T, _ string, start func() *process) *process { return start() }

// asked is a chapter whose process is asked to stop.
func asked(t *testing.T, folder string, start func() *process) *process {
	t.Helper()
	p := start()
	if p.says(t, "committed", 4) {
		startSteps(t, folder, "stop", "--store", "store", "--wait", "0").wait(t)
	}
	return p
}

// relieved is a chapter whose process stands by until the owner dies.
func relieved(t *testing.T, folder string, start func() *process) *process {
	t.Helper()
	owner := startSteps(t, folder, "run", "-second", "-follow", "-hanging", "-lease", "2s")
	owner.must(t, "hanging", 1)
	owner.must(t, "committed", 2)
	p := start()
	p.says(t, "standing by", 1)
	owner.kill()
	return p
}

// stage is a chapter as it can be played again and again.
type stage struct {
	chapter
	before string         // the folder as it was before the chapter
	times  map[string]int // of each step
}

// play runs the chapter in a folder, with arguments for its process.
func (s *stage) play(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	return s.beside(t, folder, func() *process {
		return startSteps(t, folder, slices.Concat([]string{"run"}, s.args, args)...)
	})
}

// stages are the chapters, once they have been played.
func stages(t *testing.T) []*stage {
	t.Helper()
	recorded.Do(func() { recorded.stages = record(t) })
	return recorded.stages
}

// recorded is what several tests begin with.
var recorded struct {
	sync.Once
	stages []*stage
}

// record plays the whole life, and records the steps of each chapter.
func record(t *testing.T) (all []*stage) {
	t.Helper()
	folder := quickFolder(t)
	for _, c := range chapters() {
		feedSteps(t, folder, c.orders[0], c.orders[1])
		s := &stage{chapter: c, before: filepath.Join(binaries.folder, "before", c.name)}
		copyFolder(t, s.before, folder)
		p := s.play(t, folder, "-record", "steps.txt")
		if code := p.wait(t); code != s.ends {
			t.Fatalf("chapter %s: exit code %d\n%s", s.name, code, p.said())
		}
		verifySteps(t, folder)
		s.times = readSteps(t, filepath.Join(folder, "steps.txt"))
		all = append(all, s)
	}
	return all
}

func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// readSteps reads what a process has recorded.
func readSteps(t *testing.T, path string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(data)) {
		number, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if times[name], err = strconv.Atoi(number); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
	}
	return times
}

// death is a step of a chapter at which its process is killed.
type death struct {
	stage *stage
	step  string
	nth   int
}

// mostTimes bounds how often a long run kills a chapter's process at one step:
// some look at the clock a thousand times.
const mostTimes = 100

// shortTimes is that bound for a short run, where each change is one to be killed at.
const shortTimes = 8

// seenByOthers tells whether a step is behind a change in what other processes and
// readers see. Between two of these nothing comes that a death could leave half done.
func seenByOthers(step string) bool {
	what, behind := strings.CutSuffix(step, " after")
	return behind && (strings.HasPrefix(what, "link ") && what != "link scratch folder" || what == "remove pin")
}

// deaths are those to be tried: all, or, in a short run, one for each step, at
// its first time, in the middle or at its last, in turn.
func deaths(all []*stage, everything bool) (out []death) {
	turn := 0
	seen := map[string]bool{}
	for _, s := range all {
		for _, step := range sortedKeys(s.times) {
			n := s.times[step]
			if everything {
				for nth := 1; nth <= n; nth += 1 + n/mostTimes {
					out = append(out, death{s, step, nth})
				}
				continue
			}
			if s.changes && seenByOthers(step) {
				for nth := 1; nth <= n; nth += 1 + n/shortTimes {
					out = append(out, death{s, step, nth})
				}
			}
			if seen[step] {
				continue
			}
			seen[step] = true
			out = append(out, death{s, step, []int{1, (n + 1) / 2, n}[turn%3]})
			turn++
		}
	}
	return out
}

// leastSteps is how many steps there must be, for the list to be the real one.
const leastSteps = 40

// TestKilledAtEachStep kills the job at each of its steps, which are before and
// after each call of the environment, and lets it run again: nothing is lost or
// repeated.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	all := stages(t)
	reached := &reached{left: map[string]bool{}}
	for _, s := range all {
		for step := range s.times {
			reached.left[step] = true
		}
	}
	t.Logf("%d steps:\n%s", len(reached.left), strings.Join(sortedKeys(reached.left), "\n"))
	if n := len(reached.left); n < leastSteps {
		t.Errorf("%d steps, expected %d or more", n, leastSteps)
	}
	list := deaths(all, os.Getenv("SLUICE_TORTURE") != "")
	t.Run("kill", func(t *testing.T) {
		for _, d := range list {
			t.Run(fmt.Sprintf("%s/%s %d", d.stage.name, d.step, d.nth), func(t *testing.T) {
				t.Parallel()
				d.die(t, reached)
			})
		}
	})
	for _, step := range sortedKeys(reached.left) {
		t.Errorf("no process was killed at the step %q", step)
	}
	t.Logf("%d kills", reached.kills)
}

// reached are the steps at which a process has died, taken off those that are
// left.
type reached struct {
	mu    sync.Mutex
	left  map[string]bool
	kills int
}

func (r *reached) note(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.left, step)
	r.kills++
}

// tries bounds how often a step is looked for that did not come: what is done in
// the background may be done later, or be left to the next run.
const tries = 10

// die plays the chapter up to the death, then to its end.
func (d death) die(t *testing.T, reached *reached) {
	for range tries {
		folder := quickFolder(t)
		copyFolder(t, folder, d.stage.before)
		p := d.stage.play(t, folder, "-at", d.step, "-nth", strconv.Itoa(d.nth))
		code := p.wait(t)
		if code == d.stage.ends { // it has come less often, and may be gone altogether
			d.nth = max(1, d.nth/2)
			continue
		}
		if code != -1 {
			t.Fatalf("exit code %d\n%s", code, p.said())
		}
		reached.note(d.step)
		p = startSteps(t, folder, slices.Concat([]string{"run"}, d.stage.after)...)
		if code := p.wait(t); code != 0 {
			t.Fatalf("the run after the kill: exit code %d\n%s", code, p.said())
		}
		verifySteps(t, folder)
		return
	}
}
