package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
)

// Forgetting is what has been asked to be forgotten and no epoch calls done.
type Forgetting struct {
	// Newest is the newest request of any kind, GivenUp those that were taken back.
	Newest  uint64
	GivenUp map[uint64]bool

	waiting []waitingRequest // in their order
}

// waitingRequest is one to forget, with the states that it names.
type waitingRequest struct {
	n      uint64
	states []string
}

// ReadForgetting reads all requests behind those that a manifest calls done.
func ReadForgetting(ctx context.Context, job *epoch.Job, m epoch.Manifest) (Forgetting, error) {
	f := Forgetting{Newest: m.Request, GivenUp: map[uint64]bool{}}
	for {
		found, err := job.RequestsAfter(ctx, f.Newest)
		if err != nil {
			return f, err
		}
		if len(found) == 0 {
			break
		}
		for _, r := range found {
			switch f.Newest = r.N; r.Kind {
			case epoch.GiveUpRequest:
				f.GivenUp[r.Of] = true
			case epoch.ForgetRequest:
				f.waiting = append(f.waiting, waitingRequest{r.N, r.States()})
			}
		}
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(w waitingRequest) bool { return f.GivenUp[w.n] })
	return f, nil
}

// For tells which requests wait for entries that a build would move, and the stored
// states that they name of those: once moved, no request finds the entries.
func (f Forgetting) For(moved map[string]bool) (requests []uint64, states []string) {
	names := map[string]bool{}
	for _, w := range f.waiting {
		waits := false
		for _, name := range w.states {
			if moved[name] {
				waits, names[name] = true, true
			}
		}
		if waits {
			requests = append(requests, w.n)
		}
	}
	return requests, slices.Sorted(maps.Keys(names))
}

// Moved are the stored states whose entries go elsewhere when a build adopts them: to
// another key, to another state, or away. has tells whether the build has a state.
func Moved(m epoch.Manifest, ways map[string]*carry.Way, has func(state string) bool) map[string]bool {
	moved := map[string]bool{}
	for name := range m.State {
		if !has(name) {
			moved[name] = true
		}
	}
	for _, w := range ways {
		for _, source := range w.Sources {
			if source.Keys != "" || source.Stored.Name != w.State {
				moved[source.Stored.Name] = true
			}
		}
	}
	return moved
}

// Await refuses what a run refuses while requests to forget wait for states that the
// build moves.
func (p *Plan) Await(f Forgetting, moved map[string]bool) {
	_, states := f.For(moved)
	for _, name := range states {
		requests, _ := f.For(map[string]bool{name: true})
		more := ""
		if len(requests) > 1 {
			more = fmt.Sprintf(" and %d more", len(requests)-1)
		}
		if l := p.Line(StatePart, name); l != nil {
			l.Add(Refused, fmt.Sprintf("%s: request %d to forget%s waits for entries of it, which would go elsewhere and not be found any more", name, requests[0], more),
				fmt.Sprintf("run the build that the job ran before once (`run --replace` if it is superseded), so that it deletes them, or give up with `sluice forget %s --give-up %d`", p.Job, requests[0]))
		}
	}
}
