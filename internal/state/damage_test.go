package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// readers are all that reads segments.
func readers(st store.Store, f Form, s []epoch.Segment) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"Restore": func() error {
			return Restore(ctx, st, job, f, s, []epoch.Slots{{First: 0, Last: 99}, {First: 100, Last: 65535}},
				func(int) func(*Entry) error { return func(*Entry) error { return nil } })
		},
		"Read": func() error {
			_, _, err := all(ctx, st, f, s, epoch.AllSlots)
			return err
		},
		"Merge": func() error {
			_, err := Merge(ctx, st, job, "merged.avro", f, s, true)
			if exists, _ := st.Exists(ctx, job+"/merged.avro"); exists && err != nil {
				return fmt.Errorf("a segment was created in spite of: %v", err)
			}
			st.Delete(ctx, job+"/merged.avro")
			return err
		},
	}
}

// expectDamage checks that every reader names the second of two segments.
func expectDamage(t *testing.T, st store.Store, f Form, s []epoch.Segment, expected, found string) {
	t.Helper()
	for name, read := range readers(st, f, s) {
		err := read()
		var damaged *epoch.DamagedError
		if !errors.As(err, &damaged) {
			t.Fatalf("%s: error %v, want a DamagedError", name, err)
		}
		if damaged.Job != job || damaged.Object != job+"/"+s[1].Path {
			t.Errorf("%s: names %s, object %s", name, damaged.Job, damaged.Object)
		}
		if !strings.HasPrefix(damaged.Expected, expected) || !strings.HasPrefix(damaged.Found, found) {
			t.Errorf("%s: expected %q, found %q; want %q, %q", name, damaged.Expected, damaged.Found, expected, found)
		}
	}
}

func TestDamagedSegmentIsNamed(t *testing.T) {
	ctx, f := context.Background(), plainForm()
	st := store.NewMemory()
	s := segments(t, st, f,
		model{{"a", 0}: 1, {"b", 0}: 2, {"c", 0}: 3},
		model{{"a", 0}: -1, {"d", 0}: 4, {"e", 0}: 5, {"f", 0}: 6})
	for name, read := range readers(st, f, s) {
		if err := read(); err != nil {
			t.Fatalf("%s, undamaged: %v", name, err)
		}
	}
	name := job + "/" + s[1].Path
	whole, err := st.Read(ctx, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole { // header, schema, marker, counts, records, check sum
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		st.Replace(ctx, name, damaged)
		sum := sha256.Sum256(damaged)
		expectDamage(t, st, f, s, "sha256 "+s[1].SHA256, hex.EncodeToString(sum[:]))
	}
	for _, n := range []int{len(whole) - 1, len(whole) / 2, 3, 0} {
		st.Replace(ctx, name, whole[:n])
		expectDamage(t, st, f, s, fmt.Sprintf("%d bytes", len(whole)), fmt.Sprint(n))
	}
	st.Replace(ctx, name, append(bytes.Clone(whole), 0))
	expectDamage(t, st, f, s, fmt.Sprintf("%d bytes", len(whole)), fmt.Sprint(len(whole)+1))

	st.Delete(ctx, name)
	expectDamage(t, st, f, s, fmt.Sprintf("a segment of %d bytes", len(whole)), "no such object")
	for reader, read := range readers(st, f, s) {
		if err := read(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v doesn't tell that the object is missing", reader, err)
		}
	}
}

func TestManifestWithOtherRows(t *testing.T) {
	f, st := plainForm(), store.NewMemory()
	s := segments(t, st, f, model{{"a", 0}: 1}, model{{"b", 0}: 1, {"c", 0}: 1})
	s[1].Rows++
	expectDamage(t, st, f, s, "3 rows", "2")
}

// forged is a segment of the given blocks, each of one record as far as the
// file says, that has the hash that its manifest gives.
func forged(t *testing.T, st store.Store, o avrofile.Options, records ...string) epoch.Segment {
	t.Helper()
	var out bytes.Buffer
	w := avrofile.New(&out, o)
	for _, r := range records {
		w.Append([]byte(r))
	}
	sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	st.Replace(context.Background(), job+"/forged.avro", out.Bytes())
	return epoch.Segment{Path: "forged.avro", Slots: epoch.AllSlots, Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256}
}

// What has the right hash may still be wrong: written by another program, or by
// a mistake in this one.
func TestForgedSegments(t *testing.T) {
	f, st := plainForm(), store.NewMemory()
	good := avrofile.Options{Schema: f.Schema().String(), Meta: f.meta(false)}
	otherForm := Form{Name: f.Name, Key: f.Key, Value: parse(`"string"`)}
	with := func(change func(o *avrofile.Options)) avrofile.Options {
		o := avrofile.Options{Schema: good.Schema, Meta: f.meta(false)}
		change(&o)
		return o
	}
	tests := []struct {
		name    string
		options avrofile.Options
		records []string
		want    string
	}{
		{"another state", with(func(o *avrofile.Options) { o.Meta[stateKey] = "other" }), nil, `expected a segment of the state totals, found one of "other"`},
		{"a newer format", with(func(o *avrofile.Options) { o.Meta[formatKey] = "7" }), nil, `written in format "7" of segments, this build reads format 1`},
		{"another schema", with(func(o *avrofile.Options) { o.Schema = otherForm.Schema().String() }), nil, "expected records of the schema that the manifest has"},
		{"no schema", with(func(o *avrofile.Options) { o.Schema = "{" }), nil, "its schema:"},
		{"no slot", good, []string{"\xff\xff\xff"}, "expected a slot from 0 to 65535"},
		{"slot too large", good, []string{"\x80\x80\x08" + "\x02a" + "\x00"}, "expected a slot from 0 to 65535"},
		{"negative slot", good, []string{"\x01" + "\x02a" + "\x00"}, "expected a slot from 0 to 65535"},
		{"endless key", good, []string{"\x00" + "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + "a" + "\x00"}, "key:"},
		{"no value", good, []string{"\x00" + "\x02a"}, "expected a value, found the end of the block"},
		{"unknown branch", good, []string{"\x00" + "\x02a" + "\x04"}, "expected a value's branch, 00 or 02, found 04"},
		{"value cut short", good, []string{"\x00" + "\x02a" + "\x02\x80"}, "value:"},
		{"more than its records", good, []string{"\x00" + "\x02a" + "\x00" + "rest"}, "4 bytes behind the last record of a block"},
		{"fewer than its records", good, []string{"\x00\x02a\x00", ""}, "expected a slot from 0 to 65535, found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := forged(t, st, test.options, test.records...)
			for name, read := range readers(st, f, []epoch.Segment{s}) {
				err := read()
				var damaged *epoch.DamagedError
				if err == nil || errors.As(err, &damaged) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "forged.avro") {
					t.Errorf("%s: error %v, want %s", name, err, test.want)
				}
			}
		})
	}
}

// Parts would miss records whose slots are not in order.
func TestForgedOrder(t *testing.T) {
	f, st := plainForm(), store.NewMemory()
	o := avrofile.Options{Schema: f.Schema().String(), Meta: f.meta(false), BlockBytes: 8}
	a, b, c := "\x02\x02a\x00", "\x04\x02b\x00", "\x06\x02c\x00" // slots 1, 2, 3
	restore := func(s epoch.Segment) error {
		return Restore(context.Background(), st, job, f, []epoch.Segment{s}, []epoch.Slots{epoch.AllSlots},
			func(int) func(*Entry) error { return func(*Entry) error { return nil } })
	}
	if err := restore(forged(t, st, o, a, b, b, c)); err != nil {
		t.Errorf("in order: %v", err)
	}
	for _, records := range [][]string{{b, a}, {a, c, b, c}, {a, b, a, b}} {
		if err := restore(forged(t, st, o, records...)); err == nil || !strings.Contains(err.Error(), "the records are in order") {
			t.Errorf("%q: error %v", records, err)
		}
	}
	s := forged(t, st, o, a, c)
	s.Slots.Last = 2
	if err := restore(s); err == nil || !strings.Contains(err.Error(), "from 1 to 2") {
		t.Errorf("a slot beyond what the manifest says: error %v", err)
	}
}

// A store that fails in the middle of a segment is no damage.
type brokenStore struct{ store.Store }

type brokenObject struct{ store.Object }

func (s brokenStore) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return brokenObject{o}, err
}

func (o brokenObject) ReadAt(p []byte, at int64) (int, error) {
	if at > 0 {
		return 0, io.ErrClosedPipe
	}
	return o.Object.ReadAt(p[:20], 0)
}

func TestStoreFailsWhileReading(t *testing.T) {
	f, st := plainForm(), store.NewMemory()
	s := segments(t, st, f, model{{"a", 0}: 1})
	for name, read := range readers(brokenStore{st}, f, s) {
		err := read()
		var damaged *epoch.DamagedError
		if !errors.Is(err, io.ErrClosedPipe) || errors.As(err, &damaged) {
			t.Errorf("%s: error %v, want the store's own", name, err)
		}
	}
}
