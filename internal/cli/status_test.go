package cli

import (
	"bytes"
	"strings"
	"testing"
)

// A state that will be complete says when.
func TestPartialUntil(t *testing.T) {
	s := status{Job: "spend", Time: "2026-11-30T03:00:00Z", Partial: []partialStatus{
		{State: "week", Why: "it lacks three days", Until: "2026-12-03T00:00:00Z"},
		{State: "always", Why: "it lacks a past"},
	}}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "PARTIAL STATE")
	got = strings.Join(strings.Fields(got), " ")
	if want := "UNTIL WHY week 2026-12-03 00:00:00Z it lacks three days always for ever it lacks a past"; got != want {
		t.Errorf("%s\nexpected %s\nin\n%s", got, want, out.String())
	}
}
