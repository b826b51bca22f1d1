package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// checkNames refuses names of sinks and columns that nothing has, for a branch that is to
// take the live one's place, which stands at m: each may be a slip of the pen for one that
// is there. Those that an earlier start has used are fine, since a supervisor repeats the
// command line.
func (r *runner) checkNames(ctx context.Context, m epoch.Manifest) error {
	f := r.o.Follow
	var reasons []string
	for _, name := range f.RepeatOutputs {
		if r.sinkSpec(name) == nil {
			reasons = append(reasons, fmt.Sprintf("--repeat-outputs %s: this build has no such sink", name))
		}
	}
	for _, name := range f.DropDeliveries {
		if at, has := m.Sinks[name]; !has || at.Dropped == "" && r.sinkSpec(name) != nil {
			reasons = append(reasons, fmt.Sprintf("--drop-deliveries %s: expected a sink that the live build has and this one lacks, found %s", name, r.lacks(m)))
		}
	}
	wrong, err := r.unknownColumns(ctx, m)
	if err != nil {
		return err
	}
	if reasons = append(reasons, wrong...); len(reasons) > 0 {
		return &RefusedError{epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, reasons}
	}
	return nil
}

// lacks are the sinks of the live build that this one lacks, in words.
func (r *runner) lacks(m epoch.Manifest) string {
	var names []string
	for name, at := range m.Sinks {
		if at.Dropped == "" && r.sinkSpec(name) == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// unknownColumns are those that are to be compared in some way, and that no row has.
func (r *runner) unknownColumns(ctx context.Context, m epoch.Manifest) (reasons []string, err error) {
	if len(r.o.Follow.Compare) == 0 {
		return nil, nil
	}
	live, err := r.job.Version(ctx, m.Version)
	if err != nil {
		return nil, err
	}
	for _, sink := range slices.Sorted(maps.Keys(r.o.Follow.Compare)) {
		spec := r.sinkSpec(sink)
		if spec == nil {
			reasons = append(reasons, fmt.Sprintf("sink %s: it is to be compared column by column, and this build has no such sink", sink))
			continue
		}
		known := compare.Columns(spec.Row)
		if text := live.Sinks[sink].Schemas["row"]; text != "" {
			row, err := schema.Parse([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("%s: version %s: sink %s: %w", r.o.Job, m.Version, sink, err)
			}
			known = append(known, compare.Columns(row)...)
		}
		for _, column := range slices.Sorted(maps.Keys(r.o.Follow.Compare[sink].Columns)) {
			if !slices.Contains(known, column) {
				slices.Sort(known)
				reasons = append(reasons, fmt.Sprintf("sink %s: its rows have no column %s, in which they are to be compared otherwise; they have %s", sink, column, strings.Join(slices.Compact(known), ", ")))
			}
		}
	}
	return reasons, nil
}
