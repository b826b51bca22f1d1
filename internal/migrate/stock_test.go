package migrate

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// What is stored, and what this build has instead.
type (
	crate struct {
		Number int64
		Label  string
	}
	box struct {
		Number int64
		Label  string
		Sealed bool
	}
)

// seal is the migration; what is labelled bad can't be.
func seal(c crate) (box, error) {
	if strings.HasPrefix(c.Label, "bad") {
		return box{}, fmt.Errorf("label %q", c.Label)
	}
	return box{c.Number, c.Label, c.Number%2 == 0}, nil
}

// thing is an entry of a test.
type thing[V any] struct {
	key     string
	element int64 // of a list
	value   V
}

// stock is a job's stored states in a store.
type stock struct {
	t      testing.TB
	st     store.Store
	states map[string]epoch.StateEntry
	forms  map[string]state.Form
}

func newStock(t testing.TB) *stock {
	return &stock{t, store.NewMemory(), map[string]epoch.StateEntry{}, map[string]state.Form{}}
}

func parsed(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func typeOf[T any](t testing.TB) *schema.Type[T] {
	t.Helper()
	typ, err := schema.Of[T]("things")
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func formOf[V any](t testing.TB, name string, list bool) state.Form {
	f := state.Form{Name: name, Key: parsed(t, `"string"`), Value: typeOf[V](t).Schema()}
	if list {
		f.Element = parsed(t, `"long"`)
	}
	return f
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendVarint(dst, int64(len(text))), text...)
}

func slotOf(key string) epoch.Slot { return epoch.Slot(xxhash.Sum64(appendText(nil, key)) >> 48) }

// inOrder are things in the order in which a state has them: of slots, then of
// keys and elements.
func inOrder[V any](things []thing[V]) []thing[V] {
	sorted := slices.Clone(things)
	slices.SortFunc(sorted, func(a, b thing[V]) int {
		return cmp.Or(cmp.Compare(slotOf(a.key), slotOf(b.key)), strings.Compare(a.key, b.key), cmp.Compare(a.element, b.element))
	})
	return sorted
}

// keep stores things as a segment of a state, which is newer than those before.
func (x *stock) keep(name string, list bool, things ...thing[crate]) {
	x.t.Helper()
	form, typ := formOf[crate](x.t, name, list), typeOf[crate](x.t)
	x.forms[name] = form
	entry := x.states[name]
	defer func() { x.states[name] = entry }()
	if len(things) == 0 {
		return
	}
	var c state.Changes
	for _, s := range things {
		c.Begin(slotOf(s.key))
		c.Buf = appendText(c.Buf, s.key)
		if list {
			c.Element()
			c.Buf = binary.AppendVarint(c.Buf, s.element)
		}
		c.Value()
		var err error
		if c.Buf, err = typ.Append(append(c.Buf, 2), &s.value); err != nil {
			x.t.Fatal(err)
		}
		c.End()
	}
	segment, err := state.Write(context.Background(), x.st, "depot", fmt.Sprintf("%s-%d.avro", name, len(entry.Segments)), form, []*state.Changes{&c}, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	entry.Segments = append(entry.Segments, segment)
}

// spot is where an entry of tests goes.
type spot struct {
	key     string
	element int64
}

// way is how boxes come from what is stored.
func (x *stock) way(list bool, spec carry.Spec[spot, box]) *carry.Way {
	x.t.Helper()
	kind := "value"
	if list {
		kind = "list"
	}
	form, typ := formOf[box](x.t, "things", list), typeOf[box](x.t)
	codec := carry.Codec[spot, box]{AppendKey: func(dst []byte, p *spot) []byte { return appendText(dst, p.key) }, Value: typ}
	if list {
		codec.AppendElement = func(dst []byte, p *spot) []byte { return binary.AppendVarint(dst, p.element) }
	}
	c, err := carry.New(carry.Target{Kind: kind, Form: form, KeyMeaning: keyMeaning(spec)}, codec, spec)
	if err != nil {
		x.t.Fatal(err)
	}
	way := c.Find(func(name string) *carry.Stored {
		form, is := x.forms[name]
		if !is {
			return nil
		}
		return &carry.Stored{Name: name, Kind: kind, Form: form}
	})
	if way.Verdict != carry.Migrates {
		x.t.Fatalf("the way's verdict is %s: %v", way.Verdict, way.Refusals)
	}
	return way
}

// keyMeaning is another one if keys are to migrate.
func keyMeaning(spec carry.Spec[spot, box]) int {
	if spec.Keys != nil {
		return 1
	}
	return 0
}

// sealing is the way of what is stored under the state's own name.
func (x *stock) sealing() *carry.Way {
	return x.way(false, carry.Spec[spot, box]{Chain: carry.First(seal)})
}

// rekeying gives entries other keys: those that f has for a key and its value.
func (x *stock) rekeying(f func(key string, b box) []string, merge func(earlier *box, later box)) *carry.Way {
	return x.way(false, carry.Spec[spot, box]{Chain: carry.First(seal), Merge: merge, Keys: &carry.Keys[spot, box]{
		Function: "depot.rekey",
		Open: func(_, _ *schema.Schema) (func(key, _ []byte, b box) (iter.Seq2[spot, box], error), error) {
			return func(key, _ []byte, b box) (iter.Seq2[spot, box], error) {
				_, n := binary.Varint(key)
				return func(yield func(spot, box) bool) {
					for _, k := range f(string(key[n:]), b) {
						if !yield(spot{key: k}, b) {
							return
						}
					}
				}, nil
			}, nil
		},
	}})
}

func (x *stock) options(way *carry.Way, path string, workers int) Options {
	return Options{
		Store: x.st, Job: "depot", Way: way, Stored: x.states, Path: path, Workers: workers,
		Memory: func(rows, bytes int64) int64 { return 100*rows + bytes },
	}
}

// migrated reads a segment's entries.
func (x *stock) migrated(way *carry.Way, segment epoch.Segment) (things []thing[box]) {
	x.t.Helper()
	if segment.Rows == 0 {
		return nil
	}
	typ := typeOf[box](x.t)
	for e, err := range state.Read(context.Background(), x.st, "depot", way.Form, []epoch.Segment{segment}, epoch.AllSlots) {
		if err != nil {
			x.t.Fatal(err)
		}
		_, n := binary.Varint(e.Key)
		s := thing[box]{key: string(e.Key[n:])}
		if e.Element != nil {
			s.element, _ = binary.Varint(e.Element)
		}
		if _, err := typ.Decode(e.Value, &s.value); err != nil {
			x.t.Fatal(err)
		}
		things = append(things, s)
	}
	return things
}

// object is a segment's bytes; none if there is no such object.
func (x *stock) object(path string) string {
	x.t.Helper()
	if is, err := x.st.Exists(context.Background(), "depot/"+path); err != nil || !is {
		return ""
	}
	data, err := x.st.Read(context.Background(), "depot/"+path, 1<<30)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(data)
}

func crates(n int) (things []thing[crate]) {
	for i := range n {
		things = append(things, thing[crate]{key: fmt.Sprintf("k%06d", i), value: crate{int64(i), fmt.Sprintf("crate %d", i)}})
	}
	return things
}

// boxed is what the migration makes of things.
func boxed(things []thing[crate]) (out []thing[box]) {
	for _, s := range things {
		out = append(out, thing[box]{s.key, s.element, box{s.value.Number, s.value.Label, s.value.Number%2 == 0}})
	}
	return out
}

// same compares entries, of which the first that differs is told.
func same(t testing.TB, got, want []thing[box]) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, expected %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("entry %d is %.200v, expected %.200v", i, fmt.Sprint(got[i]), fmt.Sprint(want[i]))
		}
	}
}
