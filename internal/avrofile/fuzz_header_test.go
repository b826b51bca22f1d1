package avrofile

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// FuzzHeader puts anything behind a file's first bytes. It is refused with a
// place, or what it says can be written and read again; and what is allocated
// depends on what is there, not on what it claims.
func FuzzHeader(f *testing.F) {
	f.Add(headed("null", "")[len(magic):])
	f.Add(long(1<<62) + text("k") + text("v"))
	f.Add(long(-1) + long(1<<62) + text("avro.schema") + text(`"int"`) + long(0) + strings.Repeat("S", syncBytes))
	f.Add(long(1) + long(15<<20) + "abc")
	f.Add(long(2) + text("avro.codec") + text("deflate") + text("avro.schema") + text("") + long(0))
	f.Fuzz(func(t *testing.T, header string) {
		const allowance = 2<<20 + readBuffer // a step, and the buffer
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := NewReader(strings.NewReader(magic + header))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > allowance+200*uint64(len(header)) {
			t.Errorf("%d bytes were allocated for a header of %d", took, len(header))
		}
		if err != nil {
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Errorf("%v is no *FormatError", err)
			}
			return
		}
		file, _ := write(t, Options{Schema: r.Schema(), Meta: map[string]string{"a": r.Meta("a")}})
		again, err := NewReader(bytes.NewReader(file))
		if err != nil || again.Schema() != r.Schema() || again.Meta("a") != r.Meta("a") {
			t.Errorf("the schema %q is read again as %q, %v", r.Schema(), again.Schema(), err)
		}
	})
}
