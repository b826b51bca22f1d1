package state

import (
	"testing"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Whatever stands in a segment, reading it ends, with entries or an error.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("\x00\x02a\x02\x02"), []byte("\x02\x02b\x00"), true)
	f.Add([]byte("\x00\x02a\x02\x02\x00\x02a\x00"), []byte(""), false)
	f.Add([]byte("\x00\x02a\x02\x02\x04x"), []byte("\xfe\xff\x07\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"), false)
	f.Fuzz(func(t *testing.T, first, second []byte, element bool) {
		form := plainForm()
		if element {
			form = elementForm()
		}
		st := store.NewMemory()
		o := avrofile.Options{Schema: form.Schema().String(), Meta: form.meta(false), BlockBytes: 1}
		s := forged(t, st, o, string(first), string(second))
		for _, read := range readers(st, form, []epoch.Segment{s, s}) {
			read()
		}
		// What can be split at all is all of the record, in order.
		split := newSplitter(form)
		if at, err := split.split(first); err == nil {
			if !(0 < at.key && at.key <= at.element && at.element <= at.branch && at.branch < at.end && at.end <= len(first)) {
				t.Errorf("%x: %+v", first, at)
			}
			var e Entry
			split.entry(&e, first, at)
			if e.Deleted != (e.Value == nil) {
				t.Errorf("%x: %+v", first, e)
			}
		}
	})
}
