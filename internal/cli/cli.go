// Package cli is the command line: that of a job's own binary ([RunJob]) and
// that of the sluice command ([RunSluice]), which needs no job's code.
package cli

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

// ExitCode is the exit code of the command line.
func (usageError) ExitCode() int { return exitUsage }

// Unwrap returns what is wrong.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is the code that an error ends the process with. One that isn't ours,
// such as that of a process that has failed, counts for nothing.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		code := coded.ExitCode()
		if slices.ContainsFunc(exits, func(e exit) bool { return e.code == code && code != exitDone }) {
			return code
		}
	}
	return exitError
}

// execute runs a command line and returns its exit code. An error is told on
// errs: in words, or with --json as an object.
func execute(root *cobra.Command, args []string, out, errs io.Writer) int {
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; `%s --help` lists the flags", err, c.CommandPath())
	})
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitDone
	}
	if o, said := err.(outcome); said {
		return int(o)
	}
	code := exitCode(err)
	if asJSON(cmd) {
		writeJSON(errs, struct {
			Error    string `json:"error"`
			ExitCode int    `json:"exit_code"`
		}{oneLine(err), code})
		return code
	}
	fmt.Fprintf(errs, "%s %s\n", stylesFor(errs).bad("error:"), told(err))
	return code
}

// detailed is an error that has a list to tell.
type detailed interface {
	error
	Summary() string
	Details() []string
}

// told is an error as people are told of it: in one line, or if it has a list, or
// the error in it has, with that below it.
func told(err error) string {
	list, ok := errors.AsType[detailed](err)
	if !ok {
		return oneLine(err)
	}
	// What is around the list's error stays: it says what it was found at.
	text := strings.Replace(err.Error(), list.Error(), list.Summary(), 1)
	var b strings.Builder
	b.WriteString(inOneLine(text))
	for _, detail := range list.Details() {
		b.WriteString("\n  " + printable(detail))
	}
	return b.String()
}

// oneLine is the text of an error in one line, whatever a function of the job has
// put into it.
func oneLine(err error) string { return inOneLine(err.Error()) }

func inOneLine(text string) string {
	return printable(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// asJSON tells whether a command was asked for JSON.
func asJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true"
}

// writeJSON writes one object in one line.
func writeJSON[T any](w io.Writer, v T) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// group makes a command that only has others below it.
func group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.AddCommand(below...)
	c.Args = cobra.ArbitraryArgs // or cobra would answer before RunE can
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s: which command? `%s --help` lists them", c.CommandPath(), c.CommandPath())
		}
		hint := ""
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		}
		return usagef("%s: there is no command %q%s; `%s --help` lists them", c.CommandPath(), args[0], hint, c.CommandPath())
	}
	c.SuggestionsMinimumDistance = 2
	return c
}

// arguments bounds the number of a command's arguments.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usagef("%s: %d arguments; use it as `%s`", c.CommandPath(), len(args), c.UseLine())
		}
		return nil
	}
}
