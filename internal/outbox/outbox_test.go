package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

type row struct {
	Name string
	N    int64
}

var rowType = must(schema.Of[row]("row"))
var keyType = must(schema.KeyOf[string]("key"))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// add appends a row as the engine does.
func add(t interface{ Fatal(...any) }, r *Rows, hi, lo uint64, op connector.Op, key string, v *row, wire []byte) {
	slot := uint16(0)
	if op != connector.Append {
		slot = uint16(hi)
	}
	r.Begin(hi, lo, op, slot)
	if op != connector.Append {
		r.Buf = keyType.Append(r.Buf, key)
	}
	r.Row(v != nil)
	if v != nil {
		var err error
		if r.Buf, err = rowType.Append(r.Buf, v); err != nil {
			t.Fatal(err)
		}
	}
	r.Wire(wire != nil)
	r.Buf = append(r.Buf, wire...)
	r.End()
}

// A stream's rows come out in the order of batches and places, whoever had them.
func TestStreamsComeOutInTheOrderOfThePlaces(t *testing.T) {
	type place struct{ seq, hi, lo uint64 }
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) place {
			small := rapid.Uint64Range(0, 6)
			return place{small.Draw(t, "seq"), small.Draw(t, "hi"), small.Draw(t, "lo")}
		}), 1, 60, func(p place) place { return p }).Draw(rt, "places")
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
		})
		parts := map[[2]uint64]*Rows{} // by batch and goroutine
		var want []string
		for _, p := range places {
			id := [2]uint64{p.seq, rapid.Uint64Range(0, 3).Draw(rt, "goroutine")}
			if parts[id] == nil {
				parts[id] = new(Rows)
			}
			add(rt, parts[id], p.hi, p.lo, connector.Append, "", &row{Name: fmt.Sprint(p)}, nil)
			want = append(want, fmt.Sprint(p))
		}
		var batches []Batch
		for id, rows := range parts {
			batches = append(batches, Batch{id[0], rows})
		}
		st := store.NewMemory()
		object, err := writeBox(t, st, Form{Sink: "out", Contract: 1, Row: rowType.Schema()}, batches)
		if err != nil {
			rt.Fatal(err)
		}
		if got := names(rt, st, object); !slices.Equal(got, want) {
			rt.Fatalf("rows come out as %v, want %v", got, want)
		}
	})
}

// writeBox writes an outbox of one part, as the object "box".
func writeBox(t *testing.T, st store.Store, f Form, batches []Batch) (epoch.Object, error) {
	objects, err := Write(t.Context(), st, "job", f, batches, func() (string, error) { return "box", nil })
	if err != nil || len(objects) != 1 {
		return epoch.Object{}, fmt.Errorf("%d objects, %w", len(objects), err)
	}
	return objects[0], nil
}

// An outbox is cut where rows or bytes would pass a bound, in order, and a row
// that is larger than the bound stands alone.
func TestPartsAreBounded(t *testing.T) {
	var a Rows
	sizes := []int{10, 10, 10, 300, 10, 60, 60, 10}
	for i, size := range sizes {
		add(t, &a, uint64(i), 0, connector.Append, "", &row{strings.Repeat(string(rune('a'+i)), size), 1}, nil)
	}
	for _, c := range []struct {
		rows, bytes int64
		want        []int64
	}{
		{0, 0, []int64{8}},
		{3, 0, []int64{3, 3, 2}},
		{8, 0, []int64{8}},
		{0, 100, []int64{3, 1, 2, 2}},
		{2, 100, []int64{2, 1, 1, 2, 2}},
	} {
		form, n := Form{Sink: "out", Contract: 1, Row: rowType.Schema(), MaxRows: c.rows, MaxBytes: c.bytes}, 0
		st := store.NewMemory()
		objects, err := Write(t.Context(), st, "job", form, []Batch{{0, &a}}, func() (string, error) { n++; return fmt.Sprint("box", n), nil })
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, o := range objects {
			got = append(got, o.Rows)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("at most %d rows and %d bytes: parts of %v rows, want %v", c.rows, c.bytes, got, c.want)
		}
		box, err := Open(t.Context(), st, "job", objects)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for r, err := range box.Rows(t.Context()) {
			var v row
			if err == nil {
				_, err = rowType.Decode(r.Row, &v)
			}
			if err != nil || v.Name != strings.Repeat(string(rune('a'+at)), sizes[at]) {
				t.Fatalf("row %d is %q, %v", at, v.Name, err)
			}
			at++
		}
		if at != len(sizes) {
			t.Errorf("%d rows come out, want %d", at, len(sizes))
		}
	}
}

func names(rt *rapid.T, st store.Store, objects ...epoch.Object) (out []string) {
	box, err := Open(rt.Context(), st, "job", objects)
	if err != nil {
		rt.Fatal(err)
	}
	for r, err := range box.Rows(rt.Context()) {
		if err != nil {
			rt.Fatal(err)
		}
		var v row
		if _, err := rowType.Decode(r.Row, &v); err != nil {
			rt.Fatal(err)
		}
		out = append(out, v.Name)
	}
	return out
}

func tableForm() Form {
	return Form{Sink: "out", Contract: 1, Key: keyType.Schema(), Row: rowType.Schema(), Compare: must(schema.Comparer(keyType.Schema()))}
}

// A table's rows come out by slot and key, with their deletes and wire forms.
func TestTablesComeOutBySlotAndKey(t *testing.T) {
	var a, b Rows
	add(t, &a, 7, 0, connector.Put, "b", &row{"b", 1}, []byte("wire of b"))
	add(t, &a, 3, 0, connector.Delete, "z", nil, nil)
	add(t, &b, 7, 0, connector.Put, "a", &row{"a", 2}, []byte{})
	add(t, &b, 1, 0, connector.Put, "c", &row{"c", 3}, nil)
	st := store.NewMemory()
	object, err := writeBox(t, st, tableForm(), []Batch{{0, &a}, {0, &b}})
	if err != nil {
		t.Fatal(err)
	}
	box, err := Open(t.Context(), st, "job", []epoch.Object{object})
	if err != nil {
		t.Fatal(err)
	}
	if !box.Key.Equal(keyType.Schema()) || !box.Row.Equal(rowType.Schema()) {
		t.Errorf("schemas read as %v and %v", box.Key, box.Row)
	}
	var got []string
	for r, err := range box.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		k, _, err := keyType.Decode(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %d %s %t %q", r.Op, r.Slot, k, r.Row != nil, r.Wire))
	}
	want := []string{`1 1 c true ""`, `2 3 z false ""`, `1 7 a true ""`, `1 7 b true "wire of b"`}
	if !slices.Equal(got, want) {
		t.Errorf("rows are\n%q, want\n%q", got, want)
	}
}

// What a record had put out before it failed goes, and nothing else.
func TestRowsAreTakenBack(t *testing.T) {
	var r Rows
	add(t, &r, 0, 0, connector.Append, "", &row{"kept", 1}, nil)
	kept := slices.Clone(r.Buf)
	add(t, &r, 1, 0, connector.Append, "", &row{"dropped", 1}, []byte("x"))
	r.DropLast()
	r.Begin(1, 1, connector.Append, 0)
	r.Row(true)
	r.Buf = append(r.Buf, "half a row"...)
	r.Abandon()
	if !slices.Equal(r.Buf, kept) || len(r.Refs) != 1 {
		t.Errorf("after taking back there are %d rows in %q, want one in %q", len(r.Refs), r.Buf, kept)
	}
}

// Every damage to an outbox is an error that names it; none passes as rows.
func TestDamageIsNamed(t *testing.T) {
	var a Rows
	for i := range 20 {
		add(t, &a, uint64(i), 0, connector.Put, fmt.Sprint("key", i), &row{"name", int64(i)}, nil)
	}
	st := store.NewMemory()
	object, err := writeBox(t, st, tableForm(), []Batch{{0, &a}})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := st.Read(t.Context(), "job/box", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, data []byte) {
		t.Helper()
		if data == nil {
			err = st.Delete(t.Context(), "job/box")
		} else {
			err = st.Replace(t.Context(), "job/box", data)
		}
		if err != nil {
			t.Fatal(err)
		}
		box, err := Open(t.Context(), st, "job", []epoch.Object{object})
		if err == nil {
			for _, rowErr := range box.Rows(t.Context()) {
				err = rowErr
			}
		}
		var damaged *epoch.DamagedError
		if !errors.As(err, &damaged) || damaged.Object != "job/box" {
			t.Errorf("%s: the error is %v, want one that says that job/box is damaged", what, err)
		}
	}
	for i := range whole {
		flipped := slices.Clone(whole)
		flipped[i] ^= 0x10
		check(fmt.Sprintf("a flipped bit in byte %d", i), flipped)
	}
	check("cut short", whole[:len(whole)-1])
	check("emptied", []byte{})
	check("deleted", nil)
}
