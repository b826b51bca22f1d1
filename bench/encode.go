package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/schema"
)

const (
	// dirtyEntries are the entries that an epoch changes.
	dirtyEntries = 100_000
	// encodings is how often they are encoded; the median counts.
	encodings = 15
)

// updates are the numbers of the keys in the order in which they are updated:
// all of them, then for each encoding as many as it encodes.
func updates() []int {
	r := newRandom(1)
	out := r.Perm(allKeys)
	for range encodings {
		out = append(out, r.Perm(allKeys)[:dirtyEntries]...)
	}
	return out
}

func updateOf(names []string, keys []int, i int) payment {
	return payment{names[keys[i]], int64(i % 10_000)}
}

func userNames() []string {
	names := make([]string, allKeys)
	for i := range names {
		names[i] = userName(i)
	}
	return names
}

// encodeTable measures what one shard takes from an epoch's end until its
// changes are encoded.
func encodeTable(task) (sample, error) {
	e := encoder{keys: updates(), names: userNames(), gate: make(chan int64), clock: make(handClock), applied: make(chan struct{})}
	run, err := e.start()
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if _, err := e.step(run, allKeys); err != nil {
		return nil, err
	}
	return encodeRepeatedly(func(i int) (encoded, error) {
		return e.step(run, allKeys+(i+1)*dirtyEntries)
	})
}

// encoded is what an encoding took, and a mark of its bytes.
type encoded struct {
	took time.Duration
	mark float64
}

// encodeRepeatedly returns the median of some encodings.
func encodeRepeatedly(step func(i int) (encoded, error)) (sample, error) {
	debug.SetGCPercent(-1)
	var took []time.Duration
	var mark float64
	for i := range encodings {
		runtime.GC()
		e, err := step(i)
		if err != nil {
			return nil, err
		}
		took, mark = append(took, e.took), e.mark
	}
	slices.Sort(took)
	return sample{cpuSeconds: took[len(took)/2].Seconds() / dirtyEntries, "mark": mark}, nil
}

// encoder updates a table with one shard, step by step.
type encoder struct {
	keys    []int
	names   []string
	gate    chan int64
	clock   handClock     // ends the epochs
	applied chan struct{} // of a step, all
	goal    int           // the number of updates at which that is so
	count   int
}

func (e *encoder) start() (*engine.Run, error) {
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		return nil, err
	}
	value, err := schema.Of[spend]("spend")
	if err != nil {
		return nil, err
	}
	g := engine.NewGraph()
	count := int64(len(e.keys)) + 1 // one more than is ever let through: the input doesn't end
	node := engine.AddSource(g, "updates", numbers[payment]{count: count, partitions: 1, gate: e.gate, decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			*v = updateOf(e.names, e.keys, int(b.Records[i].Offset))
			return nil
		}
	}})
	keyed, err := engine.KeyBy(g, node, keys, payment.user, "", nil)
	if err != nil {
		return nil, err
	}
	spec, err := engine.AddState(g, keyed.Stage, engine.StateSpec{Name: "spend", Kind: "value", Operator: "spend", Operation: "fold"}, value, carry.Spec[string, spend]{})
	if err != nil {
		return nil, err
	}
	engine.AddAlwaysFold(keyed, spec, e.fold)
	if err := g.Build(); err != nil {
		return nil, err
	}
	world := env.Real()
	world.Clock = e.clock
	run, err := engine.NewRun(g, engine.Options{
		Env: world, Log: quiet(), Job: "encode", Workers: 1, Shards: 1, EpochEvery: time.Second, EpochBytes: 1 << 60,
		BatchRecords: 2048, BatchBytes: 1 << 20, EpochsInFlight: 3, DiscoverEvery: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	if _, err := run.Open(context.Background()); err != nil {
		return nil, err
	}
	run.Start(context.Background())
	return run, nil
}

// handClock is a clock whose timers fire when a time is sent.
type handClock chan time.Time

// Now implements [env.Clock].
func (c handClock) Now() time.Time { return time.Now() }

// NewTimer implements [env.Clock].
func (c handClock) NewTimer(time.Duration) env.Timer { return handTimer{c} }

type handTimer struct{ clock handClock }

func (t handTimer) C() <-chan time.Time { return t.clock }
func (t handTimer) Reset(time.Duration) {}
func (t handTimer) Stop()               {}

func (e *encoder) fold(s *spend, p payment) {
	s.add(p)
	if e.count++; e.count == e.goal {
		e.applied <- struct{}{}
	}
}

// step applies the updates up to a number, and ends the epoch.
func (e *encoder) step(run *engine.Run, to int) (encoded, error) {
	e.goal = to
	e.gate <- int64(to)
	select {
	case <-e.applied:
	case <-run.Quit():
		return encoded{}, errors.New("the run has ended before its input")
	}
	emptyCaches()
	began := settledCPU()
	e.clock <- time.Now()
	ended := <-run.Epochs()
	<-ended.Done
	took := settledCPU() - began
	mark := markOf(ended.Changes(0)[0].Buf)
	run.Release(ended)
	return encoded{took, mark}, nil
}

// markOf is a number by which equal bytes are known.
func markOf(data []byte) float64 {
	sum := sha256.Sum256(data)
	return float64(binary.BigEndian.Uint64(sum[:]) >> 16)
}

// emptyCaches puts something else into the processor's caches.
func emptyCaches() {
	ballast := make([]byte, 128<<20)
	for i := 0; i < len(ballast); i += 64 {
		ballast[i]++
	}
}

// heldEntry and its chunks are the engine's table, without its index.
type heldEntry struct {
	hash  uint64
	key   string
	value spend
	_     [3]bool // the engine's marks
}

// encodeFloor appends the same bytes, entry by entry, in a loop.
func encodeFloor(task) (sample, error) {
	const chunk = 1 << 10
	keys, names := updates(), userNames()
	chunks := make([]*[chunk]heldEntry, (allKeys+chunk-1)/chunk)
	for i := range chunks {
		chunks[i] = new([chunk]heldEntry)
	}
	numberOf := make([]uint32, allKeys)
	at := func(n uint32) *heldEntry { return &chunks[n/chunk][n%chunk] }
	for i := range allKeys {
		p := updateOf(names, keys, i)
		numberOf[keys[i]] = uint32(i)
		e := at(uint32(i))
		e.key, e.hash = p.User, xxhash.Sum64(appendText(nil, p.User))
		e.value.add(p)
	}
	var dirty []uint32
	var buf []byte
	return encodeRepeatedly(func(i int) (encoded, error) {
		from := allKeys + i*dirtyEntries
		dirty = dirty[:0]
		for j := from; j < from+dirtyEntries; j++ {
			n := numberOf[keys[j]]
			at(n).value.add(updateOf(names, keys, j))
			dirty = append(dirty, n)
		}
		emptyCaches()
		began := settledCPU()
		buf = buf[:0]
		for _, n := range dirty {
			e := &chunks[n/chunk][n%chunk]
			buf = binary.AppendVarint(buf, int64(e.hash>>48))
			buf = appendText(buf, e.key)
			buf = append(buf, 2) // there is a value
			buf = binary.AppendVarint(buf, e.value.Orders)
			buf = binary.AppendVarint(buf, e.value.Cents)
		}
		return encoded{settledCPU() - began, markOf(buf)}, nil
	})
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

func measureEncode(b *bench) ([]Result, error) {
	s, floor, err := b.compare("encode", "encode.floor", "", cpuSeconds, 3)
	if err != nil {
		return nil, err
	}
	if s["mark"] != floor["mark"] {
		return nil, errors.New("the engine's bytes and the floor's differ")
	}
	r := Result{
		Name: "barrier.encode", Value: s[cpuSeconds] * 1e9, Unit: "ns",
		What: fmt.Sprintf("CPU per dirty entry at a barrier, %d of %d entries, cold caches; floor: a loop that appends the same bytes from the same memory", dirtyEntries, allKeys),
		Why:  "memory: each entry and its key are fetched from it, here as in the floor; the engine also writes an index for the sort, and looks at the marks of what the next epoch has touched",
	}.against(floor[cpuSeconds] * 1e9).atMost(1.5)
	return []Result{r}, nil
}
