// Package scaffold makes the files of a new job: its code, its test with real
// expected values, a sample of its input, and what builds, runs and ships it.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"text/template"
)

// Project is what a new job is made from.
type Project struct {
	// Name is the job's name, that of its binary, and the last part of its
	// module's path.
	Name string
	// Version is the version of Sluice's module.
	Version string
	// Replace is the folder of a clone that is used instead of a published
	// version, as go.mod has it; defaults to none.
	Replace string
	// Requires are the lines of go.mod for the modules that Sluice needs, and
	// Sums is go.sum; without them `go mod tidy` makes both.
	Requires []string
	Sums     []byte
}

// GoVersion is the version of Go that a job needs.
const GoVersion = "1.27"

// File is one file of a new job.
type File struct {
	// Path is its path below the job's folder, with slashes.
	Path    string
	Content []byte
}

//go:embed all:template
var templates embed.FS

// root is the folder of the templates, suffix is what their names end in: so
// that they aren't taken for the repository's own code.
const (
	root   = "template"
	suffix = ".tmpl"
)

// goodName is what can be a module's, a job's and a file's name at once.
var goodName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

// maxName bounds a name, in bytes.
const maxName = 40

// taken are names that mean something to the go command, or that a file of the
// project has.
var taken = map[string]bool{
	"vendor": true, "testdata": true, "internal": true, "orders": true, "out": true, "job": true,
	"con": true, "prn": true, "aux": true, "nul": true, // not a file's name on Windows
}

// CheckName says whether a job, its module and its binary can have this name:
// small letters and digits, with single hyphens or underscores in between, at
// most 40, and none that means something else.
func CheckName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("the name %.*q… has %d bytes, the limit is %d; give the folder a shorter one", maxName, name, len(name), maxName)
	case !goodName.MatchString(name):
		return fmt.Errorf("%q can't be the name of a job and its module: use small letters and digits, with single hyphens or underscores in between, such as daily-spend", name)
	case taken[name]:
		return fmt.Errorf("%q can't be the name of a job: it means something else to the go command or in the job's folder; give the folder another one", name)
	}
	return nil
}

// Files makes the files of a project, in the order of their paths.
func Files(p Project) ([]File, error) {
	if err := CheckName(p.Name); err != nil {
		return nil, err
	}
	values := struct {
		Project
		Go string
	}{p, GoVersion}
	var files []File
	err := fs.WalkDir(templates, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		if err != nil {
			return err
		}
		t, err := template.New(path.Base(name)).Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return err
		}
		files = append(files, File{strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), suffix), b.Bytes()})
		return nil
	})
	if err == nil && len(p.Sums) > 0 {
		files = append(files, File{"go.sum", p.Sums})
	}
	return files, err
}
