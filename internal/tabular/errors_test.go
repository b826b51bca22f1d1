package tabular

import (
	"strings"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

type small struct {
	Orders int32
	Name   *string
	Color  color
	Parts  []shopPart
}

type shopPart struct{ City string }

func smallLayout(t testing.TB) Layout {
	t.Helper()
	key, err := schema.KeyOf[shopKey]("key")
	if err != nil {
		t.Fatal(err)
	}
	value, err := schema.Of[small]("small")
	if err != nil {
		t.Fatal(err)
	}
	return Entries("small", key.Schema(), nil, value.Schema())
}

const keyCells = `City,key.Number,Code,Open,Tag`

// TestErrors sees that errors name the file, the row, the line, the column, what is
// expected and what was found.
func TestErrors(t *testing.T) {
	key := `"key":{"City":"Oslo","Number":1,"Code":2,"Open":true,"Tag":"AAAAAA=="}`
	for _, c := range []struct {
		format Format
		data   string
		says   string
	}{
		{JSONL, `{` + key + `,"value":{"Orders":"one"}}`, `file file, row 1 (line 1), column value.Orders: expected int, found the string "one"`},
		{JSONL, `{` + key + `,"value":{}}` + "\n\n" + `{` + key + `,"value":{"Orders":5000000000}}`, `row 2 (line 3), column value.Orders: expected int, found "5000000000"`},
		{JSONL, `{` + key + `,"value":{"Color":"pink"}}`, `column value.Color: expected one of ["red" "green" "blue"], found "pink"`},
		{JSONL, `{` + key + `,"value":{"Parts":[{"City":"a"},{"City":null}]}}`, `column value.Parts[1].City: expected string, found null`},
		{JSONL, `{` + key + `,"value":{"Ordres":1}}`, `column value.Ordres: expected no such field, found 1`},
		{JSONL, `{"Orders":1}`, `row 1 (line 1), column key.City: expected string, found nothing`},
		{JSONL, `{` + key, `row 1 (line 1): expected JSON, found `},
		{JSONL, `{} {}`, `expected one JSON value, found more behind it`},
		{JSONL, `[1]`, `row 1 (line 1): expected an object, found an array`},
		{JSONL, `{"key":1,"key":2}`, `expected JSON`},
		{CSV, keyCells + "\nOslo,1,2,true\n", `row 1 (line 2): expected 5 cells as in the header, found 4`},
		{CSV, keyCells + "\nOslo,x,2,true,AAAAAA==\n", `row 1 (line 2), column key.Number: expected int, found "x"`},
		{CSV, keyCells + "\n\"Os\nlo\",1,2,true,AAAAAA==\nOslo,1,2,maybe,AAAAAA==\n", `row 2 (line 4), column key.Open: expected boolean, found "maybe"`},
		{CSV, keyCells + "\nOslo,1,2,,AAAAAA==\n", `column key.Open: expected boolean, found an empty cell`},
		{CSV, keyCells + "\n\"Oslo\"x,1,2,true,AAAAAA==\n", `expected a comma behind a quoted cell, found "x,1,2,true,AAAAAA=="`},
		{CSV, keyCells + "\nOs\"lo,\"1,2,true,AAAAAA==\n", `expected quotes around a whole cell, found "Os\"lo"`},
		{CSV, keyCells + "\n\"Oslo,1,2,true,AAAAAA==\n", `expected a quote at the end of a cell, found the end of the file`},
		{CSV, keyCells + ",Parts\nOslo,1,2,true,AAAAAA==,\"[{\"\"City\"\":1}]\"\n", `column Parts[0].City: expected string, found 1`},
		{CSV, "City,Number\nOslo,1\n", `file file: its columns don't fit: column key.Code (uint64) is missing; column key.Open (boolean) is missing; column key.Tag (fixed(4)) is missing. Name them`},
		{CSV, keyCells + ",City\n", `column City stands there twice`},
		{CSV, keyCells + ",key.City\n", `columns key.City and City are one`},
		{CSV, keyCells + ",Shop\n", `column Shop has no place`},
		{CSV, "", `file file: it is empty; expected a line with the columns' names`},
		{Avro, "no Avro", `file file: avro file, byte 0: expected "Obj\x01"`},
		{Parquet, "no Parquet, but long enough", `file file: expected Parquet, which begins with PAR1, found "no P" at its begin: it is another format`},
		{Parquet, "PAR1 was cut", `file file: expected Parquet, which ends with PAR1, found " cut" at its end, byte 12: it is cut short`},
		{Parquet, "PAR1", `file file: expected Parquet, which begins and ends with PAR1, found a file of 4 bytes: it is cut short, or another format`},
		{CSV, keyCells + "\nOslo,1,2,true,AAAAAA==\nRome,1,2,true,AA", `file file, row 2 (line 3): expected the end of the line, found the end of the file: it is cut short, or lacks a line end behind its last row`},
		{CSV, "City,Num", `file file: expected the end of the line, found the end of the file`},
	} {
		_, err := read([]byte(c.data), c.format, smallLayout(t), ReadOptions{Defaults: true})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q:\n got %v\nwant %s", c.format, c.data, err, c.says)
		}
	}
}

// TestIgnored sees that what nobody wants is left out where that is allowed.
func TestIgnored(t *testing.T) {
	for f, data := range map[Format]string{
		JSONL: `{"City":"Oslo","Number":1,"Code":2,"Open":true,"Tag":"AAAAAA==","Shop":7,"Parts":[{"City":"a","Street":1}]}`,
		CSV:   keyCells + ",Shop,Parts\nOslo,1,2,true,AAAAAA==,7,\"[{\"\"City\"\":\"\"a\"\",\"\"Street\"\":1}]\"\n",
	} {
		if _, err := read([]byte(data), f, smallLayout(t), ReadOptions{Defaults: true}); err == nil {
			t.Errorf("%s: a stranger was taken", f)
		}
		rows, err := read([]byte(data), f, smallLayout(t), ReadOptions{Ignore: true, Defaults: true})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %d rows, %v", f, len(rows), err)
		}
		got, _, err := schema.JSON(smallLayout(t).Schema())(nil, rows[0])
		const want = `{"key":{"City":"Oslo","Number":1,"Code":2,"Open":true,"Tag":"AAAAAA=="},"value":{"Orders":0,"Name":null,"Color":"red","Parts":[{"City":"a"}]}}`
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
}
