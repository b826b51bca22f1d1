package torture

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSpecialFiles puts pipes, links and devices in the place of objects: no
// command waits for them, or reads them to an end that never comes.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	first := newHostile(t)
	segment := first.segment(t)
	for object, fails := range map[string][]string{
		"job.json":                         {"status", "log", "show", "fsck", "gc", "run"},
		"live/0.json":                      {"status", "run"},
		"layouts/0.json":                   {"fsck", "run"},
		"branches/main/branch.json":        {"run"},
		"branches/main/0.0/heartbeat.json": {"status"},
		first.manifest(first.epochs - 1):   {"status", "log", "show", "fsck", "gc", "run"},
		segment:                            {"fsck", "state read users user-1", "run"},
	} {
		for kind, put := range map[string]func(path string) error{
			"a pipe":              func(path string) error { return syscall.Mkfifo(path, 0o644) },
			"a link to zeros":     func(path string) error { return os.Symlink("/dev/zero", path) },
			"a link to itself":    func(path string) error { return os.Symlink(filepath.Base(path), path) },
			"a link to elsewhere": func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(first.folder), "none"), path) },
		} {
			if os.Getenv("SLUICE_TORTURE") == "" && kind != "a pipe" {
				continue
			}
			t.Run(strings.Join([]string{kind, object}, ", "), func(t *testing.T) {
				t.Parallel()
				h := first.copy(t)
				remove(t, h.object(object))
				if err := put(h.object(object)); err != nil {
					t.Fatal(err)
				}
				must := fails
				if kind == "a link to elsewhere" {
					must = nil // it reads as absent, of which other tests tell
				}
				h.attack(t, object, must...)
			})
		}
	}
}
