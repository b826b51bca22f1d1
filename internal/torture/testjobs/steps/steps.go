package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sluicestream/sluice/internal/faultenv"
)

// steps are where the process stops, or the list of those it has come by.
type steps struct {
	record string
	at     string
	nth    int
	behind string
	pause  bool

	mu    sync.Mutex
	times map[string]int
	begun bool // what they are to be behind has come
}

func (s *steps) hooks() faultenv.Hooks {
	s.times = map[string]int{}
	return faultenv.Hooks{
		Before: func(c faultenv.Call) faultenv.Fault {
			s.reach(c.Name+" before", c.Nth)
			return faultenv.Fault{}
		},
		After: func(c faultenv.Call) { s.reach(c.Name+" after", c.Nth) },
	}
}

// reach is called at each step.
func (s *steps) reach(name string, nth int) {
	if s.record != "" || s.behind != "" {
		s.mu.Lock()
		if s.behind == "" || s.begun {
			s.times[name]++
		}
		if s.behind != "" {
			nth = s.times[name]
		}
		s.mu.Unlock()
	}
	if name != s.at || nth != s.nth {
		return
	}
	if s.pause {
		fmt.Println("paused")
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // it comes at once, but not before the next line
}

// listen has steps begin to count with a line of the log.
func (s *steps) listen(to slog.Handler) slog.Handler {
	if s.behind == "" {
		return to
	}
	return listener{to, s}
}

type listener struct {
	slog.Handler
	steps *steps
}

// Handle implements [slog.Handler].
func (l listener) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, l.steps.behind) {
		l.steps.mu.Lock()
		l.steps.begun = true
		l.steps.mu.Unlock()
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	return listener{l.Handler.WithAttrs(attrs), l.steps}
}

// write writes what was recorded: a line for each step, its number first.
func (s *steps) write() error {
	if s.record == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.times)) {
		fmt.Fprintf(&text, "%d\t%s\n", s.times[name], name)
	}
	return os.WriteFile(s.record, []byte(text.String()), 0o644)
}
