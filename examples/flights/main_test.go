package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
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
	if strings.Contains(told, "made by this run") {
		t.Errorf("the story tells of things made on servers, and there are none:\n%s", told)
	}
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
	o.lasts, o.epoch = 3*time.Second, 200*time.Millisecond
	var told bytes.Buffer
	if err := run(t.Context(), o, newStory(&told)); err != nil {
		t.Fatalf("%v\nThe story:\n%s", err, &told)
	}
	for _, part := range []string{"kill -9", "v2, by SIGTERM, with 6,106 flights", "equals an independent recount"} {
		if !strings.Contains(told.String(), part) {
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
	got := recount(week, map[key]int64{{"JFK", "B6"}: 100})
	if len(week) != 6106 || len(got) != 32 {
		t.Errorf("%d flights of %d carriers, expected 6106 of 32", len(week), len(got))
	}
	for k, want := range map[key]row{
		{"EWR", "UA"}: {Flights: 816, Cancelled: 2, OnTime: 702, MeanDelay: 5204.0 / 814, WorstDelay: 307},
		{"JFK", "B6"}: {Flights: 740, OnTime: 526, MeanDelay: 4756.0 / 740, WorstDelay: 193},
		{"LGA", "MQ"}: {Flights: 329, Cancelled: 5, OnTime: 304, MeanDelay: -1083.0 / 324, WorstDelay: 91},
		{"JFK", "HA"}: {Flights: 7, OnTime: 5, MeanDelay: 1395.0 / 7, WorstDelay: 1301},
	} {
		if got[k] != want {
			t.Errorf("%v: %+v, expected %+v", k, got[k], want)
		}
	}
}

func TestRecount(t *testing.T) {
	left := "2013-01-07T05:00:00Z"
	flight := func(origin string, minutes int64) event {
		return event{Origin: origin, Carrier: "AA", Departed: &left, Delay: &minutes}
	}
	cancelled := event{Origin: "JFK", Carrier: "AA"}
	week := []event{flight("JFK", 3), flight("LGA", -5), cancelled, flight("JFK", 30), flight("JFK", 14), flight("JFK", 15)}
	want := map[key]row{
		{"JFK", "AA"}: {Flights: 5, Cancelled: 1, OnTime: 1, MeanDelay: 15.5, WorstDelay: 30},
		{"LGA", "AA"}: {Flights: 1, OnTime: 1, MeanDelay: -5},
	}
	if got := recount(week, map[key]int64{{"JFK", "AA"}: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, expected %+v", got, want)
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
	expect(map[key]row{{"JFK", "AA"}: {Flights: 1, MeanDelay: 2.5}, {"LGA", "AA"}: {Flights: 4}})
	put(t, f.dir, "00000000000000000003.jsonl", `{"op":"put","key":{"Airport":"JFK","Carrier":"AA"},"row":{"Flights":3,"OnTime":1}}`)
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"LGA", "AA"}: {Flights: 4}})
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
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"LGA", "AA"}: {Flights: 4}, {"EWR", "UA"}: {Flights: 5}})
	fill(`{"Airport":"LGA","Carrier":"AA"}`, "") // a tombstone
	expect(map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"EWR", "UA"}: {Flights: 5}})
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
