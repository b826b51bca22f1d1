// Package sources has go test know of what the jobs of the torture tests are built of. It
// gives an old result again unless the test's binary has changed, or a file that the test
// has read; and the linker leaves out of that binary what only the jobs need, even where
// the test imports it.
package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Read reads the module's files that a job can be built of. It is to be called by a test
// that builds one.
func Read(t testing.TB) {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(root)
		if above == root {
			t.Fatal("there is no go.mod above the test")
		}
		root = above
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "docs" || strings.HasPrefix(name, ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && name != "go.mod" && name != "go.sum":
			return nil
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
