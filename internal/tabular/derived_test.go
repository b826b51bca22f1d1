package tabular

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/schema"
)

// TestEntriesAsStored reads records as a state's segments have them: the slot is
// left out, and a value that is null is an error of its row.
func TestEntriesAsStored(t *testing.T) {
	stored := `{"type":"record","name":"sluice.entry","fields":[{"name":"slot","type":"int"},{"name":"key","type":"string"},{"name":"value","type":["null","long"]}]}`
	layout := Entries("totals", schema.String(), nil, schema.Long())
	open := func(records ...string) (*Reader, error) {
		var out bytes.Buffer
		w := avrofile.New(&out, avrofile.Options{Schema: stored})
		for _, r := range records {
			if err := w.Append([]byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		file := bytes.NewReader(out.Bytes())
		return Open(file, file.Size(), "totals.avro", Avro, layout, ReadOptions{})
	}
	r, err := open("\x80\x01\x02a\x02\x0e", "\x82\x01\x02b\x02\x10") // slots 64 and 65, values 7 and 8
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x02a\x0e", "\x02b\x10"} {
		if row, err := r.Next(); string(row) != want || err != nil {
			t.Errorf("row %q, %v; want %q", row, err, want)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	r, err = open("\x80\x01\x02a\x00")
	if err == nil {
		_, err = r.Next()
	}
	var row *RowError
	if !errors.As(err, &row) || !strings.Contains(err.Error(), "value") {
		t.Errorf("a null value: %v", err)
	}
	// Where the value has a field of that name, a flat file's column is that.
	flat := Entries("totals", schema.String(), nil, schema.Record("v", schema.Field{Name: "slot", Type: schema.Long()}))
	text := strings.NewReader("key,slot\na,7\n")
	r, err = Open(text, text.Size(), "totals.csv", CSV, flat, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := r.Next(); string(row) != "\x02a\x0e" || err != nil {
		t.Errorf("a flat file: row %q, %v", row, err)
	}
	text = strings.NewReader("key,slot\na,7\n")
	var columns *ColumnsError
	if _, err := Open(text, text.Size(), "totals.csv", CSV, Entries("totals", schema.String(), nil, schema.Record("v", schema.Field{Name: "n", Type: schema.Long(), Default: "1"})), ReadOptions{}); !errors.As(err, &columns) {
		t.Errorf("a flat file with a column without a place: %v", err)
	}
}
