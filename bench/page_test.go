package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPageIsOfItsFigures sees that the page shows the figures that are kept.
func TestPageIsOfItsFigures(t *testing.T) {
	t.Chdir("..")
	results, err := readMeasured(measured)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(shown) != pageOf(results) {
		t.Errorf("%s is not made of %s: `go run ./bench -only NAME` makes it anew", page, measured)
	}
}

// TestRemember sees that a figure that is measured again takes its own place, and
// that a whole run leaves no others.
func TestRemember(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	figure := func(name string, value float64, date string) Result {
		return Result{Name: name, Value: value, Unit: "ns", Target: "≤ 2 ×", What: "time", Notes: []string{"note of " + name}, Run: run{date, "abc", "2 cores."}}
	}
	kept := func() (all []string) {
		t.Helper()
		results, err := readMeasured(measured)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			all = append(all, r.Name+" "+number(r.Value, r.Unit)+" "+r.Run.Date)
		}
		return all
	}
	for _, c := range []struct {
		results []Result
		all     bool
		want    []string
	}{
		{[]Result{figure("b", 1, "2026-01-01"), figure("a", 2, "2026-01-01")}, false, []string{"a 2.00 ns 2026-01-01", "b 1.00 ns 2026-01-01"}},
		{[]Result{figure("b", 3, "2026-01-02")}, false, []string{"a 2.00 ns 2026-01-01", "b 3.00 ns 2026-01-02"}},
		{[]Result{figure("c", 4, "2026-01-03")}, true, []string{"c 4.00 ns 2026-01-03"}},
	} {
		if err := remember(c.results, c.all); err != nil {
			t.Fatal(err)
		}
		if got := kept(); !slices.Equal(got, c.want) {
			t.Errorf("kept %q, want %q", got, c.want)
		}
	}
	shown, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| `c` | time | 4.00 ns | – | – | ≤ 2 × | **no** | 2026-01-03 |", "* 2026-01-03, commit abc: 2 cores. Figures: `c`.", "* `c`: note of c."} {
		if !strings.Contains(string(shown), part+"\n") {
			t.Errorf("the page lacks %q:\n%s", part, shown)
		}
	}
}
