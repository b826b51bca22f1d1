package sluice_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/store"
)

// What a sink remembers, damaged, stops the job with its own code: trying again
// can't help, and nothing is written. Mended, the job goes on.
func TestADamagedSinkRecordStopsTheJob(t *testing.T) {
	for _, name := range []string{"record.json", "0*"} { // the record, and the note of the last delivery
		d := newDesk()
		s := store.NewMemory()
		o := sluice.Options{Store: s, Log: slog.New(slog.DiscardHandler)}
		if err := spending(d).Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(d.path("out/.sluice/" + name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		whole, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(found[0], whole[:len(whole)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		d.add(t, "orders.jsonl", `{"ID":9,"User":"ann","Cents":1}`+"\n")
		var disagrees *sluice.DisagreeError
		if err := spending(d).Run(t.Context(), o); !errors.As(err, &disagrees) || disagrees.ExitCode() != 15 || disagrees.Sink != "out" {
			t.Errorf("%s: the run ended with %v", name, err)
		}
		if err := os.WriteFile(found[0], whole, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := spending(d).Run(t.Context(), o); err != nil {
			t.Errorf("%s, mended: %v", name, err)
		}
		if got := d.lines("out"); got[len(got)-1] != `{"op":"put","key":"ann","row":{"Orders":4,"Cents":1251}}` {
			t.Errorf("%s, mended: the sink has %v", name, got)
		}
		d.clear()
	}
}
