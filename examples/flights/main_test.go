package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/examples/flights/flight"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka/embedded"
)

var (
	broker   = services.SharedKafka(services.KafkaOptions{})
	database = services.SharedPostgres(services.PostgresOptions{})
)

func TestDemo(t *testing.T) {
	t.Parallel()
	needGo(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Rel(here, t.TempDir()) // relative, as it is by default
	if err != nil {
		t.Fatal(err)
	}
	told := play(t, options{dir: filepath.Join(dir, "demo")})
	if want := "in topic flights-delays and folder " + filepath.Join(dir, "demo", "out") + "\n"; !strings.Contains(told, want) {
		t.Errorf("the story lacks %q:\n%s", want, told)
	}
	checkReadme(t, strings.ReplaceAll(told, filepath.Join(dir, "demo"), "sluice-demo"))
	if strings.Contains(told, "made by this run") {
		t.Errorf("the story tells of things made on servers, and there are none:\n%s", told)
	}
}

// checkReadme holds the story that README.md shows against one that was told: they are
// the same but for numbers, and what is told from time to time.
func checkReadme(t *testing.T, told string) {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(page), "leaves a folder to explore:\n\n```\n")
	shown, _, ended := strings.Cut(shown, "\n```\n")
	if !found || !ended {
		t.Fatal("README.md shows no story")
	}
	lines := map[string]bool{}
	for line := range strings.Lines(told) {
		lines[shapeOf(line)] = true
	}
	fromTimeToTime := regexp.MustCompile(`^ *…?$|written, .* counted$|epochs behind: | changed: `)
	checked := 0
	for line := range strings.Lines(shown) {
		if fromTimeToTime.MatchString(strings.TrimSuffix(line, "\n")) {
			continue
		}
		if checked++; !lines[shapeOf(line)] {
			t.Errorf("README.md shows a line that the demo doesn't print (%q):\n%s", shapeOf(line), line)
		}
	}
	if checked < 18 {
		t.Errorf("README.md shows %d lines of the story", checked)
	}
}

// shapeOf is a line without what differs from run to run.
func shapeOf(line string) string {
	line, _, _ = strings.Cut(line, " changed: ") // the rows that differ
	if strings.HasSuffix(strings.TrimSpace(line), " min") {
		return line // of the table, which is the same each time
	}
	line = regexp.MustCompile(`-[0-9a-f]{16}`).ReplaceAllString(line, "-HEX")
	line = regexp.MustCompile(`\b\d[\d,.:]*( ?m?s\b)?`).ReplaceAllString(line, "N")
	return strings.Join(strings.Fields(line), " ")
}

// TestRealServers plays the demo with Kafka and PostgreSQL.
func TestRealServers(t *testing.T) {
	t.Parallel()
	needGo(t)
	b, d := broker(t), database(t)
	url, err := d.Create(t.Context(), services.Unique("flights"))
	if err != nil {
		t.Fatal(err)
	}
	told := play(t, options{dir: filepath.Join(t.TempDir(), "demo"), kafka: b.Addr(), postgres: url})
	if !regexp.MustCompile(`in topic flights-[0-9a-f]{6}-delays, folder \S+ and table flights_[0-9a-f]{6}_delays\n`).MatchString(told) {
		t.Errorf("the story doesn't tell of the topic, the folder and the table:\n%s", told)
	}
	if strings.Count(told, "made by this run") != 2 {
		t.Errorf("the story doesn't tell what it has made on both servers:\n%s", told)
	}
}

// TestRunsShareServers sees that what a run makes on the user's servers isn't in
// the way of the next.
func TestRunsShareServers(t *testing.T) {
	names := map[flight.Names]bool{}
	for range 10 {
		s, err := reach(options{kafka: "127.0.0.1:9092"})
		if err != nil {
			t.Fatal(err)
		}
		names[s.names] = true
	}
	if len(names) < 9 {
		t.Errorf("10 runs have the names %v", names)
	}
}

// play plays the demo, and checks what every story has.
func play(t *testing.T, o options) string {
	t.Helper()
	o.lasts, o.epoch = 6*time.Second, 200*time.Millisecond
	var told bytes.Buffer
	if err := run(t.Context(), o, newStory(&told)); err != nil {
		t.Fatalf("%v\nThe story:\n%s", err, &told)
	}
	for _, part := range []string{
		`kill -9 \d+`, `v2 is live; while it followed: [\d,]+ rows equal, [\d,]+ changed, 0 only old, 0 only new`,
		`v1, process \d+, has seen that and ended: exit code 12`, `v1 is live again`, `v2, process \d+, has seen that and ended: exit code 12`,
		`all 6,106 flights counted, each once: v1 [\d,]+, then v2 [\d,]+, then v1 [\d,]+\n`, `all in the end, equal an independent recount`,
		`between two outputs: \d+\.\d\d s around the cut, \d+\.\d\d s around the rollback; usual: \d+\.\d\d s`,
	} {
		if !regexp.MustCompile(part).MatchString(told.String()) {
			t.Errorf("the story lacks %q:\n%s", part, &told)
		}
	}
	if strings.Contains(told.String(), "\x1b") {
		t.Errorf("colours without a terminal:\n%q", &told)
	}
	return told.String()
}

// TestInterrupted ends the demo when the job has begun: run returns only when
// the job's process is gone.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	needGo(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := options{dir: filepath.Join(t.TempDir(), "demo"), lasts: time.Hour, epoch: time.Second}
	told := &watchFor{text: "process", then: cancel}
	if err := run(ctx, o, newStory(told)); err == nil || ctx.Err() == nil {
		t.Fatalf("run was interrupted, and returned %v", err)
	}
}

// watchFor is a writer that does something when a text is written to it.
type watchFor struct {
	text string
	then func()
}

func (w *watchFor) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.then()
	}
	return len(p), nil
}

func needGo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("the demo builds its job, and there is no go command: %v", err)
	}
}

// TestWeek compares with figures that were taken from the file by other means.
func TestWeek(t *testing.T) {
	week, err := readWeek()
	if err != nil {
		t.Fatal(err)
	}
	r := newRecount(week, map[key]int64{{"JFK", "B6"}: 100})
	for version, want := range map[string]map[key]row{
		"v1": {
			{"EWR", "UA"}: {Flights: 816, Cancelled: 2, OnTime: unknown, MeanDelay: 5204.0 / 814, WorstDelay: 307},
			{"JFK", "B6"}: {Flights: 740, OnTime: unknown, MeanDelay: 4756.0 / 740, WorstDelay: 193},
			{"LGA", "MQ"}: {Flights: 329, Cancelled: 5, OnTime: unknown, MeanDelay: -1083.0 / 324, WorstDelay: 91},
			{"JFK", "HA"}: {Flights: 7, OnTime: unknown, MeanDelay: 1395.0 / 7, WorstDelay: 1301},
		},
		"v2": {
			{"EWR", "UA"}: {Flights: 816, Cancelled: 2, OnTime: 702, MeanDelay: 4536.0 / 814, WorstDelay: 307},
			{"JFK", "B6"}: {Flights: 740, OnTime: 526, MeanDelay: 4599.0 / 740, WorstDelay: 193},
			{"LGA", "MQ"}: {Flights: 329, Cancelled: 5, OnTime: 304, MeanDelay: -1083.0 / 324, WorstDelay: 91},
			{"JFK", "HA"}: {Flights: 7, OnTime: 5, MeanDelay: 214.0 / 7, WorstDelay: 1301},
		},
	} {
		got := r.table(version)
		if len(week) != 6106 || len(got) != 32 {
			t.Errorf("%d flights of %d carriers, expected 6106 of 32", len(week), len(got))
		}
		for k, want := range want {
			if got[k] != want {
				t.Errorf("%s: %v: %+v, expected %+v", version, k, got[k], want)
			}
		}
	}
}

// someFlights are flights of three carriers, and a recount of which v2 began behind
// JFK AA's first two.
func someFlights() *recount {
	left := "2013-01-07T05:00:00Z"
	flight := func(origin string, minutes int64) event {
		return event{Origin: origin, Carrier: "AA", Departed: &left, Delay: &minutes}
	}
	cancelled := event{Origin: "JFK", Carrier: "AA"}
	week := []event{flight("JFK", 3), flight("LGA", -5), cancelled, flight("JFK", 30), flight("JFK", 14), flight("JFK", 213)}
	return newRecount(week, map[key]int64{{"JFK", "AA"}: 2})
}

func TestRecount(t *testing.T) {
	r := someFlights()
	for version, want := range map[string]map[key]row{
		"v1": {
			{"JFK", "AA"}: {Flights: 5, Cancelled: 1, OnTime: unknown, MeanDelay: 65, WorstDelay: 213},
			{"LGA", "AA"}: {Flights: 1, OnTime: unknown, MeanDelay: -5},
		},
		"v2": {
			{"JFK", "AA"}: {Flights: 5, Cancelled: 1, OnTime: 1, MeanDelay: 41.75, WorstDelay: 213},
			{"LGA", "AA"}: {Flights: 1, OnTime: 1, MeanDelay: -5},
		},
	} {
		if got := r.table(version); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, expected %+v", version, got, want)
		}
	}
}

// TestAudit sees that each flight is accounted for by the version that was first to
// count it, and that rows which are wrong, or go back, are found.
func TestAudit(t *testing.T) {
	jfk, lga := key{"JFK", "AA"}, key{"LGA", "AA"}
	rows := []delivered{
		{"1", jfk, row{Flights: 2, Cancelled: 1, OnTime: unknown, MeanDelay: 3, WorstDelay: 3}},
		{"1", lga, row{Flights: 1, OnTime: unknown, MeanDelay: -5}},
		{"2", jfk, row{Flights: 4, Cancelled: 1, OnTime: 1, MeanDelay: 47.0 / 3, WorstDelay: 30}},
		{"3", jfk, row{Flights: 4, Cancelled: 1, OnTime: unknown, MeanDelay: 47.0 / 3, WorstDelay: 30}}, // written anew
		{"4", jfk, row{Flights: 5, Cancelled: 1, OnTime: unknown, MeanDelay: 65, WorstDelay: 213}},
	}
	want := []share{{"v1", 2, 3}, {"v2", 1, 2}, {"v1", 2, 1}}
	if got, err := someFlights().audit(rows); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; expected %+v", got, err, want)
	}
	wrong := slices.Clone(rows)
	wrong[2].row.MeanDelay = 16
	if _, err := someFlights().audit(wrong); err == nil || !strings.HasPrefix(err.Error(), "2: JFK AA, written by v2: ") {
		t.Errorf("expected an error that names file 2: %v", err)
	}
	wrong = slices.Clone(rows)
	wrong[4] = delivered{"4", jfk, rows[0].row}
	if _, err := someFlights().audit(wrong); err == nil || !strings.HasPrefix(err.Error(), "4: JFK AA, written by v1: 2 flights, and there were 4 before") {
		t.Errorf("expected an error that names file 4: %v", err)
	}
}

func TestGaps(t *testing.T) {
	w := &watch{}
	at := time.Unix(0, 0)
	for i, gap := range []int{0, 5, 6, 5, 4, 9, 5, 5, 30, 5} { // seconds
		at = at.Add(time.Duration(gap) * time.Second)
		w.names, w.seen = append(w.names, fmt.Sprintf("%d.jsonl", i)), append(w.seen, at)
	}
	longest, usual := w.gaps([]string{"4.jsonl"})
	if len(longest) != 1 || longest[0] != 9*time.Second || usual != 5*time.Second {
		t.Errorf("%v and %v, expected 9s and 5s", longest, usual)
	}
}

func TestEventsOfAProcess(t *testing.T) {
	e := newEvents()
	sample := `{"key":"{\"Airport\":\"JFK\",\"Carrier\":\"AA\"}","columns":[{"column":"MeanDelay","old":"1.23456","new":"-1"}]}`
	for _, part := range []string{
		`{"event":"the branch begins with its base","position":7}` + "\n" + `{"event":"other","position":"x"}` + "\n" + `{"event":"foll`,
		`owing","stage":"live","branch":"upgrade-1","compared":[{"sink":"topic","equal":3,"changed":1,"samples":[` + sample + `,` + sample + `]}]}` + "\n",
	} {
		if _, err := io.WriteString(e, part); err != nil {
			t.Fatal(err)
		}
	}
	if h, told, err := e.of(begins); !told || err != nil || h.Position != 7 {
		t.Errorf("%+v, %v, %v; expected position 7", h, told, err)
	}
	h, told, err := e.of(isLive)
	if !told || err != nil || h.Branch != "upgrade-1" || len(h.Compared) != 1 {
		t.Fatalf("%+v, %v, %v", h, told, err)
	}
	if got, want := h.Compared[0].text(), "3 rows equal, 1 changed, 0 only old, 0 only new"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got, want := h.Compared[0].samples(3), []string{"JFK AA: MeanDelay 1.23 → -1"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	io.WriteString(e, "no JSON\n")
	if _, _, err := e.of(begins); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("expected an error that shows the line: %v", err)
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	want := map[key]row{{"JFK", "AA"}: {Flights: 2}, {"JFK", "B6"}: {Flights: 3}}
	if err := compare("a", want, "b", want); err != nil {
		t.Errorf("equal tables: %v", err)
	}
	err := compare("a", map[key]row{{"JFK", "AA"}: {Flights: 2}, {"LGA", "UA"}: {Flights: 1}}, "b", want)
	if err == nil || strings.Contains(err.Error(), "JFK AA") || !strings.Contains(err.Error(), "JFK B6") || !strings.Contains(err.Error(), "LGA UA") {
		t.Errorf("expected an error that names JFK B6 and LGA UA only: %v", err)
	}
}

func TestFolderIsTheLastRowOfEachKey(t *testing.T) {
	f := newFolder(t.TempDir())
	expect := func(want map[key]row) {
		t.Helper()
		if got, err := f.read(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; expected %+v", got, err, want)
		}
	}
	expect(map[key]row{}) // before the job has begun
	put(t, f.dir, ".sluice/record.json", `{"other":1}`)
	put(t, f.dir, "00000000000000000001.jsonl", `{"op":"put","key":{"Airport":"JFK","Carrier":"AA"},"row":{"Flights":1,"MeanDelay":2.5}}`)
	put(t, f.dir, "00000000000000000002.jsonl", `{"op":"put","key":{"Airport":"LGA","Carrier":"AA"},"row":{"Flights":4}}`)
	expect(map[key]row{{"JFK", "AA"}: {Flights: 1, OnTime: unknown, MeanDelay: 2.5}, {"LGA", "AA"}: {Flights: 4, OnTime: unknown}})
	put(t, f.dir, "00000000000000000003.jsonl", `{"op":"put","key":{"Airport":"JFK","Carrier":"AA"},"row":{"Flights":3,"OnTime":1}}`)
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"LGA", "AA"}: {Flights: 4, OnTime: unknown}})
	put(t, f.dir, "00000000000000000004.jsonl", `{"op":"delete","key":{"Airport":"LGA","Carrier":"AA"}}`)
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}})
	put(t, f.dir, "00000000000000000005.jsonl", `{"op":"put",`)
	if _, err := f.read(t.Context()); err == nil || !strings.Contains(err.Error(), "00000000000000000005.jsonl") {
		t.Errorf("expected an error that names the damaged file: %v", err)
	}
}

func TestTopicIsTheLastRowOfEachKey(t *testing.T) {
	o := options{dir: t.TempDir()}
	s, err := reach(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	view := newTopic(s)
	expect := func(want map[key]row) {
		t.Helper()
		if got, err := view.read(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; expected %+v", got, err, want)
		}
	}
	fill := func(key, value string) {
		t.Helper()
		r := embedded.Record{Key: []byte(key)}
		if value != "" {
			r.Value = []byte(value)
		}
		if _, err := s.embedded.Fill(t.Context(), s.names.Delays, func(yield func(embedded.Record, error) bool) { yield(r, nil) }); err != nil {
			t.Fatal(err)
		}
	}
	expect(map[key]row{}) // before the job has begun
	if err := s.embedded.CreateTopic(embedded.Topic{Name: s.names.Delays, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	expect(map[key]row{})
	fill(`{"Airport":"JFK","Carrier":"AA"}`, `{"Flights":1,"MeanDelay":2.5}`)
	fill(`{"Airport":"LGA","Carrier":"AA"}`, `{"Flights":4}`)
	fill(`{"Airport":"EWR","Carrier":"UA"}`, `{"Flights":5}`)
	fill(`{"Airport":"JFK","Carrier":"AA"}`, `{"Flights":3,"OnTime":1}`)
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"LGA", "AA"}: {Flights: 4, OnTime: unknown}, {"EWR", "UA"}: {Flights: 5, OnTime: unknown}})
	fill(`{"Airport":"LGA","Carrier":"AA"}`, "") // a tombstone
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"EWR", "UA"}: {Flights: 5, OnTime: unknown}})
	fill("JFK", `{"Flights":1}`)
	if _, err := view.read(t.Context()); err == nil || !strings.Contains(err.Error(), "JFK") {
		t.Errorf("expected an error that shows the damaged key: %v", err)
	}
}

func TestOutputsThatDifferAreToldApart(t *testing.T) {
	same, other := fixed{{"JFK", "AA"}: {Flights: 3}, {"JFK", "B6"}: {Flights: 4}}, fixed{{"JFK", "AA"}: {Flights: 3}}
	rows, err := readAll(t.Context(), []output{same, same})
	if err != nil || counted(rows) != 7 {
		t.Errorf("%v, %v; expected 7 flights", rows, err)
	}
	if _, err := readAll(t.Context(), []output{same, same, other}); err == nil || !strings.Contains(err.Error(), "JFK B6") {
		t.Errorf("expected an error that names JFK B6: %v", err)
	}
}

// fixed is an output that holds these rows.
type fixed map[key]row

func (f fixed) String() string                            { return "fixed" }
func (f fixed) read(context.Context) (map[key]row, error) { return f, nil }

func TestFlightsOfACarrierAtAnAirportHaveOneKey(t *testing.T) {
	week, err := readWeek()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for _, e := range week {
		keys[string(keyOf(string(e.line)))]++
	}
	if len(keys) != 32 || keys["EWR UA"] != 816 || keys["JFK HA"] != 7 {
		t.Errorf("the keys are %v, expected 32, with 816 of EWR UA and 7 of JFK HA", keys)
	}
}

func TestWriterKeepsTheOrderOfEachAirport(t *testing.T) {
	dir := t.TempDir()
	week := []event{{line: []byte("1\n"), Origin: "JFK"}, {line: []byte("2\n"), Origin: "LGA"}, {line: []byte("3\n"), Origin: "JFK"}}
	w, err := newWriter(dir, week)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.write(t.Context(), week, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"JFK.jsonl": "1\n3\n", "LGA.jsonl": "2\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; expected %q", name, got, err, want)
		}
	}
}

func TestWriterWritesNoMoreThanItMay(t *testing.T) {
	week := []event{{line: []byte("1\n"), Origin: "JFK"}, {line: []byte("2\n"), Origin: "LGA"}, {line: []byte("3\n"), Origin: "JFK"}}
	w, err := newWriter(t.TempDir(), week)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.most.Store(1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.write(ctx, week, time.Nanosecond) }() // all is due at once
	for w.written.Load() == 0 && ctx.Err() == nil {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err == nil || w.written.Load() != 1 {
		t.Errorf("%d flights were written, %v; expected 1, and that it waits for more", w.written.Load(), err)
	}
}

func TestFolderOfAnEarlierRunIsMadeAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "out/1.jsonl", "old")
	put(t, dir, "mine.txt", "the user's")
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Errorf("the old output is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine.txt")); err != nil {
		t.Errorf("a file of the user's is gone: %v", err)
	}
}

func TestFolderOfOthersIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "out/1.jsonl", "not the demo's")
	if err := makeFolder(dir); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("expected an error that names --dir: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out/1.jsonl")); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
