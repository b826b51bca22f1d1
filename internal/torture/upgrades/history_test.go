package upgrades

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/internal/torture/topics"
	"github.com/sluicestream/sluice/kafka/embedded"
)

const (
	partitions = 3
	keys       = 24
	// patience is how long anything may take that has to come.
	patience = topics.Patience
	// timeout is how long the job's transactions may take.
	timeout = 3 * time.Second
)

// torture tells whether the long tests are to run.
func torture() bool { return os.Getenv("SLUICE_TORTURE") == "1" }

// step is a part of a history: a version that takes the job over.
type step struct {
	version int
	command string // run, upgrade or rollback
	kind    string // of the generation that comes of it
}

// longHistory is one in which one version follows the other, and the second comes back.
var longHistory = []step{
	{1, "run", "first"},
	{2, "upgrade", "upgrade"},
	{3, "upgrade", "upgrade"},
	{2, "rollback", "rollback"},
	{4, "upgrade", "upgrade"},
}

// TestHistories runs histories on the embedded broker.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories := 10
	if torture() {
		histories = 200
	}
	many(t, histories, startBroker(t), nil)
}

// startBroker starts an embedded broker, for as long as the test runs.
func startBroker(t *testing.T) (addr string) {
	t.Helper()
	broker, err := embedded.Start(embedded.Options{Folder: quickFolder(t), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	return broker.Addr()
}

// TestHistoriesOnRealServers runs histories on Kafka and PostgreSQL.
func TestHistoriesOnRealServers(t *testing.T) {
	t.Parallel()
	histories := 2
	if torture() {
		histories = 20
	}
	many(t, histories, realKafka(t).Addr(), database(t))
}

var (
	realKafka = services.SharedKafka(services.KafkaOptions{})
	database  = services.SharedPostgres(services.PostgresOptions{})
)

// many runs histories, each by a seed of its own: the one of SLUICE_TORTURE_SEED alone,
// if there is one.
func many(t *testing.T, histories int, kafka string, db *services.Database) {
	t.Helper()
	first, given := seedOf(t)
	if given {
		histories = 1
	}
	t.Run("seed", func(t *testing.T) {
		for n := range histories {
			seed := first + uint64(n)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				h := newHistory(t, seed, kafka, db)
				h.run()
			})
		}
	})
}

// seedOf is the seed of SLUICE_TORTURE_SEED, or else a new one.
func seedOf(t *testing.T) (seed uint64, given bool) {
	t.Helper()
	text := os.Getenv("SLUICE_TORTURE_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano()), false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed, true
}

// history is a job, those who run it, and what they read and write.
type history struct {
	t       *testing.T
	rng     *rand.Rand
	steps   []step
	name    string // of the job
	store   string
	env     []string
	db      *services.Database // nil: there is none
	cluster *topics.Cluster
	remote  bool // its processes can't tell of each other whether they live
	keepers []*keeper
	fed     int // how many inputs were written
	events  []string
}

func newHistory(t *testing.T, seed uint64, kafka string, db *services.Database) *history {
	t.Helper()
	t.Logf("the choices again: SLUICE_TORTURE_SEED=%d go test -run '%s'", seed, t.Name())
	buildAll(t)
	h := &history{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), steps: longHistory, name: services.Unique("tide"), store: filepath.Join(quickFolder(t), "store"),
		db: db, cluster: topics.Open(t, kafka),
	}
	h.remote = h.rng.IntN(3) == 0 && canBeRemote()
	for _, topic := range []string{"inputs", "audit", "totals"} {
		h.cluster.Create(t, h.topic(topic), partitions)
	}
	pg := ""
	if db != nil {
		pg = db.URL("")
		h.query(fmt.Sprintf(`create table %[1]s_audit (key text, id text, nth bigint, sum bigint, version bigint, since bigint);
			create table %[1]s_totals (key text primary key, count bigint, sum bigint, version bigint, since bigint)`, h.name))
	}
	h.env = []string{"TIDE_NAME=" + h.name, "TIDE_TIMEOUT=" + timeout.String(), "SLUICE_KAFKA=" + kafka, "SLUICE_POSTGRES=" + pg}
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			h.tell()
		}
	})
	return h
}

func (h *history) topic(name string) string { return h.name + "-" + name }

// run is the history.
func (h *history) run() {
	h.note("processes are apart: %t", h.remote)
	stop := h.feed()
	for n, s := range h.steps {
		h.note("%s of version %d", s.command, s.version)
		h.keep(s)
		h.troubles(5, []time.Duration{60 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond}[h.rng.IntN(3)])
		h.awaitLive(n)
		h.note("generation %d is live", n)
		if h.rng.IntN(4) > 0 { // otherwise it may end before it has done anything
			h.awaitEpoch(n)
		}
		h.troubles(3, 500*time.Millisecond)
	}
	for _, k := range h.keepers[:len(h.steps)-1] {
		if code := k.awaitEnd(h.t); code != superseded {
			h.t.Fatalf("%s ended with exit code %d, want %d", k.what, code, superseded)
		}
	}
	h.awaitGrowth(len(h.steps) - 1) // who only stands by ends when it is asked to stop
	stop()
	h.drain(h.steps[len(h.steps)-1], h.keepers[len(h.steps)-1])
	h.verify()
}

// note notes an event of the history, for who has to look into it.
func (h *history) note(format string, args ...any) {
	h.events = append(h.events, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// tell tells how the history went.
func (h *history) tell() {
	for _, e := range h.events {
		h.t.Log(e)
	}
	if !h.t.Failed() {
		return
	}
	for _, k := range h.keepers {
		h.t.Logf("=== %s\n%s", k.what, k.said())
	}
	if folder := os.Getenv("SLUICE_TORTURE_KEEP"); folder != "" {
		kept := filepath.Join(folder, h.name)
		h.t.Logf("the store is kept in %s: %v", kept, os.CopyFS(kept, os.DirFS(h.store)))
	}
}

// command is a command of a version, as it is started.
func (h *history) command(version int, args ...string) *exec.Cmd {
	cmd := exec.Command(executable(version), args...)
	cmd.Env = append(append(os.Environ(), h.env...), fmt.Sprint("TIDE_VERSION=", version))
	if h.remote {
		cmd.SysProcAttr = apart
	}
	return cmd
}

// keep supervises a step's command.
func (h *history) keep(s step, more ...string) *keeper {
	h.t.Helper()
	if s.command != "run" {
		more = append(more, "--auto")
	}
	k := keep(h.t, fmt.Sprintf("%s of version %d", s.command, s.version), h.starting(s, more...))
	h.keepers = append(h.keepers, k)
	return k
}

// starting makes a step's command anew, the same each time.
func (h *history) starting(s step, more ...string) func() *exec.Cmd {
	args := []string{s.command, "--store", h.store, "--volatile", "--listen", "", "--lease", "600ms", "--epoch", (time.Duration(60+h.rng.IntN(140)) * time.Millisecond).String(), "--shards", fmt.Sprint(1 + h.rng.IntN(3))}
	args = append(args, more...)
	return func() *exec.Cmd { return h.command(s.version, args...) }
}

// pause lets some time pass, up to a bound: when something happens is drawn.
func (h *history) pause(most time.Duration) { <-time.After(time.Duration(h.rng.Int64N(int64(most)))) }

// troubles makes fewer than so many troubles, with pauses up to a bound around them.
func (h *history) troubles(bound int, most time.Duration) {
	for range h.rng.IntN(bound) {
		h.pause(most)
		h.trouble()
	}
	h.pause(most)
}

// trouble kills a process that runs, or stops it for a while, or kills all at once.
func (h *history) trouble() {
	what, whom, long := h.rng.IntN(10), h.rng.IntN(len(h.steps)), time.Duration(h.rng.Int64N(int64(2500*time.Millisecond)))
	var running []*keeper
	for _, k := range h.keepers {
		if k.runs() {
			running = append(running, k)
		}
	}
	if len(running) == 0 {
		return
	}
	k := running[whom%len(running)]
	switch {
	case what == 0:
		h.note("kill all")
		for _, k := range h.keepers {
			k.signal(syscall.SIGKILL)
		}
	case what < 5:
		h.note("kill %s", k.what)
		k.signal(syscall.SIGKILL)
	default:
		h.note("stop %s for %v", k.what, long)
		time.AfterFunc(long, k.signal(syscall.SIGSTOP))
	}
}

// awaitLive waits until a generation is live.
func (h *history) awaitLive(n int) {
	h.t.Helper()
	topics.Eventually(h.t, fmt.Sprintf("generation %d is live", n), func() bool {
		_, err := os.Stat(h.object("live", fmt.Sprint(n)+".json"))
		for _, k := range h.keepers[n:] {
			select {
			case <-k.ended:
				h.t.Fatalf("%s ended with exit code %d before it was live", k.what, k.code)
			default:
			}
		}
		return err == nil
	})
}

// awaitEpoch waits until a generation has committed an epoch of its own.
func (h *history) awaitEpoch(n int) {
	h.t.Helper()
	log := h.object("branches", load[liveRecord](h, "live", fmt.Sprint(n)+".json").Branch, task)
	topics.Eventually(h.t, fmt.Sprintf("generation %d works", n), func() bool {
		paths, err := filepath.Glob(filepath.Join(log, "*.json"))
		if err != nil {
			h.t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				continue // it was cleaned away
			}
			if m := decode[manifest](h.t, data); m.Kind == "data" && m.Live != nil && *m.Live == n {
				return true
			}
		}
		return false
	})
}

// awaitGrowth waits until generation n goes on, so that its owner lives.
func (h *history) awaitGrowth(n int) {
	h.t.Helper()
	log := h.object("branches", load[liveRecord](h, "live", fmt.Sprint(n)+".json").Branch, task)
	newest := func() (most int) {
		paths, err := filepath.Glob(filepath.Join(log, "0*.json"))
		if err != nil {
			h.t.Fatal(err)
		}
		for _, path := range paths {
			var e int
			if _, err := fmt.Sscanf(filepath.Base(path), "%d.json", &e); err == nil {
				most = max(most, e)
			}
		}
		return most
	}
	begin := newest()
	topics.Eventually(h.t, fmt.Sprintf("generation %d goes on", n), func() bool { return newest() > begin+1 })
}

// feed begins to write inputs, and returns what ends that.
func (h *history) feed() (stop func()) {
	rng := rand.New(rand.NewPCG(h.rng.Uint64(), 2))
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			records := make([]*kgo.Record, 1+rng.IntN(12))
			for i := range records {
				h.fed++
				in := input{fmt.Sprint("input-", h.fed), fmt.Sprint("key-", rng.IntN(keys)), rng.Int64N(1000)}
				value, err := json.Marshal(in)
				if err != nil {
					panic(err)
				}
				records[i] = &kgo.Record{Topic: h.topic("inputs"), Key: []byte(in.Key), Value: value}
			}
			if err := h.cluster.Client.ProduceSync(h.t.Context(), records...).FirstErr(); err != nil {
				h.t.Errorf("writing inputs: %v", err)
				return
			}
			select {
			case <-done:
				return
			case <-time.After(time.Duration(rng.IntN(40)) * time.Millisecond):
			}
		}
	})
	return sync.OnceFunc(func() { close(done); writing.Wait() })
}

// drain has the job read all that there is, and stop.
func (h *history) drain(s step, k *keeper) {
	h.t.Helper()
	topics.Eventually(h.t, k.what+" is drained", func() bool {
		select {
		case <-k.ended:
			return true
		default: // it may not have run when it was asked
			out, err := h.command(s.version, "stop", "--drain", "--store", h.store, "--wait", "10s").CombinedOutput()
			h.note("stop --drain: %v: %s", err, out)
			return false
		}
	})
	if k.code != 0 {
		h.t.Fatalf("%s ended with exit code %d when it was drained", k.what, k.code)
	}
	h.cluster.Decided(h.t, h.topic("audit"), h.topic("totals"))
}
