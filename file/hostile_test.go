package file_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// TestHostileHeader: what a header says is not repeated at any length.
func TestHostileHeader(t *testing.T) {
	type row struct{ ID int }
	path := filepath.Join(t.TempDir(), "x.csv")
	for name, header := range map[string]string{
		"many columns":  strings.Repeat("c,", 200_000),
		"a long column": strings.Repeat("c", 1_000_000),
		"no text":       "\x00\x1b[2J\xff,ID,ID",
	} {
		write(t, path, []byte(header+"\n1\n"))
		p, err := openOne(t, file.CSV[row](path, file.Strict()), "x.csv", connector.Offset{})
		if err == nil {
			_, _, err = readLines(t, p, -1)
		}
		wantError(t, err, path, "ID")
		if err != nil && (len(err.Error()) > 4000 || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("%s: the error has %d bytes: %.300q", name, len(err.Error()), err)
		}
	}
}

// TestNamesThatAreNoPartition: a file whose name can't stand in a manifest, or in
// a line, is refused by name.
func TestNamesThatAreNoPartition(t *testing.T) {
	for _, name := range []string{"a\nb.log", "\x1b[2J.log", "a\xff.log", "a\u202eb.log", "a\u00a0b.log"} {
		folder := t.TempDir()
		write(t, filepath.Join(folder, name), []byte("1\n"))
		_, err := textFile(filepath.Join(folder, "*.log")).Open(t.Context(), opening())
		wantError(t, err, "rename it")
		if _, err := textFile(filepath.Join(folder, "*.txt"), file.Follow()).Open(t.Context(), opening()); err != nil {
			t.Errorf("%q, which doesn't fit: %v", name, err)
		}
	}
}
