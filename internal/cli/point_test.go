package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// TestASignalEndsWhatReads sees that a signal ends what reads an epoch, and that its
// pin goes.
func TestASignalEndsWhatReads(t *testing.T) {
	job, err := epoch.OpenJob(t.Context(), env.Real(), store.NewMemory(), "spend", "")
	if err != nil {
		t.Fatal(err)
	}
	c := &cobra.Command{Use: "export"}
	c.SetContext(t.Context())
	during := 0
	at := epoch.Manifest{Branch: epoch.MainBranch, Task: epoch.FirstTask}
	err = pinned(c, job, []epoch.Manifest{at}, func(ctx context.Context) error {
		pins, err := job.Pins(t.Context())
		if during = len(pins); err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("the signal does not end it")
		}
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "stopped by a signal") {
		t.Errorf("expected that it says what has stopped it, found %v", err)
	}
	pins, perr := job.Pins(t.Context())
	if during != 1 || len(pins) != 0 || perr != nil {
		t.Errorf("%d pins meanwhile, %d after, %v; expected 1 and 0", during, len(pins), perr)
	}
}

// TestUnfinishedExportsGo sees that what killed exports have left goes once it is
// old, and nothing else.
func TestUnfinishedExportsGo(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{
		".spend.csv-1.unfinished": 2 * time.Hour, ".spend.csv-2.unfinished": 0,
		".shops.csv-1.unfinished": 2 * time.Hour, "spend.csv": 2 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	x := exporting{clock: env.Real().Clock}
	if err := x.dropUnfinished(filepath.Join(dir, ".spend.csv-*.unfinished")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != ".shops.csv-1.unfinished .spend.csv-2.unfinished spend.csv" {
		t.Errorf("left are %s, %v", got, err)
	}
}
