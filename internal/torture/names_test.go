package torture

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileNames has files whose names are a partition's, or can't be.
func TestFileNames(t *testing.T) {
	t.Parallel()
	j := newVisits(t)
	for name, shows := range map[string]string{"a\nb.jsonl": `a\nb.jsonl`, "a\x1b[2J.jsonl": `a\x1b[2J.jsonl`, "a\xff.jsonl": `a\xff.jsonl`, "a\u202eb.jsonl": `a\u202eb.jsonl`} {
		path := filepath.Join(j.folder, "in", name)
		appendTo(t, path, lineOf(visits(0, 1)[0]))
		r := runCommand(t, j.folder, filepath.Join(j.bin, "broken"), "--listen", "")
		if r.code != 16 || !strings.Contains(lastLine(r.stderr), shows) || strings.Contains(r.stderr, "\x1b") {
			t.Errorf("%q: exit code %d\n%q", name, r.code, shown(r.stderr))
		}
		remove(t, path)
	}
	for _, name := range []string{"a b.jsonl", `a"b\.jsonl`, "-x.jsonl", "..a.b.jsonl", "é.jsonl", strings.Repeat("x", 249) + ".jsonl"} {
		v := visit{User: "somebody", Page: "page", Seconds: 1}
		appendTo(t, filepath.Join(j.folder, "in", name), lineOf(v))
		if !strings.HasPrefix(name, ".") { // hidden names are no input
			j.input += lineOf(v)
		}
	}
	mustRun(t, j.folder, filepath.Join(j.bin, "broken"), "--listen", "")
	j.sameOutputs(t)
}

// TestNamesAsArguments gives names that are none to the commands.
func TestNamesAsArguments(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	before := snapshot(t, h.folder)
	for _, name := range []string{"../visits", ".", "..", "a\x1b[2J\n", "\xff", strings.Repeat("x", 300)} {
		for _, args := range [][]string{
			{"status", name}, {"log", name}, {"show", name}, {"fsck", name}, {"gc", name}, {"state", "list", name},
			{"state", "read", "visits", name, "user-1"}, {"state", "read", name, "users", "user-1"}, {"state", "read", "visits", "users", name},
			{"log", "visits", "--branch", name}, {"show", "visits", "1", "--branch", name},
		} {
			r := runJob(t, h.folder, h.sluice, append(args, "--store", "store")...)
			if r.code != 1 && r.code != 2 || len(errorLines.FindAllString(r.stderr, -1)) != 1 || strings.Contains(r.stderr, "\x1b") {
				t.Errorf("%q: exit code %d\n%q", args, r.code, shown(r.stderr))
			}
		}
	}
	if after := snapshot(t, h.folder); !maps.Equal(before, after) {
		t.Error("a command that was refused has changed something")
	}
}
