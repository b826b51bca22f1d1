package operate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const page = "docs/operations.md"

// rows are the cells of the page's tables, of rows whose first cell matches.
func rows(t *testing.T, first *regexp.Regexp) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(read(t, page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, " |") {
			continue
		}
		cells := strings.Split(line[1:len(line)-1], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if first.MatchString(cells[0]) {
			all = append(all, cells)
		}
	}
	return all
}

// notRun stands in the table for codes that run never ends with: those of other
// commands, which no supervisor starts.
const notRun = "–"

// exitTable are the rows of the table of exit codes, by code.
func exitTable(t *testing.T) map[int][]string {
	t.Helper()
	table := map[int][]string{}
	for _, row := range rows(t, regexp.MustCompile(`^\d+$`)) {
		code, _ := strconv.Atoi(row[0])
		if table[code] != nil || len(row) != 4 || row[1] == "" || row[3] == "" || row[2] != "yes" && row[2] != "no" && row[2] != notRun {
			t.Errorf("the row of code %d: %q", code, row)
		}
		table[code] = row
	}
	return table
}

// The table of exit codes has those that an error of the tree ends a process
// with, and no others.
func TestExitCodes(t *testing.T) {
	want := map[int]string{0: "done", 1: "any other error"}
	maps.Copy(want, exitCodes(t))
	table := exitTable(t)
	for code, by := range want {
		if table[code] == nil {
			t.Errorf("code %d, of %s, is not in the table", code, by)
		}
	}
	for code, row := range table {
		if want[code] == "" && row[2] != notRun {
			t.Errorf("no error of the tree has the code %d", code)
		}
	}
}

// exitCodes finds the methods ExitCode of the tree's error types, by what they
// return.
func exitCodes(t *testing.T) map[int]string {
	t.Helper()
	codes := map[int]string{}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || name == "internal/torture" || name == "bench" || name == "examples") {
				return fs.SkipDir
			}
			return err
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // somebody is writing it; the compiler will tell
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "ExitCode" {
				code, ok := returned(f)
				if !ok && (strings.HasPrefix(name, "internal/plan/") || name == "internal/cli/exit.go") {
					continue // a plan's, by its verdict: the command's own, and none of run's
				}
				if !ok {
					t.Errorf("%s: an ExitCode that isn't one number", name)
				}
				codes[code] = name
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// constants are what the methods return by name.
var constants = map[string]int{"exitUsage": 2}

// returned is the number that a function returns, if that is all it does.
func returned(f *ast.FuncDecl) (code int, ok bool) {
	if len(f.Body.List) != 1 {
		return 0, false
	}
	r, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return 0, false
	}
	switch x := r.Results[0].(type) {
	case *ast.BasicLit:
		code, err := strconv.Atoi(x.Value)
		return code, err == nil
	case *ast.Ident:
		code, ok := constants[x.Name]
		return code, ok
	}
	return 0, false
}

// The table of metrics is the metrics.
func TestMetricsTable(t *testing.T) {
	table := map[string][]string{}
	for _, row := range rows(t, regexp.MustCompile("^`sluice_[a-z_]+`$")) {
		table[strings.Trim(row[0], "`")] = row
	}
	for _, f := range families() {
		row := table[f.name]
		if row == nil {
			t.Errorf("%s is not in the table", f.name)
			continue
		}
		var labels []string
		if row[1] != "" {
			labels = strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")
		}
		if !slices.Equal(labels, f.labels) || row[2] != f.help {
			t.Errorf("%s: the table has the labels %q and %q, the metric %q and %q", f.name, labels, row[2], f.labels, f.help)
		}
		delete(table, f.name)
	}
	for name := range table {
		t.Errorf("no job exposes %s", name)
	}
}

// What the page shows is what the files hold, what it names as a metric or a
// path is there, and its links lead somewhere.
func TestPage(t *testing.T) {
	text := read(t, page)
	for _, file := range []string{"deploy/spend.service", "deploy/kubernetes.yaml"} {
		if !strings.Contains(text, "\n"+read(t, file)+"```\n") {
			t.Errorf("the page doesn't show %s as it is", file)
		}
	}
	names := map[string]bool{}
	for _, f := range families() {
		names[f.name] = true
	}
	for _, name := range regexp.MustCompile(`\bsluice_\w+`).FindAllString(text, -1) {
		tables := []string{"sluice_delivery", "sluice_view"} // of PostgreSQL's sinks
		if name != "sluice_" && !slices.Contains(tables, name) && !names[name] {
			t.Errorf("no job exposes %s", name)
		}
	}
	for _, row := range rows(t, regexp.MustCompile("^`/")) {
		checkPath(t, "the page", strings.Trim(row[0], "`"))
	}
	for _, link := range regexp.MustCompile(`\]\(\.\./([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("../../" + link[1]); err != nil {
			t.Error(err)
		}
	}
}
