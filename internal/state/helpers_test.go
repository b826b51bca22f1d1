package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const job = "spend"

func parse(text string) *schema.Schema {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// plainForm is a state of one value per key, elementForm one of many.
func plainForm() Form {
	return Form{Name: "totals", Key: parse(`"string"`), Value: parse(`"long"`)}
}

func elementForm() Form {
	return Form{Name: "items", Key: parse(`"string"`), Element: parse(`"long"`), Value: parse(`"string"`)}
}

// row identifies an entry in tests; element is 0 in a plain state.
type row struct {
	key     string
	element int64
}

// slot spreads keys over few slots, so that many meet, and over the edges.
func (r row) slot() epoch.Slot {
	h := fnv.New32a()
	h.Write([]byte(r.key))
	return [...]epoch.Slot{0, 1, 63, 64, 8191, 8192, 40000, 65535}[h.Sum32()%8]
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

// put and remove append a change, of a plain state if f has no element.
func put(c *Changes, f Form, r row, value int64) {
	begin(c, f, r)
	c.Buf = append(c.Buf, branchValue)
	c.Buf = append(c.Buf, encodeValue(f, value)...)
	c.End()
}

func remove(c *Changes, f Form, r row) {
	begin(c, f, r)
	c.Buf = append(c.Buf, branchDeleted)
	c.End()
}

func begin(c *Changes, f Form, r row) {
	c.Begin(r.slot())
	c.Buf = appendText(c.Buf, r.key)
	c.Element()
	if f.Element != nil {
		c.Buf = binary.AppendVarint(c.Buf, r.element)
	}
	c.Value()
}

func encodeValue(f Form, value int64) []byte {
	if f.Element == nil {
		return binary.AppendVarint(nil, value)
	}
	return appendText(nil, fmt.Sprint(value))
}

// decode is what put was called with.
func decode(f Form, e *Entry) (r row, value int64, err error) {
	length, n := binary.Varint(e.Key)
	if r.key = string(e.Key[n:]); int64(len(r.key)) != length {
		return r, 0, fmt.Errorf("key % x", e.Key)
	}
	if f.Element != nil {
		if r.element, n = binary.Varint(e.Element); n != len(e.Element) {
			return r, 0, fmt.Errorf("element % x", e.Element)
		}
	}
	if e.Deleted {
		return r, 0, nil
	}
	if f.Element == nil {
		value, _ = binary.Varint(e.Value)
	} else {
		_, n := binary.Varint(e.Value)
		fmt.Sscan(string(e.Value[n:]), &value)
	}
	if !bytes.Equal(e.Value, encodeValue(f, value)) {
		return r, 0, fmt.Errorf("value % x", e.Value)
	}
	return r, value, nil
}

// model is a state's entries; ordered are its rows as they stand in a segment.
type model map[row]int64

func (m model) ordered() []row {
	rows := make([]row, 0, len(m))
	for r := range m {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.slot(), b.slot()), cmp.Compare(a.key, b.key), cmp.Compare(a.element, b.element))
	})
	return rows
}

// segments writes one segment for each list of pairs; a negative value deletes.
func segments(t testing.TB, st store.Store, f Form, epochs ...model) []epoch.Segment {
	t.Helper()
	var out []epoch.Segment
	for i, m := range epochs {
		var c Changes
		for _, r := range m.ordered() {
			if m[r] < 0 {
				remove(&c, f, r)
			} else {
				put(&c, f, r, m[r])
			}
		}
		s, err := Write(context.Background(), st, job, fmt.Sprintf("%s-%d.avro", f.Name, i), f, []*Changes{&c}, int64(100*len(m)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// all reads every entry.
func all(ctx context.Context, st store.Store, f Form, s []epoch.Segment, slots epoch.Slots) (model, []row, error) {
	m, rows := model{}, []row(nil)
	for e, err := range Read(ctx, st, job, f, s, slots) {
		if err != nil {
			return m, rows, err
		}
		r, value, err := decode(f, e)
		if err != nil {
			return m, rows, err
		}
		if e.Slot != r.slot() {
			return m, rows, fmt.Errorf("%v has slot %d, want %d", r, e.Slot, r.slot())
		}
		m[r] = value
		rows = append(rows, r)
	}
	return m, rows, nil
}

// restored restores into maps, one for each part, and puts them together.
func restored(ctx context.Context, st store.Store, f Form, s []epoch.Segment, parts []epoch.Slots) (model, error) {
	maps := make([]model, len(parts))
	err := Restore(ctx, st, job, f, s, parts, func(part int) func(*Entry) error {
		m := model{}
		maps[part] = m
		return func(e *Entry) error {
			r, value, err := decode(f, e)
			if err != nil {
				return err
			}
			if e.Slot < parts[part].First || e.Slot > parts[part].Last || e.Slot != r.slot() {
				return fmt.Errorf("part %d got slot %d", part, e.Slot)
			}
			if e.Deleted {
				delete(m, r)
			} else {
				m[r] = value
			}
			return nil
		}
	})
	out := model{}
	for _, m := range maps {
		for r, value := range m {
			out[r] = value
		}
	}
	return out, err
}
