package rules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the prefix of the repository's own import paths.
const module = "github.com/sluicestream/sluice"

// tree is the repository: its files, and the Go packages among them.
type tree struct {
	positions *token.FileSet
	texts     map[string]string // by path from the repository's root
	packages  []*pkg            // by folder
}

// pkg is a folder of Go files.
type pkg struct {
	folder string // "." is the root
	name   string
	code   []*source // what is built
	tests  []*source
	info   *types.Info // of code: what its names stand for inside the package
}

type source struct {
	path string
	ast  *ast.File
}

// fault is a place where the tree breaks a rule.
type fault struct {
	path string
	line int // 0: the file or folder as a whole
	what string
}

func (f fault) String() string {
	if f.line == 0 {
		return f.path + ": " + f.what
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.what)
}

// at is a fault at a node of the syntax.
func (t *tree) at(n ast.Node, format string, args ...any) fault {
	p := t.positions.Position(n.Pos())
	return fault{p.Filename, p.Line, fmt.Sprintf(format, args...)}
}

// newTree parses files, given by their paths from the repository's root.
func newTree(texts map[string]string) (*tree, error) {
	t := &tree{positions: token.NewFileSet(), texts: texts}
	folders := map[string]*pkg{}
	for file, text := range texts {
		if !isGo(file) {
			continue
		}
		parsed, err := parser.ParseFile(t.positions, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		folder := path.Dir(file)
		p := folders[folder]
		if p == nil {
			p = &pkg{folder: folder}
			folders[folder] = p
			t.packages = append(t.packages, p)
		}
		p.add(&source{file, parsed})
	}
	slices.SortFunc(t.packages, func(a, b *pkg) int { return cmp.Compare(a.folder, b.folder) })
	for _, p := range t.packages {
		p.resolve(t.positions)
	}
	return t, nil
}

// isGo tells whether the file belongs to a package: what lies in a folder
// called testdata doesn't.
func isGo(file string) bool {
	return path.Ext(file) == ".go" && !slices.Contains(strings.Split(file, "/"), "testdata")
}

func (p *pkg) add(s *source) {
	if strings.HasSuffix(s.path, "_test.go") {
		p.tests = append(p.tests, s)
	} else {
		p.name = s.ast.Name.Name
		p.code = append(p.code, s)
	}
}

// resolve finds what names stand for inside the package. Names from other
// packages stay unknown, which the rules can live with, and costs nothing.
func (p *pkg) resolve(positions *token.FileSet) {
	p.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, s := range byPath(p.code) {
		files = append(files, s.ast)
	}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	config.Check(p.folder, positions, files, p.info)
}

// nothing imports nothing.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked into", name)
}

// all are the package's files, tests among them.
func (p *pkg) all() []*source { return byPath(slices.Concat(p.code, p.tests)) }

func byPath(files []*source) []*source {
	return slices.SortedFunc(slices.Values(files), func(a, b *source) int { return cmp.Compare(a.path, b.path) })
}

// under tells whether the package lies in one of the folders, or deeper.
func (p *pkg) under(folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p.folder == f || strings.HasPrefix(p.folder, f+"/") })
}

// public tells whether users may import the package.
func (p *pkg) public() bool {
	return p.name != "main" && !p.under("internal", "examples", "bench", "cmd") && len(p.code) > 0
}

// imported is the path that an import names.
func imported(i *ast.ImportSpec) string {
	name, _ := strconv.Unquote(i.Path.Value)
	return name
}

// imports tells whether the file imports the package of this path.
func (s *source) imports(name string) bool {
	return slices.ContainsFunc(s.ast.Imports, func(i *ast.ImportSpec) bool { return imported(i) == name })
}

// maxText bounds the files whose text is looked at, in bytes; what is larger is
// data.
const maxText = 1 << 20

// readTree reads the repository that the working directory lies in.
func readTree() (*tree, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	files, err := listFiles(root)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(root, file))
		if os.IsNotExist(err) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxText) {
			continue // removed but not yet committed, a link, or data
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		if strings.IndexByte(string(data), 0) < 0 {
			texts[file] = string(data)
		}
	}
	return newTree(texts)
}

// listFiles lists what belongs to the repository: by git, or where there is no
// clone (an unpacked archive) everything.
func listFiles(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
	}
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, name)
		}
		return err
	})
	return files, err
}
