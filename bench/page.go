package main

import (
	"bytes"
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// measured is where the figures are kept that were measured with all of the data,
// page what is made of them for people.
var (
	measured = filepath.Join("docs", "measured.json")
	page     = filepath.Join("docs", "measured.md")
)

// remember puts figures among those that were measured before, in the place of those of
// their names, and writes the page anew. all says that there are no others.
func remember(results []Result, all bool) error {
	var kept []Result
	if !all {
		var err error
		if kept, err = readMeasured(measured); err != nil {
			return err
		}
		kept = slices.DeleteFunc(kept, func(old Result) bool {
			return slices.ContainsFunc(results, func(r Result) bool { return r.Name == old.Name })
		})
	}
	kept = append(kept, results...)
	slices.SortFunc(kept, func(a, b Result) int { return cmp.Compare(a.Name, b.Name) })
	data, err := linesOf(kept)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(measured, data, 0o644), os.WriteFile(page, []byte(pageOf(kept)), 0o644))
}

// readMeasured reads figures; none if there is no such file.
func readMeasured(path string) (results []Result, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}

// linesOf is a JSON array with a line for each figure.
func linesOf(results []Result) ([]byte, error) {
	var out bytes.Buffer
	for i, r := range results {
		line, err := json.Marshal(r, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		out.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		out.Write(line)
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}

// pageOf shows figures to people.
func pageOf(results []Result) string {
	var s strings.Builder
	s.WriteString("# What it costs\n\n")
	s.WriteString("Made by `make bench`, or by `go run ./bench -only NAME` for single figures, of measured.json beside it.\n\n")
	s.WriteString("The floor is a plain program written by hand that does the same to the same data, measured in the same run; the ratio is to that.\n")
	s.WriteString("Each figure is the best of a few runs in processes of their own, Sluice's and the floor's by turns, unless it says otherwise. CPU time is that of the process, user and system, with the garbage collector at GOGC=400 for both.\n\n")
	s.WriteString("| figure | what | value | floor | ratio | to reach | reached | measured |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&s, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", r.Name, r.What, number(r.Value, r.Unit), floorText(r), ratioText(r), r.Target, yesNo(r.Reached), r.Run.Date)
	}
	s.WriteString("\n## Measured on what\n\n")
	for _, one := range runsOf(results) {
		fmt.Fprintf(&s, "* %s, commit %s: %s Figures: %s.\n", one.Date, one.Commit, one.Machine, strings.Join(namesOf(results, one), ", "))
	}
	s.WriteString("\n## Beside the figures\n\n")
	for _, r := range results {
		for _, n := range r.Notes {
			fmt.Fprintf(&s, "* `%s`: %s.\n", r.Name, n)
		}
	}
	s.WriteString("\n## What stands in the way of more\n\n")
	for _, r := range results {
		if r.Why != "" {
			fmt.Fprintf(&s, "* `%s`: %s\n", r.Name, r.Why)
		}
	}
	return s.String()
}

// runsOf are the runs that figures come from, the newest first.
func runsOf(results []Result) (runs []run) {
	for _, r := range results {
		if !slices.Contains(runs, r.Run) {
			runs = append(runs, r.Run)
		}
	}
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(-cmp.Compare(a.Date, b.Date), cmp.Compare(a.Commit, b.Commit), cmp.Compare(a.Machine, b.Machine))
	})
	return runs
}

// namesOf are the figures of a run.
func namesOf(results []Result, of run) (names []string) {
	for _, r := range results {
		if r.Run == of {
			names = append(names, "`"+r.Name+"`")
		}
	}
	return names
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}
