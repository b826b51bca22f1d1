package carry

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Types of one value over the years.
type (
	text   struct{ Count string }
	number struct{ Count int64 }
	wide   struct {
		Count int64
		VIP   bool
	}
	wider struct {
		Count int64
		VIP   bool
		Level int64
	}
	other struct{ Name string }
)

func schemaOf[T any](t *testing.T) *schema.Schema {
	t.Helper()
	typ, err := schema.Of[T]("state")
	if err != nil {
		t.Fatal(err)
	}
	return typ.Schema()
}

func TestChoose(t *testing.T) {
	own := func(s *schema.Schema, meaning int) candidate {
		return candidate{schema: s, meaning: meaning, meant: true}
	}
	older := func(s *schema.Schema) candidate { return candidate{schema: s, functions: []string{"f"}} }
	meant := func(s *schema.Schema, meaning int) candidate {
		return candidate{schema: s, meaning: meaning, meant: true, functions: []string{"f"}}
	}
	textual, numeric, wideS, widerS := schemaOf[text](t), schemaOf[number](t), schemaOf[wide](t), schemaOf[wider](t)
	for _, c := range []struct {
		name       string
		stored     *schema.Schema
		meaning    int
		candidates []candidate // the own type first, then the chain's, the newest first
		want       int         // -1: refused
		refusal    string
	}{
		{"the same", wideS, 0, []candidate{own(wideS, 0)}, 0, ""},
		{"the same, with a chain", wideS, 0, []candidate{own(wideS, 0), older(numeric), older(textual)}, 0, ""},
		{"what a function takes goes before what resolves", numeric, 0, []candidate{own(wideS, 0), older(numeric), older(textual)}, 1, ""},
		{"the oldest of the chain", textual, 0, []candidate{own(wideS, 0), older(numeric), older(textual)}, 2, ""},
		{"resolves, without a chain", numeric, 0, []candidate{own(wideS, 0)}, 0, ""},
		{"its own type or an older one", numeric, 0, []candidate{own(widerS, 0), older(wideS)}, -1, "only you know"},
		{"its own type, when the older one means something else", numeric, 0, []candidate{own(widerS, 0), meant(wideS, 1)}, 0, ""},
		{"an older type, when its own means something else", numeric, 0, []candidate{own(widerS, 1), meant(wideS, 0)}, 1, ""},
		{"of two older ones that which differs least", numeric, 0, []candidate{own(textual, 0), older(widerS), older(wideS)}, 2, ""},
		{"of two older ones that differ alike neither", numeric, 0, []candidate{own(textual, 0), older(wideS), older(wideSLike(t))}, -1, "differs by as much"},
		{"not to one that would drop", wideS, 0, []candidate{own(widerS, 0), older(numeric)}, 0, ""},
		{"drops, if nothing else", widerS, 0, []candidate{own(wideS, 0)}, 0, ""},
		{"drops in its own type or an older one", widerS, 0, []candidate{own(numeric, 0), older(wideS)}, -1, "only you know"},
		{"neither", textual, 0, []candidate{own(numeric, 0)}, -1, "counts.Count: string → long"},
		{"neither, with a chain", schemaOf[other](t), 0, []candidate{own(schemaOf[struct{ Name int64 }](t), 0), older(schemaOf[struct{ Name bool }](t))}, -1, "nor is it what one of its 1 migrations takes"},
		{"another meaning", numeric, 0, []candidate{own(numeric, 1)}, -1, "counts: its meaning is 1 and was 0"},
		{"another meaning, with a function", numeric, 0, []candidate{own(numeric, 1), meant(numeric, 0)}, 1, ""},
		{"that meaning, with a function for another", numeric, 1, []candidate{own(numeric, 1), meant(numeric, 0)}, 0, ""},
		{"an old meaning among several", numeric, 1, []candidate{own(numeric, 2), meant(numeric, 1), meant(numeric, 0)}, 1, ""},
		{"an old meaning that no function takes", numeric, 3, []candidate{own(numeric, 2), meant(numeric, 1), meant(numeric, 0)}, -1, "counts: its meaning is 2 and was 3"},
		{"an old meaning of an older shape", numeric, 0, []candidate{own(wideS, 1), meant(wideS, 0)}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, refused := choose(Stored{Name: "counts", Meaning: c.meaning, Form: state.Form{Value: c.stored}}, c.candidates)
			if c.want < 0 {
				if len(refused) == 0 || !slices.ContainsFunc(refused, func(r Refusal) bool { return strings.Contains(r.String(), c.refusal) }) {
					t.Fatalf("chose %d, refusals %q; want %q", got.number, refused, c.refusal)
				}
				return
			}
			if len(refused) > 0 || got.number != c.want {
				t.Fatalf("chose %d, refusals %q; want %d", got.number, refused, c.want)
			}
		})
	}
}

// What the stored version's functions took is behind it: a field that is added
// later must not send values through them once more.
func TestPassed(t *testing.T) {
	textual, numeric, wideS := schemaOf[text](t), schemaOf[number](t), schemaOf[wide](t)
	withGone := wideSLike(t)
	stored := func(migrations ...*schema.Schema) Stored {
		return Stored{Name: "state", Form: state.Form{Value: numeric}, Migrations: migrations}
	}
	chain := []candidate{{schema: wideS, meant: true}, {schema: withGone, functions: []string{"f"}}}
	for _, c := range []struct {
		name   string
		stored Stored
		want   int
	}{
		{"has been through it", stored(withGone), 0},
		{"has been through it and others", stored(textual, withGone), 0},
		{"has been through another", stored(textual), -1},
		{"is of before", stored(), -1},
	} {
		got, refused := choose(c.stored, chain)
		if (c.want < 0) != (len(refused) > 0) || c.want >= 0 && got.number != c.want {
			t.Errorf("%s: chose %d, refused %v; want %d", c.name, got.number, refused, c.want)
		}
	}
}

// wideSLike differs from number by as much as wide does.
func wideSLike(t *testing.T) *schema.Schema {
	return schemaOf[struct {
		Count int64
		Gone  bool
	}](t)
}

// Keys whose encodings stay stay where they are; others need a function.
func TestSameEncoding(t *testing.T) {
	type pair struct {
		A string
		B int32
	}
	type wider struct {
		A string
		B int64
	}
	type renamed struct {
		Other string `avro:"Other,alias=A"`
		B     int32
	}
	type swapped struct {
		B int32
		A string
	}
	type strange struct {
		Other string
		B     int32
	}
	key := func(s *schema.Schema, err error) *schema.Schema {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name     string
		old, now *schema.Schema
		want     bool
	}{
		{"equal", key(keyOf[string]()), key(keyOf[string]()), true},
		{"int32 to int64", key(keyOf[int32]()), key(keyOf[int64]()), true},
		{"int8 to int32", key(keyOf[int8]()), key(keyOf[int32]()), true},
		{"uint8 to int16", key(keyOf[uint8]()), key(keyOf[int16]()), true},
		{"int64 to int32", key(keyOf[int64]()), key(keyOf[int32]()), false},
		{"int16 to uint16", key(keyOf[int16]()), key(keyOf[uint16]()), false},
		{"uint16 to int16", key(keyOf[uint16]()), key(keyOf[int16]()), false},
		{"uint32 to uint64", key(keyOf[uint32]()), key(keyOf[uint64]()), false}, // 8 bytes then
		{"int64 to a moment", key(keyOf[int64]()), key(keyOf[schema.Instant]()), false},
		{"string to int64", key(keyOf[string]()), key(keyOf[int64]()), false},
		{"4 bytes to 8", key(keyOf[[4]byte]()), key(keyOf[[8]byte]()), false},
		{"a wider field", key(keyOf[pair]()), key(keyOf[wider]()), true},
		{"a renamed field", key(keyOf[pair]()), key(keyOf[renamed]()), true},
		{"another field of the type", key(keyOf[pair]()), key(keyOf[strange]()), false},
		{"fields in another order", key(keyOf[pair]()), key(keyOf[swapped]()), false},
	} {
		if got := SameEncoding(c.old, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func keyOf[K comparable]() (*schema.Schema, error) {
	k, err := schema.KeyOf[K]("key")
	if err != nil {
		return nil, err
	}
	return k.Schema(), nil
}

// Two types that are stored alike must be told apart.
func TestTellApart(t *testing.T) {
	n, w := schemaOf[number](t), schemaOf[wide](t)
	for _, c := range []struct {
		name       string
		candidates []candidate
		ok         bool
	}{
		{"different types", []candidate{{schema: w, meant: true}, {schema: n, functions: []string{"f"}}}, true},
		{"the state's own", []candidate{{schema: n, meant: true, meaning: 1}, {schema: n, functions: []string{"f"}}}, false},
		{"with meanings", []candidate{{schema: n, meant: true, meaning: 1}, {schema: n, meant: true, functions: []string{"f"}}}, true},
		{"with one meaning", []candidate{{schema: n, meant: true, meaning: 1}, {schema: n, meant: true, meaning: 1, functions: []string{"f"}}}, false},
		{"two of the chain", []candidate{{schema: w, meant: true}, {schema: n, functions: []string{"f"}}, {schema: n, functions: []string{"g", "f"}}}, false},
	} {
		if err := tellApart(c.candidates); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A chain knows its functions from each type on.
func TestChain(t *testing.T) {
	c := Then(First(textNumber), numberWide).From(3)
	var got []string
	for _, s := range c.steps {
		got = append(got, strings.Join(s.functions, " "))
	}
	if want := []string{"carry.textNumber carry.numberWide", "carry.numberWide"}; !slices.Equal(got, want) {
		t.Fatalf("functions %q, want %q", got, want)
	}
	if c.steps[0].meant || !c.steps[1].meant || c.steps[1].meaning != 3 {
		t.Fatal("From is for what the newest function takes")
	}
}

func textNumber(text) (number, error) { return number{}, nil }
func numberWide(number) (wide, error) { return wide{}, nil }
