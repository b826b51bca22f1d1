package cli

import (
	"fmt"
	"slices"
	"strings"
)

// The exit codes that the command line itself gives. Errors of other packages
// bring theirs along, by a method ExitCode.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
	// exitDiffers is apart from 1, which diff itself has: that is every error's here.
	exitDiffers = 3
	exitPending = 10
)

// exit is what an exit code says.
type exit struct {
	code    int
	meaning string
}

// exits are all exit codes. They never change their meaning: scripts and
// supervisors rely on it.
var exits = []exit{
	{exitDone, "done"},
	{exitError, "error"},
	{exitUsage, "wrong usage"},
	{exitDiffers, "what was compared differs"},
	{exitPending, "stopped with deliveries pending"},
	{11, "fenced by another process"},
	{12, "superseded by another build or branch"},
	{13, "this build doesn't fit the stored state"},
	{14, "damaged store"},
	{15, "a sink disagrees, or refuses a row for good"},
	{16, "bad input"},
	{17, "the state doesn't fit in memory"},
	{20, "plan: state migrates"},
	{21, "plan: something is incomplete"},
	{22, "plan: a consent is needed"},
	{23, "plan: only a replay helps"},
	{24, "plan: refused"},
}

// outcome is an exit code that says what came of a command which has said the rest
// already; it is not told as an error.
type outcome int

// Error implements error.
func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// ExitCode is the exit code of the command line.
func (o outcome) ExitCode() int { return int(o) }

// helpWidth is the width of a help's lines.
const helpWidth = 84

// exitCodes tells exit codes, those that are named or else all, as a paragraph
// of a help.
func exitCodes(named ...int) string {
	var told []string
	for _, e := range exits {
		if len(named) == 0 || slices.Contains(named, e.code) {
			told = append(told, fmt.Sprintf("%d %s", e.code, e.meaning))
		}
	}
	return wrap("Exit codes: "+strings.Join(told, ", ")+".", helpWidth)
}

// wrap breaks a text into lines of at most width bytes, where words allow it.
func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
