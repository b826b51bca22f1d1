package cli

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// diffing are the flags of state diff.
type diffing struct {
	branch  string
	limit   int
	summary bool
}

func stateDiffCommand(p *place) *cobra.Command {
	var d diffing
	c := &cobra.Command{
		Use:   "diff [JOB] A B [STATE...]",
		Short: "What differs in the states of two epochs",
		Long: `Tells what differs between the states of two epochs, A and B: entries that only B has
(+), that only A has (-), and those that changed (~), with the fields that did, by
their path. ` + pointHelp + `

All states are compared, or those named. Entries come in the order of their slots and
keys. Where the value's schema differs, entries differ that read otherwise as JSON:
one that lacks a field has none.

  sluice state diff spend 1840 1841
  sluice state diff before-upgrade main:1900 spend --summary

With --json each entry that differs is an object in a line of its own, and each state's
sums are another.

` + exitCodes(exitDone, exitError, exitUsage, exitDiffers),
		Args: arguments(2, -1),
		RunE: func(c *cobra.Command, args []string) error { return d.run(c, p, args) },
	}
	f := c.Flags()
	f.StringVar(&d.branch, "branch", "", "the `branch` of epochs that are numbers alone; defaults to the live one")
	f.IntVar(&d.limit, "limit", 100, "tell at most this `number` of entries for each state; 0: all")
	f.BoolVar(&d.summary, "summary", false, "tell the sums alone (default false)")
	f.Bool("json", false, "write JSON (default false)")
	return c
}

func (d diffing) run(c *cobra.Command, p *place, args []string) error {
	ctx := c.Context()
	if d.limit < 0 {
		return usagef("--limit %d: 0 or more", d.limit)
	}
	job, args, err := p.jobAndRest(ctx, args)
	if err != nil {
		return err
	}
	if len(args) < 2 {
		return usagef("%s: two epochs are needed; use it as `%s`", c.CommandPath(), c.UseLine())
	}
	var sides [2]snapshot
	for i := range sides {
		sides[i].job = job
		if sides[i].epoch, err = pointOf(ctx, job, d.branch, args[i]); err != nil {
			return err
		}
	}
	names, err := statesToCompare(sides, args[2:])
	if err != nil {
		return err
	}
	differs := false
	err = pinned(c, job, []epoch.Manifest{sides[0].epoch, sides[1].epoch}, func(ctx context.Context) error {
		for _, name := range names {
			sums, err := d.state(ctx, c, sides, name)
			if err != nil {
				return err
			}
			differs = differs || sums.differ()
		}
		return nil
	})
	if err == nil && differs {
		return outcome(exitDiffers)
	}
	return err
}

// statesToCompare are the states to compare: those that are named, of which either side
// must have each, or all.
func statesToCompare(sides [2]snapshot, named []string) ([]string, error) {
	var all []string
	for _, s := range sides {
		for name := range s.epoch.State {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	for _, name := range named {
		if !slices.Contains(all, name) {
			_, err := sides[1].form(name)
			return nil, err
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}

// sums are how much of a state differs.
type sums struct {
	State   string `json:"state"`
	Added   int64  `json:"added"`
	Removed int64  `json:"removed"`
	Changed int64  `json:"changed"`
	// Incomparable says why entries could not be compared.
	Incomparable string `json:"incomparable,omitempty"`
}

func (s sums) differ() bool {
	return s.Added+s.Removed+s.Changed > 0 || s.Incomparable != ""
}

// difference is an entry that differs.
type difference struct {
	State   string            `json:"state"`
	Change  string            `json:"change"`
	Key     jsontext.Value    `json:"key"`
	Element jsontext.Value    `json:"element,omitempty"`
	Old     jsontext.Value    `json:"old,omitempty"`
	New     jsontext.Value    `json:"new,omitempty"`
	Fields  []fieldDifference `json:"fields,omitempty"`
}

// fieldDifference is a part of a value that differs, by its path; a side that lacks
// it has none.
type fieldDifference struct {
	Path string         `json:"path"`
	Old  jsontext.Value `json:"old,omitempty"`
	New  jsontext.Value `json:"new,omitempty"`
}

// The kinds of differences.
const (
	entryAdded   = "added"
	entryRemoved = "removed"
	entryChanged = "changed"
)

// state compares one state, and tells what differs.
func (d diffing) state(ctx context.Context, c *cobra.Command, sides [2]snapshot, name string) (sums, error) {
	out := sums{State: name}
	compare, err := newComparison(sides, name)
	if err != nil {
		return out, err
	}
	if out.Incomparable = compare.obstacle; out.Incomparable == "" && !compare.shared {
		told := 0
		err := compare.run(ctx, func(change string, old, now *state.Entry) error {
			switch change {
			case entryAdded:
				out.Added++
			case entryRemoved:
				out.Removed++
			default:
				out.Changed++
			}
			if d.summary || d.limit > 0 && told == d.limit {
				return nil
			}
			told++
			diff, err := compare.tell(change, old, now)
			if err != nil {
				return err
			}
			return diff.write(c)
		})
		if err != nil {
			return out, err
		}
	}
	if asJSON(c) {
		return out, writeJSON(c.OutOrStdout(), out)
	}
	return out, out.write(c.OutOrStdout(), d.limit, d.summary)
}

func (s sums) write(w io.Writer, limit int, summary bool) error {
	text := fmt.Sprintf("state %s: %s added, %s removed, %s changed", s.State, count(s.Added), count(s.Removed), count(s.Changed))
	if s.Incomparable != "" {
		text = fmt.Sprintf("state %s: %s", s.State, s.Incomparable)
	}
	if more := s.Added + s.Removed + s.Changed - int64(limit); limit > 0 && more > 0 && !summary {
		text += fmt.Sprintf("; %s more are not listed, --limit 0 lists all", count(more))
	}
	_, err := fmt.Fprintln(w, printable(text))
	return err
}

func (d difference) write(c *cobra.Command) error {
	w := c.OutOrStdout()
	if asJSON(c) {
		return writeJSON(w, d)
	}
	key := string(d.Key)
	if d.Element != nil {
		key += " " + string(d.Element)
	}
	sign, rest := "~", ""
	switch d.Change {
	case entryAdded:
		sign, rest = "+", string(d.New)
	case entryRemoved:
		sign, rest = "-", string(d.Old)
	default:
		parts := make([]string, len(d.Fields))
		for i, f := range d.Fields {
			parts[i] = strings.TrimPrefix(f.Path+": ", ": ") + orNothing(f.Old) + " → " + orNothing(f.New)
		}
		rest = strings.Join(parts, ", ")
	}
	_, err := fmt.Fprintln(w, printable(fmt.Sprintf("%s %s %s  %s", sign, d.State, key, rest)))
	return err
}

func orNothing(v jsontext.Value) string {
	if v == nil {
		return "nothing"
	}
	return string(v)
}

// comparison compares a state of two epochs.
type comparison struct {
	name     string
	sides    [2]snapshot
	forms    [2]*state.Form // nil: the epoch lacks the state
	shared   bool           // both have the very same segments
	obstacle string         // to comparing entries

	keys, elements func(a, b []byte) int
	key, element   textFunc
	values         [2]textFunc
}

// textFunc appends the text of the value that src begins with.
type textFunc = func(dst, src []byte) (out, rest []byte, err error)

func newComparison(sides [2]snapshot, name string) (*comparison, error) {
	c := &comparison{name: name, sides: sides}
	var form state.Form // of either
	for i, s := range sides {
		if _, ok := s.epoch.State[name]; !ok {
			continue
		}
		f, err := s.form(name)
		if err != nil {
			return nil, err
		}
		form, c.forms[i], c.values[i] = f, &f, schema.JSON(f.Value)
	}
	if a, b := c.forms[0], c.forms[1]; a != nil && b != nil {
		for _, part := range []struct {
			what string
			a, b *schema.Schema
		}{{"keys", a.Key, b.Key}, {"elements", a.Element, b.Element}} {
			if !part.a.Equal(part.b) {
				c.obstacle = fmt.Sprintf("its %s have another schema, %s and %s: no entry of one is any of the other's", part.what, shapeOrNone(part.a), shapeOrNone(part.b))
			}
		}
		// What two epochs share to the last segment is the same, read or not.
		c.shared = a.Value.Equal(b.Value) && slices.EqualFunc(sides[0].epoch.State[name].Segments, sides[1].epoch.State[name].Segments,
			func(a, b epoch.Segment) bool { return a.Path == b.Path && a.SHA256 == b.SHA256 })
	}
	var err error
	if c.keys, err = schema.Comparer(form.Key); err != nil {
		return nil, err
	}
	c.key = schema.JSON(form.Key)
	if form.Element != nil {
		c.element = schema.JSON(form.Element)
		c.elements, err = schema.Comparer(form.Element)
	}
	return c, err
}

func shapeOrNone(s *schema.Schema) string {
	if s == nil {
		return "none"
	}
	return shape(s)
}

// run goes through both sides in their common order.
func (c *comparison) run(ctx context.Context, differs func(change string, old, now *state.Entry) error) error {
	var next [2]func() (*state.Entry, error, bool)
	for i, f := range c.forms {
		entries := iter.Seq2[*state.Entry, error](func(func(*state.Entry, error) bool) {})
		if f != nil {
			entries = c.sides[i].entries(ctx, *f, epoch.AllSlots)
		}
		pull, stop := iter.Pull2(entries)
		defer stop()
		next[i] = pull
	}
	var at [2]*state.Entry
	move := func(i int) error {
		e, err, ok := next[i]()
		if at[i] = e; !ok {
			at[i] = nil
		}
		return err
	}
	for i := range at {
		if err := move(i); err != nil {
			return err
		}
	}
	for at[0] != nil || at[1] != nil {
		order := c.order(at[0], at[1])
		var err error
		switch {
		case order < 0:
			err = differs(entryRemoved, at[0], nil)
		case order > 0:
			err = differs(entryAdded, nil, at[1])
		default:
			var same bool
			if same, err = c.same(at[0], at[1]); err == nil && !same {
				err = differs(entryChanged, at[0], at[1])
			}
		}
		if err == nil && order <= 0 {
			err = move(0)
		}
		if err == nil && order >= 0 {
			err = move(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order compares the places of two entries; a side that has ended is behind.
func (c *comparison) order(a, b *state.Entry) int {
	switch {
	case b == nil:
		return -1
	case a == nil:
		return 1
	case a.Slot != b.Slot:
		return int(a.Slot) - int(b.Slot)
	}
	if order := c.keys(a.Key, b.Key); order != 0 || c.elements == nil {
		return order
	}
	return c.elements(a.Element, b.Element)
}

// same tells whether two entries of one key have one value.
func (c *comparison) same(a, b *state.Entry) (bool, error) {
	if c.forms[0].Value.Equal(c.forms[1].Value) {
		return bytes.Equal(a.Value, b.Value), nil
	}
	old, err := c.value(0, a)
	if err != nil {
		return false, err
	}
	now, err := c.value(1, b)
	return bytes.Equal(old, now), err
}

func (c *comparison) value(side int, e *state.Entry) (jsontext.Value, error) {
	text, _, err := c.values[side](nil, e.Value)
	if err != nil {
		return nil, fmt.Errorf("state %s: an entry can't be read: %w", c.name, err)
	}
	return text, nil
}

// tell describes a difference.
func (c *comparison) tell(change string, old, now *state.Entry) (d difference, err error) {
	d = difference{State: c.name, Change: change}
	e := old
	if e == nil {
		e = now
	}
	if d.Key, _, err = c.key(nil, e.Key); err == nil && c.element != nil {
		d.Element, _, err = c.element(nil, e.Element)
	}
	if err != nil {
		return d, fmt.Errorf("state %s: an entry can't be read: %w", c.name, err)
	}
	if old != nil {
		if d.Old, err = c.value(0, old); err != nil {
			return d, err
		}
	}
	if now != nil {
		if d.New, err = c.value(1, now); err != nil {
			return d, err
		}
	}
	if change == entryChanged {
		d.Fields, err = fieldDifferences(nil, "", d.Old, d.New)
	}
	return d, err
}
