package file_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
)

type visit struct {
	ID    int64      `json:"id" csv:"id"`
	Page  string     `json:"page" csv:"page"`
	Score *float64   `json:"score" csv:"score"`
	At    time.Time  `json:"at" csv:"at"`
	Until *time.Time `json:"until" csv:"until"`
}

func visits(first, n int) []visit {
	var all []visit
	for i := first; i < first+n; i++ {
		v := visit{ID: int64(i) << 50, Page: strings.Repeat("ü,\"\n", i%4), At: time.Unix(int64(i)*86_400, 500).UTC()}
		if i%3 == 0 {
			score, until := float64(i)/8, v.At.Add(time.Hour)
			v.Score, v.Until = &score, &until
		}
		all = append(all, v)
	}
	return all
}

func jsonLines(all []visit) []byte {
	var b bytes.Buffer
	for i := range all {
		if err := json.MarshalWrite(&b, &all[i]); err != nil {
			panic(err)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func csvLines(all []visit) []byte {
	var b bytes.Buffer
	for _, v := range all {
		fmt.Fprintf(&b, "%d,\"%s\",", v.ID, strings.ReplaceAll(v.Page, `"`, `""`))
		if v.Score != nil {
			b.WriteString(strconv.FormatFloat(*v.Score, 'g', -1, 64))
		}
		fmt.Fprintf(&b, ",%s,", v.At.Format(time.RFC3339Nano))
		if v.Until != nil {
			b.WriteString(v.Until.Format(time.RFC3339Nano))
		}
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

const csvHeader = "id,page,score,at,until\r\n"

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func opening() connector.Opening {
	return connector.Opening{Env: env.Real(), Job: "job", Name: "visits"}
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// layout is how the suite's values lie in files.
type layout struct {
	name   string
	suffix string
	follow bool
	head   string
	lines  func([]visit) []byte
	pack   func([]byte) []byte
	source func(pattern string, opts ...file.Option) connector.Source[visit]
}

func layouts() []layout {
	same := func(b []byte) []byte { return b }
	return []layout{
		{"json", ".jsonl", false, "", jsonLines, same, file.JSONLines[visit]},
		{"json followed", ".jsonl", true, "", jsonLines, same, file.JSONLines[visit]},
		{"json gzip", ".jsonl.gz", false, "", jsonLines, zipped, file.JSONLines[visit]},
		{"json with a mark and empty lines", ".jsonl", false, "\xef\xbb\xbf\n\r\n", jsonLines, same, file.JSONLines[visit]},
		{"json without last newline", ".jsonl", false, "", jsonLines, func(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }, file.JSONLines[visit]},
		{"csv", ".csv", false, csvHeader, csvLines, same, file.CSV[visit]},
		{"csv followed", ".csv", true, "\xef\xbb\xbf" + csvHeader, csvLines, same, file.CSV[visit]},
		{"csv gzip", ".csv.gz", false, csvHeader, csvLines, zipped, file.CSV[visit]},
		{"csv without header", ".csv", false, "", csvLines, same, func(p string, opts ...file.Option) connector.Source[visit] {
			return file.CSV[visit](p, append(opts, file.Columns("id", "page", "score", "at", "until"))...)
		}},
	}
}

func TestSourceSuite(t *testing.T) {
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			connectortest.TestSource(t, func(t *testing.T) connectortest.SourceFixture[visit] { return l.fixture(t) })
		})
	}
}

func (l layout) fixture(t *testing.T) connectortest.SourceFixture[visit] {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	want := map[string][]visit{
		"a/one" + l.suffix: visits(0, 40),
		"a/two" + l.suffix: visits(3, 5),
		"b/one" + l.suffix: visits(100, 3),
	}
	for name, values := range want {
		write(t, path(name), l.pack(append([]byte(l.head), l.lines(values)...)))
	}
	write(t, path("a/.hidden"+l.suffix), []byte("not to be read"))
	f := connectortest.SourceFixture[visit]{
		Opening: opening(),
		Want:    want,
		Replace: func(t *testing.T, name string) {
			write(t, path(name), l.pack(append([]byte(l.head), l.lines(visits(1, 60))...)))
		},
		Shorten: func(t *testing.T, name string) {
			write(t, path(name), l.pack(append([]byte(l.head), l.lines(visits(0, 39))...)))
		},
	}
	pattern := filepath.Join(dir, "*", "*"+l.suffix)
	if !l.follow {
		f.Source = l.source(pattern)
		return f
	}
	f.Source = l.source(pattern, file.Follow(), file.Poll(time.Millisecond))
	f.Append = func(t *testing.T, name string, values ...visit) { appendTo(t, path(name), l.lines(values)) }
	return f
}
