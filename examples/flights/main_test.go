package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
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
	o := options{dir: filepath.Join(dir, "demo"), lasts: 3 * time.Second, epoch: 200 * time.Millisecond}
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
	if err := compare(want, want); err != nil {
		t.Errorf("equal tables: %v", err)
	}
	err := compare(map[key]row{{"JFK", "AA"}: {Flights: 2}, {"LGA", "UA"}: {Flights: 1}}, want)
	if err == nil || strings.Contains(err.Error(), "JFK AA") || !strings.Contains(err.Error(), "JFK B6") || !strings.Contains(err.Error(), "LGA UA") {
		t.Errorf("expected an error that names JFK B6 and LGA UA only: %v", err)
	}
}

func TestOutputIsTheLastRowOfEachKey(t *testing.T) {
	o := &output{dir: filepath.Join(t.TempDir(), "out"), rows: map[key]row{}}
	read := func() {
		t.Helper()
		if err := o.read(); err != nil {
			t.Fatal(err)
		}
	}
	read() // before the job has begun
	put(t, o.dir, ".sluice/record.json", `{"other":1}`)
	put(t, o.dir, "00000000000000000001.jsonl", `{"op":"put","key":{"Airport":"JFK","Carrier":"AA"},"row":{"Flights":1,"MeanDelay":2.5}}`)
	put(t, o.dir, "00000000000000000002.jsonl", `{"op":"put","key":{"Airport":"LGA","Carrier":"AA"},"row":{"Flights":4}}`)
	read()
	put(t, o.dir, "00000000000000000003.jsonl", `{"op":"put","key":{"Airport":"JFK","Carrier":"AA"},"row":{"Flights":3,"OnTime":1}}`)
	read()
	want := map[key]row{{"JFK", "AA"}: {Flights: 3, OnTime: 1}, {"LGA", "AA"}: {Flights: 4}}
	if !reflect.DeepEqual(o.rows, want) || o.counted() != 7 {
		t.Errorf("%+v with %d flights, expected %+v with 7", o.rows, o.counted(), want)
	}
	put(t, o.dir, "00000000000000000004.jsonl", `{"op":"put",`)
	if err := o.read(); err == nil || !strings.Contains(err.Error(), "00000000000000000004.jsonl") {
		t.Errorf("expected an error that names the damaged file: %v", err)
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
