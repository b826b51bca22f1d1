package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

func stateCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "What is in a job's state",
		Long: `What is in a job's state, at its newest epoch or any other that is kept. The job
may be running: an epoch does not change any more.`,
	}
	return group(c, stateListCommand(p), stateReadCommand(p), stateExportCommand(p), stateDiffCommand(p))
}

// snapshot is a job at the end of one of its epochs.
type snapshot struct {
	job   *epoch.Job
	epoch epoch.Manifest
}

// looking are the flags of commands that look at an epoch.
type looking struct {
	epoch  epochName
	branch string
}

func (l *looking) addTo(c *cobra.Command) {
	c.Flags().Var(&l.epoch, "epoch", "the number or savepoint of the `epoch` (default the newest)")
	c.Flags().StringVar(&l.branch, "branch", "", "the `branch`; defaults to the live one")
}

// at reads the manifest of the epoch that is meant.
func (l *looking) at(ctx context.Context, job *epoch.Job) (s snapshot, err error) {
	s.job = job
	if s.epoch, err = l.epoch.manifest(ctx, job, l.branch); err == nil && s.epoch.Kind == epoch.Seal {
		err = fmt.Errorf("%s: branch %s: epoch %d is the seal and has no state; the last with state is %d", job.Name(), s.epoch.Branch, s.epoch.Epoch, s.epoch.Epoch-1)
	}
	return s, err
}

// form is that of a state, or an error that names the states that there are.
func (s snapshot) form(name string) (state.Form, error) {
	e, ok := s.epoch.State[name]
	if !ok {
		has := "it has none"
		if len(s.epoch.State) > 0 {
			has = "it has " + strings.Join(slices.Sorted(maps.Keys(s.epoch.State)), ", ")
		}
		return state.Form{}, fmt.Errorf("%s: epoch %d has no state %s; %s", s.job.Name(), s.epoch.Epoch, name, has)
	}
	return state.FormOf(name, e)
}

// entries goes through a state's entries in a range of slots.
func (s snapshot) entries(ctx context.Context, f state.Form, slots epoch.Slots) iter.Seq2[*state.Entry, error] {
	return s.unlessCleaned(ctx, state.Read(ctx, s.job.Store(), s.job.Name(), f, s.epoch.State[f.Name].Segments, slots))
}

// slot goes through the entries of one slot, without reading all that lies before.
func (s snapshot) slot(ctx context.Context, f state.Form, slot epoch.Slot) iter.Seq2[*state.Entry, error] {
	only := []epoch.Slots{{First: slot, Last: slot}}
	return s.unlessCleaned(ctx, state.ReadSlots(ctx, s.job.Store(), s.job.Name(), f, s.epoch.State[f.Name].Segments, only))
}

// unlessCleaned tells an epoch that was cleaned away meanwhile from damage.
func (s snapshot) unlessCleaned(ctx context.Context, entries iter.Seq2[*state.Entry, error]) iter.Seq2[*state.Entry, error] {
	return func(yield func(*state.Entry, error) bool) {
		for e, err := range entries {
			if err != nil {
				err = s.job.Missed(ctx, s.epoch, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func stateListCommand(p *place) *cobra.Command {
	var l looking
	var exact bool
	c := &cobra.Command{
		Use:   "list [JOB]",
		Short: "The states of a job, their sizes and schemas",
		Long: `The states of a job with their schemas and sizes, and what their entries are: values,
elements of maps or lists, sorted ones, windows, panes that windows share, or timers.
Rows are those of the segments: an entry that was changed counts again until its
segments are merged. With --count the segments are read, and the entries counted. With
--json each state is an object in a line of its own.`,
		Args: arguments(0, 1),
	}
	l.addTo(c)
	c.Flags().BoolVar(&exact, "count", false, "count the entries (default false)")
	c.Flags().Bool("json", false, "write JSON (default false)")
	c.RunE = func(c *cobra.Command, args []string) error {
		name, _ := argument(args, 1)
		s, err := open(c.Context(), p, name, l)
		if err != nil {
			return err
		}
		listed, err := s.list(c.Context(), exact)
		if err != nil {
			return err
		}
		if !asJSON(c) {
			return writeStates(c.OutOrStdout(), listed, exact)
		}
		for _, one := range listed {
			if err := writeJSON(c.OutOrStdout(), one); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// open opens a job at an epoch.
func open(ctx context.Context, p *place, name string, l looking) (snapshot, error) {
	job, err := p.job(ctx, name)
	if err != nil {
		return snapshot{}, err
	}
	return l.at(ctx, job)
}

// listedState is a state in a list.
type listedState struct {
	stateStatus
	Kind    string `json:"kind"`
	Entries *int64 `json:"entries,omitempty"` // if they were counted
}

func (s snapshot) list(ctx context.Context, exact bool) ([]listedState, error) {
	v, err := s.job.Version(ctx, s.epoch.Version)
	if err != nil {
		return nil, err
	}
	var out []listedState
	for name, e := range sorted(s.epoch.State) {
		sum, err := stateStatusOf(name, e)
		if err != nil {
			return nil, err
		}
		listed := listedState{stateStatus: sum, Kind: kindOf(v, name)}
		if exact {
			n, err := s.countEntries(ctx, name)
			if err != nil {
				return nil, err
			}
			listed.Entries = &n
		}
		out = append(out, listed)
	}
	return out, nil
}

// kindOf is what the entries of a state are: values, those of maps or lists, sorted ones,
// windows, panes that windows share, or timers.
func kindOf(v epoch.Version, name string) string {
	s := v.States[name]
	switch {
	case s.Kind == "":
		return "value"
	case v.Operators[s.Operator].Parameters[epoch.SharedPanes] != "":
		return "panes"
	}
	return s.Kind
}

func (s snapshot) countEntries(ctx context.Context, name string) (n int64, err error) {
	f, err := s.form(name)
	if err != nil {
		return 0, err
	}
	for _, err := range s.entries(ctx, f, epoch.AllSlots) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

func writeStates(w io.Writer, states []listedState, exact bool) error {
	columns := []column{text("state"), text("kind"), number("rows"), number("bytes"), number("segments"), text("schema")}
	if exact {
		columns = slices.Insert(columns, 2, number("entries"))
	}
	t := newTable(columns...)
	for _, s := range states {
		key := s.Key
		if s.Element != "" {
			key += ", " + s.Element
		}
		cells := []string{s.State, s.Kind, count(s.Rows), size(s.Bytes), count(s.Segments), key + " → " + s.Value}
		if exact {
			cells = slices.Insert(cells, 2, count(*s.Entries))
		}
		t.row(cells...)
	}
	return t.write(w)
}

func stateReadCommand(p *place) *cobra.Command {
	var l looking
	c := &cobra.Command{
		Use:   "read [JOB] STATE KEY",
		Short: "The entry of one key, as JSON",
		Long: `The entry of one key, as JSON. KEY is the text of a string, number, Boolean or time
as it is; bytes are in base64, and a struct is a JSON object. Where a key has several
entries each is an object {"element":…,"value":…} in a line of its own: the element is
that of a map, the place in a list or in a sorted state's order, or the start and end of
a window, or of a pane that windows share. A sorted state's come in its order.

  sluice state read spend spend ann
  sluice state read flights delays '{"Airport":"JFK","Carrier":"B6"}'`,
		Args: arguments(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			name, args := argument(args, 3)
			s, err := open(c.Context(), p, name, l)
			if err != nil {
				return err
			}
			return s.read(c.Context(), c.OutOrStdout(), args[0], args[1])
		},
	}
	l.addTo(c)
	c.Flags().Bool("json", false, "errors are JSON too (default false)")
	return c
}

// read writes the entry of one key.
func (s snapshot) read(ctx context.Context, w io.Writer, name, text string) error {
	f, err := s.form(name)
	if err != nil {
		return err
	}
	key, err := encodeKey(f.Key, text)
	if err != nil {
		return usagef("state %s: key %s: %w; its keys are: %s", name, text, err, shape(f.Key))
	}
	slot := epoch.Slot(xxhash.Sum64(key) >> 48)
	v, err := s.job.Version(ctx, s.epoch.Version)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	render := newJSONWriter(f)
	found, descending := false, v.States[name].Descending
	var last [][]byte // of a state whose greatest entries come first: they are stored behind the others
	for e, err := range s.slot(ctx, f, slot) {
		if err != nil {
			return err
		}
		if !bytes.Equal(e.Key, key) {
			continue
		}
		found = true
		line, err := render.line(e)
		if err != nil {
			return err
		}
		if descending {
			last = append(last, bytes.Clone(line))
		} else {
			out.Write(line)
		}
	}
	if !found {
		return fmt.Errorf("%s: state %s has no key %s in epoch %d", s.job.Name(), name, text, s.epoch.Epoch)
	}
	for _, line := range slices.Backward(last) {
		out.Write(line)
	}
	return out.Flush()
}

// jsonWriter writes entries as lines of JSON, without their keys.
type jsonWriter struct {
	form           state.Form
	element, value func(dst, src []byte) (out, rest []byte, err error)
	buf            []byte
}

func newJSONWriter(f state.Form) *jsonWriter {
	w := &jsonWriter{form: f, value: schema.JSON(f.Value)}
	if f.Element != nil {
		w.element = schema.JSON(f.Element)
	}
	return w
}

// line is an entry as a line, which holds until the next.
func (w *jsonWriter) line(e *state.Entry) ([]byte, error) {
	w.buf = w.buf[:0]
	if w.element == nil {
		if err := w.add("", w.value, e.Value); err != nil {
			return nil, err
		}
		w.buf = append(w.buf, '\n')
		return w.buf, nil
	}
	if err := w.add(`{"element":`, w.element, e.Element); err != nil {
		return nil, err
	}
	if err := w.add(`,"value":`, w.value, e.Value); err != nil {
		return nil, err
	}
	w.buf = append(w.buf, "}\n"...)
	return w.buf, nil
}

func (w *jsonWriter) add(name string, render func(dst, src []byte) (out, rest []byte, err error), src []byte) (err error) {
	w.buf, src, err = render(append(w.buf, name...), src)
	if err == nil && len(src) > 0 {
		err = fmt.Errorf("%d bytes too many", len(src))
	}
	if err != nil {
		return fmt.Errorf("state %s: an entry can't be read: %w", w.form.Name, err)
	}
	return nil
}
