package codec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

type tier string

func (tier) Symbols() []string { return []string{"basic", "gold"} }

type purchase struct {
	ID    int64
	Name  string `avro:"name,alias=title"`
	Paid  bool
	Tier  tier
	Note  *string
	Lines []line2
	At    time.Time
	Price big.Rat `avro:",precision=9,scale=2"`
	Extra map[string]int64
	Rate  float64 `avro:",default=1.5"`
}

type line2 struct {
	SKU string
	Qty int32
}

// newest is purchase's schema as somebody else would write it.
const newest = `{"type":"record","name":"purchase","fields":[
	{"name":"ID","type":"long"},{"name":"name","type":"string"},{"name":"Paid","type":"boolean"},
	{"name":"Tier","type":{"type":"enum","name":"tier","symbols":["basic","gold"]}},
	{"name":"Note","type":["null","string"]},
	{"name":"Lines","type":{"type":"array","items":{"type":"record","name":"line","fields":[{"name":"SKU","type":"string"},{"name":"Qty","type":"int"}]}}},
	{"name":"At","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"Price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
	{"name":"Extra","type":{"type":"map","values":"long"}},
	{"name":"Rate","type":"double"}]}`

// byHand is a purchase, and its bytes as Avro's specification has them.
func byHand() (purchase, string) {
	note := "ü"
	v := purchase{
		ID: -3, Name: "ann", Paid: true, Tier: "gold", Note: &note, Lines: []line2{{"x", 64}}, At: time.UnixMicro(1).UTC(),
		Price: *big.NewRat(-5, 4), Extra: map[string]int64{"k": 1}, Rate: 0.5,
	}
	return v, "\x05" + "\x06ann" + "\x01" + "\x02" + "\x02\x04ü" + "\x02\x02x\x80\x01\x00" + "\x02" + "\x02\x83" + "\x02\x02k\x02\x00" + "\x00\x00\x00\x00\x00\x00\xe0\x3f"
}

func samePurchase(a, b purchase) bool {
	same := a.Price.Cmp(&b.Price) == 0
	a.Price, b.Price = big.Rat{}, big.Rat{}
	return same && reflect.DeepEqual(a, b)
}

func TestAvro(t *testing.T) {
	want, bytes := byHand()
	for name, c := range map[string]struct {
		codec codec.Codec[purchase]
		front string
	}{
		"plain":      {codec.Avro[purchase](), ""},
		"by writer":  {codec.Avro[purchase](codec.Writer(newest)), ""},
		"registered": {codec.Avro[purchase](codec.Registered(avroShelf(map[uint32]string{0x01020304: newest}))), "\x00\x01\x02\x03\x04"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(t, c.codec, c.front+bytes)
			if err != nil || !samePurchase(got, want) {
				t.Fatalf("decoded %+v, %v\nexpected %+v", got, err, want)
			}
			if name != "plain" {
				return
			}
			if out, err := c.codec.NewEncoder()([]byte(">"), &want); err != nil || string(out) != ">"+bytes {
				t.Errorf("encoded %q, %v\nexpected %q", out, err, bytes)
			}
		})
	}
}

func TestAvroFramed(t *testing.T) {
	reg := &shelf{}
	reg.put(0x0a0b0c0d, &codec.Schema{}) // so that the next id is 2
	want, bytes := byHand()
	c := codec.For(codec.Avro[purchase](codec.Registered(reg)), codec.Use{Topic: "orders"})
	encode := c.NewEncoder()
	for range 3 {
		out, err := encode([]byte(">"), &want)
		if err != nil || string(out) != ">\x00\x00\x00\x00\x02"+bytes {
			t.Fatalf("encoded %q, %v", out, err)
		}
	}
	bad := purchase{Tier: "none"}
	if out, err := encode([]byte("kept"), &bad); err == nil || string(out) != "kept" || errors.Is(err, connector.ErrUnavailable) {
		t.Errorf("a symbol that is none: %q, %v", out, err)
	}
	if len(reg.enrolls) != 1 || reg.enrolls[0] != "orders-value" {
		t.Errorf("enrolled %q", reg.enrolls)
	}
	if got, err := decode(t, c, "\x00\x00\x00\x00\x02"+bytes); err != nil || !samePurchase(got, want) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func record(fields string) string {
	return `{"type":"record","name":"r","fields":[` + fields + `]}`
}

// TestAvroResolves reads what other schemas wrote; bytes and values are worked
// out by hand from Avro's rules.
func TestAvroResolves(t *testing.T) {
	type inner struct {
		A int64
		B string `avro:",default=b"`
	}
	type r struct {
		N     int64   `avro:"n,alias=old"`
		F     float64 `avro:",default=2.5"`
		S     string
		Maybe *int64
		E     tier
		In    inner
		List  []inner
		Map   map[string]float64
		Any   []byte
	}
	empty := r{F: 2.5, E: "basic", In: inner{B: "b"}}
	with := func(change func(*r)) r {
		v := empty
		change(&v)
		return v
	}
	one := int64(1)
	for name, c := range map[string]struct {
		fields, bytes string
		want          r
	}{
		"nothing was written":          {``, "", empty},
		"an alias":                     {`{"name":"old","type":"long"}`, "\x02", with(func(v *r) { v.N = 1 })},
		"int to long":                  {`{"name":"n","type":"int"}`, "\x03", with(func(v *r) { v.N = -2 })},
		"int to double":                {`{"name":"F","type":"int"}`, "\x06", with(func(v *r) { v.F = 3 })},
		"float to double":              {`{"name":"F","type":"float"}`, "\x00\x00\x20\x40", with(func(v *r) { v.F = 2.5 })},
		"bytes to string":              {`{"name":"S","type":"bytes"}`, "\x04hi", with(func(v *r) { v.S = "hi" })},
		"string to bytes":              {`{"name":"Any","type":"string"}`, "\x04hi", with(func(v *r) { v.Any = []byte("hi") })},
		"a value to a nullable":        {`{"name":"Maybe","type":"int"}`, "\x02", with(func(v *r) { v.Maybe = &one })},
		"null last":                    {`{"name":"Maybe","type":["long","null"]}`, "\x00\x02", with(func(v *r) { v.Maybe = &one })},
		"null":                         {`{"name":"Maybe","type":["long","null"]}`, "\x02", empty},
		"symbols in another order":     {`{"name":"E","type":{"type":"enum","name":"e","symbols":["gold","basic"]}}`, "\x00", with(func(v *r) { v.E = "gold" })},
		"a nested record":              {`{"name":"In","type":{"type":"record","name":"i","fields":[{"name":"A","type":"int"}]}}`, "\x0e", with(func(v *r) { v.In.A = 7 })},
		"an array of records":          {`{"name":"List","type":{"type":"array","items":{"type":"record","name":"i","fields":[{"name":"A","type":"int"}]}}}`, "\x04\x02\x04\x00", with(func(v *r) { v.List = []inner{{1, "b"}, {2, "b"}} })},
		"a map of ints":                {`{"name":"Map","type":{"type":"map","values":"int"}}`, "\x02\x02k\x02\x00", with(func(v *r) { v.Map = map[string]float64{"k": 1} })},
		"a union that has no field":    {`{"name":"gone","type":["null","string","long",{"type":"fixed","name":"fx","size":2}]},{"name":"n","type":"int"}`, "\x06ab\x02", with(func(v *r) { v.N = 1 })},
		"blocks with sizes":            {`{"name":"List","type":{"type":"array","items":{"type":"record","name":"i","fields":[{"name":"A","type":"int"}]}}}`, "\x01\x02\x02\x00", with(func(v *r) { v.List = []inner{{1, "b"}} })},
		"fields in another order":      {`{"name":"S","type":"string"},{"name":"n","type":"long"}`, "\x02s\x02", with(func(v *r) { v.S, v.N = "s", 1 })},
		"a record of another name":     {`{"name":"n","type":"long","aliases":["m"]}`, "\x02", with(func(v *r) { v.N = 1 })},
		"a union of several":           {`{"name":"Maybe","type":["null","string","int"]}`, "\x04\x02", with(func(v *r) { v.Maybe = &one })},
		"a logical type it can't tell": {`{"name":"S","type":{"type":"string","logicalType":"uuid"}}`, "\x02s", with(func(v *r) { v.S = "s" })},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(t, codec.Avro[r](codec.Writer(record(c.fields))), c.bytes)
			got.Map = orNil(got.Map)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("read %+v, %v\nexpected %+v", got, err, c.want)
			}
		})
	}
}

// TestAvroTellsOfABranch: a record that holds what the type can't is a bad one,
// and the next is read.
func TestAvroTellsOfABranch(t *testing.T) {
	type r struct {
		At    time.Time
		Maybe *int64
	}
	d := codec.Avro[r](codec.Writer(record(`{"name":"At","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"Maybe","type":["null","string","int"]}`))).NewDecoder()
	var v r
	err := d([]byte("\x02\x02\x02a"), &v)
	bad, ok := errors.AsType[*connector.DecodeError](err)
	if !ok || bad.Field != "Maybe" || bad.Cause.Error() != "string was written where nullable long is read" {
		t.Error(err)
	}
	v = r{}
	if err := d([]byte("\x02\x04\x02"), &v); err != nil || *v.Maybe != 1 || !v.At.Equal(time.UnixMilli(1)) {
		t.Error(v, err)
	}
}

func orNil(m map[string]float64) map[string]float64 {
	if len(m) == 0 {
		return nil
	}
	return m
}

// TestAvroRefuses: what can't be resolved is told by path.
func TestAvroRefuses(t *testing.T) {
	type r struct {
		N     int32
		S     string
		At    time.Time
		Tier  tier
		Price big.Rat `avro:",precision=9,scale=2"`
		ID    [16]byte
		In    struct{ List []struct{ A int64 } }
		Maybe *string
	}
	for name, c := range map[string]struct{ fields, says string }{
		"a narrower number": {`{"name":"N","type":"long"}`, "N: long → int (narrowed)"},
		"another type":      {`{"name":"S","type":"long"}`, "S: long → string"},
		"a union of others": {`{"name":"S","type":["boolean","long"]}`,
			"S: boolean or long → string (a Go type can hold one of a union's types, and a pointer null too)"},
		"what may be null": {`{"name":"S","type":["null","string"]}`, "S: nullable string → string (made required) (a pointer can be null)"},
		"milliseconds":     {`{"name":"N","type":{"type":"long","logicalType":"timestamp-millis"}}`, "N: timestamp-millis → int (a time.Time or a schema.Instant can hold it)"},
		"a date":           {`{"name":"S","type":{"type":"int","logicalType":"date"}}`, "S: date → string (a time.Time, a schema.Instant or an integer can hold it)"},
		"a time of day":    {`{"name":"At","type":{"type":"int","logicalType":"time-millis"}}`, "At: time-millis → timestamp (a time.Duration or an integer can hold it)"},
		"more symbols":     {`{"name":"Tier","type":{"type":"enum","name":"e","symbols":["basic","iron"]}}`, "Tier: symbol removed (iron) (add it to Symbols, or have a DefaultSymbol)"},
		"another scale":    {`{"name":"Price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}}`, "Price: decimal(9,3) → decimal(9,2)"},
		"another size":     {`{"name":"ID","type":{"type":"fixed","name":"f","size":15}}`, "ID: fixed(15) → fixed(16)"},
		"deep inside":      {`{"name":"In","type":{"type":"record","name":"i","fields":[{"name":"List","type":{"type":"array","items":{"type":"record","name":"j","fields":[{"name":"A","type":"string"}]}}}]}}`, "In.List[].A: string → long"},
	} {
		t.Run(name, func(t *testing.T) {
			plain := codec.Avro[r](codec.Writer(record(c.fields)))
			if err := codec.Check(plain); err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, connector.ErrUnavailable) {
				t.Errorf("checked: %v\nexpected %s", err, c.says)
			}
			if _, err := decode(t, plain, ""); err == nil || !errors.Is(err, connector.ErrUnavailable) {
				t.Errorf("a codec of no use: %v", err)
			}
			framed := codec.Avro[r](codec.Registered(avroShelf(map[uint32]string{7: record(c.fields)})))
			_, err := decode(t, framed, "\x00\x00\x00\x00\x07")
			bad, ok := errors.AsType[*connector.DecodeError](err)
			if !ok || bad.At != 1 || !strings.Contains(err.Error(), "schema 7: r as it was written can't be read as r: "+c.says) || errors.Is(err, connector.ErrUnavailable) {
				t.Errorf("decoded: %v\nexpected %s", err, c.says)
			}
		})
	}
}

// TestAvroBadRecords: what is the record's fault is a DecodeError.
func TestAvroBadRecords(t *testing.T) {
	type r struct {
		N int64
		S string
	}
	reg := avroShelf(map[uint32]string{1: `{"type":"record","name":"r","fields":[{"name":"N","type":"long"},{"name":"S","type":"string"}]}`, 2: `{"type":"recrod"}`})
	reg.put(3, &codec.Schema{Format: codec.FormatProtobuf, Text: `syntax = "proto3";`})
	reg.put(4, &codec.Schema{Format: codec.FormatAvro, Text: `"missing.Type"`})
	const front = "\x00\x00\x00\x00\x01"
	for name, c := range map[string]struct {
		bytes, field string
		at           int64
		says         string
	}{
		"nothing":           {"", "", 0, "found 0 bytes"},
		"a short frame":     {"\x00\x00\x00\x00", "", 0, "found 4 bytes"},
		"no magic byte":     {`{"N":1}`, "", 0, "found 0x7b"},
		"an unknown id":     {"\x00\x00\x00\x00\x09\x02", "", 1, "schema 9: shelf: the registry knows no schema of this id"},
		"no schema":         {"\x00\x00\x00\x00\x02\x02", "", 1, "schema 2: avro schema: "},
		"another format":    {"\x00\x00\x00\x00\x03\x02", "", 1, "schema 3: expected a schema of AVRO, found one of PROTOBUF"},
		"a missing type":    {"\x00\x00\x00\x00\x04\x02", "", 1, `unknown type "missing.Type"`},
		"cut short":         {front + "\x02\x04h", "S", -1, "more than the bytes that are left"},
		"too much":          {front + "\x02\x02hh", "", 8, "ends at byte 8, and 1 bytes follow it"},
		"an endless number": {front + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "N", -1, "longer than Avro's ten bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, codec.Avro[r](codec.Registered(reg)), c.bytes)
			bad, ok := errors.AsType[*connector.DecodeError](err)
			if !ok || bad.Field != c.field || bad.At != c.at || !strings.Contains(bad.Error(), c.says) || errors.Is(err, connector.ErrUnavailable) {
				t.Errorf("%#v: %v; expected field %q at %d: %s", err, err, c.field, c.at, c.says)
			}
		})
	}
}

// TestAvroUnavailable: a registry that fails is not the record's fault, is asked
// again for the next record, and its outcome is not kept.
func TestAvroUnavailable(t *testing.T) {
	reg := avroShelf(map[uint32]string{1: `"long"`})
	c := codec.Avro[int64](codec.Registered(reg))
	decode := c.NewDecoder()
	var v int64
	reg.fails = fmt.Errorf("down: %w", connector.ErrUnavailable)
	for range 2 {
		err := decode([]byte("\x00\x00\x00\x00\x01\x02"), &v)
		if _, bad := errors.AsType[*connector.DecodeError](err); bad || !errors.Is(err, connector.ErrUnavailable) || !strings.Contains(err.Error(), "codec avro: schema 1: down") {
			t.Fatalf("%v", err)
		}
	}
	reg.fails = errors.New("something else") // a registry that forgets to say so
	if err := decode([]byte("\x00\x00\x00\x00\x01\x02"), &v); !errors.Is(err, connector.ErrUnavailable) {
		t.Fatalf("%v", err)
	}
	reg.fails = nil
	for range 2 {
		if err := decode([]byte("\x00\x00\x00\x00\x01\x02"), &v); err != nil || v != 1 {
			t.Fatalf("%d, %v", v, err)
		}
	}
	if len(reg.fetched) != 4 {
		t.Errorf("fetched %v", reg.fetched)
	}
	for i, want := range []bool{false, false, true} { // an id that is unknown may be known soon
		if i == 2 {
			reg.put(2, &codec.Schema{Format: codec.FormatAvro, Text: `"int"`})
		}
		if err := decode([]byte("\x00\x00\x00\x00\x02\x02"), &v); (err == nil) != want {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	reg.fails = errors.New("down")
	bad := codec.Avro[string](codec.Registered(reg, codec.ByRecord()))
	text := "x"
	if out, err := bad.NewEncoder()([]byte("kept"), &text); !errors.Is(err, connector.ErrUnavailable) || string(out) != "kept" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestAvroFetchesOnce: many workers that meet an id at once ask for it once, and
// an id that can't be resolved is not asked for again.
func TestAvroFetchesOnce(t *testing.T) {
	reg := avroShelf(map[uint32]string{1: `"long"`, 2: `"boolean"`})
	reg.gate = make(chan struct{})
	c := codec.Avro[int64](codec.Registered(reg))
	var wait sync.WaitGroup
	for range 8 {
		decode := c.NewDecoder()
		wait.Go(func() {
			var v int64
			for range 3 {
				if err := decode([]byte("\x00\x00\x00\x00\x01\x02"), &v); err != nil || v != 1 {
					t.Errorf("%d, %v", v, err)
				}
				if err := decode([]byte("\x00\x00\x00\x00\x02\x02"), &v); err == nil {
					t.Error("a boolean was read as a long")
				}
			}
		})
	}
	close(reg.gate)
	wait.Wait()
	if len(reg.fetched) != 2 {
		t.Errorf("fetched %v, expected 1 and 2 once", reg.fetched)
	}
}

// TestAvroManyIDs: more ids than are kept are fetched again, and memory stays
// bounded.
func TestAvroManyIDs(t *testing.T) {
	reg := &shelf{}
	const ids = 2500
	for id := range uint32(ids) {
		reg.put(id, &codec.Schema{Format: codec.FormatAvro, Text: `"long"`})
	}
	decode := codec.Avro[int64](codec.Registered(reg)).NewDecoder()
	var v int64
	for range 2 {
		for id := range uint32(ids) {
			if err := decode(binary.BigEndian.AppendUint32([]byte{0}, id), &v); err == nil {
				t.Fatal("no bytes made a long")
			}
			if err := decode(append(binary.BigEndian.AppendUint32([]byte{0}, id), 2), &v); err != nil || v != 1 {
				t.Fatal(v, err)
			}
		}
	}
	if n := len(reg.fetched); n != 2*ids {
		t.Errorf("%d fetches of %d ids, twice over: more than the newest 1,000 are kept, or fewer than one", n, ids)
	}
}

// TestAvroReferences reads by a schema that refers to others by name.
func TestAvroReferences(t *testing.T) {
	money := &codec.Schema{Format: codec.FormatAvro, Text: `{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"Cents","type":"long"}]}`}
	line := &codec.Schema{
		Format: codec.FormatAvro, Text: `{"type":"record","name":"shop.Line","fields":[{"name":"Price","type":"Money"}]}`,
		References: []codec.Reference{{Name: "shop.Money", Schema: money}},
	}
	reg := &shelf{}
	reg.put(1, &codec.Schema{
		Format: codec.FormatAvro, Text: `{"type":"record","name":"shop.Order","fields":[{"name":"Total","type":"Money"},{"name":"Lines","type":{"type":"array","items":"shop.Line"}}]}`,
		References: []codec.Reference{{Name: "shop.Line", Schema: line}, {Name: "shop.Money", Schema: money}},
	})
	reg.put(2, &codec.Schema{Format: codec.FormatAvro, Text: `shop.Money`, References: []codec.Reference{{Name: "shop.Money", Schema: money}}})
	type cents struct{ Cents int64 }
	type order struct {
		Total cents
		Lines []struct{ Price cents }
	}
	got, err := decode(t, codec.Avro[order](codec.Registered(reg)), "\x00\x00\x00\x00\x01\x0a\x04\x02\x04\x00")
	if err != nil || got.Total.Cents != 5 || len(got.Lines) != 2 || got.Lines[1].Price.Cents != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := decode(t, codec.Avro[cents](codec.Registered(reg)), "\x00\x00\x00\x00\x02\x0a"); err != nil || got.Cents != 5 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAvroSubjects(t *testing.T) {
	type Order struct{ ID int64 }
	values, keys := codec.Use{Topic: "orders"}, codec.Use{Topic: "orders", Key: true}
	for _, c := range []struct {
		opts  []codec.RegistryOption
		use   codec.Use
		wants string
	}{
		{nil, values, "orders-value"},
		{nil, keys, "orders-key"},
		{[]codec.RegistryOption{codec.ByTopic()}, values, "orders-value"},
		{[]codec.RegistryOption{codec.ByRecord()}, keys, "shop.Order"},
		{[]codec.RegistryOption{codec.ByTopicAndRecord()}, keys, "orders-shop.Order"},
		{[]codec.RegistryOption{codec.Subject("mine")}, keys, "mine"},
	} {
		for name, prepared := range map[string]bool{"prepared": true, "for": false} {
			reg := &shelf{}
			made := codec.Avro[Order](codec.Record("shop.Order"), codec.Registered(reg, c.opts...))
			if prepared {
				if err := made.(codec.Preparer).Prepare(t.Context(), c.use); err != nil {
					t.Fatal(err)
				}
			} else {
				made = codec.For(made, c.use)
			}
			if out, err := made.NewEncoder()(nil, &Order{1}); err != nil || string(out) != "\x00\x00\x00\x00\x01\x02" {
				t.Errorf("%s, %s: %q, %v", c.wants, name, out, err)
			}
			if len(reg.enrolls) != 1 || reg.enrolls[0] != c.wants {
				t.Errorf("%s: enrolled %q, expected %s", name, reg.enrolls, c.wants)
			}
		}
	}
}

func TestAvroUses(t *testing.T) {
	type Order struct{ ID int64 }
	reg := &shelf{}
	c := codec.Avro[Order](codec.Registered(reg))
	if _, err := c.NewEncoder()(nil, &Order{}); err == nil || !errors.Is(err, connector.ErrUnavailable) || !strings.Contains(err.Error(), "codec.For") {
		t.Errorf("a topic nobody told: %v", err)
	}
	p := c.(codec.Preparer)
	for range 2 {
		if err := p.Prepare(t.Context(), codec.Use{Topic: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Prepare(t.Context(), codec.Use{Topic: "b"}); err == nil || !strings.Contains(err.Error(), "prepared for values of topic a, and used for values of topic b") {
		t.Errorf("two topics: %v", err)
	}
	for _, topic := range []string{"b", "c"} {
		if _, err := codec.For(c, codec.Use{Topic: topic}).NewEncoder()(nil, &Order{}); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(reg.enrolls, " "); got != "a-value b-value c-value" {
		t.Errorf("enrolled %s", got)
	}
	lookUp := codec.Avro[string](codec.Registered(reg, codec.LookUpOnly(), codec.Subject("s")))
	if err := lookUp.(codec.Preparer).Prepare(t.Context(), codec.Use{}); err == nil || !strings.Contains(err.Error(), "subject s has no such schema") {
		t.Errorf("looked up: %v", err)
	}
	if same := codec.JSON[Order](); codec.For(same, codec.Use{Topic: "a"}) != same || codec.Check(same) != nil {
		t.Error("a codec of plain bytes has no uses")
	}
}

func TestAvroOfNoUse(t *testing.T) {
	type hidden struct{ hidden int }
	_ = hidden{}.hidden
	both := codec.Avro[int64](codec.Writer(`"long"`), codec.Registered(&shelf{}))
	for says, err := range map[string]error{
		"hidden.hidden: unexported":   codec.Check(codec.Avro[hidden]()),
		"codec.Record gives it one":   codec.Check(codec.Avro[struct{ A int64 }]()),
		`"a b" is no name`:            codec.Check(codec.Avro[item](codec.Record("a b"))),
		"codec.Writer: avro schema":   codec.Check(codec.Avro[item](codec.Writer("{"))),
		"exclude each other":          codec.Check(both),
		"codec.Registered got no reg": codec.Check(codec.Avro[item](codec.Registered(nil))),
		"exclude each":                both.(codec.Preparer).Prepare(context.Background(), codec.Use{}),
	} {
		if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, connector.ErrUnavailable) {
			t.Errorf("%v; expected %s", err, says)
		}
	}
	reads := codec.Avro[int64](codec.Writer(`"int"`))
	one := int64(1)
	if _, err := reads.NewEncoder()(nil, &one); err == nil || !strings.Contains(err.Error(), "needs a codec of its own") {
		t.Errorf("encoded by a writer's schema: %v", err)
	}
}

func TestAvroParameters(t *testing.T) {
	type Order struct{ ID int64 }
	text := func(c codec.Codec[Order]) string { return fmt.Sprint(c.Name(), c.Parameters()) }
	for want, got := range map[string]string{
		"avro[{record Order}]": text(codec.Avro[Order]()),
		`avro[{record o} {writer {"type":"record","name":"r","fields":[]}}]`: text(codec.Avro[Order](codec.Record("o"), codec.Writer(record("")))),
		"avro[{record Order} {framing registry} {subject topic}]":            text(codec.Avro[Order](codec.Registered(&shelf{}))),
		"avro[{record Order} {framing registry} {subject mine}]":             text(codec.Avro[Order](codec.Registered(&shelf{}, codec.Subject("mine")))),
	} {
		if got != want {
			t.Errorf("%s\nexpected %s", got, want)
		}
	}
}

// TestAvroCross compares with an implementation that shares no code: it writes by
// a schema of its own, and reads what is written here.
func TestAvroCross(t *testing.T) {
	other, err := avro.Parse(newest)
	if err != nil {
		t.Fatal(err)
	}
	c := codec.Avro[purchase](codec.Registered(avroShelf(map[uint32]string{5: newest})))
	decode, encode := c.NewDecoder(), codec.Avro[purchase]().NewEncoder()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zü]{0,5}`)
		want := purchase{
			ID: rapid.Int64().Draw(t, "id"), Name: text.Draw(t, "name"), Paid: rapid.Bool().Draw(t, "paid"),
			Tier: rapid.SampledFrom([]tier{"basic", "gold"}).Draw(t, "tier"), At: time.UnixMicro(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")).UTC(),
			Price: *big.NewRat(rapid.Int64Range(-99999, 99999).Draw(t, "price"), 100), Rate: rapid.Float64().Draw(t, "rate"), Extra: map[string]int64{},
		}
		g := map[string]any{
			"ID": want.ID, "name": want.Name, "Paid": want.Paid, "Tier": string(want.Tier), "Note": nil, "Lines": []any{}, "At": want.At,
			"Price": &want.Price, "Extra": map[string]any{}, "Rate": want.Rate,
		}
		if rapid.Bool().Draw(t, "noted") {
			note := text.Draw(t, "note")
			want.Note, g["Note"] = &note, note
		}
		for range rapid.IntRange(0, 3).Draw(t, "lines") {
			l := line2{text.Draw(t, "sku"), rapid.Int32().Draw(t, "qty")}
			want.Lines = append(want.Lines, l)
			g["Lines"] = append(g["Lines"].([]any), map[string]any{"SKU": l.SKU, "Qty": l.Qty})
		}
		if rapid.Bool().Draw(t, "extra") {
			n := rapid.Int64().Draw(t, "n")
			want.Extra["k"], g["Extra"] = n, map[string]any{"k": n}
		}
		theirs, err := other.Encode(g)
		if err != nil {
			t.Fatal(err)
		}
		var got purchase
		if err := decode(append([]byte("\x00\x00\x00\x00\x05"), theirs...), &got); err != nil || !samePurchase(got, want) {
			t.Fatalf("read %+v, %v\nexpected %+v", got, err, want)
		}
		ours, err := encode(nil, &want)
		if err != nil || string(ours) != string(theirs) {
			t.Fatalf("wrote %q, %v\nthe other wrote %q", ours, err, theirs)
		}
	})
}
