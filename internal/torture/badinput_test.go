package torture

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// badRecord is a record that can't be decoded, in one of the files.
type badRecord struct {
	file   string
	record string   // with its newline
	says   []string // of the field and the cause
	// alone tells that it is no record of its own, so that no dead letter helps.
	alone bool
}

func badRecords() map[string]badRecord {
	const begin = `{"User":"user-1","Points":`
	deep := strings.Repeat("[", 100_000)
	return map[string]badRecord{
		"no JSON":                {plainFile, "what?\n", []string{"not JSON"}, false},
		"wrong type, nested":     {plainFile, begin + `1,"Detail":{"Marks":[1,"two"]}}` + "\n", []string{"Detail.Marks[1]", "int64", "two"}, false},
		"deep nesting":           {plainFile, begin + deep + strings.Repeat("]", len(deep)) + "}\n", []string{"Points"}, false},
		"deep nesting, unknown":  {plainFile, `{"other":` + deep + strings.Repeat("]", len(deep)) + "}\n", []string{"depth"}, false},
		"deep nesting, open":     {plainFile, `{"other":` + strings.Repeat(`{"a":`, 50_000) + "\n", []string{"depth"}, false},
		"invalid UTF-8":          {plainFile, "{\"User\":\"gr\xfc\xdfe\"}\n", []string{"UTF-8"}, false},
		"NUL bytes":              {plainFile, strings.Repeat("\x00", 64) + "\n", []string{"not JSON", `\x00`}, false},
		"a mark in the middle":   {plainFile, "\ufeff" + begin + "1}\n", []string{"not JSON"}, false},
		"a newline in a string":  {plainFile, "{\"User\":\"a\nb\"}\n", []string{"unfinished"}, true},
		"packed: no JSON":        {packedFile, "what?\n", []string{"not JSON"}, false},
		"CSV: too few columns":   {rowsFile, "user-1\n", []string{"expected 2 cells", "found 1"}, false},
		"CSV: too many columns":  {rowsFile, "user-1,1,1\n", []string{"expected 2 cells", "found 3"}, false},
		"CSV: wrong type":        {rowsFile, "user-1,many\n", []string{"Points", "many"}, false},
		"CSV: out of range":      {rowsFile, "user-1,9223372036854775808\n", []string{"Points", "out of range"}, false},
		"CSV: quote in a cell":   {rowsFile, "us\"er-1,1\n", []string{"User", "quote"}, false},
		"CSV: text behind quote": {rowsFile, "\"user-1\"x,1\n", []string{"User", "quote"}, false},
		"CSV: invalid UTF-8":     {rowsFile, "gr\xfc\xdfe,1\n", []string{"User", "UTF-8"}, false},
		"CSV: NUL bytes":         {rowsFile, "user-1,\x00\n", []string{"Points", `\x00`}, false},
	}
}

// text is the content of a file that is to be changed.
func (j *intake) text(file string) *string {
	return map[string]*string{plainFile: &j.plain, packedFile: &j.packed, rowsFile: &j.rows}[file]
}

// source is the name of the source that reads a file.
func source(file string) string {
	return map[string]string{plainFile: "plain", packedFile: "packed", rowsFile: "rows"}[file]
}

// TestBadRecordStops gives the job records that can't be decoded. It stops, and
// says file, byte offset, field and cause; when the file has been mended it goes
// on as if nothing had been.
func TestBadRecordStops(t *testing.T) {
	t.Parallel()
	first := newIntake(t)
	for name, bad := range badRecords() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := first.copy(t)
			j.addGood(40, 20)
			text := j.text(bad.file)
			at := len(*text)
			*text += bad.record
			j.addGood(60, 20)
			j.write(t)
			says := append(bad.says, "source "+source(bad.file), filepath.Base(bad.file), fmt.Sprintf("offset %d", at))
			j.stops(t, "strict", says...)
			if next := j.next(t)[bad.file]; next > int64(at) {
				t.Errorf("the job stands at %d, behind the record at %d", next, at)
			}
			*text = strings.Replace(*text, bad.record, "", 1)
			j.write(t)
			j.goesOn(t, "strict")
		})
	}
}

// copy is the same in another folder.
func (j *intake) copy(t *testing.T) *intake {
	t.Helper()
	c := *j
	c.folder = t.TempDir()
	if err := os.CopyFS(c.folder, os.DirFS(j.folder)); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestBadRecordsAreLetters gives all of them at once to the job with a sink for
// dead letters: each goes there, in its epoch, and all else is as without them.
func TestBadRecordsAreLetters(t *testing.T) {
	t.Parallel()
	j := newIntake(t)
	want := map[string]int{}
	all := badRecords()
	at := 40
	for _, name := range sortedKeys(all) {
		if bad := all[name]; !bad.alone {
			text := j.text(bad.file)
			want[fmt.Sprintf("%s %d %s", source(bad.file), len(*text), strings.TrimSuffix(bad.record, "\n"))]++
			*text += bad.record
		}
		j.addGood(at, 5)
		at += 5
	}
	j.write(t)
	j.goesOn(t, "letters")
	found := 0
	eachLine(t, j.path("out/letters"), func(line []byte) {
		l := decode[letter](t, line)
		found++
		if key := fmt.Sprintf("%s %d %s", l.Source, l.Offset, l.Bytes); want[key] != 1 || l.Error == "" {
			t.Errorf("a dead letter that is none: %.300s (%s)", key, l.Error)
		}
	})
	log := openJournal(j.path("store"), "intake")
	log.read(t)
	counted := int64(0)
	for _, m := range log.manifests {
		counted += m.Counts["dead_letters"]
	}
	if found != len(want) || counted != int64(len(want)) {
		t.Errorf("%d dead letters, %d counted, expected %d", found, counted, len(want))
	}
	j.goesOn(t, "letters") // once more: nothing changes
}

// TestLongLine gives the job a line of 50 MB, which is longer than it takes:
// that costs memory for what it takes, and not for more.
func TestLongLine(t *testing.T) {
	t.Parallel()
	if race {
		t.Skip("the race detector's own memory is several times a job's")
	}
	const most = 160 << 20 // a line of 16 MB, held while its buffer doubles
	j := newIntake(t)
	j.addGood(40, 20)
	at := len(j.plain)
	j.write(t)
	chunk := strings.Repeat("x", 1_000_000) // a process's peak begins with its parent's
	for range 50 {
		appendTo(t, j.path(plainFile), chunk)
	}
	for _, build := range []string{"strict", "letters"} { // it is no record: no dead letter helps
		r := runJob(t, j.folder, j.binary(build), "run", "--store", "store", "--epoch", "20ms", "--listen", "")
		isBadInput(t, r, plainFile, fmt.Sprintf("line at byte %d", at), "file.MaxLine")
		if r.peak > most {
			t.Errorf("%s: the job has used %d MB, expected at most %d", build, r.peak>>20, most>>20)
		}
	}
	j.write(t)
	j.goesOn(t, "letters")
}

// TestGoodInput gives the job what looks odd and is good.
func TestGoodInput(t *testing.T) {
	t.Parallel()
	first := newIntake(t)
	for name, change := range map[string]func(j *intake){
		"CRLF": func(j *intake) {
			j.plain += strings.ReplaceAll(goodLines(50, 20), "\n", "\r\n")
			j.rows += strings.ReplaceAll(goodRows(50, 20), "\n", "\r\n")
			j.packed += strings.ReplaceAll(goodLines(50, 20), "\n", "\r\n")
		},
		"empty lines":             func(j *intake) { j.plain += "\n\r\n\n"; j.packed += "\n\n"; j.rows += "\n\n"; j.addGood(50, 20) },
		"no newline at the end":   func(j *intake) { j.plain += strings.TrimSuffix(goodLines(50, 20), "\n") },
		"a quote over two lines":  func(j *intake) { j.rows += "\"some\nbody\",1\n" + goodRows(50, 20) },
		"a NUL in a JSON string":  func(j *intake) { j.plain += `{"User":"a\u0000b","Points":1}` + "\n" },
		"a member twice as known": func(j *intake) { j.plain += `{"other":{"a":1},"another":[[[]]]}` + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := first.copy(t)
			change(j)
			j.write(t)
			mustRun(t, j.folder, j.binary("strict"), "--listen", "")
			log := openJournal(j.path("store"), "intake")
			log.read(t)
			next := j.next(t)
			for file, text := range map[string]string{plainFile: j.plain, packedFile: j.packed, rowsFile: j.rows} {
				if next[file] != int64(len(text)) {
					t.Errorf("%s has been read to %d of %d", file, next[file], len(text))
				}
			}
		})
	}
	t.Run("a mark at the beginning, and empty files", func(t *testing.T) {
		j := &intake{folder: t.TempDir(), bin: first.bin, rows: "\ufeff" + rowsHeader}
		j.write(t)
		mustRun(t, j.folder, j.binary("strict"), "--listen", "") // nothing yet
		j.plain = goodLines(0, 20)
		j.put(t, plainFile, []byte("\ufeff"+j.plain))
		j.put(t, packedFile, gzipped(t, ""))
		j.goesOn(t, "strict")
	})
}

// TestBadFiles spoils files as a whole, between two runs. The job stops and
// names the file; once it is as it was, the job goes on.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	first := newIntake(t)
	long := first.copy(t) // has more than a fingerprint of each file
	long.addGood(40, 400)
	long.write(t)
	mustRun(t, long.folder, long.binary("strict"))
	for name, c := range map[string]struct {
		spoil func(t *testing.T, j *intake)
		says  []string
	}{
		"missing": {func(t *testing.T, j *intake) { remove(t, j.path(plainFile)) }, []string{plainFile}},
		"a folder": {func(t *testing.T, j *intake) {
			remove(t, j.path(plainFile))
			if err := os.Mkdir(j.path(plainFile), 0o755); err != nil {
				t.Fatal(err)
			}
		}, []string{plainFile, "is a folder"}},
		"a pipe": {func(t *testing.T, j *intake) {
			remove(t, j.path(plainFile))
			if err := syscall.Mkfifo(j.path(plainFile), 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{plainFile, "no regular file"}},
		"a link to itself": {func(t *testing.T, j *intake) {
			remove(t, j.path(plainFile))
			if err := os.Symlink("plain.jsonl", j.path(plainFile)); err != nil {
				t.Fatal(err)
			}
		}, []string{plainFile}},
		"emptied":   {func(t *testing.T, j *intake) { j.put(t, plainFile, nil) }, []string{plainFile, "has changed"}},
		"cut short": {func(t *testing.T, j *intake) { j.put(t, plainFile, []byte(j.plain[:100])) }, []string{plainFile, "has changed"}},
		"replaced": {func(t *testing.T, j *intake) {
			j.put(t, plainFile, []byte(strings.ReplaceAll(j.plain, "user-", "USER-")))
		}, []string{plainFile, "has changed", "fingerprint"}},
		"another header": {func(t *testing.T, j *intake) {
			j.put(t, rowsFile, []byte(strings.Replace(j.rows, "Points", "points", 1)))
		}, []string{rowsFile}},
		"packed: emptied":    {func(t *testing.T, j *intake) { j.put(t, packedFile, nil) }, []string{packedFile, "gzip"}},
		"packed: not packed": {func(t *testing.T, j *intake) { j.put(t, packedFile, []byte(j.packed)) }, []string{packedFile, "gzip"}},
		"packed: cut short":  {func(t *testing.T, j *intake) { j.spoilPacked(t, func(b []byte) []byte { return b[:len(b)-30] }) }, []string{packedFile, "gzip", "byte"}},
		"packed: wrong sum":  {func(t *testing.T, j *intake) { j.spoilPacked(t, func(b []byte) []byte { b[len(b)-6] ^= 1; return b }) }, []string{packedFile, "gzip", "checksum"}},
		"packed: more behind": {func(t *testing.T, j *intake) {
			j.spoilPacked(t, func(b []byte) []byte { return append(b, "rubbish"...) })
		}, []string{packedFile, "gzip"}},
		"CSV: open quote": {func(t *testing.T, j *intake) {
			j.put(t, rowsFile, []byte(j.rows+"\"user-1,1\n"+goodRows(0, 20)))
		}, []string{"rows.csv", "quote is left open"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := long.copy(t)
			before := j.next(t)
			j.plain += goodLines(440, 20)
			j.write(t)
			c.spoil(t, j)
			j.stops(t, "strict", c.says...)
			for file, next := range j.next(t) {
				if next < before[file] {
					t.Errorf("%s: the job stands at %d, and was at %d", file, next, before[file])
				}
			}
			if err := os.RemoveAll(j.path("in")); err != nil {
				t.Fatal(err)
			}
			j.write(t)
			j.goesOn(t, "strict")
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// spoilPacked writes the packed file with more in it, changed.
func (j *intake) spoilPacked(t *testing.T, change func([]byte) []byte) {
	t.Helper()
	j.put(t, packedFile, change(gzipped(t, j.packed+goodLines(900, 3000))))
}

// TestHeaderDoesNotFit gives the job, at its first start, CSV files whose header
// is none for it.
func TestHeaderDoesNotFit(t *testing.T) {
	t.Parallel()
	first := newIntake(t)
	for header, says := range map[string]string{
		"User\n":               `"Points" has no column`,
		"Points,User,Points\n": `"Points" is there 2 times`,
		"User,\"Points\n":      "quote",
		"\x00\x00\n":           "User",
	} {
		j := &intake{folder: t.TempDir(), bin: first.bin}
		j.rows = header + goodRows(0, 10)
		j.write(t)
		j.stops(t, "strict", rowsFile, says)
		j.rows = "Points,other,User\n3,x,user-4\n"
		j.write(t)
		mustRun(t, j.folder, j.binary("strict"), "--listen", "")
		sameRows(t, j.path("out/totals"), map[string]entered{"user-4": {1, 3}})
	}
}

// TestNoPermission has a file that the job's user may not read.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	j := newIntake(t)
	j.addGood(40, 20)
	j.write(t)
	whole := map[string]int64{}
	maps.Copy(whole, j.next(t))
	if err := os.Chmod(filepath.Dir(j.folder), 0o755); err != nil { // it is for the test's user alone
		t.Fatal(err)
	}
	if err := os.Link(j.binary("strict"), j.path("job")); err != nil { // where that user may go
		t.Fatal(err)
	}
	giveAway(t, j.path("store"), j.path("out"))
	if err := os.Chmod(j.path(plainFile), 0); err != nil {
		t.Fatal(err)
	}
	isBadInput(t, j.asPlainUser(t), plainFile, "permission denied")
	if next := j.next(t); !maps.Equal(next, whole) {
		t.Errorf("the job stands at %v, and stood at %v", next, whole)
	}
	if err := os.Chmod(j.path(plainFile), 0o444); err != nil {
		t.Fatal(err)
	}
	if r := j.asPlainUser(t); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, shown(r.stderr))
	}
	j.sameTotals(t)
}

// asPlainUser runs the job as a user without rights.
func (j *intake) asPlainUser(t *testing.T) result {
	t.Helper()
	cmd := exec.Command(j.path("job"), "run", "--store", "store", "--listen", "")
	cmd.Env = []string{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	}
	return finish(t, j.folder, cmd)
}

// giveAway makes folders, and all in them, the plain user's, if this is root.
func giveAway(t *testing.T, folders ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, plainUser, plainUser)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
