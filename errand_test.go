package sluice_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

// errand is the payments' job with real files in a folder, which is run by
// several processes, one after the other, under faults.
type errand struct {
	dir      string
	payments int
}

// haste is how much faster than real time an errand's clock goes.
const haste = 1000

// errandPartitions is the number of input files; a user's payments are in one.
const errandPartitions = 2

func newErrand(t *testing.T, payments int) *errand {
	t.Helper()
	e := &errand{dir: quickFolder(t)}
	e.feed(t, payments)
	return e
}

// quickFolder is a folder of a test, in memory where that can be had: faults are
// made up, so that no disk has to keep anything.
func quickFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "errand-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// payment is the n-th payment of the input.
func (e *errand) payment(n int) payment {
	return payment{int64(n), fmt.Sprintf("user-%d-%d", n%errandPartitions, n*n%5), int64(n%90 + 1)}
}

// feed appends payments to the input.
func (e *errand) feed(t *testing.T, payments int) {
	t.Helper()
	if err := os.MkdirAll(e.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part := range errandPartitions {
		f, err := os.OpenFile(e.path(fmt.Sprintf("in/%d.jsonl", part)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for n := e.payments; n < e.payments+payments; n++ {
			if n%errandPartitions != part {
				continue
			}
			line, _ := json.Marshal(e.payment(n))
			if _, err := f.Write(append(line, '\n')); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e.payments += payments
}

func (e *errand) path(name string) string { return filepath.Join(e.dir, name) }

// world is an environment in a hurry, with hooks around its calls.
func (e *errand) world(h faultenv.Hooks) *env.Env {
	w := env.Real()
	w.Clock = faultenv.Hasty(w.Clock, haste)
	return e.wrap(w, h)
}

func (e *errand) wrap(w *env.Env, h faultenv.Hooks) *env.Env {
	sinks := []string{e.path("balances"), e.path("brackets"), e.path("receipts")}
	return faultenv.Wrap(w, faultenv.Places{Store: e.path("store"), Inputs: e.path("in"), Sinks: sinks}, h)
}

// run runs the job to the end of its input or of ctx, in a world and with a
// store; nil is a folder in that world.
func (e *errand) run(ctx context.Context, t *testing.T, world *env.Env, s store.Store) error {
	t.Helper()
	if s == nil {
		var err error
		if s, err = store.OpenFolder(world, e.path("store")); err != nil {
			return err
		}
	}
	job := paymentsJob(e.dir)
	if err := job.ReplaceSource("payments", file.JSONLines[payment](e.path("in/*.jsonl"))); err != nil {
		t.Fatal(err)
	}
	return job.Run(ctx, sluice.Options{
		Store: s, Env: world, Epoch: haste * time.Hour, EpochBytes: 500, BatchRecords: 4, Shards: 2, Workers: 2,
		Grace: time.Minute, Log: slog.New(slog.DiscardHandler), Volatile: true,
	})
}

// finish runs the job without a fault, and checks what has come of it.
func (e *errand) finish(t *testing.T) {
	t.Helper()
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{}), nil); err != nil {
		t.Errorf("the run after the fault: %v", err)
		return
	}
	e.check(t)
}

// check holds the outputs against the payments: each receipt once and in its
// order, the tables as they must stand.
func (e *errand) check(t *testing.T) {
	t.Helper()
	balances, totals := map[string]balance{}, map[int64]int64{}
	for n := range e.payments {
		p := e.payment(n)
		b := balances[p.User]
		b.add(p)
		balances[p.User], totals[p.ID] = b, b.Cents
	}
	brackets := map[int64]bracketCount{}
	for _, b := range balances {
		c := brackets[b.Payments/2]
		brackets[b.Payments/2] = bracketCount{c.Users + 1, c.Cents + b.Cents}
	}
	newest := map[string]int64{}
	for _, r := range readRows[receipt](t, e.path("receipts")) {
		total, ok := totals[r.ID]
		if !ok || total != r.Total || newest[r.User] >= r.Total {
			t.Errorf("receipt %+v: there is none such, or it came before, or too late", r)
		}
		newest[r.User] = r.Total
		delete(totals, r.ID)
	}
	if len(totals) > 0 {
		t.Errorf("%d receipts are missing", len(totals))
	}
	sameTable(t, e.path("balances"), balances)
	sameTable(t, e.path("brackets"), brackets)
}

// readRows reads a sink's files in their order.
func readRows[R any](t *testing.T, folder string) (rows []R) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		f, err := os.Open(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var row R
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatalf("%s: %q: %v", f.Name(), lines.Text(), err)
			}
			rows = append(rows, row)
		}
		f.Close()
	}
	return rows
}

// sameTable compares the rows that a table's sink ends with.
func sameTable[K comparable, R comparable](t *testing.T, folder string, want map[K]R) {
	t.Helper()
	got := map[K]R{}
	for _, l := range readRows[struct {
		Op  string
		Key K
		Row R
	}](t, folder) {
		if l.Op == "delete" {
			delete(got, l.Key)
			continue
		}
		got[l.Key] = l.Row
	}
	for key, row := range want {
		if got[key] != row {
			t.Errorf("%s: %v has %+v, expected %+v", filepath.Base(folder), key, got[key], row)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: %v has a row, expected none", filepath.Base(folder), key)
		}
	}
}
