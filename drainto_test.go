package sluice_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

type toll struct {
	Who string
	N   int64
}

type tolls struct{ Sum int64 }

func (s *tolls) add(t toll) {
	if t.N < 0 {
		panic("a toll below zero")
	}
	s.Sum += t.N
}

// A record that fails behind a KeyBy has a job that is to stop at an offset go back to its
// last epoch: what lies behind the offset is not read all the same.
func TestDrainToPastABadRecord(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "tolls.jsonl")
	var written int64
	write := func(all ...toll) (ends int64) {
		f, err := os.OpenFile(input, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			n, err := fmt.Fprintf(f, "{\"Who\":%q,\"N\":%d}\n", one.Who, one.N)
			if err != nil {
				t.Fatal(err)
			}
			written += int64(n)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return written
	}
	job := sluice.NewJob("tolls")
	job.From("tolls", file.JSONLines[toll](input, file.Follow(), file.Poll(time.Millisecond))).
		KeyBy(func(t toll) string { return t.Who }).
		Fold(sluice.NewState[string, tolls]("totals"), (*tolls).add).
		To("sums", file.Upsert(filepath.Join(dir, "sums"), func(_ string, s tolls) tolls { return s }))
	job.DeadLetter("dead", file.Append[sluice.DeadLetter](filepath.Join(dir, "dead")))

	begun := write(toll{"ann", 1})
	st := store.NewMemory()
	p := starts(t, job, sluice.Options{Store: st, Lease: 100 * time.Millisecond})
	p.says("msg=opened")
	<-p.commits
	log, err := epoch.FindJob(t.Context(), env.Real(), st, "tolls")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []toll{{"ann", 10}, {"bob", 100}, {"ann", -1}, {"bob", 1000}}
	to := begun
	for _, one := range wanted {
		to += int64(len(fmt.Sprintf("{\"Who\":%q,\"N\":%d}\n", one.Who, one.N)))
	}
	var asked epoch.Request
	for range 3 { // at once, as by somebody who ends the command and gives it again
		if asked, err = log.AskDrainTo(t.Context(), map[string]int64{"tolls.jsonl": to}, false, "a test"); err != nil {
			t.Fatal(err)
		}
	}
	p.says("nothing behind the offsets is read")
	write(append(wanted, toll{"ann", 10_000}, toll{"bob", -2})...)
	if err := p.ends(); err != nil {
		t.Fatal(err)
	}
	head, err := log.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	if m := head.Manifest; m.Request < asked.N || len(m.Unmet) > 0 {
		t.Errorf("requests up to %d are done and %v are not met, want all %d met", m.Request, m.Unmet, asked.N)
	}
	if got := head.Manifest.Sources["tolls"].Partitions["tolls.jsonl"].Next; got != to {
		t.Errorf("it has stopped at offset %d, want %d", got, to)
	}
	sameTable(t, filepath.Join(dir, "sums"), map[string]tolls{"ann": {11}, "bob": {1100}})
	if dead := readRows[sluice.DeadLetter](t, filepath.Join(dir, "dead")); len(dead) != 1 {
		t.Errorf("the dead letters are %+v, want one", dead)
	}
}
