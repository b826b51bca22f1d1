package postgres

import (
	"sync"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

// Two jobs that make their records for one table at once: one of them is told.
func TestStrangersRace(t *testing.T) {
	p := newPlace(t)
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		target, err := spendSink(p).Open(t.Context(), opening(), connector.RecordKey{JobID: string(rune('a' + i)), Task: "0.0", Sink: "out"})
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		wg.Go(func() {
			_, errs[i] = target.Make(t.Context(), connector.SinkRecord{ID: "id", Job: "shop", Target: p.schema + ".spend"})
		})
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		wantError(t, err, connector.ErrRecord, "two jobs would mix their rows", "target "+p.schema+".spend", "job_id")
	}
	if made != 1 {
		t.Errorf("%d records were made, expected 1", made)
	}
	p.expect("select count(*) from @.sluice_delivery", "1")
}

// Another table is another target; the same job name and sink name is not: a
// store was lost, or a job copied.
func TestStrangers(t *testing.T) {
	p := newPlace(t)
	openTarget(t, spendSink(p))
	for _, c := range []struct {
		key         connector.RecordKey
		job, target string
		refused     bool
	}{
		{connector.RecordKey{JobID: "77", Task: "0.0", Sink: "out"}, "shop", "elsewhere", true},
		{connector.RecordKey{JobID: "77", Task: "0.0", Sink: "other"}, "other", p.schema + ".spend", true},
		{connector.RecordKey{JobID: "77", Task: "0.0", Sink: "other"}, "shop", "elsewhere", false},
		{connector.RecordKey{JobID: "5fe2", Task: "1.0", Sink: "out"}, "shop", p.schema + ".spend", false},
	} {
		target, err := spendSink(p).Open(t.Context(), opening(), c.key)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		_, err = target.Make(t.Context(), connector.SinkRecord{ID: "id", Job: c.job, Target: c.target})
		if c.refused {
			wantError(t, err, connector.ErrRecord, "job_id 5fe2 (shop, sink out, target "+p.schema+".spend)", "job_id 77")
		} else if err != nil {
			t.Error(err)
		}
	}
}
