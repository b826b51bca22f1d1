package outbox

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// forge puts records under an outbox's name, as a file of any schema, with the
// sum and the size that a manifest would tell.
func forge(t testing.TB, st store.Store, text string, blocks ...[]byte) epoch.Object {
	t.Helper()
	var out bytes.Buffer
	w := avrofile.New(&out, avrofile.Options{Schema: text, BlockBytes: 1})
	for _, b := range blocks {
		if len(b) == 0 {
			continue
		}
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Create(t.Context(), "job/box", out.Bytes()); err != nil {
		t.Fatal(err)
	}
	return epoch.Object{Path: "box", Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256}
}

// allowance is what reading may allocate besides what is in proportion to the
// input: the reader's buffers, many times over.
const allowance = 4 << 20

// FuzzRows: whatever stands in an outbox, under whatever schema, reading it ends
// with rows that lie in it, or with an error that names it, in little memory.
func FuzzRows(f *testing.F) {
	table := tableForm()
	stream := Schema(nil, rowType.Schema()).String()
	var a, b Rows
	add(f, &a, 7, 0, connector.Put, "b", &row{"b", 1}, []byte("wire"))
	add(f, &a, 3, 0, connector.Delete, "z", nil, nil)
	add(f, &b, 0, 0, connector.Append, "", &row{"a", 2}, nil)
	f.Add(Schema(table.Key, table.Row).String(), a.Buf, a.Buf[:len(a.Buf)/2])
	f.Add(stream, b.Buf, []byte("\x00\x00\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Add(stream, []byte("\x00\x00\x00\x00"), []byte("\x00\x01\x00\x00"))
	f.Add(`"string"`, []byte("\x02a"), []byte{})
	f.Add(Schema(nil, schema.Array(schema.Null())).String(), []byte("\x00\x00\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00"), []byte{})
	f.Fuzz(func(t *testing.T, text string, first, second []byte) {
		st := store.NewMemory()
		object := forge(t, st, text, first, second)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, size, err := readBox(t, st, object)
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(allowance+2000*(len(text)+len(first)+len(second))); took > most {
			t.Errorf("%d bytes were allocated for %d of schema and %d of records", took, len(text), len(first)+len(second))
		}
		if size > len(first)+len(second) || rows > object.Rows {
			t.Errorf("%d rows of %d bytes, from %d and %d bytes", rows, size, len(first), len(second))
		}
		var damaged *epoch.DamagedError
		switch {
		case err == nil && rows != object.Rows:
			t.Errorf("%d rows of %d, and no error", rows, object.Rows)
		case err != nil && (!errors.As(err, &damaged) || damaged.Object != "job/box"):
			t.Errorf("the error is %v, want one that names job/box", err)
		}
	})
}

// readBox is the number of an outbox's rows, and of the bytes of their parts.
func readBox(t *testing.T, st store.Store, object epoch.Object) (rows int64, size int, err error) {
	box, err := Open(t.Context(), st, "job", []epoch.Object{object})
	if err != nil {
		return 0, 0, err
	}
	for r, err := range box.Rows(t.Context()) {
		if err != nil {
			return rows, size, err
		}
		rows++
		size += len(r.Key) + len(r.Row) + len(r.Wire)
	}
	return rows, size, nil
}

// FuzzParse: a record that can be read is read again as the same from the bytes
// that were read.
func FuzzParse(f *testing.F) {
	var a Rows
	add(f, &a, 7, 0, connector.Put, "b", &row{"b", 1}, []byte("wire"))
	f.Add(a.Buf)
	f.Add([]byte("\x04\xfe\xff\x07\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := newParser(keyType.Schema(), rowType.Schema())
		if err != nil {
			t.Fatal(err)
		}
		r, n, err := p.parse(src)
		if err != nil {
			return
		}
		again, m, err := p.parse(bytes.Clone(src[:n]))
		if err != nil || m != n || again.Op != r.Op || again.Slot != r.Slot ||
			!bytes.Equal(again.Key, r.Key) || !bytes.Equal(again.Row, r.Row) || !bytes.Equal(again.Wire, r.Wire) {
			t.Errorf("%x is read as %+v, then as %+v, %v", src, r, again, err)
		}
		if _, _, err := p.parse(src[:n-1]); err == nil {
			t.Errorf("%x can be read without its last byte", src[:n])
		}
	})
}
