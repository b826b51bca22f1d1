package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"charm.land/lipgloss/v2"
)

// story tells what happens, a line for each event. It has colours on a terminal
// only: lipgloss drops them elsewhere.
type story struct {
	w     io.Writer
	begun time.Time
}

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
	good  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Green)
	plain = lipgloss.NewStyle()
	bad   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
)

func newStory(w io.Writer) *story { return &story{w, time.Now()} }

// tell tells an event: when, a word for it in its style, and what it is.
func (s *story) tell(style lipgloss.Style, word, format string, args ...any) {
	at := fmt.Sprintf("%5.1fs", time.Since(s.begun).Seconds())
	lipgloss.Fprintln(s.w, faint.Render(at), style.Render(fmt.Sprintf("%-8s", word)), fmt.Sprintf(format, args...))
}

// line tells something without a time.
func (s *story) line(style lipgloss.Style, format string, args ...any) {
	lipgloss.Fprintln(s.w, style.Render(fmt.Sprintf(format, args...)))
}

// grouped writes a number with a comma at the thousands.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
