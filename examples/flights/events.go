package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// happened is what a build that follows tells, in a line of JSON.
type happened struct {
	Event    string
	Stage    string
	Branch   string
	Position uint64
	Lag      uint64
	Compared []compared
}

// compared is what came of comparing the outputs of two builds for a sink.
type compared struct {
	Sink    string
	Equal   int64
	Changed int64
	OnlyOld int64 `json:"only_old"`
	OnlyNew int64 `json:"only_new"`
	Samples []struct {
		Key     string
		Columns []struct{ Column, Old, New string }
	}
}

// text says it in a few words.
func (c compared) text() string {
	return fmt.Sprintf("%s rows equal, %s changed, %s only old, %s only new", grouped(int(c.Equal)), grouped(int(c.Changed)), grouped(int(c.OnlyOld)), grouped(int(c.OnlyNew)))
}

// samples are rows of some keys that differ.
func (c compared) samples(most int) (lines []string) {
	told := map[string]bool{}
	for _, s := range c.Samples {
		if told[s.Key] || len(lines) == most {
			continue
		}
		told[s.Key] = true
		var k key
		if err := json.Unmarshal([]byte(s.Key), &k); err != nil {
			return []string{err.Error()}
		}
		var columns []string
		for _, d := range s.Columns {
			columns = append(columns, fmt.Sprintf("%s %s → %s", d.Column, short(d.Old), short(d.New)))
		}
		lines = append(lines, k.Airport+" "+k.Carrier+": "+strings.Join(columns, ", "))
	}
	return lines
}

// short is a value in JSON, with two digits behind a number's point.
func short(value string) string {
	if v, err := strconv.ParseFloat(value, 64); err == nil && strings.Contains(value, ".") {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return value
}

// events keeps the newest of what a process tells, of each kind. It is what the process
// writes to.
type events struct {
	mu     sync.Mutex
	line   []byte // begun and not ended
	newest map[string]happened
	wrong  error
}

func newEvents() *events { return &events{newest: map[string]happened{}} }

// Write implements io.Writer.
func (e *events) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.line = append(e.line, p...)
	for {
		line, rest, ended := bytes.Cut(e.line, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		e.take(line)
		e.line = rest
	}
}

func (e *events) take(line []byte) {
	var h struct{ Event string }
	err := json.Unmarshal(line, &h)
	if err == nil && !slices.Contains(known, h.Event) {
		return
	}
	var all happened
	if err = errors.Join(err, json.Unmarshal(line, &all)); err != nil {
		e.wrong = fmt.Errorf("expected an event in JSON: %w: %s", err, line)
		return
	}
	e.newest[all.Event] = all
	if all.Event == follows {
		e.newest[follows+", "+all.Stage] = all
	}
}

// The events that the story needs: where a branch begins, and how it follows.
const (
	begins  = "the branch begins with its base"
	follows = "following"
	isLive  = follows + ", live"
)

var known = []string{begins, follows}

// of is the newest event of a kind; of those of a branch that follows, that of a stage
// is of the kind "following, STAGE".
func (e *events) of(kind string) (h happened, told bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, told = e.newest[kind]
	return h, told, e.wrong
}
