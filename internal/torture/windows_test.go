package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ticking is a history of the job windows, which is killed again and again while its
// input grows, by others and at steps of its own, and restarted as builds whose tumbling
// windows have other sizes.
type ticking struct {
	rng     *rand.Rand
	folder  string
	binary  string
	feeder  *feeder
	clocks  []int64 // by file, in microseconds since 1970
	journal *journal

	ended  bool             // the files get their last ticks
	build  int              // of tickSizes
	sizes  map[string]int64 // of a version's tumbling windows, in microseconds
	deaths map[string]int   // by step
	kills  int
}

// tickSizes are those of the tumbling windows of the builds, in seconds. None comes again.
var tickSizes = []int64{4, 6, 10, 3, 8, 5}

// tickSteps are steps at which a process dies: around what makes an epoch, and around
// what makes a delivery.
var tickSteps = []string{
	"link segment before", "link segment after", "link outbox after", "link manifest before", "link manifest after",
	"link sink rows before", "link sink rows after", "link sink note before", "link sink note after",
}

const (
	ticksBegin = 1_700_000_000_000_000
	tickKeys   = 40
	lastKey    = "last" // of a file's last tick
)

// TestWindowsKilled kills a job of tumbling, hopping and session windows and of timers,
// whose input comes out of order, and has other builds go on in its place. What the
// windows and timers come to is what a batch says over the input without what came too
// late: no tick is in both, or twice, or nowhere.
func TestWindowsKilled(t *testing.T) {
	ticks, kills, builds, steps := 8_000, 16, 3, 1
	if os.Getenv("SLUICE_TORTURE") != "" {
		ticks, kills, builds, steps = 240_000, 300, len(tickSizes), len(tickSteps)
	} else {
		t.Parallel()
	}
	h := newTicking(t)
	for h.kills < kills {
		h.build = h.kills * builds / kills
		h.live(t, ticks/kills)
	}
	h.end(t)
	t.Logf("%d kills, of which at steps of the process: %v; %d versions", h.kills, h.deaths, len(h.sizes))
	if len(h.deaths) < steps {
		t.Errorf("processes died at %d steps of their own, expected %d or more", len(h.deaths), steps)
	}
	if len(h.sizes) != builds {
		t.Errorf("%d versions have run, expected %d", len(h.sizes), builds)
	}
	h.verify(t)
}

func newTicking(t *testing.T) *ticking {
	t.Helper()
	seed := drawSeed(t)
	h := &ticking{
		rng: rand.New(rand.NewPCG(seed, 1)), folder: quickFolder(t), clocks: make([]int64, partitions),
		sizes: map[string]int64{}, deaths: map[string]int{},
	}
	h.binary = filepath.Join(build(t, &binaries.windows, "windows"), "windows")
	in := filepath.Join(h.folder, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range h.clocks {
		h.clocks[i] = ticksBegin
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	h.feeder = newFeeder(t, rng, in, func(part, n int) any { return h.tick(rng, part, n) })
	h.journal = openJournal(filepath.Join(h.folder, "store"), "windows")
	return h
}

// tick makes one up: most come a little behind their file's clock, some far behind it, and
// a few have no time. The last of a file is behind all others, by far.
func (h *ticking) tick(rng *rand.Rand, part, n int) tick {
	if h.ended {
		return tick{ID: int64(n), Key: lastKey, At: time.UnixMicro(ticksBegin).Add(24 * time.Hour).UTC()}
	}
	h.clocks[part] += rng.Int64N(200_000)
	behind := rng.Int64N(1_500_000)
	if rng.IntN(12) == 0 {
		behind += rng.Int64N(15_000_000)
	}
	return tick{int64(n), fmt.Sprint("key-", rng.IntN(tickKeys)), time.UnixMicro(h.clocks[part] - behind).UTC(), rng.IntN(60) == 0}
}

// live is a process and its end.
func (h *ticking) live(t *testing.T, ticks int) {
	t.Helper()
	const pieces = 4
	args := []string{
		"-follow", "-size", fmt.Sprint(tickSizes[h.build], "s"),
		"-shards", fmt.Sprint(1 + h.rng.IntN(4)),
		"-epoch", (time.Duration(5+h.rng.IntN(40)) * time.Millisecond).String(),
		"-epoch-bytes", fmt.Sprint(4 << 10 << h.rng.IntN(5)),
		"-batch", fmt.Sprint(4 << h.rng.IntN(6)),
	}
	step := ""
	if h.rng.IntN(2) == 0 {
		step = tickSteps[h.rng.IntN(len(tickSteps))]
		args = append(args, "-at", step, "-nth", fmt.Sprint(1+h.rng.IntN(12)))
	}
	h.feeder.feed(t, ticks/pieces)
	l := start(t, h.folder, h.binary, args...)
	moment := time.Duration(h.rng.Int64N(int64(lastMoment)))
	if h.rng.IntN(4) > 0 { // otherwise it is killed while it comes back
		for range pieces - 1 {
			l.goesOn(t, l.commits)
			h.feeder.feed(t, ticks/pieces)
		}
		if step != "" {
			moment += lastMoment
		}
	}
	died := l.within(moment)
	l.kill(t)
	h.kills++
	if died {
		h.deaths[step]++
	}
	h.read(t)
}

// goesOn waits for an event of a life that may die at any moment.
func (l *life) goesOn(t *testing.T, event <-chan struct{}) {
	t.Helper()
	select {
	case <-l.ended:
	default:
		select {
		case <-event:
		case <-l.ended:
		case <-time.After(patience):
			l.await(t, nil)
		}
	}
}

// within tells whether the life ends by itself within a time.
func (l *life) within(d time.Duration) bool {
	select {
	case <-l.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// read reads what a life has written: a version that is new is that of its build.
func (h *ticking) read(t *testing.T) {
	t.Helper()
	had := len(h.journal.manifests)
	h.journal.read(t)
	for _, m := range h.journal.manifests[had:] {
		if _, known := h.sizes[m.Version]; !known {
			h.sizes[m.Version] = tickSizes[h.build] * 1_000_000
		}
	}
}

// end has a last tick close all windows before it, and lets the job read all there is.
func (h *ticking) end(t *testing.T) {
	t.Helper()
	h.ended = true
	for part := range partitions {
		h.feeder.hold(part)
	}
	h.feeder.finish(t)
	l := start(t, h.folder, h.binary, "-size", fmt.Sprint(tickSizes[h.build], "s"))
	l.await(t, l.ended)
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the last run: exit code %d\n%s", code, l.stderr.String())
	}
	h.read(t)
}
