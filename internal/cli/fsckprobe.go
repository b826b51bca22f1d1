package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/store"
)

const (
	// racedNames is how many names two processes race for: a store whose creates
	// are two steps, a look and a write, lets both win some of a thousand.
	racedNames = 2000
	// readyMark is what a racer says before the start.
	readyMark = "ready"
)

// probed is what a probe has found.
type probed struct {
	Store      string `json:"store"`
	FileSystem string `json:"file_system"`
	Names      int    `json:"names"` // raced for
	Won        []int  `json:"won"`   // by each of the processes
	Fit        bool   `json:"fit"`
}

// probeStore tries the store's folder, first alone and then with two processes.
func probeStore(c *cobra.Command, p *place) error {
	if _, err := p.open(); err != nil {
		return err
	}
	report, unfit := store.Probe(c.Context(), p.env, p.path, store.ProbeOptions{})
	if e, ok := errors.AsType[*store.UnfitError](unfit); unfit != nil && (!ok || e.Fault != store.Forgets) {
		return unfit
	}
	won, err := raceProcesses(c.Context(), p)
	if err != nil {
		return err
	}
	result := probed{Store: p.absolute(), FileSystem: report.FileSystem, Names: racedNames, Won: won, Fit: unfit == nil}
	if asJSON(c) {
		err = writeJSON(c.OutOrStdout(), result)
	} else {
		err = result.write(c.OutOrStdout())
	}
	if err == nil {
		err = unfit
	}
	return err
}

func (r probed) write(w io.Writer) error {
	fmt.Fprintf(w, "store %s, file system %s\n", r.Store, r.FileSystem)
	fmt.Fprintf(w, "2 processes raced for %s names: each has one winner (%s and %s)\n", count(r.Names), count(r.Won[0]), count(r.Won[1]))
	verdict := "it can be a store"
	if !r.Fit {
		verdict = "it can't be a store"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// raceProcesses lets two processes race, judges the race and tidies up.
func raceProcesses(ctx context.Context, p *place) (won []int, err error) {
	id, err := p.env.ID()
	if err != nil {
		return nil, err
	}
	openers := []string{"a", "b"}
	race := store.NewRace(p.env, p.path, id)
	defer race.End(racedNames, openers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the racers, if one of them fails
	racers := make([]*racer, len(openers))
	for i, who := range openers {
		if racers[i], err = startRacer(ctx, p, id, who); err != nil {
			return nil, err
		}
	}
	for _, r := range racers { // all are ready; off they go
		fmt.Fprintln(r.start)
	}
	winners := make([][]string, racedNames)
	for i, r := range racers {
		names, err := r.won()
		if err != nil {
			return nil, err
		}
		won = append(won, len(names))
		for _, name := range names {
			winners[name] = append(winners[name], openers[i])
		}
	}
	listed, err := race.Listed()
	if err != nil {
		return nil, err
	}
	for name := range racedNames {
		if err := race.Judge(name, winners[name], openers, listed); err != nil {
			return nil, err
		}
	}
	return won, nil
}

// racer is a process that races.
type racer struct {
	command *exec.Cmd
	start   io.WriteCloser
	lines   *bufio.Scanner
	errors  *bytes.Buffer
}

// startRacer starts this program again, as a racer, and waits until it is ready.
func startRacer(ctx context.Context, p *place, id, who string) (*racer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("probe: start a second process: %w", err)
	}
	r := &racer{command: exec.CommandContext(ctx, program, "race", "--store", p.path, id, who), errors: &bytes.Buffer{}}
	r.command.Args[0] = os.Args[0]
	r.command.Stderr = r.errors
	if r.start, err = r.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("probe: start a second process: %w", err)
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("probe: start a second process: %w", err)
	}
	if err := r.command.Start(); err != nil {
		return nil, fmt.Errorf("probe: start a second process: %w", err)
	}
	r.lines = bufio.NewScanner(out)
	if !r.lines.Scan() || r.lines.Text() != readyMark {
		return nil, r.failed(r.command.Wait())
	}
	return r, nil
}

// won waits for the racer's end and returns the names that it got.
func (r *racer) won() (names []int, err error) {
	for r.lines.Scan() {
		name, err := strconv.Atoi(r.lines.Text())
		if err != nil || name < 0 || name >= racedNames {
			return nil, fmt.Errorf("probe: expected the number of a name from the second process, found %q", r.lines.Text())
		}
		names = append(names, name)
	}
	if err := r.command.Wait(); err != nil {
		return nil, r.failed(err)
	}
	return names, nil
}

func (r *racer) failed(err error) error {
	if told := strings.TrimSpace(strings.TrimPrefix(r.errors.String(), "error: ")); told != "" {
		return errors.New(told)
	}
	return fmt.Errorf("probe: the second process has ended before the race: %w", err)
}

// raceCommand is what a racer runs: nobody calls it by hand.
func raceCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use:    "race ID OPENER",
		Short:  "Race for names, for fsck --probe",
		Hidden: true,
		Args:   arguments(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			race := store.NewRace(p.env, p.path, args[0])
			out := bufio.NewWriter(c.OutOrStdout())
			fmt.Fprintln(out, readyMark)
			out.Flush()
			if _, err := bufio.NewReader(c.InOrStdin()).ReadString('\n'); err != nil {
				return nil // the other one has gone
			}
			for name := range racedNames {
				won, err := race.Try(c.Context(), name, args[1])
				if err != nil {
					return err
				}
				if won {
					fmt.Fprintln(out, name)
				}
			}
			return out.Flush()
		},
	}
}
