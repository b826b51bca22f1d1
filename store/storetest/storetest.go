// Package storetest holds a checkpoint store against the rules that Sluice
// relies on. Every store is to pass [Run]; one that several processes share
// also [RunProcesses], and one on a file system [RunDurable]. A case that fails
// says why the rule exists.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// rule is one case of the suite.
type rule struct {
	name string
	why  string
	test func(t *testing.T, s store.Store)
}

var rules = []rule{
	{"create only if absent", "a manifest's name has one winner: commit, fencing and cut-over rest on it alone", createOnce},
	{"create among goroutines", "several tasks and a clean-up share a process", createAmongGoroutines},
	{"a lost reply", "a create whose reply is lost is put again, and what is found decides whose it is", lostReply},
	{"a cancelled create", "a process that stops must know that it has created nothing", cancelled},
	{"bytes as they were", "hashes of whole objects hold the logs together", bytesAsTheyWere},
	{"upload", "segments are larger than memory, and must not be seen in part", uploads},
	{"upload to a taken name", "data objects too are created only if absent", uploadTaken},
	{"read no more than expected", "a damaged or hostile object must not fill the memory", readLimit},
	{"ranged read", "a task reads only its slots of a segment", rangedRead},
	{"absent objects", "the head is found by asking for names that may be absent", absentObjects},
	{"list", "clean-up and floors read listings in order, a page at a time", listRandom},
	{"list in the order of bytes", "20-digit names sort as their epochs, whatever stands beside them", listOrder},
	{"delete", "clean-up may run twice at once", deletes},
	{"replace", "heartbeats are overwritten", replaces},
	{"names", "a job's name must not lead out of the store", names},
}

// Run holds a store against every rule; open returns an empty one each time.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			explain(t, r.why)
			r.test(t, open(t))
		})
	}
}

// explain prints why a rule exists if its test fails.
func explain(t *testing.T, why string) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Why Sluice relies on it: %s.", why)
		}
	})
}

const limit = 1 << 20

func mustCreate(t *testing.T, s store.Store, name, data string) {
	t.Helper()
	if err := s.Create(t.Context(), name, []byte(data)); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
}

func wantBytes(t *testing.T, s store.Store, name, want string) {
	t.Helper()
	if got, err := s.Read(t.Context(), name, limit); err != nil || string(got) != want {
		t.Fatalf("read %s: got %q, %v; want %q", name, got, err, want)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func wantAbsent(t *testing.T, s store.Store, name string) {
	t.Helper()
	if ok, err := s.Exists(t.Context(), name); ok || err != nil {
		t.Fatalf("%s: exists = %v, %v; want it absent", name, ok, err)
	}
	listed, err := s.List(t.Context(), name, "", 1)
	if err != nil || len(listed) > 0 && listed[0].Name == name {
		t.Fatalf("%s: listed: %v, %v; want it absent", name, listed, err)
	}
}

func createOnce(t *testing.T, s store.Store) {
	mustCreate(t, s, "job/log/1.json", "first")
	err := s.Create(t.Context(), "job/log/1.json", []byte("second"))
	wantErr(t, "the second create", err, store.ErrExists)
	err = s.Create(t.Context(), "job/log/1.json", []byte("first"))
	wantErr(t, "a create with the same bytes", err, store.ErrExists)
	wantBytes(t, s, "job/log/1.json", "first")
}

func createAmongGoroutines(t *testing.T, s store.Store) {
	const racers, rounds = 8, 20
	for round := range rounds {
		name := fmt.Sprintf("race/%d/log/object", round)
		var group sync.WaitGroup
		var winner atomic.Int64
		winner.Store(-1)
		for racer := range racers {
			group.Go(func() {
				err := s.Create(t.Context(), name, fmt.Appendf(nil, "by %d", racer))
				switch {
				case err == nil && !winner.CompareAndSwap(-1, int64(racer)):
					t.Errorf("%s: %d won, and so did %d", name, racer, winner.Load())
				case err != nil && !errors.Is(err, store.ErrExists):
					t.Errorf("%s: %d: %v", name, racer, err)
				}
			})
		}
		group.Wait()
		wantBytes(t, s, name, fmt.Sprintf("by %d", winner.Load()))
	}
}

func lostReply(t *testing.T, s store.Store) {
	lossy := faultstore.New(s, func(c faultstore.Call) faultstore.Fault {
		switch {
		case c.Operation == "create" && c.Name == "job/done":
			return faultstore.LostReply
		case c.Operation == "create" && c.Name == "job/late":
			return faultstore.Late
		}
		return faultstore.None
	})
	wantErr(t, "a create without its reply", lossy.Create(t.Context(), "job/done", []byte("mine")), store.ErrUnknown)
	wantBytes(t, s, "job/done", "mine")
	wantErr(t, "the same create again", s.Create(t.Context(), "job/done", []byte("mine")), store.ErrExists)

	wantErr(t, "a create under way", lossy.Create(t.Context(), "job/late", []byte("mine")), store.ErrUnknown)
	wantAbsent(t, s, "job/late")
	mustCreate(t, s, "job/late", "another's")
	wantErr(t, "the late create", lossy.Land(t.Context()), store.ErrExists)
	wantBytes(t, s, "job/late", "another's")
}

func cancelled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "create", s.Create(ctx, "job/a", nil), context.Canceled)
	wantAbsent(t, s, "job/a")
	u, err := s.Upload(t.Context(), "job/b")
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "commit", u.Commit(ctx), context.Canceled)
	u.Abort()
	wantAbsent(t, s, "job/b")
}

func bytesAsTheyWere(t *testing.T, s store.Store) {
	large := make([]byte, 300<<10)
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	for name, data := range map[string][]byte{"a/empty": {}, "a/nil": nil, "a/zero": {0}, "a/lines": []byte("\r\n\xff\n"), "a/large": large} {
		given := bytes.Clone(data)
		if err := s.Create(t.Context(), name, given); err != nil {
			t.Fatal(err)
		}
		for i := range given { // the caller may use its buffer again
			given[i]++
		}
		got, err := s.Read(t.Context(), name, int64(len(data)))
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%s: %d bytes came back as %d, %v", name, len(data), len(got), err)
		}
		for i := range got { // and the reader may change what it got
			got[i]++
		}
		if again, err := s.Read(t.Context(), name, limit); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%s: the second reading differs, %v", name, err)
		}
	}
}

func uploads(t *testing.T, s store.Store) {
	var want bytes.Buffer
	u, err := s.Upload(t.Context(), "job/data/segment.avro")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		line := fmt.Appendf(nil, "line %d\n", i)
		want.Write(line)
		if n, err := u.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	wantAbsent(t, s, "job/data/segment.avro")
	if listed, err := s.List(t.Context(), "", "", 10); err != nil || len(listed) != 0 {
		t.Fatalf("an upload under way shows in a listing: %v, %v", listed, err)
	}
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.Abort() // does nothing any more
	wantBytes(t, s, "job/data/segment.avro", want.String())
	if err := u.Commit(t.Context()); err == nil {
		t.Fatal("a second commit succeeded")
	}

	dropped, err := s.Upload(t.Context(), "job/data/dropped.avro")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dropped.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	dropped.Abort()
	if _, err := dropped.Write([]byte("x")); err == nil {
		t.Fatal("a write after the abort succeeded")
	}
	wantAbsent(t, s, "job/data/dropped.avro")
}

func uploadTaken(t *testing.T, s store.Store) {
	u, err := s.Upload(t.Context(), "job/data/1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte("second")); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, "job/data/1", "first")
	wantErr(t, "commit", u.Commit(t.Context()), store.ErrExists)
	wantBytes(t, s, "job/data/1", "first")
}

func readLimit(t *testing.T, s store.Store) {
	mustCreate(t, s, "a", "12345")
	wantBytes(t, s, "a", "12345")
	if _, err := s.Read(t.Context(), "a", 5); err != nil {
		t.Fatal(err)
	}
	_, err := s.Read(t.Context(), "a", 4)
	wantErr(t, "a reading with limit 4 of 5 bytes", err, store.ErrTooLarge)
}

func rangedRead(t *testing.T, s store.Store) {
	mustCreate(t, s, "job/a", "0123456789")
	o, err := s.Open(t.Context(), "job/a")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Size() != 10 {
		t.Fatalf("size %d, want 10", o.Size())
	}
	part := make([]byte, 4)
	if n, err := o.ReadAt(part, 3); n != 4 || err != nil || string(part) != "3456" {
		t.Fatalf("4 bytes at 3: %q, %v", part[:n], err)
	}
	if n, err := o.ReadAt(part, 8); n != 2 || err != io.EOF || string(part[:n]) != "89" {
		t.Fatalf("4 bytes at 8: %q, %v; want 89 and io.EOF", part[:n], err)
	}
	// An object that was opened can be read to its end although clean-up removes it.
	if err := s.Delete(t.Context(), "job/a"); err != nil {
		t.Fatal(err)
	}
	if n, err := o.ReadAt(part, 0); n == 4 && (err != nil || string(part) != "0123") {
		t.Fatalf("4 bytes at 0 after the delete: %q, %v", part[:n], err)
	}
}

func absentObjects(t *testing.T, s store.Store) {
	mustCreate(t, s, "job/log/1.json", "x")
	for _, name := range []string{"job", "job/log", "job/log/2.json", "job/log/1.jso", "job/log/1.json/x", "other/log/1"} {
		wantAbsent(t, s, name)
		_, err := s.Read(t.Context(), name, limit)
		wantErr(t, "read "+name, err, store.ErrNotFound)
		_, err = s.Open(t.Context(), name)
		wantErr(t, "open "+name, err, store.ErrNotFound)
	}
	if ok, err := s.Exists(t.Context(), "job/log/1.json"); !ok || err != nil {
		t.Fatalf("exists = %v, %v", ok, err)
	}
}

// listRandom compares listings with a sorted list of the names.
func listRandom(t *testing.T, s store.Store) {
	random := rand.New(rand.NewPCG(1, 2))
	elements := []string{"a", "a-b", "a.b", "b", "0", "00000000000000000007", "ab", "é", "a b"}
	leaves := []string{"x", "x.json", "y-1", "z"}
	sizes := map[string]int64{}
	for len(sizes) < 120 {
		var path strings.Builder
		for range random.IntN(4) {
			path.WriteString(elements[random.IntN(len(elements))] + "/")
		}
		name := path.String() + leaves[random.IntN(len(leaves))]
		if _, ok := sizes[name]; !ok {
			sizes[name] = random.Int64N(9)
			mustCreate(t, s, name, strings.Repeat("s", int(sizes[name])))
		}
	}
	all := make([]string, 0, len(sizes))
	for name := range sizes {
		all = append(all, name)
	}
	slices.Sort(all)
	for range 300 {
		prefix, after := "", ""
		if name := all[random.IntN(len(all))]; random.IntN(4) > 0 {
			prefix = name[:random.IntN(len(name)+1)]
		}
		if name := all[random.IntN(len(all))]; random.IntN(2) > 0 {
			after = name[:random.IntN(len(name)+1)]
		}
		limit := 1 + random.IntN(12)
		var want []store.Listed
		for _, name := range all {
			if strings.HasPrefix(name, prefix) && name > after && len(want) < limit {
				want = append(want, store.Listed{Name: name, Size: sizes[name]})
			}
		}
		got, err := s.List(t.Context(), prefix, after, limit)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("list %q after %q, %d: got %v, %v; want %v", prefix, after, limit, got, err, want)
		}
	}
}

func listOrder(t *testing.T, s store.Store) {
	ordered := []string{"log-1/a", "log/00000000000000000009.json", "log/00000000000000000010.json", "log/data/a", "log/floor/1", "log0"}
	for _, i := range []int{3, 0, 5, 1, 4, 2} {
		mustCreate(t, s, ordered[i], "")
	}
	var got []string
	for after := ""; ; {
		page, err := s.List(t.Context(), "log", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range page {
			got = append(got, listed.Name)
		}
		if len(page) < 2 {
			break
		}
		after = page[1].Name
	}
	if !slices.Equal(got, ordered) {
		t.Fatalf("got %q, want %q", got, ordered)
	}
	for _, prefix := range []string{"log/1", "nothing/", "log0/", "log/data/a/"} {
		if got, err := s.List(t.Context(), prefix, "", 10); err != nil || len(got) != 0 {
			t.Fatalf("list %q: %v, %v; want nothing", prefix, got, err)
		}
	}
	if got, err := s.List(t.Context(), "", "", 0); err != nil || len(got) != 0 {
		t.Fatalf("a listing of at most 0: %v, %v", got, err)
	}
}

func deletes(t *testing.T, s store.Store) {
	mustCreate(t, s, "job/a/1", "x")
	mustCreate(t, s, "job/a/2", "y")
	for range 2 {
		if err := s.Delete(t.Context(), "job/a/1"); err != nil {
			t.Fatal(err)
		}
	}
	wantAbsent(t, s, "job/a/1")
	if err := s.Delete(t.Context(), "job/a"); err != nil { // no object has this name
		t.Fatal(err)
	}
	wantBytes(t, s, "job/a/2", "y")
	mustCreate(t, s, "job/a/1", "again")
	wantBytes(t, s, "job/a/1", "again")
}

func replaces(t *testing.T, s store.Store) {
	for _, data := range []string{"one", "", "three and more"} {
		if err := s.Replace(t.Context(), "job/heartbeat.json", []byte(data)); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, s, "job/heartbeat.json", data)
	}
	wantErr(t, "create", s.Create(t.Context(), "job/heartbeat.json", nil), store.ErrExists)
	if listed, err := s.List(t.Context(), "", "", 10); err != nil || len(listed) != 1 {
		t.Fatalf("listed %v, %v; want the one object", listed, err)
	}
}

func names(t *testing.T, s store.Store) {
	long := strings.Repeat("n", 255)
	for _, name := range []string{"a", "b/c", "a b/c-d_e.f", "π/≈", long, "d/" + long} {
		mustCreate(t, s, name, "x")
		wantBytes(t, s, name, "x")
	}
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", ".hidden", "a/.tmp/b",
		"a\x00b", "a\nb", "a\x7f", "a\xffb", "a\u200bb", long + "n", strings.Repeat("abcdefg/", 200) + "x",
	} {
		wantErr(t, fmt.Sprintf("create %q", name), s.Create(t.Context(), name, nil), store.ErrName)
		wantErr(t, fmt.Sprintf("replace %q", name), s.Replace(t.Context(), name, nil), store.ErrName)
		wantErr(t, fmt.Sprintf("delete %q", name), s.Delete(t.Context(), name), store.ErrName)
		_, err := s.Read(t.Context(), name, limit)
		wantErr(t, fmt.Sprintf("read %q", name), err, store.ErrName)
		_, err = s.Open(t.Context(), name)
		wantErr(t, fmt.Sprintf("open %q", name), err, store.ErrName)
		_, err = s.Upload(t.Context(), name)
		wantErr(t, fmt.Sprintf("upload %q", name), err, store.ErrName)
		_, err = s.Exists(t.Context(), name)
		wantErr(t, fmt.Sprintf("exists %q", name), err, store.ErrName)
	}
	_, err := s.List(t.Context(), "../", "", 1)
	wantErr(t, "list ../", err, store.ErrName)
}
