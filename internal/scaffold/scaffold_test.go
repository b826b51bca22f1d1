package scaffold

import (
	"bytes"
	"encoding/json/v2"
	"go/format"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func project() Project { return Project{Name: "daily-spend", Version: "v0.4.0"} }

// files are a project's, by their paths.
func files(t *testing.T, p Project) map[string]string {
	t.Helper()
	made, err := Files(p)
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]string{}
	for _, f := range made {
		if byPath[f.Path] != "" || path.Clean(f.Path) != f.Path || path.IsAbs(f.Path) || strings.HasPrefix(f.Path, "..") {
			t.Errorf("the path %s", f.Path)
		}
		byPath[f.Path] = string(f.Content)
	}
	return byPath
}

func TestFiles(t *testing.T) {
	made := files(t, project())
	for _, name := range []string{".dockerignore", ".gitignore", "Dockerfile", "Makefile", "go.mod", "main.go", "main_test.go", "orders/sample.jsonl"} {
		if made[name] == "" {
			t.Errorf("there is no %s", name)
		}
		delete(made, name)
	}
	for name := range made {
		t.Errorf("there is %s, which nobody has asked for", name)
	}
}

func TestGoFilesAreFormatted(t *testing.T) {
	for name, text := range files(t, project()) {
		if path.Ext(name) != ".go" {
			continue
		}
		if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
			t.Errorf("%s is not as gofmt has it: %v", name, err)
		}
	}
}

func TestGoMod(t *testing.T) {
	if got, want := files(t, project())["go.mod"], "module example.com/daily-spend\n\ngo 1.27\n\nrequire github.com/sluicestream/sluice v0.4.0\n"; got != want {
		t.Errorf("go.mod is\n%s\nwant\n%s", got, want)
	}
	p := project()
	p.Version, p.Replace, p.Requires, p.Sums = "v0.0.0", "../sluice", []string{"example.org/a v1.0.0 // indirect", "example.org/b v1.2.0 // indirect"}, []byte("sums\n")
	made := files(t, p)
	want := "module example.com/daily-spend\n\ngo 1.27\n\nrequire github.com/sluicestream/sluice v0.0.0\n\nrequire (\n\texample.org/a v1.0.0 // indirect\n\texample.org/b v1.2.0 // indirect\n)\n\nreplace github.com/sluicestream/sluice => ../sluice\n"
	if made["go.mod"] != want || made["go.sum"] != "sums\n" {
		t.Errorf("go.mod is\n%s\nwant\n%s", made["go.mod"], want)
	}
}

func TestGoVersionIsTheRepositorys(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(mod, []byte("\ngo "+GoVersion+"\n")) {
		t.Errorf("go.mod of the repository doesn't have go %s", GoVersion)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"spend", "daily-spend", "daily_spend2", "x", "a1", strings.Repeat("a", 40)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "/", "Spend", "1spend", "spend.go", "-spend", "spend-", "a--b", "a b", "spénd", "a/b", `a\b`, "a\nb", "vendor", "con",
		strings.Repeat("a", 41), strings.Repeat("ä", 1000),
	} {
		if err := CheckName(name); err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 4500 {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Files(Project{Name: name}); err == nil {
			t.Errorf("a project can be called %q", name)
		}
	}
}

// TestDockerfile reads the Dockerfile as a builder would: the instructions there
// are, where files come from, and who runs the job.
func TestDockerfile(t *testing.T) {
	p := project()
	p.Replace = "../sluice"
	for _, p := range []Project{project(), p} {
		made := files(t, p)
		checkDockerfile(t, made)
	}
}

func checkDockerfile(t *testing.T, made map[string]string) {
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
	stages := map[string]string{} // by name: its commands
	stage, image, user := "", "", ""
	for line := range strings.SplitSeq(strings.TrimSpace(made["Dockerfile"]), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		switch what := words[0]; {
		case !slices.Contains(known, what):
			t.Errorf("%s is no instruction", what)
		case what != "FROM" && image == "":
			t.Errorf("before FROM: %s", line)
		case what == "FROM":
			image, stage, user = words[1], "", ""
			if len(words) == 4 && words[2] == "AS" {
				stage = words[3]
			} else if len(words) != 2 {
				t.Errorf("not an image with a name: %s", line)
			}
		case what == "COPY":
			checkCopy(t, words[1:], made, stages)
		case what == "USER":
			user = words[1]
		case what == "ENTRYPOINT" || what == "CMD":
			var list []string
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, what)), &list); err != nil || len(list) == 0 {
				t.Errorf("not a list, so a shell would be needed: %s", line)
			}
		}
		stages[stage] += line + "\n"
	}
	if !strings.HasPrefix(stages["build"], "FROM golang:"+GoVersion+" AS build\n") {
		t.Errorf("it isn't built with Go %s: %s", GoVersion, stages["build"])
	}
	if id, _, _ := strings.Cut(user, ":"); id == "" || id == "root" || strings.Trim(id, "123456789") == id {
		t.Errorf("the job runs as %q", user)
	}
	if !strings.Contains(image, "distroless/static") {
		t.Errorf("it runs in %s", image)
	}
}

// checkCopy wants the sources of a COPY to be there: in the project, or made by
// another stage.
func checkCopy(t *testing.T, words []string, made map[string]string, stages map[string]string) {
	from := ""
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		if name, ok := strings.CutPrefix(words[0], "--from="); ok {
			from = name
		}
		words = words[1:]
	}
	if len(words) < 2 {
		t.Errorf("COPY %v: from where to where?", words)
		return
	}
	for _, source := range words[:len(words)-1] {
		switch {
		case from != "" && !strings.Contains(stages[from], " "+source+" ") && !strings.Contains(stages[from], " "+source+"\n"):
			t.Errorf("stage %s makes no %s", from, source)
		case from == "" && source != "." && made[source] == "":
			t.Errorf("there is no %s", source)
		}
	}
}
