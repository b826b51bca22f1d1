package upgrades

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// input, audit and total are the records, as the job's readers have them.
type input struct {
	ID, Key string
	Amount  int64
}

type audit struct {
	Key, ID                  string
	Nth, Sum, Version, Since int64
}

type total struct{ Count, Sum, Version, Since int64 }

// The store's objects, as far as they are looked at.
type (
	liveRecord struct {
		N      int
		Kind   string
		Branch string
		Ends   *struct {
			Branch string
			Tasks  map[string]struct{ Epoch uint64 }
		}
	}
	branchRecord struct {
		Build struct{ Executable string }
	}
	manifest struct {
		Kind    string
		Live    *int
		Sources map[string]struct {
			Partitions map[string]struct{ Next int64 }
		}
	}
)

const task = "0.0"

// object is the path of one of the job's objects.
func (h *history) object(parts ...string) string {
	return filepath.Join(append([]string{h.store, h.name}, parts...)...)
}

// load reads an object of the store.
func load[T any](h *history, parts ...string) (v T) {
	h.t.Helper()
	data, err := os.ReadFile(h.object(parts...))
	if err != nil {
		h.t.Fatal(err)
	}
	return decode[T](h.t, data)
}

func decode[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

// cut is where a generation has ended: the offset that each partition was read up to.
// The last one has none.
type cut map[int32]int64

// generations are the live records, held against the steps, and where each has ended.
func (h *history) generations() (ends []cut) {
	h.t.Helper()
	for n, s := range h.steps {
		r := load[liveRecord](h, "live", fmt.Sprint(n)+".json")
		if r.Kind != s.kind {
			h.t.Errorf("generation %d is of kind %q, want %q", n, r.Kind, s.kind)
		}
		if n == 0 {
			continue
		}
		b := load[branchRecord](h, "branches", r.Branch, "branch.json")
		if b.Build.Executable != builds.hashes[s.version] {
			h.t.Errorf("generation %d is of another build than version %d's", n, s.version)
		}
		final := load[manifest](h, "branches", r.Ends.Branch, task, fmt.Sprintf("%020d.json", r.Ends.Tasks[task].Epoch))
		end := cut{}
		for part, at := range final.Sources["inputs"].Partitions {
			p, err := strconv.Atoi(part[strings.LastIndex(part, "/")+1:])
			if err != nil {
				h.t.Fatal(err)
			}
			end[int32(p)] = at.Next
		}
		ends = append(ends, end)
	}
	if _, err := os.Stat(h.object("live", fmt.Sprint(len(h.steps))+".json")); err == nil {
		h.t.Errorf("there is a generation %d that nobody has asked for", len(h.steps))
	}
	return ends
}

// generationOf is the one under which an input counts.
func generationOf(ends []cut, r *kgo.Record) int {
	for n, end := range ends {
		if r.Offset < end[r.Partition] {
			return n
		}
	}
	return len(ends)
}

// verify compares all that has come of the inputs with what must.
func (h *history) verify() {
	t := h.t
	inputs := h.cluster.Read(t, h.topic("inputs"))
	if len(inputs) != h.fed {
		t.Fatalf("%d inputs stand in the topic, %d were written", len(inputs), h.fed)
	}
	ends := h.generations()
	want := map[string][]audit{} // by key; what it says of Since is not known yet
	lasts := map[string]total{}
	share := make([]int, len(h.steps))
	for _, r := range inputs {
		in := decode[input](t, r.Value)
		last := lasts[in.Key]
		n := generationOf(ends, r)
		share[n]++
		last.Count, last.Sum, last.Version = last.Count+1, last.Sum+in.Amount, int64(h.steps[n].version)
		lasts[in.Key] = last
		want[in.Key] = append(want[in.Key], audit{Key: in.Key, ID: in.ID, Nth: last.Count, Sum: last.Sum, Version: last.Version})
	}
	got := h.verifyAudit(want)
	h.verifySince(inputs, got, ends)
	h.verifyTotals(lasts, got)
	t.Logf("%d inputs, by generation %v; starts %v", h.fed, share, h.starts())
}

func (h *history) starts() (all []int) {
	for _, k := range h.keepers {
		k.mu.Lock()
		all = append(all, k.starts)
		k.mu.Unlock()
	}
	return all
}

// verifyAudit holds the rows, one for each input, against what is wanted of each key,
// and returns them.
func (h *history) verifyAudit(want map[string][]audit) map[string][]audit {
	t := h.t
	got := map[string][]audit{}
	places := map[string]int32{}
	for _, r := range h.cluster.Read(t, h.topic("audit")) {
		a := decode[audit](t, r.Value)
		if place, ok := places[a.Key]; ok && place != r.Partition || string(r.Key) != a.Key {
			t.Fatalf("a row of key %s stands in partition %d under the key %q", a.Key, r.Partition, r.Key)
		}
		places[a.Key] = r.Partition
		got[a.Key] = append(got[a.Key], a)
	}
	faults := 0
	for key, rows := range want {
		for i := range max(len(rows), len(got[key])) {
			var w, g audit
			if i < len(rows) {
				w = rows[i]
			}
			if i < len(got[key]) {
				g = got[key][i]
				g.Since = 0
			}
			if w == g {
				continue
			}
			if faults++; faults < 10 {
				t.Errorf("row %d of key %s: %+v, want %+v", i, key, g, w)
			}
			break // all behind it differ as well
		}
		if _, ok := got[key]; !ok {
			t.Errorf("no row of key %s", key)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("rows of key %s, which no input has", key)
		}
	}
	if faults > 0 {
		t.FailNow()
	}
	if h.db != nil {
		h.verifyAuditTable(got)
	}
	return got
}

// verifyAuditTable compares the table's rows with the topic's.
func (h *history) verifyAuditTable(topic map[string][]audit) {
	left := map[string]int{}
	for _, rows := range topic {
		for _, a := range rows {
			left[fmt.Sprintf("%s|%s|%d|%d|%d|%d", a.Key, a.ID, a.Nth, a.Sum, a.Version, a.Since)]++
		}
	}
	for _, row := range h.query(fmt.Sprintf("select key, id, nth, sum, version, since from %s_audit", h.name)) {
		if left[row]--; left[row] == 0 {
			delete(left, row)
		} else {
			h.t.Errorf("the table has a row too many: %s", row)
		}
	}
	for row := range left {
		h.t.Errorf("the table lacks a row: %s", row)
	}
}

// verifySince holds what versions have counted by themselves against the inputs: each
// has begun somewhere in each partition, and has counted all since, whoever was live.
func (h *history) verifySince(inputs []*kgo.Record, got map[string][]audit, ends []cut) {
	type counting struct {
		version int64
		key     string
	}
	before := map[counting]int64{} // inputs of the key before the version began to count
	for key, rows := range got {
		for _, a := range rows {
			c := counting{a.Version, key}
			if n, ok := before[c]; !ok {
				before[c] = a.Nth - a.Since
			} else if n != a.Nth-a.Since {
				h.t.Errorf("version %d has begun to count key %s behind %d inputs, and behind %d as input %s says", a.Version, key, n, a.Nth-a.Since, a.ID)
				return
			}
		}
	}
	// The beginning of a version in a partition lies behind the last input before it of
	// each key, and not behind the next.
	type place struct {
		version   int64
		partition int32
	}
	least, most := map[place]int64{}, map[place]int64{}
	nth := map[string]int64{}
	for _, r := range inputs {
		in := decode[input](h.t, r.Value)
		nth[in.Key]++
		for version := int64(1); version <= versions; version++ {
			n, ok := before[counting{version, in.Key}]
			if !ok {
				continue
			}
			at := place{version, r.Partition}
			if nth[in.Key] == n {
				least[at] = max(least[at], r.Offset+1)
			}
			if upper, ok := most[at]; nth[in.Key] == n+1 && (!ok || r.Offset < upper) {
				most[at] = r.Offset
			}
		}
	}
	for at, upper := range most {
		if least[at] > upper {
			h.t.Errorf("version %d has begun to count partition %d at offset %d or later, and at %d or earlier", at.version, at.partition, least[at], upper)
		}
		if at.version > 1 {
			first := 0 // the generation before the version's first
			for h.steps[first+1].version != int(at.version) {
				first++
			}
			if end := ends[first][at.partition]; least[at] > end {
				h.t.Errorf("version %d has begun to count partition %d at offset %d or later, behind the cut at %d", at.version, at.partition, least[at], end)
			}
		} else if least[at] > 0 {
			h.t.Errorf("version 1 has not counted partition %d from its begin", at.partition)
		}
	}
}

// verifyTotals compares what the table's topic says last of each key with the recount.
func (h *history) verifyTotals(want map[string]total, audits map[string][]audit) {
	t := h.t
	got := map[string]total{}
	for _, r := range h.cluster.Read(t, h.topic("totals")) {
		key := string(r.Key)
		v := decode[total](t, r.Value)
		if last, ok := got[key]; ok && v.Count < last.Count {
			t.Errorf("the totals of key %s go back from %+v to %+v", key, last, v)
		}
		got[key] = v
	}
	for key, w := range want {
		g := got[key]
		rows := audits[key]
		if w.Since = rows[len(rows)-1].Since; g != w && !h.rewritten(g, w) {
			t.Errorf("the totals of key %s are %+v, want %+v", key, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the topic has the totals of %d keys, want %d", len(got), len(want))
	}
	if h.db == nil {
		return
	}
	rows := h.query(fmt.Sprintf("select key, count, sum, version, since from %s_totals", h.name))
	for _, row := range rows {
		key, rest, _ := strings.Cut(row, "|")
		v := got[key]
		if topic := fmt.Sprintf("%d|%d|%d|%d", v.Count, v.Sum, v.Version, v.Since); rest != topic {
			t.Errorf("the table has %s of key %s, the topic %s", rest, key, topic)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the table has %d keys, want %d", len(rows), len(want))
	}
}

// rewritten tells whether a row differs only in that a later version has written it
// anew.
func (h *history) rewritten(got, want total) bool {
	return got.Count == want.Count && got.Sum == want.Sum && got.Version != want.Version
}

// query asks the database, and returns the rows, their columns apart by "|".
func (h *history) query(sql string) []string {
	h.t.Helper()
	out, err := h.db.Run(h.t.Context(), "", sql)
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	if out = strings.TrimSpace(out); out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}
