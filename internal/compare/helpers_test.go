package compare

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fatal is what a test and a rapid one can do.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a store in which outboxes are frozen.
type world struct {
	t       fatal
	st      *store.Memory
	objects int
}

func newWorld(t fatal) *world { return &world{t: t, st: store.NewMemory()} }

func (w *world) path() (string, error) {
	w.objects++
	return fmt.Sprintf("data/%d", w.objects), nil
}

// frozen is a row as a test writes it.
type frozen struct {
	op   connector.Op
	key  string
	row  []byte
	wire []byte
}

var keyType = must(schema.KeyOf[string]("key"))

// slotOf is the slot of a key; there are few, so that keys share them.
func slotOf(key string) uint16 { return uint16(xxhash.Sum64String(key) % 5) }

// freeze writes an outbox in parts of at most partRows; 0: in one.
func (w *world) freeze(sink string, table bool, s *schema.Schema, rows []frozen, partRows int64) []epoch.Object {
	w.t.Helper()
	if len(rows) == 0 {
		return nil
	}
	form := outbox.Form{Sink: sink, Contract: 1, Row: s, MaxRows: partRows}
	if table {
		form.Key, form.Compare = keyType.Schema(), must(schema.Comparer(keyType.Schema()))
	}
	var all outbox.Rows
	for i, r := range rows {
		slot := uint16(0)
		place := uint64(i)
		if table {
			slot = slotOf(r.key)
			place = uint64(slot)
		}
		all.Begin(place, 0, r.op, slot)
		if table {
			all.Buf = keyType.Append(all.Buf, r.key)
		}
		all.Row(r.row != nil)
		all.Buf = append(all.Buf, r.row...)
		all.Wire(r.wire != nil)
		all.Buf = append(all.Buf, r.wire...)
		all.End()
	}
	objects, err := outbox.Write(ctxOf(), w.st, "job", form, []outbox.Batch{{Rows: &all}}, w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	return objects
}

func (w *world) side(steps []Step) Side {
	return Side{Store: w.st, Job: "job", Steps: sequenceOf(steps)}
}

func sequenceOf(steps []Step) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// compareAll compares two sides at once.
func (w *world) compareAll(o Options, old, now []Step) Result {
	w.t.Helper()
	c := must(New("job", "out", o))
	if err := c.Run(ctxOf(), w.side(old), w.side(now)); err != nil {
		w.t.Fatal(err)
	}
	return c.Result()
}

// encode returns the encoding of a value.
func encode[T any](t *schema.Type[T], v T) []byte { return must(t.Append(nil, &v)) }

// cut is where a side takes steps: the ends of all, up to n.
func cuts(n int, isEnd func(i int) bool) (ends []int) {
	for i := 1; i < n; i++ {
		if isEnd(i) {
			ends = append(ends, i)
		}
	}
	return append(ends, n)
}

func wantCounts(t fatal, got, want Counts) {
	t.Helper()
	if got != want {
		t.Fatalf("the counts are\n%+v, want\n%+v", got, want)
	}
}

// seeded returns a source of randomness whose seed a failure prints.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed is %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// sharedEnds are the positions at which both sides have a boundary.
func sharedEnds(a, b []int) (both []int) {
	for _, end := range a {
		if slices.Contains(b, end) {
			both = append(both, end)
		}
	}
	return both
}
