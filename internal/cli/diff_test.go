package cli

import (
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade/upgradetest"
	"github.com/sluicestream/sluice/store"
)

// TestDiffOvertaken: clean-up removes what was to be compared, between the look and the
// reading; what is left is compared, and what isn't is told. Position p is epoch p+1 of
// main, of which two are kept: positions 8 and 9.
func TestDiffOvertaken(t *testing.T) {
	w := upgradetest.New(t, env.Real(), store.NewMemory())
	w.Live(3)
	next := w.Begin("next", epoch.Upgrade, nil)
	w.Live(6)
	w.Cover(next, 6, 1, 1)
	names := []string{next}
	pair, err := pairOf(t.Context(), w.Job(), names)
	if err != nil || pair.After != 3 || pair.To() != 9 {
		t.Fatalf("positions %d to %d, %v", pair.After, pair.To(), err)
	}
	w.Clean(2)
	got, err := compareSink(t.Context(), w.Job(), names, pair, "log", compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.After != 8 || got.To != 9 || got.Equal != 1 || got.Changed != 0 || got.Missing == "" {
		t.Errorf("got %+v", got)
	}
}

func TestColumnOf(t *testing.T) {
	sinks := []string{"a", "a.b", "totals"}
	for name, want := range map[string][2]string{
		"a.x": {"a", "x"}, "a.b.x": {"a.b", "x"}, "a.b": {"a", "b"}, "totals.mean.low": {"totals", "mean.low"},
		"b.x": {}, "totals": {}, "totals.": {}, "": {},
	} {
		sink, column, err := columnOf(sinks, name)
		if got := [2]string{sink, column}; got != want || (err == nil) != (want[0] != "") {
			t.Errorf("%q: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestTolerance(t *testing.T) {
	for text, want := range map[string]compare.Column{
		"0.5": {Absolute: 0.5}, "0": {}, "2%": {Relative: 0.02}, "5s": {Time: 5e9}, "1.5m": {Time: 90e9},
	} {
		var got compare.Column
		if err := addTolerance(&got, text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "-1%", "-5s", "much", "NaN", "%", "5x"} {
		var got compare.Column
		if err := addTolerance(&got, text); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}
