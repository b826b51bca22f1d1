package tabular

import (
	"bytes"
	"io"
	"slices"
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
		if got := r.Absent(); err != io.EOF || !slices.Equal(got, c.want) {
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
