package golden

import (
	"context"
	"encoding/csv"
	"encoding/json/v2"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

var write = flag.Bool("write", false, "write the checkpoint of today's format anew")

// newest is the folder of the checkpoint of today's format.
func newest() string { return filepath.Join("testdata", strconv.Itoa(epoch.Format)) }

// by is who asks for what the generator asks for.
const by = "the generator"

// player is a job that has a part in a checkpoint.
type player struct {
	name        string
	write, read func(*place)
	leaves      []string // besides what has its name
}

var jobs = []player{
	{"golden", writeGolden, readGolden, []string{"out/dead", "out/parity", "out/readings", "out/totals"}},
	{"moves", writeMoves, readMoves, nil},
	{"topics", writeTopics, readTopics, []string{"broker"}},
	{"windows", writeWindows, readWindows, nil},
}

// TestWrite writes the checkpoint of today's format.
func TestWrite(t *testing.T) {
	if !*write {
		t.Skip("the checkpoint is written on request only: -write")
	}
	for _, job := range jobs {
		t.Run(job.name, func(t *testing.T) { job.write(enter(t, anew(t, job), job.name)) })
	}
}

// writeGolden runs the job's two versions.
func writeGolden(p *place) {
	p.t.Helper()
	p.append(input[0])
	p.run(version1(reading.room), func(o *sluice.Options) { o.Savepoints = "hourly=24" })
	p.append(input[1])
	p.run(version1(roomOf), nil)
	p.saved("before")
	if _, err := clean.New(p.log(), clean.Options{Keep: -1, KeepEpochs: 1}).All(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.forget(p.edits("m3", "latest", "by_room", "values"))
	p.append(input[2])
	p.run(version1(roomOf), nil)
	p.append(input[3])
	p.run(version2(), nil)
	given := p.forget(p.edits("m2", "latest"))
	if _, err := p.log().AskGiveUp(p.t.Context(), given, by); err != nil {
		p.t.Fatal(err)
	}
	p.owed()
}

// saved makes a savepoint of the newest epoch.
func (p *place) saved(name string) {
	p.t.Helper()
	head := p.head()
	at := epoch.Point{Branch: head.Branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: head.Epoch}}
	if _, err := p.log().PutSavepoint(p.t.Context(), name, at, by); err != nil {
		p.t.Fatal(err)
	}
}

// edits name a meter's entries of states.
func (p *place) edits(meter string, states ...string) (edits []epoch.Edit) {
	p.t.Helper()
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		p.t.Fatal(err)
	}
	key := keys.Append(nil, meter)
	for _, name := range states {
		edits = append(edits, epoch.Edit{State: name, Slot: epoch.Slot(xxhash.Sum64(key) >> 48), Hash: epoch.EditHash(p.log().ID(), key)})
	}
	return edits
}

// forget asks for entries to be forgotten.
func (p *place) forget(edits []epoch.Edit) (request uint64) {
	p.t.Helper()
	head := p.head()
	keys := map[string]string{}
	for _, e := range edits {
		keys[e.State] = head.State[e.State].Key
	}
	r, err := p.log().AskForget(p.t.Context(), edits, keys, head.Version, by)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.N
}

// owed runs the job once more, with a sink that takes nothing.
func (p *place) owed() {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	job := version2()
	for _, s := range job.Sinks() {
		if s.Name == "readings" {
			if err := job.ReplaceSink(s.Name, away{s.Sink}); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	o := p.options(nil)
	o.Grace = time.Second
	o.Committed = func(c sluice.Committed) {
		if c.Records > 0 {
			stop()
		}
	}
	p.append(input[4])
	var pending *sluice.PendingError
	if err := job.Run(ctx, o); !errors.As(err, &pending) || len(pending.Pending) != 1 || pending.Pending["readings"] == 0 {
		p.t.Fatalf("the last run ended with %v, expected deliveries to the sink readings to be pending", err)
	}
}

// away is a sink whose system takes no rows.
type away struct{ connector.Sink }

func (a away) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	target, err := a.Sink.Open(ctx, o, key)
	return awayTarget{target}, err
}

type awayTarget struct{ connector.Target }

func (awayTarget) Deliver(context.Context, *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	return 0, nil, errors.New("it takes nothing for now")
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
		folder := copied(t, format.Name())
		for _, job := range jobs {
			t.Run(format.Name()+"/"+job.name, func(t *testing.T) {
				p := enter(t, folder, job.name)
				p.sound()
				job.read(p)
				p.sound()
			})
		}
	}
}

// readGolden reads what the job holds, and goes on with its newest version.
func readGolden(p *place) {
	p.t.Helper()
	p.check(p.head(), atEnd)
	if why := p.head().Partial["parity"].Why; why == "" {
		p.t.Error("the manifest does not say that the state parity is incomplete")
	}
	p.checkSavepoints()
	p.checkForgotten()
	p.checkOwed()

	p.append(next)
	p.run(version2(), nil)
	p.check(p.head(), goneOn)
	if got := read(p.t, p.lines("readings")); !slices.Equal(got, []int64{3, 4, 5, 7, 9, 10, 11, 20}) {
		p.t.Errorf("the sink readings has %v", got)
	}
	if got := p.lines("dead"); len(got) != 1 || !strings.Contains(got[0], "a bad reading of 8") {
		p.t.Errorf("the sink of dead letters has %q", got)
	}
	if got := p.table("parity"); !maps.Equal(got, goneOn["parity"]) {
		p.t.Errorf("the sink parity has %v", got)
	}
}

// checkSavepoints reads the two that there are, and the functions' names of the build that
// has another one than the first: both are in the epoch that one of them names.
func (p *place) checkSavepoints() {
	p.t.Helper()
	all, err := p.log().Savepoints(p.t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "before" || all[0].Schedule != "" || !strings.HasPrefix(all[1].Name, "hourly-") || all[1].Schedule != "hourly" {
		p.t.Fatalf("savepoints %+v, %v", all, err)
	}
	m, err := p.log().ManifestBelow(p.t.Context(), all[0].Branch, epoch.FirstTask, all[0].Tasks[epoch.FirstTask])
	if err != nil {
		p.t.Fatal(err)
	}
	p.check(m, atSavepoint)
	floor, err := p.log().Floor(p.t.Context(), "main", epoch.FirstTask)
	if err != nil || floor == 0 || floor > m.Epoch || all[1].Tasks[epoch.FirstTask] >= floor {
		p.t.Errorf("the floor is %d, %v, the savepoints are of %d and %d", floor, err, m.Epoch, all[1].Tasks[epoch.FirstTask])
	}
	version, err := p.log().Version(p.t.Context(), m.Version)
	if name := version.Functions["totals key"]; err != nil || !strings.HasSuffix(name, "reading.room") {
		p.t.Errorf("the function that gives the room was called %s at first, %v", name, err)
	}
	data, err := p.store.Read(p.t.Context(), "golden/"+epoch.FunctionsPath(m.Version, m.Build.Executable), epoch.MaxObject)
	if err != nil {
		p.t.Fatal(err)
	}
	functions, err := epoch.Decode[epoch.Functions](data)
	if name := functions.Functions["totals key"]; err != nil || functions.Version != m.Version || functions.Executable != m.Build.Executable || !strings.HasSuffix(name, ".roomOf") {
		p.t.Errorf("it is called %s later, %v", name, err)
	}
}

// checkForgotten reads what was forgotten, and that a request was given up.
func (p *place) checkForgotten() {
	p.t.Helper()
	for _, m := range p.data("main") {
		if len(m.Edits) == 0 {
			continue
		}
		if want := p.edits("m3", "latest", "by_room", "values"); !slices.Equal(m.Edits, want) || m.Request != 1 || m.EditsOf != 0 || m.Counts["forgotten"] != 3 {
			p.t.Errorf("epoch %d forgets %v, %d of them met, up to request %d", m.Epoch, m.Edits, m.Counts["forgotten"], m.Request)
		}
	}
	found, err := p.log().RequestsAfter(p.t.Context(), 0)
	if err != nil || len(found) != 3 || found[2].Kind != epoch.GiveUpRequest || found[2].Of != 2 || found[1].Kind != epoch.ForgetRequest || !slices.Equal(found[1].Edits, p.edits("m2", "latest")) {
		p.t.Fatalf("the requests are %+v, %v", found, err)
	}
	unmet := p.head().Unmet
	if len(unmet) != 1 || unmet[0].Request != 2 || !unmet[0].GivenUp || !slices.Equal(unmet[0].States, []string{"latest"}) {
		p.t.Errorf("not met is %+v", unmet)
	}
}

// checkOwed reads that the sink readings lacks the last reading: the heartbeat says so,
// and that its owner has ended.
func (p *place) checkOwed() {
	p.t.Helper()
	beat, ok, err := p.log().Heartbeat(p.t.Context(), "main", epoch.FirstTask)
	if err != nil || !ok || !beat.Released || beat.Pending["readings"] != 1 || len(beat.Pending) != 1 {
		p.t.Errorf("the heartbeat is %+v, %v", beat, err)
	}
	head := p.head()
	if s := head.Sinks["readings"]; s.Confirmed != head.Position-1 || head.Sinks["parity"].Confirmed != head.Position {
		p.t.Errorf("the sink readings has position %d, and the log is at %d", s.Confirmed, head.Position)
	}
	if got := read(p.t, p.lines("readings")); !slices.Equal(got, []int64{3, 4, 5, 7, 9, 10}) {
		p.t.Errorf("the sink readings has %v", got)
	}
}

// read are the values of readings in lines of CSV, of which each file has a head.
func read(t *testing.T, lines []string) (all []int64) {
	t.Helper()
	for _, line := range lines {
		cells, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || len(cells) != 4 {
			t.Fatalf("%q: %v", line, err)
		}
		if cells[2] == "Value" {
			continue
		}
		n, err := strconv.ParseInt(cells[2], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, n)
	}
	return all
}

// readJSON are those in lines of JSON.
func readJSON(t *testing.T, lines []string) (all []int64) {
	t.Helper()
	for _, line := range lines {
		var r reading
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r.Value)
	}
	return all
}
