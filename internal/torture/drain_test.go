package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// What the job with windows reads and writes.
type (
	datedOrder struct {
		User  string
		Cents int64
		At    int64
	}
	closedWindow struct {
		User          string
		Start         int64
		Orders, Cents int64
	}
)

const (
	// datedFrom is the time of the first order, where windows begin; each file has one in
	// each second.
	datedFrom = 1_699_999_980
	// datedBefore and datedAll are how many orders each file has before the job is asked to
	// stop, and in all: in the midst of windows.
	datedBefore, datedAll = 30, 47
	datedLateness         = 2
)

// dated is the n-th order of a file.
func dated(part, n int) datedOrder {
	return datedOrder{fmt.Sprintf("user-%d-%d", part, n*n%7), int64(n*37%1000 + part), int64(datedFrom + n)}
}

// datedText are lines of a file.
func datedText(part, from, to int) string {
	var text strings.Builder
	for n := from; n < to; n++ {
		line, _ := json.Marshal(dated(part, n))
		text.Write(append(line, '\n'))
	}
	return text.String()
}

func feedDated(t *testing.T, folder string, from, to int) {
	t.Helper()
	for part := range stepsInputs {
		appendTo(t, filepath.Join(folder, "in", fmt.Sprintf("%d.jsonl", part)), datedText(part, from, to))
	}
}

// verifyDated expects each order once, and each window that has closed: those that end up
// to a second.
func verifyDated(t *testing.T, folder string, until int64) {
	t.Helper()
	orders := map[string][]datedOrder{}
	for part := range stepsInputs {
		for n := range datedAll {
			o := dated(part, n)
			orders[o.User] = append(orders[o.User], o)
		}
	}
	sameStream(t, filepath.Join(folder, "out", "seen"), orders, func(o datedOrder) string { return o.User })
	for sink, length := range map[string]int64{"short": 10, "long": 30} {
		windows := map[string][]closedWindow{}
		for user, all := range orders {
			for _, o := range all {
				start := o.At - o.At%length
				if start+length > until {
					continue
				}
				mine := windows[user]
				if last := len(mine) - 1; last < 0 || mine[last].Start != start {
					mine = append(mine, closedWindow{User: user, Start: start})
				}
				w := &mine[len(mine)-1]
				w.Orders, w.Cents = w.Orders+1, w.Cents+o.Cents
				windows[user] = mine
			}
		}
		sameStream(t, filepath.Join(folder, "out", sink), windows, func(w closedWindow) string { return w.User })
	}
}

// draining is a way to have the job stop.
type draining struct {
	name string
	// stop are the flags of the command.
	stop []string
	// until is the second up to which windows have closed then.
	until int64
}

// drainings stop at offsets that are still to come, and with no window open.
func drainings() []draining {
	var to []string
	for part := range stepsInputs {
		to = append(to, fmt.Sprintf("orders:%d.jsonl=%d", part, len(datedText(part, 0, datedAll))))
	}
	return []draining{
		{"to", []string{"--to", strings.Join(to, ",")}, datedFrom + datedAll - 1 - datedLateness},
		{"close windows", []string{"--close-windows"}, datedFrom + 2*datedAll},
	}
}

// owner starts the job.
func (d draining) owner(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	return startSteps(t, folder, append([]string{"run", "-windows", "-follow", "-lease", "300ms", "-epoch", "20ms"}, args...)...)
}

// ask gives the command that has the owner stop.
func (d draining) ask(t *testing.T, folder string) *process {
	t.Helper()
	return startSteps(t, folder, append([]string{"stop", "--store", "store", "--drain"}, d.stop...)...)
}

// play asks an owner to stop, and has it read what is still to come.
func (d draining) play(t *testing.T, folder string, args ...string) (owner, ask *process) {
	t.Helper()
	feedDated(t, folder, 0, datedBefore)
	closes := slices.Contains(d.stop, "--close-windows")
	if closes {
		feedDated(t, folder, datedBefore, datedAll)
	}
	owner = d.owner(t, folder, append(args, "-behind", "asked to read up to offsets")...)
	owner.must(t, "committed", 1)
	ask = d.ask(t, folder)
	if !closes {
		owner.says(t, "nothing behind the offsets is read", 1) // unless it has died before
		feedDated(t, folder, datedBefore, datedAll)
	}
	return owner, ask
}

// TestKilledWhileDraining kills the job at each change that it makes between a request to
// stop, at offsets or with no window open, and its end: started again, and asked by the
// same command, it stops there, with all of it put out once.
func TestKilledWhileDraining(t *testing.T) {
	t.Parallel()
	for _, d := range drainings() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			folder := quickFolder(t)
			owner, ask := d.play(t, folder, "-record", "steps.txt")
			if code := ask.wait(t); code != 0 {
				t.Fatalf("the command: exit code %d\n%s\n%s", code, ask.said(), owner.said())
			}
			if code := owner.wait(t); code != 0 {
				t.Fatalf("exit code %d\n%s", code, owner.said())
			}
			verifyDated(t, folder, d.until)
			var tried, killed atomic.Int32
			t.Run("kill", func(t *testing.T) {
				for step, n := range readSteps(t, filepath.Join(folder, "steps.txt")) {
					nths := []int{1, (n + 1) / 2, n}
					if os.Getenv("SLUICE_TORTURE") == "" {
						if nths = nths[1:]; !seenByOthers(step) {
							continue
						}
					}
					for _, nth := range slices.Compact(nths) {
						t.Run(fmt.Sprintf("%s %d", step, nth), func(t *testing.T) {
							t.Parallel()
							tried.Add(1)
							if d.die(t, step, nth) {
								killed.Add(1)
							}
						})
					}
				}
			})
			if n := killed.Load(); n < tried.Load()/2 || n < leastKills {
				t.Errorf("%d of %d processes were killed", n, tried.Load())
			}
		})
	}
}

// leastKills is how many changes there are to be killed at.
const leastKills = 5

// die kills the owner at a step while it drains, and has it finish. It tells whether it was
// killed: a step may come less often than it did, or not at all.
func (d draining) die(t *testing.T, step string, nth int) (killed bool) {
	for ; nth > 0; nth /= 2 {
		folder := quickFolder(t)
		owner, ask := d.play(t, folder, "-at", step, "-nth", strconv.Itoa(nth))
		code := owner.wait(t)
		if code != -1 && code != 0 {
			t.Fatalf("exit code %d\n%s", code, owner.said())
		}
		ask.wait(t)
		if code == 0 {
			continue
		}
		owner = d.owner(t, folder)
		owner.must(t, "msg=opened", 1)
		if ask = d.ask(t, folder); ask.wait(t) != 0 {
			t.Fatalf("the command once more: %s\n%s", ask.said(), owner.said())
		}
		if code := owner.wait(t); code != 0 {
			t.Fatalf("exit code %d\n%s", code, owner.said())
		}
		verifyDated(t, folder, d.until)
		return true
	}
	return false
}

// TestKilledCommand kills the command that has asked for offsets which are still to come:
// the same once more is told of the end.
func TestKilledCommand(t *testing.T) {
	t.Parallel()
	d, folder := drainings()[0], quickFolder(t)
	feedDated(t, folder, 0, datedBefore)
	owner := d.owner(t, folder)
	owner.must(t, "committed", 1)
	first := d.ask(t, folder)
	owner.must(t, "nothing behind the offsets is read", 1)
	first.kill()
	again := d.ask(t, folder)
	owner.must(t, "stops there as well", 1)
	feedDated(t, folder, datedBefore, datedAll)
	if code := again.wait(t); code != 0 || owner.wait(t) != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, again.said(), owner.said())
	}
	verifyDated(t, folder, d.until)
}
