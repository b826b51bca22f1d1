package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// RunSluice is the sluice command, with more commands below it than a job's binary
// is to hold. It returns the exit code.
func RunSluice(args []string, more ...*cobra.Command) int {
	return execute(sluiceCommand(more), args, os.Stdout, os.Stderr)
}

func sluiceCommand(more []*cobra.Command) *cobra.Command {
	p := new(place)
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Looks into a checkpoint store, and after it",
		Long: `Looks into a checkpoint store, and after it: what its jobs have committed, where
they stand, what is in their state, and whether all of it is whole. It needs no
job's code. What only tells something changes nothing. JOB may be left out if the
store has one job only.

A file of settings may be the one of a job: of it, --store and what else the two
have in common are taken.

` + exitCodes(exitDone, exitError, exitUsage, 14),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return settle(c, settingNames(jobCommand(Job{})), shared)
		},
	}
	p.addTo(root)
	addConfig(root)
	group(root, logCommand(p), showCommand(p), statusCommand(p), branchCommand(p), cutoverCommand(p), diffCommand(p), fsckCommand(p), raceCommand(p), stopCommand(p), stateCommand(p), savepointCommand(p), forgetCommand(p), gcCommand(p), newCommand(), versionCommand())
	root.AddCommand(more...)
	completer{place: p}.complete(root)
	return root
}

// release is what a build of Sluice is.
type release struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"` // of the store's objects
}

func versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "The version of this command, and of the format that it reads",
		Args:  arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			r := thisRelease()
			if asJSON(c) {
				return writeJSON(c.OutOrStdout(), r)
			}
			revision := ""
			if r.Revision != "" {
				revision = " (" + r.Revision + ")"
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "sluice %s%s, %s %s, store format %d\n", r.Version, revision, r.Go, r.Platform, r.Format)
			return err
		},
	}
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	return c
}

func thisRelease() release {
	r := release{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Format: epoch.Format}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if info.Main.Version != "" {
		r.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			r.Revision = s.Value
		}
	}
	return r
}
