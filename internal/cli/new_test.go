package cli

import (
	"encoding/csv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/scaffold"
)

// clone is this repository.
const clone = "../.."

// TestNewJob makes a job and does with it what its owner does first, without a
// network: build, vet, test, run on the sample.
func TestNewJob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "daily-spend")
	if err := newJob(dir, repository(t)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go build -o daily-spend .", "go vet ./...", "go test ./...", "./daily-spend run", "./daily-spend status"} {
		words := strings.Fields(command)
		c := exec.Command(words[0], words[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=auto", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	// By hand, from orders/sample.jsonl: bob's first order isn't paid.
	want := map[string][]string{"ann": {"2", "1500", "750"}, "bob": {"1", "800", "800"}, "cleo": {"2", "500", "250"}}
	if got := newestRows(t, filepath.Join(dir, "out", "spend_by_user")); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the output is %v, want %v", got, want)
	}
	if c := exec.Command("make", "-n", "test"); exec.Command("make", "--version").Run() == nil {
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "go test ./...") {
			t.Errorf("make: %v\n%s", err, out)
		}
	}
}

// newestRows are the rows of a table's CSV files, the newest of each key.
func newestRows(t *testing.T, dir string) map[string][]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(records) == 0 || !slices.Equal(records[0], []string{"op", "key", "Orders", "Cents", "Mean"}) {
			t.Fatalf("%s holds %v, %v", name, records, err)
		}
		for _, r := range records[1:] {
			rows[r[1]] = r[2:]
		}
	}
	return rows
}

func TestWhereNoJobIsMade(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "file", "")
	if err := os.MkdirAll("full/.hidden", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("other", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "other/go.mod", "module example.com/other\n")
	before := list(t, ".")
	for _, test := range []struct {
		dir, replace, says string
		code               int
	}{
		{"full", repository(t), "full is not empty: it has .hidden; name a folder that is new or empty", exitUsage},
		{"file", repository(t), "file can't be looked into: ", exitError},
		{"file/job1", repository(t), "file/job1 can't be looked into: ", exitError},
		{"Spend", repository(t), `"Spend" can't be the name of a job and its module: use small letters`, exitUsage},
		{"vendor", repository(t), `"vendor" can't be the name of a job: `, exitUsage},
		{"spend", "nowhere", "--replace nowhere: open ", exitUsage},
		{"spend", "other", `--replace other: its go.mod begins with "module example.com/other"; name the folder of the module github.com/sluicestream/sluice`, exitUsage},
	} {
		err := newJob(test.dir, test.replace)
		if err == nil || !strings.HasPrefix(err.Error(), test.says) || exitCode(err) != test.code || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", test.dir, err, test.says)
		}
		if after := list(t, "."); !slices.Equal(after, before) {
			t.Errorf("%s: it leaves %v", test.dir, after)
		}
	}
}

func TestNothingHalfMadeStays(t *testing.T) {
	t.Chdir(t.TempDir())
	files := []scaffold.File{{Path: "a", Content: []byte("x")}, {Path: "b/c/d", Content: []byte("x")}, {Path: "b/c/d/e", Content: []byte("x")}}
	if err := writeProject("new/job", files); err == nil || !strings.HasPrefix(err.Error(), "new/job/b/c/d/e can't be made: ") {
		t.Errorf("%v", err)
	}
	if left := list(t, "."); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
	// A folder that was there, empty, stays.
	if err := os.Mkdir("there", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeProject("there", files); err == nil {
		t.Error("no error")
	}
	if left := list(t, "."); !slices.Equal(left, []string{"there"}) {
		t.Errorf("it leaves %v", left)
	}
	// The folder in which one works may be the one.
	t.Chdir("there")
	if err := writeProject(".", files[:2]); err != nil {
		t.Error(err)
	}
	if made := list(t, "."); !slices.Equal(made, []string{"a", "b", "b/c", "b/c/d"}) {
		t.Errorf("it makes %v", made)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if name != dir {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// repository is this repository, from anywhere.
func repository(t *testing.T) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("this file isn't known")
	}
	return filepath.Join(filepath.Dir(file), clone)
}

func TestPublishedVersions(t *testing.T) {
	for version, ok := range map[string]bool{
		"v0.1.0": true, "v1.2.3-rc.1": true, "v0.0.0-20260131120000-abcdef123456": true,
		"(devel)": false, "unknown": false, "": false, "v0.0.0-20260131120000-abcdef123456+dirty": false, "v1": false,
	} {
		got, err := publishedVersion(version)
		if (err == nil) != ok || ok && got != version || !ok && exitCode(err) != exitUsage {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

func TestReplacement(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dir, clone, want string }{
		{"spend", "sluice", "../sluice"}, {"a/b/spend", "../sluice", "../../../../sluice"}, {"spend", "/x/y/../sluice/", "/x/sluice"},
		{".", "sluice", "./sluice"}, {"spend", "spend/sluice", "./sluice"}, {"spend", ".", ".."},
	} {
		if got, err := replacement(filepath.Join(here, test.dir), test.clone); got != test.want || err != nil {
			t.Errorf("%s from %s: %s, %v; want %s", test.clone, test.dir, got, err, test.want)
		}
	}
}

func TestRequires(t *testing.T) {
	mod := "module m\n\ngo 1.27\n\nrequire (\n\texample.org/b v1.0.0\n\texample.org/a v2.0.0+incompatible // indirect\r\n)\n\ntool example.org/b/cmd\n"
	if got, want := requiresOf(mod), []string{"example.org/a v2.0.0+incompatible // indirect", "example.org/b v1.0.0 // indirect"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShellWord(t *testing.T) {
	for path, want := range map[string]string{"spend": "spend", "/a/b-c": "/a/b-c", "a $b": "'a $b'", "a'b": `'a'\''b'`, "": "''"} {
		if got := shellWord(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
