package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// readLines reads n lines of a partition, or to its end if n is negative.
func readLines(t testing.TB, p connector.Partition, n int) ([]string, connector.Offset, error) {
	t.Helper()
	var lines []string
	var to connector.Offset
	for n < 0 || len(lines) < n {
		b := &connector.Batch{Limit: 1000}
		if n >= 0 {
			b.Limit = n - len(lines)
		}
		if err := p.Next(t.Context(), b, -1); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return lines, to, err
		}
		for i := range b.Records {
			lines = append(lines, string(b.Records[i].Value))
		}
		to = b.To
	}
	return lines, to, nil
}

func textFile(pattern string, opts ...file.Option) connector.Source[string] {
	return file.Lines(pattern, codec.String(), opts...)
}

// openOne opens the only file of a source.
func openOne[T any](t testing.TB, s connector.Source[T], name string, from connector.Offset) (connector.Partition, error) {
	t.Helper()
	return openIn(t, opening(), s, name, from)
}

func openIn[T any](t testing.TB, o connector.Opening, s connector.Source[T], name string, from connector.Offset) (connector.Partition, error) {
	t.Helper()
	r, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Partition(t.Context(), name, from)
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

func mustOpen[T any](t testing.TB, s connector.Source[T], name string, from connector.Offset) connector.Partition {
	t.Helper()
	p, err := openOne(t, s, name, from)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, expected one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q doesn't say %q", err, part)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "packed.gz"), zipped([]byte("a\n")))
	write(t, filepath.Join(dir, "list"), []byte("a\n"))
	at := func(name string) string { return filepath.Join(dir, name) }
	cases := []struct {
		source connector.Source[string]
		says   []string
	}{
		{textFile(""), []string{"empty"}},
		{textFile(at("missing.jsonl")), []string{"no file", "missing.jsonl", "file.Follow"}},
		{textFile(at("missing-*")), []string{"no file fits", "missing-*"}},
		{textFile(at("no/such/folder/*")), []string{"no file fits"}},
		{textFile(dir), []string{"is a folder", filepath.Join(dir, "*")}},
		{textFile(at("[")), []string{"malformed"}},
		{textFile(at("*.gz"), file.Follow()), []string{"packed.gz", "can't be followed"}},
		{textFile(at("list"), file.Poll(0)), []string{"file.Poll"}},
		{textFile(at("list"), file.MaxLine(-1), file.Comma('\n')), []string{"file.MaxLine(-1)", "file.Comma"}},
	}
	for _, c := range cases {
		_, err := c.source.Open(t.Context(), opening())
		wantError(t, err, c.says...)
	}
	if os.Getuid() != 0 { // root reads everything
		if err := os.Chmod(at("list"), 0); err != nil {
			t.Fatal(err)
		}
		_, err := textFile(at("list")).Open(t.Context(), opening())
		wantError(t, err, "can't be read", "list")
	}
}

func TestPartitionsByPattern(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-1/x.log", "a-1/y.log", "a/x.log", "a/.z.log", "b/x.log", ".a/x.log", "a/x.txt", "x.log"} {
		write(t, filepath.Join(dir, name), []byte("1\n"))
	}
	if err := os.Mkdir(filepath.Join(dir, "a", "folder.log"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "b", "x.log"), filepath.Join(dir, "a", "link.log")); err != nil {
		t.Fatal(err)
	}
	cases := map[string][]string{
		"a*/*.log":    {"a-1/x.log", "a-1/y.log", "a/link.log", "a/x.log"},
		"a/x.log":     {"x.log"},
		"?/x.log":     {"a/x.log", "b/x.log"},
		"a/.*":        {".z.log"},
		"a/[^l]*.lo?": {"x.log"},
		"*/x.log":     {"a-1/x.log", "a/x.log", "b/x.log"},
	}
	for pattern, want := range cases {
		r, err := textFile(filepath.Join(dir, pattern)).Open(t.Context(), opening())
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		got, err := r.Partitions(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: partitions %q (%v), expected %q", pattern, got, err, want)
		}
	}
	r, err := textFile(filepath.Join(dir, "a", "*")).Open(t.Context(), opening())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../b/x.log", "", "x.log/", "/etc/passwd"} {
		if _, err := r.Partition(t.Context(), name, connector.Offset{}); err == nil {
			t.Errorf("partition %q was opened", name)
		}
	}
}

func TestFollowTakesUpNewFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := textFile(filepath.Join(dir, "in", "*.log"), file.Follow()).Open(t.Context(), opening())
	if err != nil {
		t.Fatal(err)
	}
	if names, err := r.Partitions(t.Context()); err != nil || len(names) != 0 {
		t.Fatalf("partitions %q, %v", names, err)
	}
	write(t, filepath.Join(dir, "in", "b.log"), []byte("1\n"))
	write(t, filepath.Join(dir, "in", "a.log"), nil)
	if names, err := r.Partitions(t.Context()); err != nil || !slices.Equal(names, []string{"a.log", "b.log"}) {
		t.Fatalf("partitions %q, %v", names, err)
	}
	write(t, filepath.Join(dir, "in", "c.log"), nil)
	if err := os.Rename(filepath.Join(dir, "in", "c.log"), filepath.Join(dir, "in", "c.log.gz")); err != nil {
		t.Fatal(err)
	}
	if names, err := r.Partitions(t.Context()); err != nil || len(names) != 2 {
		t.Fatalf("partitions %q, %v", names, err)
	}
}

func TestHalfLineWaitsForItsNewline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	write(t, path, []byte("one\ntw"))
	p := mustOpen(t, textFile(path, file.Follow(), file.Poll(time.Millisecond)), "x.log", connector.Offset{})
	if got, to, err := readLines(t, p, 1); err != nil || got[0] != "one" || to.Next != 4 {
		t.Fatalf("read %q to %+v, %v", got, to, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	b := &connector.Batch{}
	if err := p.Next(ctx, b, -1); !errors.Is(err, context.DeadlineExceeded) || len(b.Records) != 0 || b.To.Next != 4 {
		t.Fatalf("half a line: %d records to %+v, %v", len(b.Records), b.To, err)
	}
	appendTo(t, path, []byte("o\nthree\n"))
	if got, to, err := readLines(t, p, 2); err != nil || got[0] != "two" || got[1] != "three" || to.Next != 14 {
		t.Fatalf("read %q to %+v, %v", got, to, err)
	}
	if p.End() != 14 {
		t.Errorf("end %d", p.End())
	}
}

// TestLastLineHasGrown has a last line read without its newline, and then more
// text added to it: its rest is no record.
func TestLastLineHasGrown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	write(t, path, []byte("one\ntwo"))
	_, to, err := readLines(t, mustOpen(t, textFile(path), "x.log", connector.Offset{}), -1)
	if err != nil || to.Next != 7 {
		t.Fatalf("read to %+v, %v", to, err)
	}
	following := textFile(path, file.Follow(), file.Poll(time.Millisecond))
	followed := mustOpen(t, following, "x.log", to)
	appendTo(t, path, []byte("more\nthree\n"))
	_, err = openOne(t, textFile(path), "x.log", to)
	wantError(t, err, path, "byte 7", "has grown")
	_, _, err = readLines(t, followed, 1)
	wantError(t, err, path, "byte 7", "has grown")

	// With only its newline added, the line is what it was.
	write(t, path, []byte("one\ntwo\r\nthree\n"))
	for _, s := range []connector.Source[string]{textFile(path), following} {
		if got, _, err := readLines(t, mustOpen(t, s, "x.log", to), 1); err != nil || got[0] != "three" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	// And a replay of the run that read it gets what the run got.
	p := mustOpen(t, following, "x.log", connector.Offset{})
	b := &connector.Batch{}
	if err := p.Next(t.Context(), b, to.Next); err != nil || len(b.Records) != 2 || b.To.Next != 7 {
		t.Fatalf("replayed %d records to %+v, %v", len(b.Records), b.To, err)
	}
	if got, _, err := readLines(t, p, 1); err != nil || got[0] != "three" {
		t.Fatalf("behind the replay: %q, %v", got, err)
	}
}

func TestFollowedFileChanges(t *testing.T) {
	text := strings.Repeat("some line\n", 600)
	changes := map[string]struct {
		change func(t *testing.T, path string)
		says   string // empty: the file is read on
	}{
		"emptied":   {func(t *testing.T, path string) { write(t, path, nil) }, "at least 6000 bytes, found 0"},
		"shortened": {func(t *testing.T, path string) { write(t, path, []byte(text[:5000])) }, "at least 6000 bytes, found 5000"},
		"removed": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "found no file"},
		"replaced":                  {func(t *testing.T, path string) { swap(t, path, "Some line\n"+text+"new\n") }, "fingerprint"},
		"replaced by a shorter one": {func(t *testing.T, path string) { swap(t, path, text[:5990]) }, "found 5990"},
		"written anew, with more":   {func(t *testing.T, path string) { swap(t, path, text+"new\n") }, ""},
		"grown":                     {func(t *testing.T, path string) { appendTo(t, path, []byte("new\n")) }, ""},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.log")
			write(t, path, []byte(text))
			p := mustOpen(t, textFile(path, file.Follow(), file.Poll(time.Millisecond)), "x.log", connector.Offset{})
			if _, to, err := readLines(t, p, 600); err != nil || to.Next != 6000 {
				t.Fatalf("read to %+v, %v", to, err)
			}
			c.change(t, path)
			got, to, err := readLines(t, p, 1)
			if c.says == "" {
				if err != nil || got[0] != "new" || to.Next != 6004 {
					t.Fatalf("read %q to %+v, %v", got, to, err)
				}
				return
			}
			wantError(t, err, path, c.says)
			if _, ok := errors.AsType[*file.ChangedError](err); !ok {
				t.Errorf("%T is no *file.ChangedError", err)
			}
		})
	}
}

// swap puts a new file in a file's place.
func swap(t *testing.T, path, content string) {
	write(t, path+".new", []byte(content))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestFingerprint pins the identity's form: manifests hold it.
func TestFingerprint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	write(t, path, []byte("abc\n"+strings.Repeat("d\n", 5000)))
	p := mustOpen(t, textFile(path), "x.log", connector.Offset{})
	_, first, err := readLines(t, p, 1)
	// printf 'abc\n' | sha256sum
	if want := "4:edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"; err != nil || first.Identity != want {
		t.Errorf("identity %s (%v), expected %s", first.Identity, err, want)
	}
	_, last, err := readLines(t, p, -1)
	if err != nil || !strings.HasPrefix(last.Identity, "4096:") {
		t.Errorf("identity %s, %v", last.Identity, err)
	}
	for _, bad := range []string{"4:abc", "-1:" + strings.Repeat("0", 64), "5000:" + strings.Repeat("0", 64), "x", "99999999999999999999:"} {
		if _, err := openOne(t, textFile(path), "x.log", connector.Offset{Next: 4, Identity: bad}); err == nil {
			t.Errorf("identity %q was taken", bad)
		}
	}
	for _, next := range []int64{-1, 1, 2, 10_005, 1 << 62} {
		if _, err := openOne(t, textFile(path), "x.log", connector.Offset{Next: next}); err == nil {
			t.Errorf("offset %d was taken, though no record begins there", next)
		}
	}
}

func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	write(t, path, []byte("a\n"+strings.Repeat("b", 100)+"\n"+strings.Repeat("c", 101)+"\nd\n"))
	p := mustOpen(t, textFile(path, file.MaxLine(100)), "x.csv", connector.Offset{})
	got, _, err := readLines(t, p, -1)
	if len(got) != 2 || len(got[1]) != 100 {
		t.Errorf("read %q before the long line", got)
	}
	wantError(t, err, path, "line at byte 103", "more than 100 bytes", "file.MaxLine")
	if long, ok := errors.AsType[*file.LineError](err); !ok || long.Offset != 103 || long.Max != 100 {
		t.Errorf("error %#v", err)
	}

	// A line longer than any buffer, and one that never ends.
	long := strings.Repeat("x", 3_000_000)
	write(t, path, []byte(long+"\ny\n"))
	if got, _, err := readLines(t, mustOpen(t, textFile(path), "x.csv", connector.Offset{}), -1); err != nil || len(got) != 2 || got[0] != long {
		t.Errorf("%d lines, %v", len(got), err)
	}
	write(t, path, []byte("ID\n\"1\n"+strings.Repeat("2\n", 500)))
	type row struct{ ID string }
	_, _, err = readLines(t, mustOpen(t, file.CSV[row](path, file.MaxLine(100)), "x.csv", connector.Offset{}), -1)
	wantError(t, err, "line at byte 3", "quote left open")

	// A bomb: 10 MB of one line in 10 KB.
	packed := filepath.Join(dir, "x.gz")
	write(t, packed, zipped([]byte(strings.Repeat("0", 10<<20))))
	_, _, err = readLines(t, mustOpen(t, textFile(packed, file.MaxLine(1<<20)), "x.gz", connector.Offset{}), -1)
	wantError(t, err, packed, "line at byte 0")
}

func TestDamagedGzip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gz")
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintln(&text, i*i)
	}
	good := zipped([]byte(text.String()))
	for name, bad := range map[string][]byte{
		"empty":      nil,
		"no gzip":    []byte("plain text\n"),
		"truncated":  good[:len(good)/2],
		"no trailer": good[:len(good)-8],
		"bad sum":    append(slices.Clone(good[:len(good)-8]), make([]byte, 8)...),
	} {
		write(t, path, bad)
		p, err := openOne(t, textFile(path), "x.gz", connector.Offset{})
		if err == nil {
			_, _, err = readLines(t, p, -1)
		}
		if err == nil {
			t.Errorf("%s: read to the end", name)
			continue
		}
		wantError(t, err, path, "gzip")
	}
}

func TestClosedPartition(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	write(t, path, []byte("a\n"))
	p := mustOpen(t, textFile(path), "x.log", connector.Offset{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Next(t.Context(), &connector.Batch{}, -1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Next once closed: %v", err)
	}
}
