package cli

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsFromTheEnvironment(t *testing.T) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	level := flags.String("log-level", "info", "")
	shards := flags.Int("shards", 2, "")
	drop := flags.StringArray("drop", nil, "")
	t.Setenv("SLUICE_LOG_LEVEL", "debug")
	t.Setenv("SLUICE_SHARDS", "8")
	t.Setenv("SLUICE_DROP", "a,b.C")
	if err := flags.Parse([]string{"--shards", "3"}); err != nil {
		t.Fatal(err)
	}
	if err := fromEnvironment(flags); err != nil {
		t.Fatal(err)
	}
	if *level != "debug" || *shards != 3 || !slices.Equal(*drop, []string{"a", "b.C"}) {
		t.Errorf("found %s, %d, %q", *level, *shards, *drop)
	}
}

type coded int

func (c coded) Error() string { return "coded" }
func (c coded) ExitCode() int { return int(c) }

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{usagef("a mistake"), 2},
		{fmt.Errorf("wrapped: %w", coded(13)), 13},
	} {
		if code := exitCode(test.err); code != test.code {
			t.Errorf("%v: code %d, want %d", test.err, code, test.code)
		}
	}
}
