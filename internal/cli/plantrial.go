package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
)

// planSample is how many stored entries of each state a plan is tried on.
const planSample = 1000

// trying are the flags that say what of the state is tried.
type trying struct {
	sample   int
	all      bool
	setAside map[string]string
}

func (t *trying) addTo(f *pflag.FlagSet) {
	f.IntVar(&t.sample, "sample", planSample, "try the plan on so many stored entries of each state; 0: on none, only compare (`number`)")
	f.BoolVar(&t.all, "all", false, "try it on all stored entries, and see which would meet at one key (default false)")
	addSetAside(f, &t.setAside, "entries of a state that can't be carried over would be put into a file, as `STATE=FILE`; nothing is written")
}

// check says what is wrong with the flags.
func (t *trying) check() error {
	if t.sample < 0 {
		return usagef("--sample %d: expected 0 or more entries", t.sample)
	}
	return nil
}

// try tries what is planned on stored entries. look gathers what the plan is made of,
// again if clean-up overtakes the trials.
func (t *trying) try(ctx context.Context, e *env.Env, job *epoch.Job, look func(ctx context.Context) (epoch.Manifest, map[string]*carry.Way, error)) (map[string]*plan.Trial, error) {
	if t.sample == 0 && !t.all {
		_, _, err := look(ctx)
		return nil, err
	}
	return plan.Try(ctx, plan.TrialOptions{Env: e, Job: job, Look: look, Sample: t.sample, All: t.all})
}

// tried sums up a trial.
func tried(t *plan.Trial) string {
	of := count(t.Entries)
	if t.Tried < t.Entries {
		of = "at most " + of
	}
	parts := []string{fmt.Sprintf("%s of %s entries, %s failed", count(t.Tried), of, count(t.Failed))}
	if t.Dropped > 0 {
		parts = append(parts, count(t.Dropped)+" dropped")
	}
	if t.Before > 0 && t.Before != t.After {
		parts = append(parts, fmt.Sprintf("%.2f × as large", t.Growth()))
	}
	if t.Seconds > 0 {
		parts = append(parts, "all take about "+roughly(time.Duration(t.Seconds*float64(time.Second))))
	}
	if t.MeetUnknown {
		parts = append(parts, "whether some meet at one key is seen with --all")
	}
	return strings.Join(parts, "; ")
}

// roughly is a time without the digits that nobody can know.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "a second"
	case d < time.Minute:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
