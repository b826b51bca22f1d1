package file_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/schema"
)

type spend struct {
	Orders int64
	Note   *string
	Name   string
}

type place struct {
	Airport string
	Gate    int64
}

func spendRow(p place, s spend) spend { return s }

// at opens a folder's sink for a task, with its record made.
func at(t *testing.T, s connector.Sink, o connector.Opening, task string) connector.Target {
	t.Helper()
	target, err := s.Open(t.Context(), o, connector.RecordKey{JobID: "5fe2", Task: task, Sink: "spend"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Make(t.Context(), connector.SinkRecord{ID: "id", Job: "job", Target: "out"}); err != nil {
		t.Fatal(err)
	}
	return target
}

// tableDelivery freezes changes of a table keyed by place.
func tableDelivery(t *testing.T, position connector.Position, rows ...connector.Row) *connector.Delivery {
	t.Helper()
	k, err := schema.KeyOf[place]("key")
	if err != nil {
		t.Fatal(err)
	}
	r, err := schema.Of[spend]("row")
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Delivery{
		Record: connector.SinkRecord{Position: position, ID: "id", Job: "job", Target: "out", Branch: "main", Manifest: "9c1f"},
		Key:    k.Schema(),
		Schema: r.Schema(),
		Decide: func(*connector.SinkRecord) connector.Verdict { return connector.Apply },
		Rows: func(yield func(connector.Row, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		},
	}
}

func put(t *testing.T, k place, s spend) connector.Row {
	t.Helper()
	rows, err := file.Upsert("out", spendRow).TableRows()
	if err != nil {
		t.Fatal(err)
	}
	r := remove(t, k)
	r.Op = connector.Put
	if r.Row, err = rows.NewAppend()(nil, k, &s); err != nil {
		t.Fatal(err)
	}
	return r
}

func remove(t *testing.T, k place) connector.Row {
	t.Helper()
	key, err := schema.KeyOf[place]("key")
	if err != nil {
		t.Fatal(err)
	}
	return connector.Row{Op: connector.Delete, Key: key.Append(nil, k)}
}

func deliver(t *testing.T, target connector.Target, d *connector.Delivery, expected connector.Verdict) {
	t.Helper()
	if verdict, _, err := target.Deliver(t.Context(), d); err != nil || verdict != expected {
		t.Fatalf("verdict %v (%v), expected %v", verdict, err, expected)
	}
}

func TestWhatIsWritten(t *testing.T) {
	empty, quoted := "", "a \"b\",\nc"
	rows := func(t *testing.T) []connector.Row {
		return []connector.Row{
			put(t, place{"EWR", 1}, spend{2, nil, "ann"}),
			put(t, place{"JFK", -2}, spend{1 << 60, &quoted, ""}),
			put(t, place{"a,b", 3}, spend{0, &empty, "x"}),
			remove(t, place{"LGA", 4}),
		}
	}
	cases := []struct {
		sink connector.Sink
		name string
		text string
	}{
		{
			file.Upsert("out", spendRow), "00000000000000000007.jsonl",
			`{"op":"put","key":{"Airport":"EWR","Gate":1},"row":{"Orders":2,"Note":null,"Name":"ann"}}
{"op":"put","key":{"Airport":"JFK","Gate":-2},"row":{"Orders":1152921504606846976,"Note":"a \"b\",\nc","Name":""}}
{"op":"put","key":{"Airport":"a,b","Gate":3},"row":{"Orders":0,"Note":"","Name":"x"}}
{"op":"delete","key":{"Airport":"LGA","Gate":4}}
`,
		},
		{
			file.Upsert("out", spendRow, file.AsCSV()), "00000000000000000007.csv",
			`op,key.Airport,key.Gate,Orders,Note,Name
put,EWR,1,2,,ann
put,JFK,-2,1152921504606846976,"a ""b"",
c",""
put,"a,b",3,0,"",x
delete,LGA,4,,,
`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			target := at(t, c.sink, opening(), "0.0")
			deliver(t, target, tableDelivery(t, 7, rows(t)...), connector.Apply)
			names, contents := deliveries(t, "out")
			if !slices.Equal(names, []string{c.name}) || string(contents[0]) != c.text {
				t.Errorf("%q holds\n%s\nexpected\n%s", names, contents, c.text)
			}
			hidden, err := os.ReadDir("out/.sluice")
			if err != nil || len(hidden) != 2 || hidden[0].Name() != "00000000000000000007.json" || hidden[1].Name() != "record.json" {
				t.Errorf("hidden files %v, %v", hidden, err)
			}
		})
	}
}

// TestHiddenFiles pins their form: later builds read what this one wrote.
func TestHiddenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	target := at(t, file.Upsert("out", spendRow), opening(), "0.0")
	deliver(t, target, tableDelivery(t, 7), connector.Apply)
	for name, want := range map[string]string{
		"record.json":               `{"format":1,"job_id":"5fe2","task":"0.0","sink":"spend","id":"id","start":0,"job":"job","target":"out","live":0,"branch":"","epoch":0,"manifest":""}`,
		"00000000000000000007.json": `{"format":1,"job_id":"5fe2","task":"0.0","sink":"spend","id":"id","position":7,"part":0,"job":"job","target":"out","live":0,"branch":"main","epoch":0,"manifest":"9c1f"}`,
	} {
		if b, err := os.ReadFile(filepath.Join("out/.sluice", name)); err != nil || string(b) != want+"\n" {
			t.Errorf("%s holds\n%s(%v), expected\n%s", name, b, err, want)
		}
	}
}

func TestDamagedRecords(t *testing.T) {
	cases := []struct {
		file, content string
		says          []string
	}{
		{"record.json", "", []string{"record.json is damaged"}},
		{"record.json", "{}", []string{"written in format 0, this build knows format 1"}},
		{"record.json", `{"format":2}`, []string{"written in format 2"}},
		{"record.json", strings.Repeat(" ", 1<<17), []string{"damaged", "more than 65536 bytes"}},
		{"record.json", `{"format":1,"job_id":"77","task":"0.0","sink":"other","job":"theirs"}`, []string{"another sink's", "expected job 5fe2, task 0.0, sink spend; found job 77 (theirs)"}},
		{"00000000000000000007.json", `{"format":1,"position":6}`, []string{"damaged", "speaks of 00000000000000000006"}},
		{"00000000000000000007.json", `{`, []string{"00000000000000000007.json is damaged"}},
	}
	for _, c := range cases {
		t.Chdir(t.TempDir())
		target := at(t, file.Upsert("out", spendRow), opening(), "0.0")
		deliver(t, target, tableDelivery(t, 7, remove(t, place{})), connector.Apply)
		write(t, filepath.Join("out/.sluice", c.file), []byte(c.content))
		_, err := target.Record(t.Context())
		wantError(t, err, append(c.says, filepath.Join("out"))...)
		if _, _, err := target.Deliver(t.Context(), tableDelivery(t, 8)); err == nil {
			t.Errorf("%s with %.20q: delivered", c.file, c.content)
		}
	}
}

func TestLostRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	target := at(t, file.Upsert("out", spendRow), opening(), "0.0")
	deliver(t, target, tableDelivery(t, 7, remove(t, place{})), connector.Apply)
	if err := os.Remove("out/.sluice/record.json"); err != nil {
		t.Fatal(err)
	}
	if found, err := target.Record(t.Context()); err != nil || found != nil {
		t.Errorf("record %+v, %v", found, err)
	}
	_, err := target.Make(t.Context(), connector.SinkRecord{ID: "new"})
	wantError(t, err, "holds", "00000000000000000007", "record.json is missing")
	if err := os.RemoveAll("out/.sluice"); err != nil {
		t.Fatal(err)
	}
	_, err = target.Make(t.Context(), connector.SinkRecord{ID: "new"})
	wantError(t, err, "out/00000000000000000007.jsonl", "choose a new folder")
	d := tableDelivery(t, 8)
	d.Decide = func(found *connector.SinkRecord) connector.Verdict {
		if found != nil {
			t.Errorf("found %+v", found)
		}
		return connector.Apply // which no engine says
	}
	deliver(t, target, d, connector.Disagree)
}

// TestOtherBytes has other bytes under a delivery's name, and another delivery's
// note: neither may be written over.
func TestOtherBytes(t *testing.T) {
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	o := opening()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	target := at(t, file.Upsert("out", spendRow), o, "0.0")
	write(t, "out/00000000000000000007.jsonl", []byte("{}\n"))
	deliver(t, target, tableDelivery(t, 7, remove(t, place{})), connector.Disagree)
	if _, contents := deliveries(t, "out"); len(contents) != 1 || string(contents[0]) != "{}\n" {
		t.Errorf("files %q", contents)
	}
	if !strings.Contains(log.String(), "position=00000000000000000007") {
		t.Errorf("log %s", &log)
	}
	found, err := target.Record(t.Context())
	if err != nil || found.Position != 0 {
		t.Errorf("record %+v, %v", found, err)
	}

	deliver(t, target, tableDelivery(t, 8), connector.Apply)
	other := tableDelivery(t, 8)
	other.Record.Manifest = "03ab"
	deliver(t, target, other, connector.Disagree)
	renamed := tableDelivery(t, 8) // by a build that names the folder otherwise
	renamed.Record.Target = "./out"
	deliver(t, target, renamed, connector.Apply)
}

func TestLeftOversGo(t *testing.T) {
	t.Chdir(t.TempDir())
	target := at(t, file.Upsert("out", spendRow), opening(), "0.0")
	write(t, "out/.sluice/tmp-00000000000000000006-0123456789abcdef", []byte("half"))
	write(t, "out/.sluice/tmp-00000000000000000009-0123456789abcdef", []byte("another's"))
	deliver(t, target, tableDelivery(t, 7, remove(t, place{})), connector.Apply)
	deliver(t, target, tableDelivery(t, 8), connector.Apply)
	entries, err := os.ReadDir("out/.sluice")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"00000000000000000008.json", "record.json", "tmp-00000000000000000009-0123456789abcdef"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("hidden files %q, %v", names, err)
	}
}

func TestTasksHaveFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	s := file.Upsert("out", spendRow)
	deliver(t, at(t, s, opening(), "0.0"), tableDelivery(t, 1, remove(t, place{})), connector.Apply)
	deliver(t, at(t, s, opening(), "1.0"), tableDelivery(t, 1, remove(t, place{})), connector.Apply)
	if _, err := os.Stat("out/1.0/00000000000000000001.jsonl"); err != nil {
		t.Error(err)
	}
}

func TestSinkRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "taken", nil)
	for dir, says := range map[string]string{"": "no folder named", "taken": "is no folder"} {
		_, err := file.Append[spend](dir).Open(t.Context(), opening(), connector.RecordKey{})
		wantError(t, err, says)
	}
	target := at(t, file.Upsert("out", spendRow), opening(), "0.0")
	tooLong := remove(t, place{})
	tooLong.Key = append(tooLong.Key, 0)
	wrongOp := remove(t, place{})
	wrongOp.Op = connector.Append
	for says, row := range map[string]connector.Row{"left over": tooLong, "says append": wrongOp} {
		_, _, err := target.Deliver(t.Context(), tableDelivery(t, 1, row))
		wantError(t, err, "delivering 00000000000000000001 to out", "row 0", says)
	}
	if names, _ := deliveries(t, "out"); names != nil {
		t.Errorf("files %q", names)
	}
}

// lostReplies links, and says that it failed.
type lostReplies struct{ env.FS }

func (f lostReplies) Link(old, new string) error {
	return errors.Join(errors.New("no reply"), f.FS.Link(old, new))
}

// noLinks is a file system without hard links.
type noLinks struct{ env.FS }

func (noLinks) Link(old, new string) error {
	return &fs.PathError{Op: "link", Path: new, Err: errors.ErrUnsupported}
}

func TestLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	o := opening()
	o.Env.Files = lostReplies{env.OS()}
	target := at(t, file.Upsert("out", spendRow), o, "0.0")
	deliver(t, target, tableDelivery(t, 1, remove(t, place{})), connector.Apply)
	if names, _ := deliveries(t, "out"); len(names) != 1 {
		t.Errorf("files %q", names)
	}
	o.Env.Files = noLinks{env.OS()}
	target, err := file.Append[spend]("elsewhere").Open(t.Context(), o, connector.RecordKey{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Make(t.Context(), connector.SinkRecord{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without links: %v", err)
	}
}

func TestRows(t *testing.T) {
	scalar, err := file.Append[string]("out").Rows()
	if err != nil {
		t.Fatal(err)
	}
	text := "x"
	row, err := scalar.NewAppend()(nil, &text)
	if err != nil {
		t.Fatal(err)
	}
	line, rest, err := schema.JSON(scalar.Schema)(nil, row)
	if string(line) != `{"value":"x"}` || len(rest) > 0 || err != nil {
		t.Errorf("%s, %d bytes left, %v", line, len(rest), err)
	}
	if _, err := file.Append[chan int]("out").Rows(); err == nil {
		t.Error("rows of channels")
	}
	named, err := file.Upsert("out", spendRow).TableRows()
	if err != nil || named.Function != "file_test.spendRow" {
		t.Errorf("function %q, %v", named.Function, err)
	}
	closure, err := file.Upsert("out", func(string, spend) spend { return spend{} }).TableRows()
	if err != nil || closure.Function != "" {
		t.Errorf("function %q, %v", closure.Function, err)
	}
	if d := file.Upsert("out", spendRow).Describe(); d.Connector != "file.json" || d.Target != "out" {
		t.Errorf("described as %+v", d)
	}
	if d := file.Append[spend]("out", file.AsCSV()).Describe(); d.Connector != "file.csv" {
		t.Errorf("described as %+v", d)
	}
}
