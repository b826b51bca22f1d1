package golden

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/internal/state/statetest"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

var write = flag.Bool("write", false, "write the checkpoint of today's format anew")

// What the job reads: before its first run, its second, after it was asked to
// forget the meter m3, and what its second version reads.
var input = [][]string{
	{`{"Meter":"m1","Room":{"Floor":1,"Name":"hall"},"Value":3}`, `{"Meter":"m2","Room":{"Floor":-1,"Name":"cellar"},"Value":4}`, `{"Meter":"m3","Room":{"Floor":1,"Name":"hall"},"Value":5}`},
	{`{"Meter":"m1","Room":{"Floor":2,"Name":"attic"},"Value":7}`, `{"Meter":"m1","Room":{"Floor":2,"Name":"attic"},"Value":8,"Bad":true}`},
	{`{"Meter":"m2","Room":{"Floor":1,"Name":"hall"},"Value":9}`},
	{`{"Meter":"m4","Room":{"Floor":2,"Name":"attic"},"Value":10}`},
}

// next is what is read when the checkpoint is gone on from.
var next = []string{`{"Meter":"m1","Room":{"Floor":1,"Name":"hall"},"Value":20}`}

// held is what the states hold of that, by hand: at the savepoint, at the end, and
// once the job has gone on.
type held map[string]map[string]string

var (
	atSavepoint = held{
		"totals":  {`{"Floor":1,"Name":"hall"}`: `{"Readings":2,"Sum":8}`, `{"Floor":-1,"Name":"cellar"}`: `{"Readings":1,"Sum":4}`, `{"Floor":2,"Name":"attic"}`: `{"Readings":1,"Sum":7}`},
		"values":  {`"m1" 0`: "3", `"m1" 1`: "7", `"m2" 0`: "4", `"m3" 0`: "5"},
		"by_room": {`"m1" {"Floor":1,"Name":"hall"}`: `{"Readings":1,"Sum":3}`, `"m1" {"Floor":2,"Name":"attic"}`: `{"Readings":1,"Sum":7}`, `"m2" {"Floor":-1,"Name":"cellar"}`: `{"Readings":1,"Sum":4}`, `"m3" {"Floor":1,"Name":"hall"}`: `{"Readings":1,"Sum":5}`},
	}
	atEnd = held{
		"totals":  {`{"Floor":1,"Name":"hall"}`: `{"Readings":3,"Sum":17,"Mean":5.666666666666667}`, `{"Floor":-1,"Name":"cellar"}`: `{"Readings":1,"Sum":4,"Mean":4}`, `{"Floor":2,"Name":"attic"}`: `{"Readings":2,"Sum":17,"Mean":8.5}`},
		"values":  {`"m1" 0`: "3", `"m1" 1`: "7", `"m2" 0`: "4", `"m2" 1`: "9", `"m4" 0`: "10"},
		"by_room": {`"m1" {"Floor":1,"Name":"hall"}`: `{"Readings":1,"Sum":3}`, `"m1" {"Floor":2,"Name":"attic"}`: `{"Readings":1,"Sum":7}`, `"m2" {"Floor":-1,"Name":"cellar"}`: `{"Readings":1,"Sum":4}`, `"m2" {"Floor":1,"Name":"hall"}`: `{"Readings":1,"Sum":9}`, `"m4" {"Floor":2,"Name":"attic"}`: `{"Readings":1,"Sum":10}`},
		"parity":  {"0": `{"Readings":1,"Sum":10}`},
		"latest":  {`"m1"`: latestOf(7, `[{"Floor":1,"Name":"hall"},{"Floor":2,"Name":"attic"}]`, 10), `"m2"`: latestOf(9, `[{"Floor":-1,"Name":"cellar"},{"Floor":1,"Name":"hall"}]`, 13), `"m4"`: latestOf(10, `[{"Floor":2,"Name":"attic"}]`, 10)},
	}
	goneOn = held{
		"parity": {"0": `{"Readings":2,"Sum":30}`},
		"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "20", `"m2" 0`: "4", `"m2" 1`: "9", `"m4" 0`: "10"},
	}
)

// latestOf is a meter's value of the state latest, by hand.
func latestOf(n int64, list string, sum int64) string {
	bits := strconv.FormatInt(n, 10)
	decimal := map[int64]string{7: "0.875", 9: "1.125", 10: "1.250"}[n]
	bytes := map[int64]string{7: "Nw==", 9: "OQ==", 10: "MTA="}[n]
	fixed := map[int64]string{7: "AQIDBw==", 9: "AQIDCQ==", 10: "AQIDCg=="}[n]
	quarter := map[int64]string{7: "1.75", 9: "2.25", 10: "2.5"}[n]
	half := map[int64]string{7: "3.5", 9: "4.5", 10: "5"}[n]
	wide := map[int64]string{7: "8070450532247928832", 9: "10376293541461622784", 10: "11529215046068469760"}[n]
	instant := fmt.Sprintf("1970-01-01T00:00:00.%06dZ", n)
	if n == 10 {
		instant = "1970-01-01T00:00:00.00001Z"
	}
	return fmt.Sprintf(`{"Bool":%v,"Int8":%[2]s,"Int16":%[2]s,"Int32":%[2]s,"Int64":%[3]d,"Uint8":%[2]s,"Uint16":%[2]s,"Uint32":%[2]s,"Uint64":%[4]s,`+
		`"Float32":%[5]s,"Float64":%[6]s,"Text":"%[2]s","Mode":"on","Bytes":"%[7]s","Fixed":"%[8]s","List":%[9]s,"Pair":[%[2]s,-%[2]s],`+
		`"Map":{"%[2]s":%[2]s,"all":%[3]d},"Numbers":{"-%[2]s":"-%[2]s","%[2]s":"%[2]s"},"Pointer":"%[2]s","Time":"1970-01-01T00:00:%02[10]d.000001Z",`+
		`"Instant":"%[11]s","Duration":"%[2]ss","Decimal":"%[12]s","renamed":%[2]s}`,
		n%2 == 0, bits, sum, wide, half, quarter, bytes, fixed, list, n, instant, decimal)
}

// place is a folder in which the job runs.
type place struct {
	t     *testing.T
	store store.Store
}

func (p *place) append(lines []string) {
	p.t.Helper()
	if err := os.MkdirAll("in", 0o755); err != nil {
		p.t.Fatal(err)
	}
	f, err := os.OpenFile("in/readings.jsonl", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) run(job *sluice.Job, change func(*sluice.Options)) {
	p.t.Helper()
	// Volatile: go test's folder may be in memory.
	o := sluice.Options{Store: p.store, Log: slog.New(slog.DiscardHandler), Epoch: time.Millisecond, Volatile: true}
	if change != nil {
		change(&o)
	}
	if err := job.Run(p.t.Context(), o); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) job() *epoch.Job {
	p.t.Helper()
	j, err := epoch.FindJob(p.t.Context(), env.Real(), p.store, "golden")
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func (p *place) head() epoch.Manifest {
	p.t.Helper()
	return statetest.Head(p.t, p.store, "golden")
}

// check compares states.
func (p *place) check(m epoch.Manifest, want held) {
	p.t.Helper()
	for name, values := range want {
		if got := statetest.Values(p.t, p.store, "golden", m, name); !maps.Equal(got, values) {
			p.t.Errorf("epoch %d, state %s:\n got %v\nwant %v", m.Epoch, name, got, values)
		}
	}
}

// TestWrite writes the checkpoint of today's format.
func TestWrite(t *testing.T) {
	if !*write {
		t.Skip("the checkpoint is written on request only: -write")
	}
	folder, err := filepath.Abs(filepath.Join("testdata", strconv.Itoa(epoch.Format)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	p := enter(t, folder)
	p.append(input[0])
	p.run(version1(), nil)
	p.append(input[1])
	p.run(version1(), nil)
	head := p.head()
	at := epoch.Point{Branch: head.Branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: head.Epoch}}
	if _, err := p.job().PutSavepoint(t.Context(), "before", at, "the generator"); err != nil {
		t.Fatal(err)
	}
	p.forget(head, "m3")
	p.append(input[2])
	p.run(version1(), nil)
	p.append(input[3])
	p.run(version2(), nil)
	p.check(p.head(), atEnd)
}

// forget asks for a meter to be forgotten.
func (p *place) forget(head epoch.Manifest, meter string) {
	p.t.Helper()
	job := p.job()
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		p.t.Fatal(err)
	}
	var edits []epoch.Edit
	schemas := map[string]string{}
	for _, name := range []string{"latest", "by_room", "values"} {
		key := keys.Append(nil, meter)
		edits = append(edits, epoch.Edit{State: name, Slot: epoch.Slot(xxhash.Sum64(key) >> 48), Hash: epoch.EditHash(job.ID(), key)})
		schemas[name] = head.State[name].Key
	}
	if _, err := job.AskForget(p.t.Context(), edits, schemas, "", "the generator"); err != nil {
		p.t.Fatal(err)
	}
}

// enter makes a folder the working folder, and opens its store.
func enter(t *testing.T, folder string) *place {
	t.Helper()
	t.Chdir(folder)
	st, err := store.OpenFolder(env.Real(), "store")
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, st}
}

// TestRead reads the checkpoint of each format, and goes on from it.
func TestRead(t *testing.T) {
	formats, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(formats) != epoch.Format {
		t.Fatalf("%d checkpoints, and the newest format is %d: one is missing", len(formats), epoch.Format)
	}
	for _, format := range formats {
		source, err := filepath.Abs(filepath.Join("testdata", format.Name()))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(format.Name(), func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			p := enter(t, folder)
			p.sound()
			p.check(p.head(), atEnd)
			if why := p.head().Partial["parity"].Why; why == "" {
				t.Error("the manifest does not say that the state parity is incomplete")
			}
			points, err := p.job().Savepoints(t.Context())
			if err != nil || len(points) != 1 || points[0].Name != "before" {
				t.Fatalf("savepoints %v, %v", points, err)
			}
			m, err := p.job().Manifest(t.Context(), points[0].Branch, epoch.FirstTask, points[0].Tasks[epoch.FirstTask])
			if err != nil {
				t.Fatal(err)
			}
			p.check(m, atSavepoint)

			p.append(next)
			p.run(version2(), nil)
			p.check(p.head(), goneOn)
			p.sound()
			p.delivered()
		})
	}
}

// sound has the store looked through.
func (p *place) sound() {
	p.t.Helper()
	report, err := fsck.Check(p.t.Context(), p.store, "golden", fsck.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range report.Findings {
		p.t.Errorf("%s: expected %s, found %s", f.Object, f.Expected, f.Found)
	}
}

// delivered looks at what the sinks have in the end: each reading once, and the
// bad one among the dead letters.
func (p *place) delivered() {
	p.t.Helper()
	for sink, want := range map[string]int{"readings": 7, "dead": 1} {
		lines := 0
		err := filepath.WalkDir(filepath.Join("out", sink), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(path, ".sluice") || strings.HasPrefix(d.Name(), ".") || strings.Contains(d.Name(), "record") {
				return err
			}
			data, err := os.ReadFile(path)
			for line := range strings.Lines(string(data)) {
				if !strings.HasPrefix(line, "Meter,") {
					lines++
				}
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.t.Fatal(err)
		}
		if lines != want {
			p.t.Errorf("sink %s has %d rows, want %d", sink, lines, want)
		}
	}
}
