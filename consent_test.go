package sluice_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// keeping is a job with a state of the given type, and perhaps another one.
func keeping[S any](another bool, add func(*S, payment)) *sluice.Job {
	job := sluice.NewJob("keeping")
	keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User })
	keyed.Fold(sluice.NewState[string, S]("kept"), add)
	if another {
		keyed.Fold(sluice.NewState[string, balance]("another"), (*balance).add)
	}
	return job
}

type shorter struct{ Cents int64 }

func (s *shorter) add(p payment) { s.Cents += p.Cents }

// What a newer build would drop needs consent by its name, once; the command
// line that gave it may be repeated, and a name that nothing ever had may not.
func TestConsent(t *testing.T) {
	test := sluicetest.New(t, keeping(true, (*balance).add))
	step := func() error {
		sluicetest.Feed(test, "payments", payment{1, "ann", 5})
		return test.Try()
	}
	consent := func(names ...string) { test.Options(func(o *sluice.Options) { o.Drop = names }) }
	if err := step(); err != nil {
		t.Fatal(err)
	}
	test.Replace(keeping(false, (*shorter).add))

	var refused *sluice.RefusedError
	if err := step(); !errors.As(err, &refused) || len(refused.Reasons) != 2 || refused.ExitCode() != 13 ||
		!strings.Contains(refused.Reasons[0], "--drop another") || !strings.Contains(refused.Reasons[1], "--drop kept.Payments") {
		t.Fatalf("without consent: %v", err)
	}
	consent("another")
	if err := step(); !errors.As(err, &refused) || len(refused.Reasons) != 1 {
		t.Fatalf("with half of the consent: %v", err)
	}
	consent("another", "kept.Payments", "kept.Cents")
	if err := step(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--drop kept.Cents: that is not dropped") {
		t.Fatalf("with consent to what stays: %v", err)
	}
	consent("another", "kept.Payments")
	for range 2 {
		if err := step(); err != nil {
			t.Fatalf("with consent: %v", err)
		}
	}
	consent("kept.Paymenst")
	var wrong *sluice.ConsentError
	if err := step(); !errors.As(err, &refused) && !errors.As(err, &wrong) {
		t.Fatalf("with a slip of the pen: %v", err)
	}
}
