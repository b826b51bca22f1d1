// Package cli is the command line: that of a job's own binary ([RunJob]) and
// that of the sluice command ([RunSluice]), which needs no job's code.
package cli

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes that the command line itself gives. Errors of other packages
// bring theirs along, by a method ExitCode.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

// usageError is a mistake in the command line.
type usageError struct{ error }

// ExitCode is the exit code of the command line.
func (usageError) ExitCode() int { return exitUsage }

// Unwrap returns what is wrong.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is the code that an error ends the process with.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.ExitCode()
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
	code := exitCode(err)
	if asJSON(cmd) {
		writeJSON(errs, struct {
			Error    string `json:"error"`
			ExitCode int    `json:"exit_code"`
		}{err.Error(), code})
		return code
	}
	style := stylesFor(errs)
	fmt.Fprintf(errs, "%s %v\n", style.bad("error:"), err)
	return code
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

// fromEnvironment sets the flags that were not given and whose variables are in
// the environment: SLUICE_EPOCH for --epoch. A list is divided by commas.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Name != "help" {
			err = setFromEnvironment(f)
		}
	})
	return err
}

func setFromEnvironment(f *pflag.Flag) (err error) {
	name := variable(f.Name)
	value := os.Getenv(name)
	if f.Changed || value == "" {
		return nil
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		err = list.Replace(strings.Split(value, ","))
	} else {
		err = f.Value.Set(value)
	}
	if err != nil {
		return usagef("%s=%s, for the flag --%s: %w", name, value, f.Name, err)
	}
	f.Changed = true
	return nil
}

// variable is the environment's name for a flag.
func variable(flag string) string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
