package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// The records of a segment, worked out by hand: slot, key, branch, value; in
// the order of slots, then keys as numbers or bytes, not as encodings.
func TestBytesOfASegment(t *testing.T) {
	ctx, st := context.Background(), store.NewMemory()
	f := Form{Name: "totals", Key: parse(`"long"`), Value: parse(`"long"`)}
	add := func(c *Changes, slot epoch.Slot, key byte, value ...byte) {
		c.Begin(slot)
		c.Buf = append(c.Buf, key)
		c.Element()
		c.Value()
		c.Buf = append(c.Buf, value...)
		c.End()
	}
	var one, two Changes
	add(&one, 300, 4, 2, 14)     // key 2: value 7
	add(&two, 300, 3, 0)         // key -2: deleted
	add(&one, 7, 20, 2, 1)       // key 10: value -1
	add(&two, 300, 0, 2, 128, 1) // key 0: value 64
	add(&two, 65535, 1, 0)       // key -1: deleted
	s, err := Write(ctx, st, job, "data/totals.avro", f, []*Changes{&one, &two}, 123)
	if err != nil {
		t.Fatal(err)
	}
	file, err := st.Read(ctx, "spend/data/totals.avro", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if s.Path != "data/totals.avro" || s.Rows != 5 || s.Bytes != int64(len(file)) || s.Memory != 123 || s.Slots != (epoch.Slots{First: 7, Last: 65535}) {
		t.Errorf("segment %+v", s)
	}
	r, err := avrofile.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if r.Meta("sluice.state") != "totals" || r.Meta("sluice.format") != "1" {
		t.Errorf("metadata %q, %q", r.Meta("sluice.state"), r.Meta("sluice.format"))
	}
	block, _, err := r.Next(nil)
	want := "\x0e" + "\x14" + "\x02\x01" +
		"\xd8\x04" + "\x03" + "\x00" +
		"\xd8\x04" + "\x00" + "\x02\x80\x01" +
		"\xd8\x04" + "\x04" + "\x02\x0e" +
		"\xfe\xff\x07" + "\x01" + "\x00"
	if err != nil || string(block) != want {
		t.Errorf("records %q, error %v; want %q", block, err, want)
	}
}

func TestSegmentWithoutChanges(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	s, err := Write(ctx, st, job, "empty.avro", f, []*Changes{{}, nil}, 0)
	if err != nil || s.Rows != 0 {
		t.Fatalf("segment %+v, error %v", s, err)
	}
	if got, _, err := all(ctx, st, f, []epoch.Segment{s}, epoch.AllSlots); err != nil || len(got) > 0 {
		t.Errorf("read %v, error %v", got, err)
	}
	if got, err := restored(ctx, st, f, []epoch.Segment{s, s}, []epoch.Slots{epoch.AllSlots}); err != nil || len(got) > 0 {
		t.Errorf("restored %v, error %v", got, err)
	}
	if m, err := Merge(ctx, st, job, "merged.avro", f, []epoch.Segment{s, s}, true); err != nil || m.Rows != 0 || m.SHA256 != s.SHA256 {
		t.Errorf("merged %+v, error %v", m, err)
	}
}

func TestOneRowTwiceIsRefused(t *testing.T) {
	for _, others := range []int{0, 5, 400} { // by insertion, and by sorting
		for _, f := range []Form{plainForm(), elementForm()} {
			changes := []*Changes{{}, {}}
			for i := range others {
				put(changes[0], f, row{key: fmt.Sprint(i)}, 1)
			}
			put(changes[0], f, row{"twice", 1}, 1)
			remove(changes[1], f, row{"twice", 1})
			st := store.NewMemory()
			_, err := Write(context.Background(), st, job, "x.avro", f, changes, 0)
			if err == nil || !strings.Contains(err.Error(), "two changes of one entry") || !strings.Contains(err.Error(), fmt.Sprintf("%x", "twice")) {
				t.Errorf("%s with %d others: error %v", f.Name, others, err)
			}
			if there, _ := st.Exists(context.Background(), "spend/x.avro"); there {
				t.Errorf("%s with %d others: a segment was created", f.Name, others)
			}
		}
	}
}

func TestElementsOfOneKeyAreRows(t *testing.T) {
	ctx, f, st := context.Background(), elementForm(), store.NewMemory()
	s := segments(t, st, f, model{{"k", -1}: 5, {"k", 0}: 6, {"k", 300}: 7, {"kk", 0}: 8}, model{{"k", 0}: -1})
	_, rows, err := all(ctx, st, f, s, epoch.Slots{First: row{key: "k"}.slot(), Last: row{key: "k"}.slot()})
	var ofK []row
	for _, r := range rows {
		if r.key == "k" {
			ofK = append(ofK, r)
		}
	}
	if err != nil || fmt.Sprint(ofK) != "[{k -1} {k 300}]" {
		t.Errorf("rows %v, error %v", ofK, err)
	}
}

// A segment is the same however the changes were split, in whatever order they
// come, also where many keys meet in one slot.
func TestSplitAmongShardsDoesNotMatter(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	random := rand.New(rand.NewPCG(1, 2))
	var first epoch.Segment
	for shards := 1; shards <= 8; shards++ {
		changes := make([]*Changes, shards)
		for i := range changes {
			changes[i] = new(Changes)
		}
		for _, i := range random.Perm(3000) {
			put(changes[random.IntN(shards)], f, row{key: fmt.Sprintf("key %d", i)}, int64(i))
		}
		s, err := Write(ctx, st, job, fmt.Sprintf("%d.avro", shards), f, changes, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Path = ""
		if shards == 1 {
			first = s
		} else if s != first {
			t.Errorf("%d shards: %+v, want %+v", shards, s, first)
		}
	}
}

func TestChangesAreUsedAgain(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	var c Changes
	put(&c, f, row{key: "old"}, 1)
	c.Reset()
	put(&c, f, row{key: "new"}, 2)
	s, err := Write(ctx, st, job, "x.avro", f, []*Changes{&c}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := all(ctx, st, f, []epoch.Segment{s}, epoch.AllSlots)
	if err != nil || len(got) != 1 || got[row{key: "new"}] != 2 {
		t.Errorf("read %v, error %v", got, err)
	}
}

// large are changes of more bytes than are created by one call.
func large(f Form) *Changes {
	random := rand.NewChaCha8([32]byte{3})
	noise := make([]byte, 1000)
	c := new(Changes)
	for i := range largeEntries {
		random.Read(noise)
		put(c, f, row{key: fmt.Sprintf("%d %s", i, noise)}, int64(i))
	}
	return c
}

const largeEntries = createBytes/1000 + 100

func TestLargeSegmentsAreUploaded(t *testing.T) {
	ctx, f := context.Background(), plainForm()
	c := large(f)
	if len(c.Buf) <= createBytes {
		t.Fatalf("%d bytes are not large", len(c.Buf))
	}
	st := &doubtfulStore{Store: store.NewMemory()}
	s, err := Write(ctx, st, job, "x.avro", f, []*Changes{c}, 0)
	if err != nil || st.creates != 0 || st.uploads != 1 {
		t.Fatalf("%d creates, %d uploads, error %v", st.creates, st.uploads, err)
	}
	got, _, err := all(ctx, st, f, []epoch.Segment{s}, epoch.AllSlots)
	if err != nil || len(got) != largeEntries {
		t.Errorf("%d entries, error %v", len(got), err)
	}
}

// doubtfulStore answers creates as told, and counts them.
type doubtfulStore struct {
	store.Store
	answer           func(create func() error) error // nil: as the store does
	creates, uploads int
}

func (s *doubtfulStore) Create(ctx context.Context, name string, data []byte) error {
	s.creates++
	create := func() error { return s.Store.Create(ctx, name, data) }
	if s.answer == nil {
		return create()
	}
	return s.answer(create)
}

func (s *doubtfulStore) Upload(ctx context.Context, name string) (store.Upload, error) {
	s.uploads++
	u, err := s.Store.Upload(ctx, name)
	return doubtfulUpload{u, s}, err
}

type doubtfulUpload struct {
	store.Upload
	store *doubtfulStore
}

func (u doubtfulUpload) Commit(ctx context.Context) error {
	commit := func() error { return u.Upload.Commit(ctx) }
	if u.store.answer == nil {
		return commit()
	}
	return u.store.answer(commit)
}

// A create whose reply is lost is asked about, and tried again with the same
// bytes; an object of other bytes is never taken for one's own.
func TestDoubtfulCreates(t *testing.T) {
	ctx, f := context.Background(), plainForm()
	var small Changes
	put(&small, f, row{key: "a"}, 1)
	big := large(f)
	lost := fmt.Errorf("lost: %w", store.ErrUnknown)
	tests := []struct {
		name       string
		answer     func(create func() error) error
		taken      bool // by others
		small, big error
	}{
		{"created, reply lost", func(create func() error) error { create(); return lost }, false, nil, nil},
		{"never created", func(func() error) error { return lost }, false, store.ErrUnknown, store.ErrUnknown},
		{"taken", func(create func() error) error { return create() }, true, store.ErrExists, store.ErrExists},
		{"taken, reply lost", func(create func() error) error { create(); return lost }, true, store.ErrUnknown, store.ErrUnknown},
		{"refused", func(func() error) error { return store.ErrName }, false, store.ErrName, store.ErrName},
	}
	for _, test := range tests {
		for _, c := range []*Changes{&small, big} {
			st := &doubtfulStore{Store: store.NewMemory(), answer: test.answer}
			if test.taken {
				st.Store.Create(ctx, "spend/x.avro", []byte("others'"))
			}
			s, err := Write(ctx, st, job, "x.avro", f, []*Changes{c}, 0)
			want := test.small
			if c == big {
				want = test.big
			}
			if !errors.Is(err, want) || st.creates > createTries {
				t.Errorf("%s, %d bytes: error %v after %d creates, want %v", test.name, len(c.Buf), err, st.creates, want)
			}
			if err == nil {
				if _, _, err := all(ctx, st, f, []epoch.Segment{s}, epoch.AllSlots); err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
			}
		}
	}
	tries := 0
	st := &doubtfulStore{Store: store.NewMemory(), answer: func(create func() error) error {
		if tries++; tries < 3 {
			return lost
		}
		return create()
	}}
	if _, err := Write(ctx, st, job, "x.avro", f, []*Changes{&small}, 0); err != nil || st.creates != 3 {
		t.Errorf("created by the third try: error %v after %d", err, st.creates)
	}
}

func TestMergeKeepsMemoryInProportion(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	s := segments(t, st, f, model{{"a", 0}: 1, {"b", 0}: 2}, model{{"b", 0}: 3, {"c", 0}: 4})
	m, err := Merge(ctx, st, job, "m.avro", f, s, true)
	if err != nil || m.Rows != 3 || m.Memory != 300 { // 100 for each row
		t.Errorf("merged %+v, error %v", m, err)
	}
}

// Deletes go only when nothing older is left that they hide.
func TestMergeKeepsDeletesOfOlderSegments(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	s := segments(t, st, f, model{{"a", 0}: 1, {"b", 0}: 1}, model{{"a", 0}: -1}, model{{"b", 0}: 2})
	newer, err := Merge(ctx, st, job, "newer.avro", f, s[1:], false)
	if err != nil || newer.Rows != 2 {
		t.Fatalf("merged %+v, error %v", newer, err)
	}
	got, _, err := all(ctx, st, f, []epoch.Segment{s[0], newer}, epoch.AllSlots)
	if err != nil || len(got) != 1 || got[row{key: "b"}] != 2 {
		t.Errorf("read %v, error %v", got, err)
	}
	whole, err := Merge(ctx, st, job, "whole.avro", f, []epoch.Segment{s[0], newer}, true)
	if err != nil || whole.Rows != 1 {
		t.Errorf("merged %+v, error %v", whole, err)
	}
}

func TestFormOfAManifest(t *testing.T) {
	for _, f := range []Form{plainForm(), elementForm()} {
		e := epoch.StateEntry{Key: f.Key.String(), Value: f.Value.String()}
		if f.Element != nil {
			e.Element = f.Element.String()
		}
		got, err := FormOf(f.Name, e)
		if err != nil || !got.Schema().Equal(f.Schema()) || got.Name != f.Name {
			t.Errorf("%s: %+v, error %v", f.Name, got, err)
		}
	}
	if _, err := FormOf("totals", epoch.StateEntry{Key: `"string"`, Value: "{"}); err == nil || !strings.Contains(err.Error(), "state totals: schema of the value:") {
		t.Errorf("error %v", err)
	}
}
