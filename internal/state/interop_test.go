package state

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro/ocf"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

type spend struct {
	Orders, Cents int64
	Tags          []string
}

// typedChanges encodes a Go map as the engine does, by the types' schemas.
func typedChanges(t *testing.T, f *Form, entries map[string]*spend) *Changes {
	t.Helper()
	keys, err := schema.KeyOf[string]("spend.key")
	if err != nil {
		t.Fatal(err)
	}
	values, err := schema.Of[spend]("spend")
	if err != nil {
		t.Fatal(err)
	}
	*f = Form{Name: "spend", Key: keys.Schema(), Value: values.Schema()}
	c := new(Changes)
	for k, v := range entries {
		c.Begin(row{key: k}.slot())
		c.Buf = keys.Append(c.Buf, k)
		c.Element()
		c.Value()
		if v == nil {
			c.Buf = append(c.Buf, branchDeleted)
		} else if c.Buf, err = values.Append(append(c.Buf, branchValue), v); err != nil {
			t.Fatal(err)
		}
		c.End()
	}
	return c
}

// Any Avro reader can read a segment: another implementation does.
func TestOthersReadSegments(t *testing.T) {
	ctx, st := context.Background(), store.NewMemory()
	want := map[string]*spend{"ann": {1, 250, []string{"new"}}, "bob": nil, "cid": {3, -4, nil}}
	var f Form
	c := typedChanges(t, &f, want)
	if _, err := Write(ctx, st, job, "x.avro", f, []*Changes{c}, 0); err != nil {
		t.Fatal(err)
	}
	file, err := st.Read(ctx, "spend/x.avro", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ocf.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*spend{}
	for {
		var record struct {
			Slot  int32  `avro:"slot"`
			Key   string `avro:"key"`
			Value *struct {
				Orders int64    `avro:"Orders"`
				Cents  int64    `avro:"Cents"`
				Tags   []string `avro:"Tags"`
			} `avro:"value"`
		}
		if err := r.Decode(&record); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if epoch.Slot(record.Slot) != (row{key: record.Key}).slot() {
			t.Errorf("%s: slot %d", record.Key, record.Slot)
		}
		got[record.Key] = nil
		if v := record.Value; v != nil {
			got[record.Key] = &spend{v.Orders, v.Cents, v.Tags}
		}
	}
	same := func(a, b *spend) bool {
		return a == nil && b == nil || a != nil && b != nil && a.Orders == b.Orders && a.Cents == b.Cents && strings.Join(a.Tags, " ") == strings.Join(b.Tags, " ")
	}
	if !maps.EqualFunc(got, want, same) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// readByPython prints what fastavro reads of a file: each record as JSON.
const readByPython = `
import decimal, fastavro, json, sys
def plain(v):
    if isinstance(v, bytes): return v.hex()
    return str(v)
for record in fastavro.reader(open(sys.argv[1], "rb")):
    print(json.dumps(record, default=plain, sort_keys=True))
`

type ledgerTier string

func (ledgerTier) Symbols() []string { return []string{"basic", "gold"} }

type ledger struct {
	At     time.Time
	Tier   ledgerTier
	Price  *big.Rat `avro:",precision=12,scale=2"`
	Big    uint64
	Counts map[string]int8
	ByID   map[int32][]string
	Note   *string
}

// Python opens a segment too, with all that a value can hold.
func TestPythonReadsSegments(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("whether Python opens a segment is not tried: python3 is not here")
	}
	if out, err := exec.Command(python, "-c", "import fastavro, cramjam").CombinedOutput(); err != nil {
		t.Skipf("whether Python opens a segment is not tried: python3 lacks a package (pip install fastavro cramjam): %v: %s", err, out)
	}
	keys, values := must(schema.KeyOf[string]("spend.key")), must(schema.Of[ledger]("spend"))
	f := Form{Name: "spend", Key: keys.Schema(), Value: values.Schema()}
	note := "naïve"
	entries := map[string]*ledger{"gone": nil, "ann": {
		At: time.Date(2026, 3, 1, 12, 34, 56, 789e6, time.UTC), Tier: "gold", Price: big.NewRat(-5, 4), Big: 1<<64 - 1,
		Counts: map[string]int8{"b": -1, "a": 1}, ByID: map[int32][]string{-7: {"x", "y"}}, Note: &note,
	}}
	c := new(Changes)
	for k, v := range entries {
		c.Begin(row{key: k}.slot())
		c.Buf = keys.Append(c.Buf, k)
		c.Element()
		c.Value()
		c.Buf = append(c.Buf, branchDeleted)
		if v != nil {
			c.Buf = must(values.Append(append(c.Buf[:len(c.Buf)-1], branchValue), v))
		}
		c.End()
	}
	ctx, st := context.Background(), store.NewMemory()
	if _, err := Write(ctx, st, job, "x.avro", f, []*Changes{c}, 0); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.avro")
	if err := os.WriteFile(path, must(st.Read(ctx, "spend/x.avro", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", readByPython, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	want := []string{
		fmt.Sprintf(`{"key": "ann", "slot": %d, "value": {"At": "2026-03-01 12:34:56.789000+00:00", "Big": "ffffffffffffffff", "ByID": [{"key": -7, "value": ["x", "y"]}], "Counts": {"a": 1, "b": -1}, "Note": "na\u00efve", "Price": "-1.25", "Tier": "gold"}}`, row{key: "ann"}.slot()),
		fmt.Sprintf(`{"key": "gone", "slot": %d, "value": null}`, row{key: "gone"}.slot()),
	}
	if !slices.Equal(lines, want) {
		t.Errorf("Python reads\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestKeysWithoutAnOrderAreRefused(t *testing.T) {
	f := Form{Name: "totals", Key: parse(`{"type":"map","values":"long"}`), Value: parse(`"long"`)}
	st := store.NewMemory()
	if _, err := Write(context.Background(), st, job, "x.avro", f, nil, 0); err == nil || !strings.Contains(err.Error(), "state totals:") {
		t.Errorf("Write: error %v", err)
	}
	for name, read := range readers(st, f, nil) {
		if err := read(); name != "Restore" && err == nil { // which needs no order
			t.Errorf("%s: no error", name)
		}
	}
}

// A record's value is null or a value: one that can be null itself, or one of
// several types, would be read as something else.
func TestValuesThatCanBeNullAreRefused(t *testing.T) {
	for _, value := range []string{`"null"`, `["null","long"]`, `["long","string"]`} {
		f := Form{Name: "totals", Key: parse(`"string"`), Value: parse(value)}
		st := store.NewMemory()
		if _, err := Write(context.Background(), st, job, "x.avro", f, nil, 0); err == nil || !strings.Contains(err.Error(), "can't be null") {
			t.Errorf("Write of %s: error %v", value, err)
		}
		for name, read := range readers(st, f, nil) {
			if err := read(); err == nil || !strings.Contains(err.Error(), "can't be null") {
				t.Errorf("%s of %s: error %v", name, value, err)
			}
		}
	}
}
