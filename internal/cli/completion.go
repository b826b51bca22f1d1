package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// completer completes what a person has begun to type, from what the store has.
// What it can't find out it doesn't offer: there is nobody to tell.
type completer struct {
	*place
	job string // the job of this binary; empty: any of the store
}

// complete makes a command, and all below it, complete their arguments by the
// words of their usage, and their flags by their names.
func (c completer) complete(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		c.complete(below)
	}
	if words := strings.Fields(cmd.Use)[1:]; len(words) > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return c.argument(cmd, words, args, begun)
		}
	} else if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for name, values := range map[string]cobra.CompletionFunc{
		"branch":    c.flag(c.branches),
		"drop":      c.flag(c.states),
		"gap":       c.flag(c.sinks),
		"from":      c.flag(c.savepoints),
		"state":     c.flag(c.states),
		"log-level": cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
		"format":    cobra.FixedCompletions([]string{"avro", "csv", "jsonl"}, cobra.ShellCompDirectiveNoFileComp),
		"store":     folders,
		"to":        folders,
	} {
		if f := cmd.LocalFlags().Lookup(name); f != nil && f.Value.Type() != "bool" {
			cmd.RegisterFlagCompletionFunc(name, values) // fails only if it has one already
		}
	}
	if f := cmd.LocalFlags().Lookup("epoch"); f != nil && f.Value.Type() == new(epochName).Type() { // run has another of that name
		cmd.RegisterFlagCompletionFunc("epoch", c.flag(c.savepoints))
	}
}

func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// argument completes the argument behind args. A job that comes first may be left
// out, so that what stands there may be either.
func (c completer) argument(cmd *cobra.Command, words, args []string, begun string) (found []cobra.Completion, directive cobra.ShellCompDirective) {
	ctx := cmd.Context()
	job := c.job
	if words[0] == "[JOB]" {
		switch jobs := c.jobs(ctx); {
		case len(args) == 0:
			found = jobs
			words = words[1:]
		case slices.Contains(jobs, args[0]):
			job, words, args = args[0], words[1:], args[1:]
		default:
			words = words[1:]
		}
	}
	if word := wordAt(words, len(args)); word != "" {
		if word == "DIR" {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		found = append(found, c.named(ctx, word, job)...)
	}
	return beginning(found, begun), cobra.ShellCompDirectiveNoFileComp
}

// wordAt is what stands at a place of the usage, without what is around it; the
// last word may stand for several.
func wordAt(words []string, i int) string {
	if last := len(words) - 1; last >= 0 && i > last && strings.Contains(words[last], "...") {
		i = last
	}
	if i >= len(words) {
		return ""
	}
	return strings.Trim(words[i], "[].")
}

// named are the names of a kind of thing.
func (c completer) named(ctx context.Context, word, job string) []string {
	switch word {
	case "JOB":
		return c.jobs(ctx)
	case "STATE":
		return c.states(ctx, job)
	case "SINK":
		return c.sinks(ctx, job)
	case "SAVEPOINT":
		return c.savepoints(ctx, job)
	case "BRANCH", "OTHER":
		return c.branches(ctx, job)
	}
	return nil
}

// flag completes the value of a flag by names that the job has: the binary's own,
// or the one that the arguments name.
func (c completer) flag(names func(ctx context.Context, job string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, job := cmd.Context(), c.job
		if job == "" && len(args) > 0 && slices.Contains(c.jobs(ctx), args[0]) {
			job = args[0]
		}
		return beginning(names(ctx, job), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(names []string, begun string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, begun) })
}

func (c completer) jobs(ctx context.Context) []string {
	s, err := c.find()
	if err != nil {
		return nil
	}
	names, _ := jobs(ctx, s)
	return names
}

// head is what a job's live branch has come to, empty if it can't be found.
func (c completer) head(ctx context.Context, name string) (m epoch.Manifest) {
	job, err := c.place.job(ctx, name)
	if err != nil {
		return m
	}
	branch, err := liveBranch(ctx, job)
	if err != nil {
		return m
	}
	head, err := job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return m
	}
	return head.Manifest
}

func (c completer) states(ctx context.Context, job string) []string {
	return slices.Sorted(maps.Keys(c.head(ctx, job).State))
}

func (c completer) sinks(ctx context.Context, job string) []string {
	return slices.Sorted(maps.Keys(c.head(ctx, job).Sinks))
}

func (c completer) savepoints(ctx context.Context, name string) []string {
	job, err := c.place.job(ctx, name)
	if err != nil {
		return nil
	}
	all, _ := job.Savepoints(ctx)
	names := []string{}
	for _, s := range all {
		names = append(names, s.Name)
	}
	return slices.Compact(names)
}

func (c completer) branches(ctx context.Context, name string) []string {
	job, err := c.place.job(ctx, name)
	if err != nil {
		return nil
	}
	names, _ := job.Branches(ctx)
	return names
}
