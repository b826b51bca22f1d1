package tabular

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// TestAbsent sees that columns that took their defaults in all rows are known, and
// none that a row had.
func TestAbsent(t *testing.T) {
	value := schema.Record("value", schema.Field{Name: "Cents", Type: schema.Long(), Default: "0"}, schema.Field{Name: "Shop", Type: schema.String(), Default: `""`})
	layout := Entries("spend", schema.String(), nil, value)
	for _, c := range []struct {
		format Format
		text   string
		want   []string
	}{
		{CSV, "key,Cents\nann,1\n", []string{"Shop"}},
		{CSV, "key,Cents,Shop\nann,1,\n", nil},
		{JSONL, `{"key":"ann","Cents":1}`, []string{"Shop"}},
		{JSONL, `{"key":"ann","Cents":1}` + "\n" + `{"key":"bob","Shop":"a"}`, nil},
		{JSONL, `{"key":"ann","value":{"Cents":1}}`, []string{"value.Shop"}},
		{JSONL, "", nil},
	} {
		r, err := Open(bytes.NewReader([]byte(c.text)), int64(len(c.text)), "f", c.format, layout, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = r.Next()
		}
		var got []string
		for _, a := range r.Absent() {
			if got = append(got, a.Column); a.Implied || a.Default != map[string]string{"Cents": "0", "Shop": `""`}[strings.TrimPrefix(a.Column, "value.")] {
				t.Errorf("%s %q: %+v", c.format, c.text, a)
			}
		}
		if err != io.EOF || !slices.Equal(got, c.want) {
			t.Errorf("%s %q: absent are %v, expected %v (%v)", c.format, c.text, got, c.want, err)
		}
	}
}

// TestColumnsOfAnotherCase sees that a column that differs from a wanted one only in
// its case isn't ignored.
func TestColumnsOfAnotherCase(t *testing.T) {
	value := schema.Record("value", schema.Field{Name: "Cents", Type: schema.Long(), Default: "0"})
	layout := Entries("spend", schema.String(), nil, value)
	for text, want := range map[string]string{
		"key,cents\nann,1\n": "column Cents is named cents",
		"key,shop\nann,1\n":  "",
	} {
		_, err := Open(bytes.NewReader([]byte(text)), int64(len(text)), "f", CSV, layout, ReadOptions{Ignore: true})
		var faults []string
		if e, ok := err.(*ColumnsError); ok {
			faults = e.Faults
		}
		if want == "" && err != nil || want != "" && !slices.Equal(faults, []string{want}) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}

// place and visit are what a state has, of whose fields one has a default of its own.
type visitedPlace struct {
	City string
	Zone int64 `avro:"Zone,default=7"`
}

type visit struct {
	Cents  int64
	Kind   string `avro:"Kind,default=none"`
	Where  visitedPlace
	Others []visitedPlace
	Last   *visitedPlace
}

// TestZeroValuesAreAskedFor sees that a column that is missing, and a field that no
// record has, is refused unless its tag gives a default or zero values are asked for,
// and that all defaults that were taken are told with their values.
func TestZeroValuesAreAskedFor(t *testing.T) {
	value, err := schema.Of[visit]("visit")
	if err != nil {
		t.Fatal(err)
	}
	want := Entries("visits", schema.String(), nil, value.Schema())
	lacks := func(fields ...schema.Field) *schema.Schema { return schema.Record("lacks", fields...) }
	place := schema.Record("place", schema.Field{Name: "Zone", Type: schema.Long()})
	// Where is {Zone: 3}, of which City is missing; Others has one of the kind.
	layout := Entries("visits", schema.String(), nil, lacks(schema.Field{Name: "Cents", Type: schema.Long()},
		schema.Field{Name: "Where", Type: place}, schema.Field{Name: "Others", Type: schema.Array(place)}))
	row := []byte{6, 'a', 'n', 'n', 2, 6, 2, 8, 0}
	var files []struct {
		format Format
		data   []byte
		absent string
	}
	add := func(f Format, data []byte, absent string) {
		files = append(files, struct {
			format Format
			data   []byte
			absent string
		}{f, data, absent})
	}
	for _, f := range []Format{Avro, Parquet} {
		add(f, written(t, f, layout, [][]byte{row}), `value.Kind="none", value.Last=null!, value.Where.City=""!, value.Others.City=""!`)
	}
	add(CSV, []byte("key,Cents,Where\nann,1,\"{\"\"City\"\":\"\"a\"\"}\"\n"), `Kind="none", Others=[]!, Last=null!`)
	add(JSONL, []byte(`{"key":"ann","value":{"Cents":1,"Where":{"Zone":3},"Others":[{"Zone":4}],"Last":null}}`), `value.Kind="none", value.Where.City=""!, value.Others.City=""!`)
	add(JSONL, []byte(`{"key":"ann","Cents":1,"Where":{"City":"a"}}`+"\n"+`{"key":"bob","Others":[],"Last":{"City":"b"}}`), `Kind="none", Where.Zone=7, Last.Zone=7`)
	for _, f := range files {
		open := func(o ReadOptions) (absent string, err error) {
			r, err := Open(bytes.NewReader(f.data), int64(len(f.data)), "f", f.format, want, o)
			for err == nil {
				_, err = r.Next()
			}
			if err != io.EOF {
				return "", err
			}
			var all []string
			for _, a := range r.Absent() {
				if all = append(all, a.Column+"="+a.Default); a.Implied {
					all[len(all)-1] += "!"
				}
			}
			return strings.Join(all, ", "), nil
		}
		if absent, err := open(ReadOptions{Defaults: true}); err != nil || absent != f.absent {
			t.Errorf("%s: absent are %s, expected %s (%v)", f.format, absent, f.absent, err)
		}
		var missing []string
		for one := range strings.SplitSeq(f.absent, ", ") {
			if name, _, _ := strings.Cut(one, "="); strings.HasSuffix(one, "!") {
				missing = append(missing, "column "+name+" (")
			}
		}
		_, err := open(ReadOptions{})
		var faults []string
		if e, ok := err.(*ColumnsError); ok {
			faults = e.Faults
		}
		fits := len(faults) == len(missing)
		for i := range min(len(faults), len(missing)) {
			fits = fits && strings.HasPrefix(faults[i], missing[i]) && strings.Contains(faults[i], "--defaults takes ")
		}
		if !fits {
			t.Errorf("%s: without zero values: %v, expected faults %q", f.format, err, missing)
		}
	}
}
