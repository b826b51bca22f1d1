package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

func savepointCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "savepoint",
		Short: "Names for epochs, which clean-up leaves alone",
		Long: `A savepoint is a name for an epoch: clean-up leaves that alone, with its state, until
the savepoint is dropped. Its name may stand wherever an epoch's number may. A running
job makes savepoints by itself with run --savepoints.`,
	}
	return group(c, savepointCreateCommand(p), savepointListCommand(p), savepointDropCommand(p))
}

func savepointCreateCommand(p *place) *cobra.Command {
	var l looking
	c := &cobra.Command{
		Use:   "create NAME [JOB]",
		Short: "Give an epoch a name",
		Long: `Give an epoch a name: the newest, or another one that is kept. The job may be running.
If there is a savepoint of the name the new one counts; the older one keeps its epoch
until it is dropped as well.`,
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			job, name, err := nameAndJob(c.Context(), p, args)
			if err != nil {
				return err
			}
			return createSavepoint(c, l, job, name)
		},
	}
	l.addTo(c)
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	return c
}

// nameAndJob reads the arguments NAME [JOB].
func nameAndJob(ctx context.Context, p *place, args []string) (job *epoch.Job, name string, err error) {
	if err := epoch.CheckName("savepoint", args[0]); err != nil {
		return nil, "", usageError{err}
	}
	of := ""
	if len(args) == 2 {
		of = args[1]
	}
	job, err = p.job(ctx, of)
	return job, args[0], err
}

func createSavepoint(c *cobra.Command, l looking, job *epoch.Job, name string) error {
	if _, err := strconv.ParseInt(name, 10, 64); err == nil {
		return usagef("savepoint %s: a number would be taken for an epoch; use another name", name)
	}
	ctx := c.Context()
	s, err := l.at(ctx, job)
	if err != nil {
		return err
	}
	made, err := job.MakeSavepoint(ctx, epoch.Savepoint{
		Name: name, By: epoch.ThisProcess().String(),
		Point: epoch.Point{Branch: s.epoch.Branch, Tasks: map[string]epoch.Epoch{s.epoch.Task: s.epoch.Epoch}},
	})
	// Who names an epoch that an older savepoint keeps is in time, whatever the floor.
	if late := (*epoch.TooLateError)(nil); errors.As(err, &late) {
		made, err = again(ctx, job, s.epoch, name, err)
	}
	if err != nil {
		return err
	}
	listed, err := listSavepoints(ctx, job)
	if err != nil {
		return err
	}
	for _, one := range listed {
		if one.id != made.ID {
			continue
		}
		if asJSON(c) {
			return writeJSON(c.OutOrStdout(), one)
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s: savepoint %s is epoch %d of branch %s, position %d, %s of state\n",
			job.Name(), printable(name), one.Epoch, one.Branch, one.Position, size(one.Bytes))
		return err
	}
	return fmt.Errorf("%s: savepoint %s was made, and has been dropped since", job.Name(), name)
}

// again makes a savepoint of an epoch under the floor that another savepoint keeps.
// It holds if that one is still there afterwards: a clean-up that doesn't see the new
// one has seen the old one. Otherwise late is the error.
func again(ctx context.Context, job *epoch.Job, m epoch.Manifest, name string, late error) (made epoch.Savepoint, err error) {
	all, err := job.Savepoints(ctx)
	if err != nil {
		return made, err
	}
	keeps := func(s epoch.Savepoint) bool {
		e, ok := s.Tasks[m.Task]
		return ok && e == m.Epoch && s.Branch == m.Branch
	}
	keeper := slices.IndexFunc(all, keeps)
	if keeper < 0 {
		return made, late
	}
	point := epoch.Point{Branch: m.Branch, Tasks: map[string]epoch.Epoch{m.Task: m.Epoch}}
	if made, err = job.PutSavepoint(ctx, name, point, epoch.ThisProcess().String()); err != nil {
		return made, err
	}
	after, err := job.Savepoints(ctx)
	if err == nil && slices.ContainsFunc(after, func(s epoch.Savepoint) bool { return s.ID == all[keeper].ID }) {
		return made, nil
	}
	if dropping := job.DropSavepoint(context.WithoutCancel(ctx), made); dropping != nil {
		return made, dropping
	}
	return made, cmp.Or(err, late)
}

// listedSavepoint is a savepoint in a list.
type listedSavepoint struct {
	Name     string         `json:"name"`
	Branch   string         `json:"branch"`
	Epoch    epoch.Epoch    `json:"epoch"`
	Position epoch.Position `json:"position"`
	// Time is the epoch's, Made the savepoint's.
	Time     string `json:"time,omitempty"`
	Made     string `json:"made"`
	By       string `json:"by"`
	Schedule string `json:"schedule,omitempty"`
	// Bytes are those of the states' segments and of the outboxes, Held those of them
	// that nothing else of the log refers to: what clean-up gets if it is dropped.
	Bytes int64 `json:"bytes"`
	Held  int64 `json:"held"`
	// Counts says that it is the newest of its name, Gone that its epoch isn't there.
	Counts bool `json:"counts"`
	Gone   bool `json:"gone"`

	id     string
	micros int64
}

// listSavepoints are a job's savepoints, with what they hold back.
func listSavepoints(ctx context.Context, job *epoch.Job) ([]listedSavepoint, error) {
	all, err := job.Savepoints(ctx)
	if err != nil {
		return nil, err
	}
	out := []listedSavepoint{}
	users := map[string]int{} // of the savepoints, by path
	refers := map[int]map[string]int64{}
	logs := map[string]bool{}
	for i, s := range all {
		one := listedSavepoint{
			Name: s.Name, Branch: s.Branch, Epoch: s.Tasks[epoch.FirstTask], Made: stamp(s.Time), By: s.By, Schedule: s.Schedule,
			Counts: i == 0 || all[i-1].Name != s.Name, id: s.ID,
		}
		m, err := job.ManifestBelow(ctx, s.Branch, epoch.FirstTask, one.Epoch)
		switch {
		case errors.Is(err, store.ErrNotFound):
			one.Gone = true
		case err != nil:
			return nil, err
		default:
			one.Position, one.Time, one.micros = m.Position, stamp(m.Time), m.Time
			logs[s.Branch], refers[i] = true, maps.Collect(m.Data())
			for path, bytes := range refers[i] {
				one.Bytes += bytes
				users[path]++
			}
		}
		out = append(out, one)
	}
	for branch := range logs {
		if err := keptBy(ctx, job, branch, users); err != nil {
			return nil, err
		}
	}
	for i := range out {
		for path, bytes := range refers[i] {
			if users[path] == 1 {
				out[i].Held += bytes
			}
		}
	}
	return out, nil
}

// keptBy counts the epochs of a log that are kept as users of what they refer to.
func keptBy(ctx context.Context, job *epoch.Job, branch string, users map[string]int) error {
	floor, err := job.Floor(ctx, branch, epoch.FirstTask)
	if err != nil || floor == epoch.AllEpochs {
		return err
	}
	head, err := job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return err
	}
	for m, err := range job.Manifests(ctx, branch, epoch.FirstTask, floor, head.Manifest.Epoch) {
		if err != nil {
			return err
		}
		for path := range m.Data() {
			users[path]++
		}
	}
	return nil
}

func savepointListCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "list [JOB]",
		Short: "The savepoints of a job",
		Long: `The savepoints of a job, by their names, and of one name the newest first. Held is
what clean-up would get if the one alone were dropped. With --json each savepoint is an
object in a line of its own.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			job, err := p.job(c.Context(), name)
			if err != nil {
				return err
			}
			listed, err := listSavepoints(c.Context(), job)
			if err != nil {
				return err
			}
			return writeSavepoints(c, job, listed)
		},
	}
	c.Flags().Bool("json", false, "write JSON (default false)")
	return c
}

func writeSavepoints(c *cobra.Command, job *epoch.Job, listed []listedSavepoint) error {
	if asJSON(c) {
		for _, one := range listed {
			if err := writeJSON(c.OutOrStdout(), one); err != nil {
				return err
			}
		}
		return nil
	}
	if len(listed) == 0 {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s has no savepoints\n", job.Name())
		return err
	}
	t := newTable(text("savepoint"), text("branch"), number("epoch"), number("position"), text("time"), number("size"), number("held"), text("by"))
	for _, s := range listed {
		name, by := s.Name, s.By
		if !s.Counts {
			name += " (older)"
		}
		if s.Gone {
			t.row(name, s.Branch, strconv.FormatUint(uint64(s.Epoch), 10), "", "gone: made too late", "", "", by)
			continue
		}
		t.row(name, s.Branch, strconv.FormatUint(uint64(s.Epoch), 10), strconv.FormatUint(uint64(s.Position), 10), moment(s.micros), size(s.Bytes), size(s.Held), by)
	}
	return t.write(c.OutOrStdout())
}

func savepointDropCommand(p *place) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "drop SAVEPOINT [JOB]",
		Short: "Take a name from an epoch",
		Long: `Take a name from an epoch: clean-up removes what nothing else needs. Of several
savepoints of a name the newest goes, and the one before counts again, unless --all
takes all of the name.`,
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			job, name, err := nameAndJob(c.Context(), p, args)
			if err != nil {
				return err
			}
			return dropSavepoints(c, job, name, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "drop all savepoints of the name (default false)")
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	return c
}

// dropped is what a drop did.
type dropped struct {
	Job     string        `json:"job"`
	Name    string        `json:"name"`
	Dropped []epoch.Epoch `json:"dropped"`
	Left    int           `json:"left"` // savepoints of the name
}

func dropSavepoints(c *cobra.Command, job *epoch.Job, name string, all bool) error {
	ctx := c.Context()
	savepoints, err := job.Savepoints(ctx)
	if err != nil {
		return err
	}
	out := dropped{Job: job.Name(), Name: name, Dropped: []epoch.Epoch{}}
	for _, s := range savepoints { // of a name the newest first
		switch {
		case s.Name != name:
		case all || len(out.Dropped) == 0:
			if err := job.DropSavepoint(ctx, s); err != nil {
				return err
			}
			out.Dropped = append(out.Dropped, s.Tasks[epoch.FirstTask])
		default:
			out.Left++
		}
	}
	if len(out.Dropped) == 0 {
		return fmt.Errorf("%s: there is no savepoint %s; `sluice savepoint list %s` lists them", job.Name(), name, job.Name())
	}
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), out)
	}
	return out.write(c.OutOrStdout())
}

func (d dropped) write(w io.Writer) error {
	text := fmt.Sprintf("%s: savepoint %s of epoch %d is dropped", d.Job, printable(d.Name), d.Dropped[0])
	if len(d.Dropped) > 1 {
		text = fmt.Sprintf("%s: %s named %s are dropped", d.Job, several(int64(len(d.Dropped)), "savepoint"), printable(d.Name))
	}
	if d.Left > 0 {
		text += fmt.Sprintf("; the one before counts now, and %s of the name left", severalAre(d.Left))
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

func severalAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return count(n) + " are"
}
