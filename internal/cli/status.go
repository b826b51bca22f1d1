package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// status is where a job stands, by its newest epoch.
type status struct {
	Job      string         `json:"job"`
	JobID    string         `json:"job_id"`
	Store    string         `json:"store"`
	Branch   string         `json:"branch"`
	Sealed   bool           `json:"sealed"`
	Epoch    epoch.Epoch    `json:"epoch"`
	Position epoch.Position `json:"position"`
	Time     string         `json:"time"` // of the newest manifest
	Version  string         `json:"version"`
	Build    epoch.Build    `json:"build"`
	Owner    string         `json:"owner"`
	Writer   epoch.Writer   `json:"writer"`
	// Alive says how the owner is, in words; Heartbeat is its newest, if it has
	// given one.
	Alive     string           `json:"alive"`
	Heartbeat *epoch.Heartbeat `json:"heartbeat,omitempty"`
	Sources   []sourceStatus   `json:"sources"`
	Sinks     []sinkStatus     `json:"sinks"`
	States    []stateStatus    `json:"states"`
	Partial   []partialStatus  `json:"partial,omitempty"`
}

// sourceStatus is how far a partition has been read.
type sourceStatus struct {
	Source    string `json:"source"`
	Partition string `json:"partition"`
	Next      int64  `json:"next"`
	// End is where the partition ended when the owner last looked; nil: not known.
	End      *int64 `json:"end,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// sinkStatus is how far a sink is known to have been delivered.
type sinkStatus struct {
	Sink      string         `json:"sink"`
	Start     epoch.Position `json:"start"`
	Confirmed epoch.Position `json:"confirmed"`
	Pending   epoch.Position `json:"pending"`
}

// stateStatus is how much there is of a state. Rows are those of its segments:
// an entry that was changed counts again until the segments are merged.
type stateStatus struct {
	State    string `json:"state"`
	Key      string `json:"key"`
	Element  string `json:"element,omitempty"`
	Value    string `json:"value"`
	Segments int    `json:"segments"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Memory   int64  `json:"memory"`
}

// partialStatus is a state that is not what it would be had it seen all of its
// inputs. It may have no entries yet.
type partialStatus struct {
	State string `json:"state"`
	Why   string `json:"why"`
	// Until is when it will be; "" for never.
	Until string `json:"until,omitempty"`
}

func statusCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Where a job stands",
		Long: `Where a job stands by its newest epoch: what it has read of its sources, what its
sinks are known to have got, and how much state there is. It looks at the store
alone; the job may be running or not.

The rows of a state are those of its segments: an entry that was changed counts
again until its segments are merged.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			return printStatus(c, p, name)
		},
	}
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	return c
}

func printStatus(c *cobra.Command, p *place, name string) error {
	job, err := p.job(c.Context(), name)
	if err != nil {
		return err
	}
	s, err := statusOf(c.Context(), job, p.env.Clock.Now())
	if err != nil {
		return err
	}
	s.Store = p.absolute()
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), s)
	}
	return s.write(c.OutOrStdout())
}

func statusOf(ctx context.Context, job *epoch.Job, now time.Time) (status, error) {
	branch, err := liveBranch(ctx, job)
	if err != nil {
		return status{}, err
	}
	head, err := job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return status{}, err
	}
	m := head.Manifest
	s := status{
		Job: job.Name(), JobID: job.ID(), Branch: branch, Sealed: head.Sealed(),
		Epoch: m.Epoch, Position: m.Position, Time: stamp(m.Time), Version: m.Version, Build: m.Build,
		Owner: m.Owner, Writer: m.Writer,
	}
	owner, err := ownershipOf(ctx, job)
	if err != nil {
		return s, err
	}
	s.Alive, s.Heartbeat = owner.tell(now), owner.beat
	for name, source := range sorted(m.Sources) {
		for partition, at := range sorted(source.Partitions) {
			s.Sources = append(s.Sources, sourceStatus{name, partition, at.Next, endOf(owner.beat, name, partition), at.Identity})
		}
	}
	for name, sink := range sorted(m.Sinks) {
		s.Sinks = append(s.Sinks, sinkStatus{name, sink.Start, sink.Confirmed, m.Position - min(sink.Confirmed, m.Position)})
	}
	for name, entry := range sorted(m.State) {
		state, err := stateStatusOf(name, entry)
		if err != nil {
			return s, err
		}
		s.States = append(s.States, state)
	}
	for name, partial := range sorted(m.Partial) {
		p := partialStatus{State: name, Why: partial.Why}
		if partial.Until != 0 {
			p.Until = stamp(partial.Until)
		}
		s.Partial = append(s.Partial, p)
	}
	return s, nil
}

func endOf(beat *epoch.Heartbeat, source, partition string) *int64 {
	if beat == nil {
		return nil
	}
	at, ok := beat.Sources[source][partition]
	if !ok {
		return nil
	}
	return &at.End
}

// sorted goes through a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) func(yield func(K, V) bool) {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func (s status) write(w io.Writer) error {
	style := stylesFor(w)
	sealed := ""
	if s.Sealed {
		sealed = ", " + style.bad("sealed")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, branch %s%s\n", style.head("job"), s.Job, s.Branch, sealed)
	fmt.Fprintf(&b, "store    %s\n", s.Store)
	fmt.Fprintf(&b, "epoch    %d, position %d, of %s\n", s.Epoch, s.Position, strings.Replace(s.Time, "T", " ", 1))
	fmt.Fprintf(&b, "build    %s\n", printable(s.Build.String()))
	fmt.Fprintf(&b, "owner    %s, %s\n", printable(s.Owner), printable(s.Writer.String()))
	fmt.Fprintf(&b, "         %s\n", printable(s.Alive))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return writeTables(w, s.sources(), s.sinks(), s.states(), s.partial(style))
}

func (s status) sources() *table {
	t := newTable(text("source"), text("partition"), number("next offset"), number("behind"))
	for _, p := range s.Sources {
		behind := "not known"
		if p.End != nil {
			behind = count(max(0, *p.End-p.Next))
		}
		t.row(p.Source, p.Partition, count(p.Next), behind)
	}
	return t
}

func (s status) sinks() *table {
	t := newTable(text("sink"), number("confirmed"), number("position"), text("deliveries"))
	for _, sink := range s.Sinks {
		pending := "done"
		if sink.Pending > 0 {
			pending = count(sink.Pending) + " pending"
		}
		t.row(sink.Sink, count(sink.Confirmed), count(s.Position), pending)
	}
	return t
}

func (s status) partial(style styles) *table {
	t := newTable(text("partial state"), column{name: "until", paint: func(_, padded string) string { return style.warn(padded) }}, text("why"))
	for _, p := range s.Partial {
		until := "for ever"
		if p.Until != "" {
			until = strings.Replace(p.Until, "T", " ", 1)
		}
		t.row(p.State, until, p.Why)
	}
	return t
}

func (s status) states() *table {
	t := newTable(text("state"), number("rows"), number("bytes"), number("in memory"), number("segments"))
	for _, state := range s.States {
		t.row(state.State, count(state.Rows), size(state.Bytes), size(state.Memory), count(state.Segments))
	}
	return t
}
