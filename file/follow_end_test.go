package file

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// A followed file ends, for the lag, behind its last newline: what follows that
// is no record yet, and nobody waits for it.
func TestAFollowedFileEndsBehindItsLastNewline(t *testing.T) {
	long := strings.Repeat("x", newlineStep+5)
	for _, c := range []struct {
		text string
		end  int
	}{
		{"", 0}, {"abc", 0}, {"abc\n", 4}, {"abc\nde", 4}, {"abc\nde\nf", 7},
		{"abc\n" + long, 4}, {long + "\n", len(long) + 1}, {long + "\n" + long, len(long) + 1},
	} {
		path := filepath.Join(t.TempDir(), "in.txt")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Lines(path, codec.String(), Follow()).Open(context.Background(), connector.Opening{Env: env.Real(), Job: "j", Name: "in"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Partition(context.Background(), "in.txt", connector.Offset{})
		if err != nil {
			t.Fatal(err)
		}
		if end := p.End(); end != int64(c.end) {
			t.Errorf("a file of %d bytes ends at %d, want %d", len(c.text), end, c.end)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
