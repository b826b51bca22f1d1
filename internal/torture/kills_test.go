package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// size is how much a history of kills holds.
type size struct {
	records, kills, users int
}

var (
	small = size{records: 60_000, kills: 12, users: 1_000}
	large = size{records: 1_200_000, kills: 210, users: 20_000}
)

// TestKills runs one history of a job that is killed again and again, while its
// input grows, half of the times or more with an epoch in flight and a quarter
// or more inside a recovery. Then its outputs are what the input says.
func TestKills(t *testing.T) {
	s := small
	if os.Getenv("SLUICE_TORTURE") != "" {
		s = large
	} else {
		t.Parallel()
	}
	h := newHistory(t, s)
	for h.kills < s.kills || !h.wellSpread() && h.kills < 2*s.kills {
		h.live(t)
	}
	h.end(t)
	h.tell(t)
	verifyShop(t, h.folder, h.journal.manifests)
}

// TestKillsUnderFaults runs such a history while calls of the file system go
// wrong: of the store, the sinks and the input. A run that ends by that is
// started again at once.
func TestKillsUnderFaults(t *testing.T) {
	s := size{records: 30_000, kills: 6, users: 1_000}
	if os.Getenv("SLUICE_TORTURE") != "" {
		s = size{records: 300_000, kills: 60, users: 5_000}
	} else {
		t.Parallel()
	}
	h := newHistory(t, s)
	h.faults = true
	for h.kills < s.kills {
		h.live(t)
	}
	h.end(t)
	verifyShop(t, h.folder, h.journal.manifests)
}

// tell prints what the kills have met.
func (h *history) tell(t *testing.T) {
	t.Helper()
	t.Logf("%d kills: %d with an epoch in flight (%d of them with parts of it written), %d inside a recovery (%d of them with the branch taken); %d of %d records came before the last life",
		h.kills, h.inFlight, h.written, h.recovering, h.taken, h.committed, h.feeder.fed)
	if !h.wellSpread() {
		t.Errorf("too few of the %d kills came with an epoch in flight (%d) or inside a recovery (%d)", h.kills, h.inFlight, h.recovering)
	}
}

// history is a job and what has been done to it.
type history struct {
	size    size
	rng     *rand.Rand
	folder  string
	binary  string
	feeder  *feeder
	journal *journal
	faults  bool          // calls of the file system go wrong
	boot    time.Duration // what a recovery takes, as seen last

	kills      int
	inFlight   int // records had been read that no manifest has
	written    int // and data objects of their epoch were there
	recovering int // there was something to come back from, and no record had been read
	taken      int // and the branch had a new owner already
	committed  int64
}

// wellSpread tells whether the kills came at the moments that matter.
func (h *history) wellSpread() bool {
	return h.inFlight*2 >= h.kills && h.recovering*4 >= h.kills
}

// drawSeed is the seed of a history's choices, which it prints.
func drawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SLUICE_TORTURE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TORTURE_SEED=%d", seed)
	return seed
}

func newHistory(t *testing.T, s size) *history {
	t.Helper()
	seed := drawSeed(t)
	h := &history{size: s, rng: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir()}
	h.binary = filepath.Join(build(t, &binaries.shop, "shop"), "shop")
	in := filepath.Join(h.folder, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	h.feeder = newFeeder(t, rng, in, orders(rng, s.users))
	h.journal = openJournal(filepath.Join(h.folder, "store"), "shop")
	h.boot = 20 * time.Millisecond
	return h
}

// options are drawn anew for each life: nothing may depend on them.
func (h *history) options() []string {
	faults := uint64(0)
	if h.faults {
		faults = h.rng.Uint64() | 1
	}
	return []string{
		"-faults", fmt.Sprint(faults),
		"-shards", fmt.Sprint(1 + h.rng.IntN(5)),
		"-epoch", (time.Duration(5+h.rng.IntN(60)) * time.Millisecond).String(),
		"-epoch-bytes", fmt.Sprint(8 << 10 << h.rng.IntN(6)),
		"-batch", fmt.Sprint(16 << h.rng.IntN(8)),
	}
}

// live is one life and its end.
func (h *history) live(t *testing.T) {
	t.Helper()
	if h.recovering*3 < h.kills && h.journal.head().Position > 0 {
		h.liveToRecover(t)
	} else {
		h.liveToRead(t)
	}
}

// liveToRecover kills a process before it reads, if the moment is well chosen.
func (h *history) liveToRecover(t *testing.T) {
	t.Helper()
	l := start(t, h.folder, h.binary, append(h.options(), "-follow")...)
	l.await(t, l.started)
	select {
	case <-time.After(time.Duration(h.rng.Int64N(int64(h.boot)))):
	case <-l.first:
	}
	h.kill(t, l)
}

// liveToRead kills a process at a moment of its work, after a few commits,
// while its input grows.
func (h *history) liveToRead(t *testing.T) {
	t.Helper()
	const commitsAtMost = 6
	// Two of three lives read, and get commitsAtMost/2 + 2 pieces each.
	piece := h.size.records * 3 / (h.size.kills * (commitsAtMost + 4))
	h.feeder.feed(t, piece)
	l := start(t, h.folder, h.binary, append(h.options(), "-follow")...)
	l.await(t, l.first)
	for range h.rng.IntN(commitsAtMost + 1) {
		h.feeder.feed(t, piece)
		l.await(t, l.commits)
	}
	h.feeder.feed(t, piece)
	select {
	case <-time.After(time.Duration(h.rng.Int64N(int64(lastMoment)))):
	case <-l.ended:
	}
	h.kill(t, l)
}

// lastMoment is about what an epoch takes until it is committed.
const lastMoment = 100 * time.Millisecond

// kill kills a process, and finds out what it was at.
func (h *history) kill(t *testing.T, l *life) {
	t.Helper()
	before := h.journal.head().Position
	l.kill(t)
	h.kills++
	select {
	case <-l.first:
		h.boot = l.boot
	default:
	}
	seen := l.seen(t)
	had := len(h.journal.manifests)
	h.journal.read(t)
	committed := int64(0)
	for _, m := range h.journal.manifests[had:] {
		if m.Writer.PID != l.cmd.Process.Pid {
			t.Fatalf("epoch %d was written by process %d while %d ran", m.Epoch, m.Writer.PID, l.cmd.Process.Pid)
		}
		committed += m.Counts["records"]
	}
	h.committed += committed
	switch {
	case seen > committed:
		h.inFlight++
		if h.journal.written(t) {
			h.written++
		}
	case seen == 0 && before > 0:
		h.recovering++
		if len(h.journal.manifests) > had {
			h.taken++
		}
	}
}

// end lets the job read all that there is, and end.
func (h *history) end(t *testing.T) {
	t.Helper()
	h.feeder.feed(t, max(0, h.size.records-h.feeder.fed))
	h.feeder.finish(t)
	l := start(t, h.folder, h.binary, "-epoch-bytes", "8388608")
	l.await(t, l.ended)
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the last run: exit code %d\n%s", code, l.stderr.String())
	}
	h.journal.read(t)
}
