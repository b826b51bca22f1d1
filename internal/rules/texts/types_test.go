package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// programs are folders whose errors no user of the library meets, and testdata.
var programs = []string{"bench", "cmd", "examples", "internal/torture", "internal/rules", "testdata", ".git"}

// errorTypes are all types of the repository that are errors, as "folder.Type".
func errorTypes(t *testing.T) (types []string) {
	t.Helper()
	root := os.DirFS("../../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(programs, name) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isErrorMethod(f) {
				types = append(types, path.Dir(name)+"."+receiver(f))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// isErrorMethod tells whether a function is the Error of an error.
func isErrorMethod(f *ast.FuncDecl) bool {
	if f.Recv == nil || f.Name.Name != "Error" || len(f.Type.Params.List) > 0 || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "string"
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name
	}
	return "?"
}
