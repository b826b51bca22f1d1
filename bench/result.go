package main

import (
	"fmt"
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
	What    string  `json:"what"` // is measured
	// Notes are further figures of the same run, Why is why it is not less.
	Notes []string `json:"notes,omitempty"`
	Why   string   `json:"why,omitempty"`
	// Run is that in which it was measured, with its floor.
	Run run `json:"run"`
}

// run is when, of what and on what figures were measured.
type run struct {
	Date    string `json:"date"` // UTC
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
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
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// String is the figure for the terminal.
func (r Result) String() string {
	s := fmt.Sprintf("%-20s %s, floor %s, ratio %s, target %s: %s", r.Name, number(r.Value, r.Unit), floorText(r), ratioText(r), r.Target, r.verdict())
	for _, n := range r.Notes {
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
