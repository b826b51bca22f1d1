package fsck_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// world is a job made by hand, in which a test changes one thing.
type world struct {
	version   epoch.Version
	hash      string
	manifests []epoch.Manifest // of main
	records   map[string]any   // by path
	files     map[string][]byte
}

const (
	jobID       = "0123456789abcdef"
	segmentPath = "branches/main/0.0/data/00000000000000000001-0a-1-s.avro"
)

// newWorld has a base, two data epochs with a segment, a seal, and a branch that
// is live after it.
func newWorld(t *testing.T) *world {
	w := &world{files: map[string][]byte{}}
	w.version = epoch.Version{Format: 1}
	w.hash = emptyVersion(t)
	live := epoch.Generation(0)
	file, segment := segmentOf(t, entryOf("ann", 1), entryOf("bob", 2))
	w.files[segmentPath] = file
	states := map[string]epoch.StateEntry{"s": {Key: `"string"`, Value: `"long"`, Segments: []epoch.Segment{segment}}}
	w.manifests = []epoch.Manifest{
		{Kind: epoch.Base},
		{Kind: epoch.Data, Live: &live, Position: 1, State: states},
		{Kind: epoch.Data, Live: &live, Position: 2, State: states},
		{Kind: epoch.Seal, Position: 2},
	}
	w.records = map[string]any{
		epoch.JobPath:                      epoch.JobFile{Format: 1, Job: "crafted", JobID: jobID},
		epoch.LayoutPath(0):                epoch.Layout{Format: 1, JobID: jobID},
		epoch.BranchPath("main"):           epoch.BranchFile{Format: 1, JobID: jobID, Branch: "main"},
		epoch.BranchPath("next"):           epoch.BranchFile{Format: 1, JobID: jobID, Branch: "next"},
		epoch.VersionPath(w.hash):          w.version,
		epoch.LivePath(0):                  epoch.LiveRecord{Format: 1, JobID: jobID, Branch: "main"},
		epoch.HeartbeatPath("main", "0.0"): epoch.Heartbeat{Format: 1, JobID: jobID, Branch: "main", Task: "0.0", Epoch: 2},
	}
	return w
}

// sealed is an object as it stands in a store.
func sealed(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	data = data[:len(data)-1]
	return fmt.Appendf(data, ",\"sum\":\"%s\"}\n", epoch.Hash(data))
}

// store puts everything into a store, each manifest with its parent's hash, and
// a live record that tells of the end.
func (w *world) store(t *testing.T) store.Store {
	t.Helper()
	s := store.NewMemory()
	put := func(path string, data []byte) {
		if err := s.Create(context.Background(), "crafted/"+path, data); err != nil {
			t.Fatal(err)
		}
	}
	parent := ""
	for i, m := range w.manifests {
		m.Format, m.JobID, m.Branch, m.Task, m.Epoch, m.Version = 1, jobID, "main", "0.0", epoch.Epoch(i), w.hash
		if m.Parent == "" {
			m.Parent = parent
		}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		parent = epoch.Hash(data)
		if m.Kind == epoch.Seal && w.records[epoch.LivePath(1)] == nil {
			w.records[epoch.LivePath(1)] = epoch.LiveRecord{Format: 1, JobID: jobID, N: 1, Branch: "next", Ends: &epoch.Ends{
				Branch: "main", Tasks: map[string]epoch.Final{"0.0": {Epoch: epoch.Epoch(i - 1), SHA256: m.Parent}},
			}}
		}
		put(epoch.ManifestPath("main", "0.0", epoch.Epoch(i)), data)
	}
	for path, v := range w.records {
		if v != nil {
			put(path, sealed(t, v))
		}
	}
	for path, data := range w.files {
		put(path, data)
	}
	return s
}

func emptyVersion(t *testing.T) string {
	t.Helper()
	hash, err := epoch.Version{Format: 1}.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// entryOf is a record of a segment, without its slot.
func entryOf(key string, n int64) []byte {
	record := append([]byte{byte(len(key) << 1)}, key...)
	return append(record, 2, byte(n<<1))
}

func slotOf(record []byte) epoch.Slot {
	return epoch.Slot(xxhash.Sum64(record[:1+record[0]>>1]) >> 48)
}

// segmentOf writes records, each with its slot, as they come.
func segmentOf(t *testing.T, records ...[]byte) ([]byte, epoch.Segment) {
	t.Helper()
	slices.SortFunc(records, func(a, b []byte) int { return int(slotOf(a)) - int(slotOf(b)) })
	return segmentAsIs(t, slotOf, records...)
}

func segmentAsIs(t *testing.T, slot func([]byte) epoch.Slot, records ...[]byte) ([]byte, epoch.Segment) {
	t.Helper()
	form, err := state.FormOf("s", epoch.StateEntry{Key: `"string"`, Value: `"long"`})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := avrofile.New(&out, avrofile.Options{Schema: form.Schema().String(), Meta: map[string]string{"sluice.state": "s", "sluice.format": "1"}})
	for _, r := range records {
		n := uint64(slot(r)) << 1
		var record []byte
		for ; n >= 0x80; n >>= 7 {
			record = append(record, byte(n)|0x80)
		}
		if err := w.Append(append(append(record, byte(n)), r...)); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), epoch.Segment{Path: segmentPath, Slots: epoch.AllSlots, Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256}
}

// put replaces the segment, in the manifests as well.
func (w *world) put(file []byte, segment epoch.Segment) {
	w.files[segmentPath] = file
	for i, m := range w.manifests {
		if len(m.State) > 0 {
			m.State = map[string]epoch.StateEntry{"s": {Key: `"string"`, Value: `"long"`, Segments: []epoch.Segment{segment}}}
			w.manifests[i] = m
		}
	}
}

func TestCrafted(t *testing.T) {
	manifest := func(e epoch.Epoch) string { return epoch.ManifestPath("main", "0.0", e) }
	backwards := func(a, b []byte) [][]byte {
		if slotOf(a) < slotOf(b) {
			a, b = b, a
		}
		return [][]byte{a, b}
	}(entryOf("ann", 1), entryOf("bob", 2))
	for name, c := range map[string]struct {
		change   func(t *testing.T, w *world)
		object   string // "": nothing is wrong
		expected string // a part of what is told
	}{
		"as it must be": {func(*testing.T, *world) {}, "", ""},
		"an entry behind the seal": {func(_ *testing.T, w *world) {
			w.manifests = append(w.manifests, epoch.Manifest{Kind: epoch.Open, Position: 2})
		}, manifest(4), "nothing behind the seal"},
		"no seal, though a live record tells of it": {func(_ *testing.T, w *world) {
			w.manifests = w.manifests[:3]
			w.records[epoch.LivePath(1)] = epoch.LiveRecord{Format: 1, JobID: jobID, N: 1, Branch: "next", Ends: &epoch.Ends{
				Branch: "main", Tasks: map[string]epoch.Final{"0.0": {Epoch: 3}}}}
		}, manifest(3), "sealed behind epoch 3"},
		"another final than the live record's": {func(_ *testing.T, w *world) {
			w.records[epoch.LivePath(1)] = epoch.LiveRecord{Format: 1, JobID: jobID, N: 1, Branch: "next", Ends: &epoch.Ends{
				Branch: "main", Tasks: map[string]epoch.Final{"0.0": {Epoch: 2, SHA256: "00"}}}}
		}, manifest(2), "sha256 00 by the live record"},
		"another parent": {func(_ *testing.T, w *world) { w.manifests[2].Parent = "11" }, manifest(1), "sha256 11 by epoch 2"},
		"a position that is left out": {func(_ *testing.T, w *world) {
			w.manifests[2].Position, w.manifests[3].Position = 3, 3
		}, manifest(2), "position 2 behind position 1"},
		"a base in the middle": {func(_ *testing.T, w *world) {
			w.manifests[2] = epoch.Manifest{Kind: epoch.Base, Position: 1}
			w.manifests[3].Position = 1
		}, manifest(2), "no base but the first"},
		"no first live record":  {func(_ *testing.T, w *world) { w.records[epoch.LivePath(0)] = nil }, epoch.LivePath(0), "since later ones are there"},
		"no record of a branch": {func(_ *testing.T, w *world) { w.records[epoch.BranchPath("main")] = nil }, epoch.BranchPath("main"), "has epochs"},
		"no layout":             {func(_ *testing.T, w *world) { w.records[epoch.LayoutPath(0)] = nil }, epoch.LayoutPath(0), "a layout"},
		"no version":            {func(_ *testing.T, w *world) { w.records[epoch.VersionPath(w.hash)] = nil }, epoch.VersionPath(emptyVersion(t)), "names it"},
		"a version under another's name": {func(_ *testing.T, w *world) {
			w.records[epoch.VersionPath("00ff")] = w.version
		}, epoch.VersionPath("00ff"), "of the hash in its name"},
		"functions under another build's name": {func(_ *testing.T, w *world) {
			w.records[epoch.FunctionsPath(w.hash, "aa")] = epoch.Functions{Format: 1, JobID: jobID, Version: w.hash, Executable: "bb"}
		}, epoch.FunctionsPath(emptyVersion(t), "aa"), "its name"},
		"a request of another number": {func(_ *testing.T, w *world) {
			w.records[epoch.ControlPath(1)] = epoch.Request{Format: 1, JobID: jobID, N: 2}
		}, epoch.ControlPath(1), "its name"},
		"a request that is noted and lost": {func(_ *testing.T, w *world) { w.manifests[2].Request = 1 }, epoch.ControlPath(1), "a request"},
		"a heartbeat ahead of the log": {func(_ *testing.T, w *world) {
			w.records[epoch.HeartbeatPath("main", "0.0")] = epoch.Heartbeat{Format: 1, JobID: jobID, Branch: "main", Task: "0.0", Epoch: 9}
		}, manifest(4), "tells of epoch 9"},
		"a record of another job": {func(_ *testing.T, w *world) {
			w.records[epoch.LivePath(0)] = epoch.LiveRecord{Format: 1, JobID: "feed", Branch: "main"}
		}, epoch.LivePath(0), "an object of job " + jobID},
		"a field that nobody knows": {func(_ *testing.T, w *world) {
			w.records[epoch.BranchPath("next")] = map[string]any{"format": 1, "job_id": jobID, "branch": "next", "colour": "red"}
		}, epoch.BranchPath("next"), "as it was written"},
		"a savepoint of an epoch that isn't there": {func(_ *testing.T, w *world) {
			w.records[epoch.SavepointPath("gone", "aa")] = epoch.Savepoint{Format: 1, JobID: jobID, Name: "gone", Point: epoch.Point{Branch: "main", Tasks: map[string]epoch.Epoch{"0.0": 77}}}
		}, manifest(77), "savepoint gone points to it"},
		"a path that leaves the folder": {func(_ *testing.T, w *world) {
			w.put(w.files[segmentPath], epoch.Segment{Path: "../other/branches/main/0.0/data/x", Bytes: 1})
		}, "../other/branches/main/0.0/data/x", "the name of a data object"},
		"a size of 2^62": {func(t *testing.T, w *world) {
			file, s := segmentOf(t, entryOf("ann", 1))
			s.Bytes = 1 << 62
			w.put(file, s)
		}, segmentPath, "4611686018427387904 bytes"},
		"fewer rows than told": {func(t *testing.T, w *world) {
			file, s := segmentOf(t, entryOf("ann", 1))
			s.Rows = 2
			w.put(file, s)
		}, segmentPath, "2 rows"},
		"rows out of order": {func(t *testing.T, w *world) {
			w.put(segmentAsIs(t, slotOf, backwards...))
		}, segmentPath, "in order"},
		"a row twice": {func(t *testing.T, w *world) {
			w.put(segmentAsIs(t, slotOf, entryOf("ann", 1), entryOf("ann", 2)))
		}, segmentPath, "in order"},
		"a key in another's slot": {func(t *testing.T, w *world) {
			w.put(segmentAsIs(t, func([]byte) epoch.Slot { return 7 }, entryOf("ann", 1)))
		}, segmentPath, "in order"},
		"a slot that isn't the segment's": {func(t *testing.T, w *world) {
			file, s := segmentOf(t, entryOf("ann", 1))
			s.Slots = epoch.Slots{First: 65535, Last: 65535}
			w.put(file, s)
		}, segmentPath, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(t, w)
			report, err := fsck.Check(context.Background(), w.store(t), "crafted", fsck.Options{})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]string{}
			for _, f := range report.Findings {
				found[strings.TrimPrefix(f.Object, "crafted/")] += f.Expected + "; " + f.Found
			}
			if c.object == "" {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if text, ok := found[c.object]; !ok || !strings.Contains(text, c.expected) || len(found) != 1 {
				t.Errorf("found %v, want %s: %s", found, c.object, c.expected)
			}
		})
	}
}
