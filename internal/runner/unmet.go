package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// unmet tells which states' entries a request can't meet in this build: those whose
// keys are not known to be what they were when it was asked.
func (r *runner) unmet(ctx context.Context, request epoch.Request) (epoch.Unmet, error) {
	out := epoch.Unmet{Request: request.N, GivenUp: r.givenUp[request.N]}
	var asked epoch.Version
	if request.Version != "" && request.Version != r.o.Build.Version && !out.GivenUp {
		var err error
		if asked, err = r.job.Version(ctx, request.Version); err != nil && !errors.Is(err, store.ErrNotFound) {
			return out, err
		}
	}
	for _, name := range request.States() {
		if out.GivenUp || !r.meets(request, asked, name) {
			out.States = append(out.States, name)
		}
	}
	return out, nil
}

// meets tells whether a state's entries stand where a request names them; asked is the
// version that it was asked of, if that is another.
func (r *runner) meets(request epoch.Request, asked epoch.Version, name string) bool {
	spec := r.stateSpec(name)
	if spec == nil {
		return false
	}
	if request.Version == r.o.Build.Version {
		return true
	}
	key, known := request.Keys[name]
	if request.Version != "" {
		then, had := asked.States[name]
		if !had || then.KeyMeaning != spec.KeyMeaning {
			return false
		}
		// Functions may have given entries new keys of the same type, unless the start that
		// adopted this version knew the request and saw that they don't.
		if then.Meaning != spec.Meaning && request.N > r.unmoved {
			return false
		}
		key, known = then.Key, true
	}
	if !known {
		return true // made before requests told it
	}
	old, err := schema.Parse([]byte(key))
	return err == nil && carry.SameEncoding(old, spec.Form.Key)
}

// noteUnmet notes, in the manifest that calls requests done, which of them were not
// met; upTo is the newest of them.
func (c *committer) noteUnmet(m *epoch.Manifest, upTo uint64) {
	for len(c.unmet) > 0 && c.unmet[0].Request <= upTo {
		u := c.unmet[0]
		c.unmet = c.unmet[1:]
		m.Unmet = append(slices.Clip(m.Unmet), u)
		for _, name := range u.States {
			c.r.o.Log.Warn("a request to forget is not met in a state: it was given up, or the keys have changed since; ask again for what is there now", "request", u.Request, "state", name)
		}
	}
	m.Unmet = m.Unmet[max(0, len(m.Unmet)-epoch.MaxUnmet):]
}

// awaitForgetting refuses to adopt states whose entries would go elsewhere while
// somebody waits for them to be deleted: once they have gone there, no request finds
// them. It reads all requests behind the manifest's.
func (r *runner) awaitForgetting(ctx context.Context, m epoch.Manifest, s *stored) error {
	f, err := plan.ReadForgetting(ctx, r.job, m)
	if err != nil {
		return err
	}
	if requests, states := f.For(plan.Moved(m, s.ways, func(name string) bool { return r.stateSpec(name) != nil })); len(requests) > 0 {
		return &WaitingForgetError{At: epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, Requests: requests, States: states}
	}
	r.givenUp = f.GivenUp
	if r.o.Build.Version != "" && m.Version != r.o.Build.Version { // it is to be adopted now
		r.unmoved = f.Newest
	}
	return nil
}

// WaitingForgetError says that a build would move entries that somebody has asked to
// forget and that are still there.
type WaitingForgetError struct {
	epoch.At
	// Requests are the numbers of the requests that wait, States the stored states that
	// they name and this build moves.
	Requests []uint64
	States   []string
}

// Error implements error.
func (e *WaitingForgetError) Error() string {
	n := e.Requests[0]
	more := ""
	if len(e.Requests) > 1 {
		more = fmt.Sprintf(" and %d more", len(e.Requests)-1)
	}
	return fmt.Sprintf("%s: refused: request %d to forget%s waits for entries of %s, which this build takes over, gives other keys or drops, so that they would not be found any more. No state was changed. Run the build that the job ran before once (`run --replace` if it is superseded), so that it deletes them, or give up with `sluice forget %s --give-up %d`.",
		e.At, n, more, strings.Join(e.States, ", "), e.Job, n)
}

// ExitCode is the exit code of the command line.
func (e *WaitingForgetError) ExitCode() int { return 13 }
