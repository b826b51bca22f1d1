package state

import (
	"bytes"
	"context"
	"io"
	"maps"
	"strings"
	"testing"

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
