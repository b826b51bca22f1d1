package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// checkConsents refuses a consent to what isn't dropped: it may be a slip of the
// pen for something that is. A consent that an earlier start has used is fine: a
// supervisor repeats the command line.
func (r *runner) checkConsents(ctx context.Context, drops []string) error {
	var before []string
	for _, name := range r.o.Drop {
		if slices.Contains(drops, name) {
			continue
		}
		if before == nil {
			var err error
			if before, err = r.droppedBefore(ctx); err != nil {
				return err
			}
		}
		if !slices.Contains(before, name) {
			return &ConsentError{Job: r.o.Job, Flag: "drop", Name: name, Drops: drops}
		}
		r.o.Log.Info("dropped before, nothing to drop", "drop", name)
	}
	return nil
}

// versionsAtMost bounds the versions of a job that are looked at.
const versionsAtMost = 10_000

// droppedBefore names what some version of the job had and this build lacks.
func (r *runner) droppedBefore(ctx context.Context) ([]string, error) {
	listed, err := r.o.Store.List(ctx, r.job.Object("versions/"), "", versionsAtMost)
	if err != nil {
		return nil, err
	}
	dropped := []string{}
	for _, l := range listed {
		name, ok := epoch.ParsePath(strings.TrimPrefix(l.Name, r.job.Object("")))
		if !ok {
			continue
		}
		v, err := r.job.Version(ctx, name.Label)
		if err != nil {
			return nil, err
		}
		for state, s := range v.States {
			spec := r.stateSpec(state)
			if spec == nil {
				dropped = append(dropped, state)
				continue
			}
			value, err := schema.Parse([]byte(s.Value))
			if err != nil {
				return nil, fmt.Errorf("version %s: state %s: %w", name.Label, state, err)
			}
			for _, d := range schema.Differences(value, spec.Form.Value) {
				if d.Drops {
					dropped = append(dropped, join(state, d.Path))
				}
			}
		}
	}
	return dropped, nil
}

// ConsentError says that a flag names something that it is not for: --drop what
// would not be dropped, --set-aside what is no state.
type ConsentError struct {
	Job, Flag, Name string
	// Drops are the names that it could have.
	Drops []string
}

// Error implements error.
func (e *ConsentError) Error() string {
	would := "nothing would be dropped, so leave it out"
	if len(e.Drops) > 0 {
		would = "name what would be: " + strings.Join(e.Drops, ", ")
	}
	if e.Flag == "set-aside" {
		return fmt.Sprintf("%s: --set-aside %s: the job has no such state; its states: %s", e.Job, e.Name, strings.Join(e.Drops, ", "))
	}
	return fmt.Sprintf("%s: --drop %s: that is not dropped; %s", e.Job, e.Name, would)
}

// ExitCode is the exit code of the command line.
func (e *ConsentError) ExitCode() int { return 13 }
