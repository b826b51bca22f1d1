package main

import (
	"context"
	"fmt"
)

// key and row are those of the job's output.
type key struct{ Airport, Carrier string }

type row struct {
	Flights, Cancelled, OnTime int64
	MeanDelay                  float64
	WorstDelay                 int64
}

// output is a place that the job writes its table to, as a reader sees it.
type output interface {
	fmt.Stringer
	read(ctx context.Context) (map[key]row, error)
}

// outputsOf are all places that the job writes to. What the story tells is what a
// consumer of the first has seen.
func outputsOf(dir string, s *servers) []output {
	all := []output{newTopic(s), newFolder(dir)}
	if s.postgres != "" {
		all = append(all, &table{s.postgres, s.names.Table})
	}
	return all
}

// readAll reads all outputs, which must be the same table.
func readAll(ctx context.Context, outputs []output) (rows map[key]row, err error) {
	for i, o := range outputs {
		got, err := o.read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		if i == 0 {
			rows = got
		} else if err := compare(o.String(), got, outputs[0].String(), rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// countsOf is how many flights a table has for each key.
func countsOf(rows map[key]row) map[key]int64 {
	counts := map[key]int64{}
	for k, r := range rows {
		counts[k] = r.Flights
	}
	return counts
}

// counted is how many flights a table has.
func counted(rows map[key]row) int {
	total := 0
	for _, r := range rows {
		total += int(r.Flights)
	}
	return total
}
