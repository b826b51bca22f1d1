package schema_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// generic is v as another implementation holds it.
func generic(v *wide) map[string]any {
	items := func(n int, at func(i int) any) []any {
		list := []any{}
		for i := range n {
			list = append(list, at(i))
		}
		return list
	}
	point2 := func(p point) any { return map[string]any{"X": p.X, "Y": p.Y} }
	big := func(v uint64) any { return binary.BigEndian.AppendUint64(nil, v) }
	bytes := append([]byte{}, v.Bytes...)
	g := map[string]any{
		"Base": point2(v.Base), "Bool": v.Bool,
		"I8": int32(v.I8), "I16": int32(v.I16), "I32": v.I32, "I64": v.I64, "Int": int64(v.Int),
		"U8": int32(v.U8), "U16": int32(v.U16), "U32": int64(v.U32), "U64": big(v.U64), "Uint": big(uint64(v.Uint)),
		"F32": v.F32, "F64": v.F64, "String": v.String, "Bytes": bytes, "Fixed": v.Fixed[:],
		"Strings": items(len(v.Strings), func(i int) any { return v.Strings[i] }),
		"Points":  items(len(v.Points), func(i int) any { return point2(v.Points[i]) }),
		"Deep": items(len(v.Deep), func(i int) any {
			return items(len(v.Deep[i]), func(j int) any { return int32(v.Deep[i][j]) })
		}),
		"Array": items(3, func(i int) any { return v.Array[i] }),
		"Time":  v.Time, "Took": int64(v.Took), "At": v.At.Time(), "Tier": string(v.Tier),
		"Maybe": nil, "Point": nil, "price": nil, "Self": nil,
		"Others": items(len(v.Others), func(i int) any { return generic(&v.Others[i]) }),
	}
	if v.Maybe != nil {
		g["Maybe"] = *v.Maybe
	}
	if v.Point != nil {
		g["Point"] = point2(*v.Point)
	}
	if v.Price != nil {
		g["price"] = v.Price
	}
	if v.Self != nil {
		g["Self"] = generic(v.Self)
	}
	written := func(m mood) string {
		if m == "" {
			return "_"
		}
		return string(m)
	}
	g["Mood"] = written(v.Mood)
	counts, moods := map[string]any{}, map[string]any{}
	for k, n := range v.Counts {
		counts[k] = n
	}
	for k, m := range v.Moods {
		moods[k] = nil
		if m != nil {
			moods[k] = written(*m)
		}
	}
	g["Counts"], g["Moods"] = counts, moods
	ids, points, fixed := []any{}, []any{}, []any{}
	for _, k := range sortedKeys(v.ByID, func(a, b int32) bool { return a < b }) {
		ids = append(ids, map[string]any{"key": k, "value": point2(v.ByID[k])})
	}
	for _, k := range sortedKeys(v.ByPoint, func(a, b point) bool { return a.X < b.X || a.X == b.X && a.Y < b.Y }) {
		points = append(points, map[string]any{"key": point2(k), "value": v.ByPoint[k]})
	}
	for _, k := range sortedKeys(v.ByFixed, func(a, b [2]byte) bool { return string(a[:]) < string(b[:]) }) {
		value := v.ByFixed[k]
		fixed = append(fixed, map[string]any{"key": k[:], "value": items(len(value), func(i int) any { return value[i] })})
	}
	g["ByID"], g["ByPoint"], g["ByFixed"] = ids, points, fixed
	return g
}

func sortedKeys[K comparable, V any](m map[K]V, less func(a, b K) bool) (keys []K) {
	for k := range m {
		at := 0
		for at < len(keys) && less(keys[at], k) {
			at++
		}
		keys = append(keys[:at], append([]K{k}, keys[at:]...)...)
	}
	return keys
}

// sameGeneric compares what the other implementation decoded, decimals by value.
func sameGeneric(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !sameGeneric(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameGeneric(a[i], b[i]) {
				return false
			}
		}
		return true
	case interface{ RatString() string }:
		b, ok := b.(interface{ RatString() string })
		return ok && a.RatString() == b.RatString()
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	}
	return reflect.DeepEqual(a, b)
}

// TestAnotherImplementation compares with an implementation that shares no
// code: it reads what is written here, and what it writes is the same bytes but
// for the order of maps.
func TestAnotherImplementation(t *testing.T) {
	wides := must(schema.Of[wide]("wide"))
	other := must(avro.Parse(wides.Schema().String()))
	rapid.Check(t, func(t *rapid.T) {
		v := genWide(1).Draw(t, "v")
		want := generic(&v)
		data := must(wides.Append(nil, &v))
		var got any
		rest, err := other.Decode(data, &got)
		if err != nil || len(rest) > 0 {
			t.Fatalf("the other can't read it: %v, %d bytes left", err, len(rest))
		}
		if !sameGeneric(want, got) {
			t.Fatalf("the other reads %v\nwant %v", got, want)
		}
		written, err := other.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var back wide
		if _, err := wides.Decode(written, &back); err != nil || !equal(back, v) {
			t.Fatalf("read %+v\nwant %+v (%v)", back, v, err)
		}
		if !v.hasMaps() && !bytes.Equal(written, data) {
			t.Fatalf("bytes differ:\n%x\n%x", data, written)
		}
	})
}

// hasMaps tells whether an order of a map could show.
func (w *wide) hasMaps() bool {
	if len(w.Counts) > 1 || len(w.Moods) > 1 || w.Self != nil && w.Self.hasMaps() {
		return true
	}
	for i := range w.Others {
		if w.Others[i].hasMaps() {
			return true
		}
	}
	return false
}
