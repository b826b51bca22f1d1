package state

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/epoch"
)

var update = flag.Bool("update", false, "write what the scripts in testdata print into them")

// workload is what epochs write into a state, in a model of sizes: content says
// what an epoch changes, union what segments hold together.
type workload[C any] struct {
	start   []C
	change  func(e int) C
	union   func(old, new C) C
	size    func(C) float64 // in bytes
	content []C
}

// uniform changes the given number of bytes out of all that a state has, evenly
// spread: a content is the share of all entries that it holds.
func uniform(all, changed float64) workload[float64] {
	return workload[float64]{
		start:  []float64{1},
		change: func(int) float64 { return changed / all },
		union:  func(a, b float64) float64 { return a + b - a*b },
		size:   func(c float64) float64 { return c * all },
	}
}

// growing adds entries that are never changed; hot changes the same again and
// again, on a base of others.
func growing(base float64, add func(e int) float64) workload[float64] {
	w := workload[float64]{
		change: add,
		union:  func(a, b float64) float64 { return a + b },
		size:   func(c float64) float64 { return c },
	}
	if base > 0 {
		w.start = []float64{base}
	}
	return w
}

func hot(base, changed float64) workload[float64] {
	w := growing(base, func(int) float64 { return changed })
	w.union = math.Max
	return w
}

// harmonic changes entries by Zipf's law: a content has, for classes of entries
// about as frequent as each other, the share of them that it holds.
func harmonic(entries, changes float64) workload[[]float64] {
	var number []float64
	for from := 1.0; from <= entries; from *= 2 {
		number = append(number, math.Min(from, entries-from+1))
	}
	start, change := make([]float64, len(number)), make([]float64, len(number))
	for i := range number {
		p := math.Log(2) / math.Log(entries) / number[i] // of one entry in one change
		start[i], change[i] = 1, -math.Expm1(changes*math.Log1p(-p))
	}
	return workload[[]float64]{
		start:  [][]float64{start},
		change: func(int) []float64 { return change },
		union: func(a, b []float64) []float64 {
			out := make([]float64, len(a))
			for i := range a {
				out[i] = a[i] + b[i] - a[i]*b[i]
			}
			return out
		},
		size: func(c []float64) (sum float64) {
			for i := range c {
				sum += c[i] * number[i] * 50
			}
			return sum
		},
	}
}

// outcome is what became of a workload.
type outcome struct {
	amplification float64 // bytes written per byte of the epochs' own segments
	most          int     // segments at any time
	rewrites      int     // merges that took the oldest segment
	merges        int
	waste         float64 // the most bytes at any time, per byte of all merged
}

func (o outcome) String() string {
	return fmt.Sprintf("amplification %.2f, at most %d segments and %.2f times the bytes, %d merges, %d of them of all", o.amplification, o.most, o.waste, o.merges, o.rewrites)
}

// header is what every segment has besides its entries, in bytes.
const header = 300

// running is a merge under way.
type running[C any] struct {
	from, to, end int
	result        C
	beside        bool
}

// run plays a workload. duration is how many epochs a merge of so many bytes
// takes; if beside, a second one may run beside it.
func (w workload[C]) run(epochs int, beside bool, duration func(bytes float64) int) (o outcome) {
	w.content = slices.Clone(w.start)
	var merges []running[C]
	own, written := 0.0, 0.0
	for e := range epochs {
		c := w.change(e)
		own += header + w.size(c)
		w.content = append(w.content, c)
		merges = w.finish(merges, e)
		o.most = max(o.most, len(w.content))
		o.waste = max(o.waste, w.waste())
		from, to, ok := w.plan(merges, beside)
		if !ok {
			continue
		}
		c = w.content[from]
		for _, other := range w.content[from+1 : to] {
			c = w.union(c, other)
		}
		written += header + w.size(c)
		o.merges++
		if from == 0 {
			o.rewrites++
		}
		merges = append(merges, running[C]{from, to, e + duration(w.size(c)), c, len(merges) > 0})
	}
	o.amplification = 1 + written/own
	return o
}

// waste is what all segments have, per byte of what they would have as one.
func (w *workload[C]) waste() float64 {
	all, sum := w.content[0], 0.0
	for i, c := range w.content {
		sum += header + w.size(c)
		if i > 0 {
			all = w.union(all, c)
		}
	}
	return sum / (header + w.size(all))
}

// finish puts in the results of the merges that have come to their ends.
func (w *workload[C]) finish(merges []running[C], e int) []running[C] {
	for i := len(merges) - 1; i >= 0; i-- { // the newer segments first
		m := merges[i]
		if m.end > e {
			continue
		}
		w.content = slices.Replace(w.content, m.from, m.to, m.result)
		merges = slices.Delete(merges, i, i+1)
		for j := i; j < len(merges); j++ {
			merges[j].from -= m.to - m.from - 1
			merges[j].to -= m.to - m.from - 1
		}
	}
	return merges
}

func (w *workload[C]) plan(merges []running[C], beside bool) (from, to int, ok bool) {
	sizes := make([]epoch.Segment, len(w.content))
	for i, c := range w.content {
		sizes[i].Bytes = int64(header + w.size(c))
	}
	switch {
	case len(merges) == 0:
		return PlanMerge(sizes)
	case len(merges) == 1 && beside && !merges[0].beside:
		return PlanBeside(sizes, merges[0].to)
	}
	return 0, 0, false
}

func lasting(epochs int) func(float64) int { return func(float64) int { return epochs } }

// byRate is merges of so many bytes in an epoch's time.
func byRate(rate float64) func(float64) int {
	return func(bytes float64) int { return 1 + int(bytes/rate) }
}

// The figure that is promised: 3,600 epochs of 100,000 updates on a million
// keys, whether a merge takes no time or four epochs.
func TestWriteAmplification(t *testing.T) {
	for d := range 5 {
		if o := uniform(50e6, 5e6).run(3600, false, lasting(d)); o.amplification > 3 {
			t.Errorf("merges of %d epochs: %v, want at most 3", d, o)
		}
	}
}

func TestPlannedMergesKeepSegmentsFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(name string) float64 { return math.Pow(10, rapid.Float64Range(2, 9).Draw(t, name)) }
		duration := rapid.IntRange(1, 4).Draw(t, "duration")
		var o outcome
		switch base, epochs := bytes("base"), rapid.IntRange(1, 1500).Draw(t, "epochs"); rapid.IntRange(0, 3).Draw(t, "workload") {
		case 0:
			o = uniform(base, base/math.Pow(10, rapid.Float64Range(0, 4).Draw(t, "part"))).run(epochs, false, lasting(duration))
		case 1:
			sizes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return bytes("size") }), 1, 20).Draw(t, "sizes")
			o = growing(base, func(e int) float64 { return sizes[e%len(sizes)] }).run(epochs, false, lasting(duration))
		case 2:
			o = hot(base, bytes("changed")).run(epochs, false, lasting(duration))
		default:
			o = harmonic(1+base/50, 1+base/500).run(epochs, false, lasting(duration))
		}
		if duration <= 3 && o.most > 10 || o.most > 12 {
			t.Errorf("%v with merges of %d epochs", o, duration)
		}
		if o.amplification > 15 {
			t.Errorf("%v with merges of %d epochs", o, duration)
		}
	})
}

// Merges of large states take as long as they take: those beside them keep what
// comes meanwhile together, as long as merges can keep up at all.
func TestSegmentsStayFewBesideLongMerges(t *testing.T) {
	for _, keys := range []float64{1e6, 1e7, 3e7} {
		alone := uniform(50*keys, 5e6).run(3600, false, byRate(100e6))
		beside := uniform(50*keys, 5e6).run(3600, true, byRate(100e6))
		if beside.most > 12 || beside.most > alone.most || beside.amplification > 1.5*alone.amplification {
			t.Errorf("%.0f keys: alone %v; beside %v", keys, alone, beside)
		}
	}
}

// The figure that is promised: a state takes at most two and a half times the
// room that it would have as one segment, unless merges take longer than epochs
// that change most of it.
func TestAStateTakesLittleRoom(t *testing.T) {
	for _, part := range []float64{1, 0.5, 0.3, 0.1, 0.05, 0.01, 0.001} {
		for d := range 4 {
			if d > 1 && part > 0.1 {
				continue
			}
			if o := uniform(50e6, part*50e6).run(2000, true, lasting(d)); o.waste > 2.5 {
				t.Errorf("epochs that change %g of all, merges of %d epochs: %v", part, d, o)
			}
		}
	}
}

func TestSmallChangesLeaveALargeBaseAlone(t *testing.T) {
	if o := hot(1e9, 1000).run(3600, false, lasting(1)); o.rewrites > 0 {
		t.Errorf("always the same entries: %v", o)
	}
	o := growing(1e9, func(int) float64 { return 1000 }).run(3600, false, lasting(1))
	if o.rewrites > 0 { // all of it together is 0.4 per cent of the base
		t.Errorf("always other entries: %v", o)
	}
}

func TestGrowthCostsLittleMore(t *testing.T) {
	// Ten times as many epochs must cost about as much more each time.
	add := func(int) float64 { return 1e5 }
	before := growing(0, add).run(100, false, lasting(1)).amplification
	for _, epochs := range []int{1000, 10_000} {
		now := growing(0, add).run(epochs, false, lasting(1)).amplification
		if now > before+6 {
			t.Errorf("%d epochs: amplification %.2f after %.2f for a tenth of them", epochs, now, before)
		}
		before = now
	}
}

func TestPlansAreWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 0, 40).Draw(t, "sizes")
		s := make([]epoch.Segment, len(sizes))
		for i := range s {
			s[i].Bytes = sizes[i]
		}
		busy := rapid.IntRange(0, len(s)).Draw(t, "busy")
		if from, to, ok := PlanMerge(s); ok && (from < 0 || to-from < 2 || to > len(s) || len(s)-(to-from)+1 > mergeTo) {
			t.Errorf("PlanMerge: %d to %d of %d", from, to, len(s))
		} else if !ok && len(s) >= mergeAt {
			t.Errorf("PlanMerge: nothing, of %d", len(s))
		}
		if from, to, ok := PlanBeside(s, busy); ok && (from < busy || to-from < 2 || to > len(s)) {
			t.Errorf("PlanBeside %d: %d to %d of %d", busy, from, to, len(s))
		}
	})
}

// TestPlanScript runs testdata/plan.txt: commands, each followed by a line of
// four dashes, what it prints and an empty line.
//
//	plan SIZE…            what is merged of segments of these sizes
//	beside BUSY SIZE…     the same while the first BUSY are being merged
//	run WORKLOAD EPOCHS D what becomes of it if a merge takes D epochs
func TestPlanScript(t *testing.T) {
	const file = "testdata/plan.txt"
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, part := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
		command, _, _ := strings.Cut(part, "\n----")
		fmt.Fprintf(&out, "%s\n----\n%s\n\n", command, runCommand(t, command))
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if strings.TrimSpace(out.String()) != strings.TrimSpace(string(script)) {
		t.Errorf("%s has changed; look at it, then run with -update. Now:\n%s", file, out.String())
	}
}

func runCommand(t *testing.T, command string) string {
	lines := strings.Split(command, "\n")
	words := strings.Fields(lines[len(lines)-1]) // comments stand before it
	switch words[0] {
	case "plan":
		s := sized(t, words[1:])
		from, to, ok := PlanMerge(s)
		return describe(words[1:], from, to, ok)
	case "beside":
		from, to, ok := PlanBeside(sized(t, words[2:]), number(t, words[1]))
		return describe(words[2:], from, to, ok)
	case "run":
		return runWorkload(t, words[1], number(t, words[2]), lasting(number(t, words[3])))
	}
	t.Fatalf("unknown command %q", command)
	return ""
}

func runWorkload(t *testing.T, name string, epochs int, duration func(float64) int) string {
	switch name {
	case "uniform-1M":
		return uniform(50e6, 5e6).run(epochs, false, duration).String()
	case "uniform-10M":
		return uniform(500e6, 5e6).run(epochs, false, duration).String()
	case "zipf-1M":
		return harmonic(1e6, 400_000).run(epochs, false, duration).String()
	case "growing":
		return growing(0, func(int) float64 { return 5e6 }).run(epochs, false, duration).String()
	case "tiny-on-1GB":
		return growing(1e9, func(int) float64 { return 1000 }).run(epochs, false, duration).String()
	case "hot-on-1GB":
		return hot(1e9, 1000).run(epochs, false, duration).String()
	}
	t.Fatalf("unknown workload %q", name)
	return ""
}

func describe(sizes []string, from, to int, ok bool) string {
	if !ok {
		return "nothing"
	}
	return fmt.Sprintf("[%s] %s", strings.Join(sizes[from:to], " "), fmt.Sprintf("of %d, leaving %d", len(sizes), len(sizes)-(to-from)+1))
}

// sized reads sizes like 7, 20k, 3M or 1G.
func sized(t *testing.T, words []string) []epoch.Segment {
	s := make([]epoch.Segment, len(words))
	for i, w := range words {
		unit := 1
		if n := strings.IndexByte("kMG", w[len(w)-1]); n >= 0 {
			unit, w = []int{1e3, 1e6, 1e9}[n], w[:len(w)-1]
		}
		s[i].Bytes = int64(number(t, w) * unit)
	}
	return s
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
