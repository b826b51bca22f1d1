package upgrade

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Pair are the outputs of two branches that are to be compared.
type Pair struct {
	Old, New Outputs
	// After is the first position that can be compared from.
	After epoch.Position
	// Any says that there is one.
	Any bool
}

// NewPair finds from where on two can be compared. The pair tells of an error too
// whether it comes from clean-up.
func NewPair(ctx context.Context, old, now Outputs) (p Pair, err error) {
	p.Old, p.New = old, now
	p.After, p.Any, err = Common(ctx, old, now)
	return p, err
}

// To is the position up to which both have been put out.
func (p Pair) To() epoch.Position { return min(p.Old.To, p.New.To) }

// Sinks are those that both have, and those that only one has.
func (p Pair) Sinks() (both, onlyOld, onlyNew []string) {
	for name := range sortedKeys(p.Old.Sinks) {
		if _, has := p.New.Sinks[name]; has {
			both = append(both, name)
		} else {
			onlyOld = append(onlyOld, name)
		}
	}
	for name := range sortedKeys(p.New.Sinks) {
		if _, has := p.Old.Sinks[name]; !has {
			onlyNew = append(onlyNew, name)
		}
	}
	return both, onlyOld, onlyNew
}

func sortedKeys(m map[string]epoch.SinkState) iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(m)))
}

// Missing says which positions that a side has, or had, can't be compared from the
// first on, and why; empty if that is none.
func (p Pair) Missing() string {
	from := max(p.Old.After, p.New.After)
	after := from
	if p.Any {
		after = p.After
	}
	for _, sides := range [][2]Outputs{{p.Old, p.New}, {p.New, p.Old}} {
		lacks, has := sides[0], sides[1]
		switch {
		case lacks.Cleaned == "" || lacks.After < has.After:
		case has.Cleaned != "":
			return fmt.Sprintf("positions up to %d: %s", after, lacks.Cleaned)
		case lacks.After > has.After:
			return fmt.Sprintf("positions %d to %d: %s", has.After+1, after, lacks.Cleaned)
		}
	}
	if after > from {
		return fmt.Sprintf("positions %d to %d: no epoch of one side ends where one of the other does", from+1, after)
	}
	return ""
}

// Compare compares the outputs for a sink.
func (p Pair) Compare(ctx context.Context, job, sink string, options compare.Options) (compare.Result, error) {
	c, err := compare.New(job, sink, options)
	if err != nil {
		return compare.Result{Sink: sink}, err
	}
	to := p.To()
	err = c.Run(ctx, p.Old.Side(ctx, sink, p.After, to), p.New.Side(ctx, sink, p.After, to))
	return c.Result(), err
}

// Overtaken tells whether an error comes from clean-up, which has been faster: what is
// to be compared has to be looked at anew then. Any other is as bad as it says.
func (p Pair) Overtaken(ctx context.Context, err error) (bool, error) {
	_, damaged := errors.AsType[*epoch.DamagedError](err)
	_, cleaned := errors.AsType[*epoch.CleanedError](err)
	switch {
	case cleaned:
		return true, nil
	case !errors.Is(err, store.ErrNotFound) && !damaged:
		return false, nil
	}
	for _, o := range []Outputs{p.Old, p.New} {
		if passed, err := o.Passed(ctx); err != nil || passed {
			return passed, err
		}
	}
	return false, nil
}
