package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// FromError says that a text names no place at which a branch could begin.
type FromError struct {
	Job, From string
	// Found says what there is instead.
	Found string
}

// Error implements error.
func (e *FromError) Error() string {
	return fmt.Sprintf("%s: begin from %s: %s. Name live, a time before it as live-10m, earliest, latest, a time such as 2026-11-30T09:00:00Z, a savepoint, or an epoch as BRANCH:NUMBER.", e.Job, e.From, e.Found)
}

// ExitCode is the exit code of the command line.
func (e *FromError) ExitCode() int { return 2 }

// findFrom settles where a branch begins, by the text that a person gave. With a state of
// its own it begins at earliest, latest, a time, or at offsets; else at an epoch.
func (r *runner) findFrom(ctx context.Context) error {
	f := r.o.Follow
	text := f.FromText
	if f.asked = text; text == "live" {
		f.asked = ""
	}
	var states []string
	for _, file := range f.Import.Files {
		states = append(states, file.State)
	}
	given := f.Import.Given
	elsewhere := len(given.Offsets) > 0 || len(given.Groups) > 0 || !given.At.IsZero()
	at, err := time.Parse(time.RFC3339, text)
	timed := err == nil
	if elsewhere || len(states) > 0 { // what is asked for is told by a hash: there may be many
		asked := fmt.Appendf(nil, "%v %q %t %q", given.Offsets, given.Groups, given.Rest, states)
		if !given.At.IsZero() {
			asked = fmt.Appendf(asked, " %d", given.At.UnixNano())
		}
		f.asked += " " + epoch.Hash(asked)[:askedDigits]
	}
	if f.Backfill {
		f.asked = strings.TrimPrefix(f.asked+" backfill", " ")
	}
	switch {
	case elsewhere && text != "":
		return &FromError{r.o.Job, text, "offsets are given as well: leave one of the two out"}
	case elsewhere:
		f.Begin = &Begin{Given: given, Import: f.Import, What: "at given offsets"}
	case timed:
		f.Begin = &Begin{Given: engine.Given{At: at}, Import: f.Import, What: "with the first records from " + text + " on"}
	case text == "earliest":
		f.Begin = &Begin{Given: engine.Given{Earliest: true}, Import: f.Import, What: "with the first records that the sources have"}
	case text == "latest":
		f.Begin = &Begin{Latest: true, Import: f.Import, What: "where the live branch stood"}
	case len(f.Import.Files) > 0:
		return &FromError{r.o.Job, "imported files", "nothing says which inputs they hold already; give --offsets, --from latest, or a time"}
	case text == "" && f.Rehearse && f.Kind == epoch.Upgrade:
		return r.fromShortlyBefore(ctx)
	case text == "" || text == "live":
	case strings.HasPrefix(text, "live-"):
		return r.fromBefore(ctx, strings.TrimPrefix(text, "live-"))
	default:
		return r.fromEpoch(ctx, text)
	}
	if f.Kind == epoch.Fresh && f.Begin == nil {
		return &FromError{r.o.Job, orLive(text), "a cold start takes no state over"}
	}
	return nil
}

// askedDigits tell offsets from others.
const askedDigits = 16

func orLive(text string) string {
	if text == "" {
		return "live"
	}
	return text
}

// fromBefore begins at the newest kept epoch that is so old, or was when an earlier start
// began.
func (r *runner) fromBefore(ctx context.Context, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return &FromError{r.o.Job, "live-" + text, "a time such as 10m is expected behind live-"}
	}
	f := r.o.Follow
	begun, ok, err := r.job.Unfinished(ctx, epoch.Beginning{Kind: f.Kind, Asked: f.asked}, r.o.Build)
	if err != nil || ok {
		f.From = begun.Base
		return err
	}
	m, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	before := m.Time - d.Microseconds()
	for m.Time > before {
		older, err := r.job.Manifest(ctx, m.Branch, m.Task, m.Epoch-1)
		if m.Epoch == 0 || errors.Is(err, store.ErrNotFound) {
			return &FromError{r.o.Job, "live-" + text, fmt.Sprintf("the oldest epoch of branch %s that is kept is %d, of %s", m.Branch, m.Epoch, time.UnixMicro(m.Time).UTC().Format(time.RFC3339))}
		}
		if err != nil {
			return err
		}
		m = older
	}
	r.o.Follow.From = &epoch.Point{Branch: m.Branch, Tasks: map[string]epoch.Epoch{m.Task: m.Epoch}}
	return nil
}

// rehearsedBack is how far before the live head a rehearsal begins that is told nothing
// else: enough to compare, and quickly followed.
const rehearsedBack = 5 * time.Minute

// fromShortlyBefore begins a rehearsal where there is something to compare: rehearsedBack
// before the live head, or less. It goes back neither behind the cut by which that branch
// went live, nor to epochs of another version, or with which a table was written anew:
// those compare to nothing. Nor to the older half of what is kept, which clean-up may be
// about to reach.
func (r *runner) fromShortlyBefore(ctx context.Context) error {
	head, begun, err := r.liveHead(ctx)
	if err != nil || !begun {
		return err
	}
	live, _, err := r.job.Live(ctx)
	if err != nil {
		return err
	}
	floor, err := r.job.Floor(ctx, head.Branch, head.Task)
	if err != nil {
		return err
	}
	oldest := live.Covers[head.Task]
	if floor > 0 {
		oldest = max(oldest, floor+(head.Epoch-floor)/2)
	}
	m, before := head, head.Time-rehearsedBack.Microseconds()
	for m.Kind == epoch.Seal || m.Epoch > oldest && m.Time > before && !rewroteAny(m) {
		older, err := r.job.Manifest(ctx, m.Branch, m.Task, m.Epoch-1)
		if errors.Is(err, store.ErrNotFound) || err == nil && older.Version != head.Version {
			break
		}
		if err != nil {
			return err
		}
		m = older
	}
	r.o.Follow.From = &epoch.Point{Branch: m.Branch, Tasks: map[string]epoch.Epoch{m.Task: m.Epoch}}
	return nil
}

// fromEpoch begins at a savepoint, or at an epoch of a branch.
func (r *runner) fromEpoch(ctx context.Context, text string) error {
	if branch, number, ok := strings.Cut(text, ":"); ok {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return &FromError{r.o.Job, text, number + " is no number of an epoch"}
		}
		r.o.Follow.From = &epoch.Point{Branch: branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: epoch.Epoch(n)}}
		return nil
	}
	s, ok, err := r.job.Savepoint(ctx, text)
	if err != nil {
		return err
	}
	if !ok {
		return &FromError{r.o.Job, text, "there is no savepoint of that name"}
	}
	r.o.Follow.From = &s.Point
	return nil
}
