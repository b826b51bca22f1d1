package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// key and row are those of the job's output.
type key struct{ Airport, Carrier string }

type row struct {
	Flights, Cancelled int64
	OnTime             int64 // unknown in a row of the first version
	MeanDelay          float64
	WorstDelay         int64
}

// unknown is the number of flights on time in a row that doesn't say it.
const unknown = -1

// UnmarshalJSON reads a row of either version.
func (r *row) UnmarshalJSON(data []byte) error {
	type plain row
	p := plain{OnTime: unknown}
	err := json.Unmarshal(data, &p)
	*r = row(p)
	return err
}

// version is the one that has written the row.
func (r row) version() string {
	if r.OnTime == unknown {
		return "v1"
	}
	return "v2"
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

// readAll reads all outputs, which must be the same table. A column of a database
// keeps what stands in it when a version writes that has no such column.
func readAll(ctx context.Context, outputs []output) (rows map[key]row, err error) {
	for i, o := range outputs {
		got, err := o.read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		if i == 0 {
			rows = got
			continue
		}
		if _, stays := o.(*table); stays {
			for k, r := range got {
				if rows[k].version() == "v1" {
					r.OnTime = unknown
					got[k] = r
				}
			}
		}
		if err := compare(o.String(), got, outputs[0].String(), rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// counted is how many flights a table has.
func counted(rows map[key]row) int {
	total := 0
	for _, r := range rows {
		total += int(r.Flights)
	}
	return total
}

// by is how many rows of a table a version has written.
func by(version string, rows map[key]row) int {
	n := 0
	for _, r := range rows {
		if r.version() == version {
			n++
		}
	}
	return n
}
