package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"os"
	"strings"
	"time"
)

// Result is one figure as it was measured.
type Result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Floor is what the program written by hand takes, 0 if there is none.
	Floor   float64 `json:"floor"`
	Ratio   float64 `json:"ratio"`
	Target  string  `json:"target"`
	Reached bool    `json:"reached"`

	what  string   // is measured
	notes []string // further figures of the same run
	why   string   // it is not less
}

// against fills in the floor and the ratio.
func (r Result) against(floor float64) Result {
	r.Floor = floor
	if floor > 0 {
		r.Ratio = r.Value / floor
	}
	return r
}

// atMost sets a bound for the ratio.
func (r Result) atMost(ratio float64) Result {
	r.Target, r.Reached = fmt.Sprintf("≤ %g ×", ratio), r.Ratio <= ratio
	return r
}

// atLeast sets a bound for the ratio of something of which more is better.
func (r Result) atLeast(ratio float64) Result {
	r.Target, r.Reached = fmt.Sprintf("≥ %g ×", ratio), r.Ratio >= ratio
	return r
}

// within sets a bound for the value.
func (r Result) within(value float64) Result {
	r.Target, r.Reached = fmt.Sprintf("≤ %g %s", value, r.Unit), r.Value <= value
	return r
}

// both needs the other's bound reached too.
func (r Result) both(other Result) Result {
	r.Target, r.Reached = r.Target+" and "+other.Target, r.Reached && other.Reached
	return r
}

func (r *Result) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// String is the figure for the terminal.
func (r Result) String() string {
	s := fmt.Sprintf("%-20s %s, floor %s, ratio %s, target %s: %s", r.Name, number(r.Value, r.Unit), floorText(r), ratioText(r), r.Target, r.verdict())
	for _, n := range r.notes {
		s += "\n    " + n
	}
	return s
}

func (r Result) verdict() string {
	if r.Reached {
		return "reached"
	}
	return "NOT reached"
}

func number(v float64, unit string) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

func floorText(r Result) string {
	if r.Floor == 0 {
		return "–"
	}
	return number(r.Floor, r.Unit)
}

func ratioText(r Result) string {
	if r.Ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", r.Ratio)
}

func writeJSON(path string, results []Result) error {
	data, err := json.Marshal(results, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// writePage writes all of it for people.
func writePage(path string, b *bench, results []Result) error {
	var s strings.Builder
	s.WriteString("# What it costs\n\n")
	fmt.Fprintf(&s, "Written by `make bench` on %s. %s\n\n", time.Now().UTC().Format(time.DateOnly), b.machine.String())
	s.WriteString("The floor is a plain program written by hand that does the same to the same data, measured in the same run; the ratio is to that.\n")
	s.WriteString("Each figure is the best of a few runs in processes of their own, Sluice's and the floor's by turns. CPU time is that of the process, user and system, with the garbage collector at GOGC=400 for both.\n\n")
	s.WriteString("| figure | what | value | floor | ratio | to reach | reached |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&s, "| `%s` | %s | %s | %s | %s | %s | %s |\n", r.Name, r.what, number(r.Value, r.Unit), floorText(r), ratioText(r), r.Target, yesNo(r.Reached))
	}
	s.WriteString("\n## Beside the figures\n\n")
	for _, r := range results {
		for _, n := range r.notes {
			fmt.Fprintf(&s, "* `%s`: %s.\n", r.Name, n)
		}
	}
	s.WriteString("\n## What stands in the way of more\n\n")
	for _, r := range results {
		if r.why != "" {
			fmt.Fprintf(&s, "* `%s`: %s\n", r.Name, r.why)
		}
	}
	return os.WriteFile(path, []byte(s.String()), 0o644)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}
