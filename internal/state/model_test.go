package state

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// history is a state that epochs change and merges fold, beside a map.
type history struct {
	form     Form
	st       *store.Memory
	model    model
	segments []epoch.Segment
	written  int
}

func (h *history) path() string {
	h.written++
	return fmt.Sprintf("%s-%04d.avro", h.form.Name, h.written)
}

func rowsOf(f Form) *rapid.Generator[row] {
	return rapid.Custom(func(t *rapid.T) row {
		r := row{key: rapid.StringMatching(`[ab]{0,3}|[a-z]{1,40}|.`).Draw(t, "key")}
		if f.Element != nil {
			r.element = rapid.Int64Range(-3, 200).Draw(t, "element")
		}
		return r
	})
}

func (h *history) epoch(t *rapid.T) {
	rows := rapid.SliceOfNDistinct(rowsOf(h.form), 0, 60, rapid.ID[row]).Draw(t, "rows")
	changes := make([]*Changes, rapid.IntRange(1, 4).Draw(t, "shards"))
	for i := range changes {
		changes[i] = new(Changes)
	}
	for i, r := range rows {
		c := changes[rapid.IntRange(0, len(changes)-1).Draw(t, "shard")]
		if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
			remove(c, h.form, r)
			delete(h.model, r)
		} else {
			put(c, h.form, r, int64(i+1000*h.written))
			h.model[r] = int64(i + 1000*h.written)
		}
	}
	s, err := Write(context.Background(), h.st, job, h.path(), h.form, changes, int64(len(rows)*10))
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows != int64(len(rows)) {
		t.Fatalf("%d rows written, the segment says %d", len(rows), s.Rows)
	}
	h.segments = append(h.segments, s)
}

func (h *history) merge(t *rapid.T) {
	if len(h.segments) == 0 {
		return
	}
	from := rapid.IntRange(0, len(h.segments)-1).Draw(t, "from")
	to := rapid.IntRange(from+1, len(h.segments)).Draw(t, "to")
	s, err := Merge(context.Background(), h.st, job, h.path(), h.form, h.segments[from:to], from == 0)
	if err != nil {
		t.Fatal(err)
	}
	h.segments = slices.Replace(h.segments, from, to, s)
}

func (h *history) check(t *rapid.T) {
	ctx := context.Background()
	slots := epoch.AllSlots
	if rapid.Bool().Draw(t, "some") {
		slots.First = epoch.Slot(rapid.SampledFrom([]int{0, 1, 64, 9000}).Draw(t, "first"))
		slots.Last = epoch.Slot(rapid.SampledFrom([]int{9000, 40000, 65535}).Draw(t, "last"))
	}
	want := maps.Clone(h.model)
	maps.DeleteFunc(want, func(r row, _ int64) bool { return r.slot() < slots.First || r.slot() > slots.Last })
	got, rows, err := all(ctx, h.st, h.form, h.segments, slots)
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("Read: %v, error %v; want %v", got, err, want)
	}
	if !slices.Equal(rows, want.ordered()) {
		t.Fatalf("Read in the order %v; want %v", rows, want.ordered())
	}
	parts := [][]epoch.Slots{
		{epoch.AllSlots}, {{First: 0, Last: 32767}, {First: 32768, Last: 65535}},
		{{First: 0, Last: 0}, {First: 1, Last: 63}, {First: 64, Last: 8191}, {First: 8192, Last: 65534}, {First: 65535, Last: 65535}},
	}
	got, err = restored(ctx, h.st, h.form, h.segments, rapid.SampledFrom(parts).Draw(t, "parts"))
	if err != nil || !maps.Equal(got, h.model) {
		t.Fatalf("Restore: %v, error %v; want %v", got, err, h.model)
	}
}

// Equal state gives equal bytes: all merged into one is what the model's
// entries give when they are written at once.
func (h *history) checkBytes(t *rapid.T) {
	ctx := context.Background()
	merged, err := Merge(ctx, h.st, job, "merged.avro", h.form, h.segments, true)
	if err != nil {
		t.Fatal(err)
	}
	var c Changes
	for r, value := range h.model { // in any order
		put(&c, h.form, r, value)
	}
	written, err := Write(ctx, h.st, job, "written.avro", h.form, []*Changes{&c}, merged.Memory)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := h.st.Read(ctx, job+"/merged.avro", 1<<30)
	b, _ := h.st.Read(ctx, job+"/written.avro", 1<<30)
	if written.Path = merged.Path; written != merged || !bytes.Equal(a, b) {
		t.Fatalf("merged %+v\nwritten %+v", merged, written)
	}
}

func TestHistories(t *testing.T) {
	for _, form := range []Form{plainForm(), elementForm()} {
		t.Run(form.Name, rapid.MakeCheck(func(t *rapid.T) {
			h := &history{form: form, st: store.NewMemory(), model: model{}}
			t.Repeat(map[string]func(*rapid.T){"epoch": h.epoch, "merge": h.merge, "check": h.check})
			h.check(t)
			h.checkBytes(t)
		}))
	}
}
