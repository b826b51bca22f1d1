package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed flights.jsonl.gz
var packed []byte

// event is a flight of the week: its line, and what the recount needs of it.
type event struct {
	line     []byte  // with its newline
	Origin   string  `json:"origin"`
	Carrier  string  `json:"carrier"`
	Departed *string `json:"departed"`
	Delay    *int64  `json:"dep_delay_min"`
}

// readWeek reads the flights of the week in the order in which they happened.
func readWeek() ([]event, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("flights.jsonl.gz: %w", err)
	}
	var week []event
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		e := event{line: append(bytes.Clone(lines.Bytes()), '\n')}
		if err := json.Unmarshal(e.line, &e); err != nil {
			return nil, fmt.Errorf("flights.jsonl.gz: line %d: %w", len(week)+1, err)
		}
		week = append(week, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("flights.jsonl.gz: behind line %d: %w", len(week), err)
	}
	return week, nil
}
