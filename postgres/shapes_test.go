package postgres

import (
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Shared is embedded: its fields are columns of the row.
type Shared struct {
	Source string
	Seen   time.Time `pg:",type=bigint"`
}

type shaped struct {
	Shared
	ID    string `pg:",key,type=uuid"`
	Small int16  `pg:",type=numeric(5)"`
	Mid   int32  `pg:",type=numeric"`
	F     float32
	G     float32 `pg:",type=double precision"`
}

// A row's tag gives the key's column its type, embedded structs are part of the
// row, and the table's name may have its schema before it.
func TestShapes(t *testing.T) {
	p := newPlace(t)
	s := Upsert(p.schema+".shaped", func(_ string, r shaped) shaped { return r }, Database(p.server.URL("")), CreateTable())
	rows, err := s.TableRows()
	if err != nil {
		t.Fatal(err)
	}
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	appendRow := rows.NewAppend()
	r := shaped{Shared{"x", time.UnixMicro(-5)}, "what stands here doesn't count", -32768, 1 << 30, 0.5, 0.25}
	b, err := appendRow(nil, id, &r)
	if err != nil {
		t.Fatal(err)
	}
	_, err = appendRow(nil, "no uuid", &r)
	says(t, err, "column id: a uuid has the form")
	k := textKey(t)
	target := openTarget(t, s)
	put := connector.Row{Op: connector.Put, Key: k.Append(nil, id), Row: b}
	mustDeliver(t, target, delivery(1, k.Schema(), rows.Schema, put), connector.Apply)
	p.expect("select * from @.shaped", id+"|x|-5|-32768|1073741824|0.5|0.25")
	p.expect("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = '@.shaped'::regclass and attnum > 0 order by attnum",
		"uuid", "text", "bigint", "numeric(5,0)", "numeric", "real", "double precision")
	mustDeliver(t, target, delivery(2, k.Schema(), rows.Schema, connector.Row{Op: connector.Delete, Key: k.Append(nil, id)}), connector.Apply)
	p.expect("select * from @.shaped")
	want := []connector.Parameter{{Name: "mode", Value: "upsert"}, {Name: "key", Value: "id"}, {Name: "type of seen", Value: "bigint"},
		{Name: "type of id", Value: "uuid"}, {Name: "type of small", Value: "numeric(5,0)"}, {Name: "type of mid", Value: "numeric"}, {Name: "type of g", Value: "double precision"}}
	d := s.Describe()
	if d.Target != p.schema+".shaped" || len(d.Parameters) != len(want) {
		t.Fatalf("described as %+v", d)
	}
	for i := range want {
		if d.Parameters[i] != want[i] {
			t.Errorf("parameter %d is %+v, expected %+v", i, d.Parameters[i], want[i])
		}
	}
}

// An outbox whose key has other columns is not guessed at.
func TestKeysOfOtherBuilds(t *testing.T) {
	p := newPlace(t)
	s := Upsert("delays", func(_ airport, d delay) delay { return d }, p.options(CreateTable())...)
	rows, err := s.TableRows()
	if err != nil {
		t.Fatal(err)
	}
	target := openTarget(t, s)
	one, err := schema.KeyOf[struct{ Code string }]("key")
	if err != nil {
		t.Fatal(err)
	}
	renamed, err := schema.KeyOf[struct {
		Code string
		Door int32
	}]("key")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []*schema.Schema{textKey(t).Schema(), one.Schema(), renamed.Schema(), nil} {
		_, _, err := target.Deliver(t.Context(), delivery(1, key, rows.Schema, connector.Row{Op: connector.Delete, Key: []byte{0}}))
		if key == nil {
			says(t, err, "no schema for its keys")
			continue
		}
		says(t, err, "the delivery was frozen with the key "+key.Word(), "this build's key has the columns airport, gate", "let the build that froze it deliver it")
	}

	gone := Delete[airport]("delays", p.options()...)
	deletes, err := gone.Open(t.Context(), opening(), ownKey())
	if err != nil {
		t.Fatal(err)
	}
	defer deletes.Close()
	narrow := schema.Record("row", schema.Field{Name: "airport", Type: schema.String()})
	_, _, err = deletes.Deliver(t.Context(), delivery(1, nil, narrow, connector.Row{Op: connector.Append, Row: []byte{0}}))
	says(t, err, "the delivery's rows lack one of the columns airport, gate")
}

func TestParseType(t *testing.T) {
	for text, want := range map[string]string{
		"INT8": "bigint", " double  precision ": "double precision", "numeric( 12 , 2 )": "numeric(12,2)", "decimal(7)": "numeric(7,0)",
		"character varying(5)": "character varying(5)", "timestamptz": "timestamp with time zone", "uuid[]": "uuid[]", "numeric(4,2)[]": "numeric(4,2)[]", "shop.mood": "shop.mood",
	} {
		if got, err := parseType(text); err != nil || got.sql != want {
			t.Errorf("type=%s is %s (%v), expected %s", text, got.sql, err, want)
		}
	}
	for _, text := range []string{"", "numeric(0)", "numeric(1001)", "numeric(3,4)", "numeric(3,-1)", "numeric(1,1,1)", "numeric(a)", "numeric(4", "varchar(0)", "varchar(1,2)", "text(5)x", "int(4)", "a b", "int[][]", "x;drop", "1x"} {
		if got, err := parseType(text); err == nil {
			t.Errorf("type=%s is %s, expected an error", text, got.sql)
		}
	}
}
