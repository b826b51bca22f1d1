package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/sluicestream/sluice/schema"
)

func TestParse(t *testing.T) {
	for given, want := range map[string]string{
		`"int"`:                             `"int"`,
		`{"type":"int"}`:                    `"int"`,
		`{"type":{"type":{"type":"long"}}}`: `"long"`,
		`["null","string"]`:                 `["null","string"]`,
		`{"type":"array","items":{"type":"map","values":"bytes"}}`:                                                                        `{"type":"array","items":{"type":"map","values":"bytes"}}`,
		` { "name" : "a" , "namespace": "n.s", "type":"fixed", "size":16, "doc":"dropped"} `:                                              `{"type":"fixed","name":"n.s.a","size":16}`,
		`{"type":"enum","name":"e","symbols":["A","B"],"default":"A","aliases":["f"]}`:                                                    `{"type":"enum","name":"e","aliases":["f"],"symbols":["A","B"],"default":"A"}`,
		`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`:                                                                `{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`,
		`{"type":"bytes","logicalType":"decimal","precision":4,"scale":5}`:                                                                `"bytes"`,
		`{"type":"string","logicalType":"uuid"}`:                                                                                          `{"type":"string","logicalType":"uuid"}`,
		`{"type":"string","logicalType":"timestamp-micros"}`:                                                                              `"string"`,
		`{"type":"string","logicalType":"date"}`:                                                                                          `"string"`,
		`{"type":"long","logicalType":"time-millis"}`:                                                                                     `"long"`,
		`{"type":"long","logicalType":"local-timestamp-nanos"}`:                                                                           `{"type":"long","logicalType":"local-timestamp-nanos"}`,
		`{"type":"fixed","name":"f","size":16,"logicalType":"uuid"}`:                                                                      `{"type":"fixed","name":"f","size":16,"logicalType":"uuid"}`,
		`{"type":"fixed","name":"f","size":15,"logicalType":"uuid"}`:                                                                      `{"type":"fixed","name":"f","size":15}`,
		`{"type":"fixed","name":"f","size":4,"logicalType":"decimal","precision":9}`:                                                      `{"type":"fixed","name":"f","size":4,"logicalType":"decimal","precision":9,"scale":0}`,
		`{"type":"fixed","name":"f","size":4,"logicalType":"decimal","precision":10}`:                                                     `{"type":"fixed","name":"f","size":4}`,
		`{"type":"string","logicalType":5}`:                                                                                               `"string"`,
		`{"type":"record","name":"r","fields":[]}`:                                                                                        `{"type":"record","name":"r","fields":[]}`,
		`{"type":"error","name":"r","fields":[{"name":"f","type":"int","order":"ignore"}]}`:                                               `{"type":"record","name":"r","fields":[{"name":"f","type":"int","order":"ignore"}]}`,
		`{"type":"record","name":"n.r","fields":[{"name":"f","type":["null","r"],"default":null}]}`:                                       `{"type":"record","name":"n.r","fields":[{"name":"f","type":["null","n.r"],"default":null}]}`,
		`{"type":"record","name":"n.r","fields":[{"name":"f","type":{"type":"fixed","name":"x","namespace":"","size":1}}]}`:               `{"type":"record","name":"n.r","fields":[{"name":"f","type":{"type":"fixed","name":"x","namespace":"","size":1}}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":"double","default":1},{"name":"b","type":"float","default":1.50e0}]}`:   `{"type":"record","name":"r","fields":[{"name":"a","type":"double","default":1},{"name":"b","type":"float","default":1.5}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":["null","long"],"default":9007199254740993}]}`:                          `{"type":"record","name":"r","fields":[{"name":"a","type":["null","long"],"default":9007199254740993}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":{"b":1, "a":2}}]}`:              `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":{"a":2,"b":1}}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":"bytes","default":"\u00ff\u0000\""}]}`:                                  `{"type":"record","name":"r","fields":[{"name":"a","type":"bytes","default":"ÿ\u0000\""}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","aliases":["b"],"type":{"type":"array","items":"boolean"},"default":[true]}]}`: `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"boolean"},"default":[true],"aliases":["b"]}]}`,
	} {
		s, err := schema.Parse([]byte(given))
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if s.String() != want {
			t.Errorf("%s is\n%s, want\n%s", given, s, want)
		}
		again, err := schema.Parse([]byte(s.String()))
		if err != nil || !again.Equal(s) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 300) + `"int"` + strings.Repeat("}", 300)
	doubling := `{"type":"record","name":"r0","fields":[]}`
	for i := range 64 {
		doubling = fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"a","type":%s},{"name":"b","type":"r%d"}]}`, i+1, doubling, i)
	}
	for given, want := range map[string]string{
		``:                 "EOF",
		`{`:                "EOF",
		`"int" "int"`:      "behind the schema",
		`5`:                "a type is a string",
		`"integer"`:        `unknown type "integer"`,
		`{"items":"int"}`:  `no "type"`,
		`{"type":"array"}`: `no "items"`,
		`{"type":"map"}`:   `no "values"`,
		`[]`:               "no branches",
		`["int","int"]`:    "twice",
		`["int",["null"]]`: "holds a union",
		`{"type":"record","name":"int","fields":[]}`:                                                                           "one of Avro's own",
		`{"type":"record","name":"a-b","fields":[]}`:                                                                           `"a-b" is no name`,
		`{"type":"record","name":"a"}`:                                                                                         "no array of fields",
		`{"type":"record","fields":[]}`:                                                                                        "a name is empty",
		`{"type":"record","name":"a","fields":[{"name":"b"}]}`:                                                                 `with a "type"`,
		`{"type":"record","name":"a","fields":[{"name":"b","type":"int"},{"name":"b","type":"int"}]}`:                          "two fields are named b",
		`{"type":"record","name":"a","fields":[{"name":"b","type":"int","default":"x"}]}`:                                      "is no int",
		`{"type":"record","name":"a","fields":[{"name":"b","type":"int","default":2147483648}]}`:                               "is no int",
		`{"type":"record","name":"a","fields":[{"name":"b","type":{"type":"enum","name":"e","symbols":["X"]},"default":"Y"}]}`: "none of the symbols",
		`{"type":"record","name":"a","fields":[{"name":"b","type":{"type":"fixed","name":"e","size":2},"default":"Y"}]}`:       "is no fixed(2)",
		`{"type":"record","name":"a","fields":[{"name":"b","type":"x.y"}]}`:                                                    "unknown type",
		`{"type":"record","name":"a","fields":[{"name":"b","type":{"type":"enum","name":"a","symbols":["X"]}}]}`:               "defined twice",
		`{"type":"enum","name":"e","symbols":["A"],"default":"B"}`:                                                             "its default is none of the symbols",
		`{"type":"enum","name":"e","symbols":["A"],"default":0}`:                                                               "its default is none of the symbols",
		`{"type":"enum","name":"e","symbols":[]}`:                                                                              "no symbols",
		`{"type":"enum","name":"e","symbols":["A","A"]}`:                                                                       "stands twice",
		`{"type":"enum","name":"e","symbols":"A"}`:                                                                             "no array",
		`{"type":"fixed","name":"e","size":-1}`:                                                                                "its size",
		`{"type":"fixed","name":"e","size":99999999999}`:                                                                       "its size",
		`{"type":"int","type":"long"}`:                                                                                         "duplicate",
		deep:                                                                                                                   "deep",
		strings.Repeat("[", 1<<20):                                                                                             "deep",
		doubling:                                                                                                               "types within types",
		`"` + strings.Repeat("x", 5<<20) + `"`:                                                                                 "the most is",
	} {
		if _, err := schema.Parse([]byte(given)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", given, err, want)
		}
	}
}

// TestNamesThatMeet puts different types of one name into one schema.
func TestNamesThatMeet(t *testing.T) {
	type key struct{ A int32 }
	type value struct {
		Spend struct {
			B string
			U uint64
		} `avro:"spend"`
		U, V  uint64
		Tiers []tier
	}
	k, v := must(schema.KeyOf[key]("spend")), must(schema.Of[value]("spend"))
	segment := schema.Record("spend",
		schema.Field{Name: "key", Type: k.Schema()},
		schema.Field{Name: "value", Type: schema.Nullable(v.Schema())},
		schema.Field{Name: "again", Type: must(schema.Of[value]("spend")).Schema()})
	parsed := must(schema.Parse([]byte(segment.String())))
	if !parsed.Equal(segment) {
		t.Errorf("%s\n%s", segment, parsed)
	}
	fields := parsed.Fields()
	if got := fields[0].Type; !got.Equal(k.Schema()) {
		t.Errorf("the key is %s\nwant %s", got, k.Schema())
	}
	if got, _ := fields[1].Type.NonNull(); !got.Equal(v.Schema()) {
		t.Errorf("the value is %s\nwant %s", got, v.Schema())
	}
	if !fields[2].Type.Equal(v.Schema()) {
		t.Errorf("the same again is %s", fields[2].Type)
	}
	if _, err := avro.Parse(segment.String()); err != nil {
		t.Errorf("others can't read %s: %v", segment, err)
	}
}

func TestRecursiveNames(t *testing.T) {
	type a struct {
		B *struct{ A []struct{ C int } }
		N *a
		M map[string]a
	}
	for _, s := range []*schema.Schema{must(schema.Of[a]("tree")).Schema(), must(schema.Of[[]a]("x.tree")).Schema(), must(schema.Of[wide]("wide")).Schema()} {
		parsed, err := schema.Parse([]byte(s.String()))
		if err != nil || !parsed.Equal(s) || len(schema.Differences(s, parsed)) > 0 {
			t.Errorf("%s: %v", s, err)
		}
		if _, err := avro.Parse(s.String()); err != nil {
			t.Errorf("others can't read %s: %v", s, err)
		}
	}
}

// TestNameThatCouldBeMistaken refers to a record from within a namespace that
// has another of the same bare name.
func TestNameThatCouldBeMistaken(t *testing.T) {
	type tree struct {
		Inner struct {
			Up *tree
			N  int
		} `avro:"tree"`
	}
	s := must(schema.Of[tree]("tree")).Schema()
	parsed := must(schema.Parse([]byte(s.String())))
	inner := parsed.Fields()[0].Type
	up, _ := inner.Fields()[0].Type.NonNull()
	if up != parsed || !parsed.Equal(s) || inner.Name() != "tree.tree" {
		t.Errorf("%s\nis read as %s", s, parsed)
	}
}

func TestConstructors(t *testing.T) {
	s := schema.Record("sluice.outbox",
		schema.Field{Name: "op", Type: schema.Enum("sluice.op", "append", "put")},
		schema.Field{Name: "row", Type: schema.Nullable(schema.Map(schema.Array(schema.Timestamp()))), Default: "null", Aliases: []string{"r"}},
		schema.Field{Name: "dec", Type: schema.Decimal(5, 2)},
		schema.Field{Name: "fix", Type: schema.Fixed("sluice.fix", 3)},
		schema.Field{Name: "took", Type: schema.Nullable(schema.Nullable(schema.Duration()))})
	if again := must(schema.Parse([]byte(s.String()))); !again.Equal(s) {
		t.Error(s, again)
	}
	dec := s.Fields()[2].Type
	if dec.Precision() != 5 || dec.Scale() != 2 || dec.Logical() != schema.LogicalDecimal || dec.Kind() != schema.KindBytes {
		t.Error(dec)
	}
	for _, f := range []func(){
		func() { schema.Record("a b") },
		func() { schema.Record("a", schema.Field{Name: "x"}) },
		func() {
			schema.Record("a", schema.Field{Name: "x", Type: schema.Int()}, schema.Field{Name: "x", Type: schema.Int()})
		},
		func() { schema.Enum("a", "b", "b") },
		func() { schema.Fixed("a", -1) },
		func() { schema.Decimal(1, 2) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}
