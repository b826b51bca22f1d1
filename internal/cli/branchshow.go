package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// shownBranch is one branch in full.
type shownBranch struct {
	listedBranch
	// Sinks are those of its newest epoch; Starts says where new ones start.
	Sinks      []branchSink      `json:"sinks,omitempty"`
	Starts     map[string]string `json:"starts,omitempty"`
	Superseded []epoch.Build     `json:"superseded,omitempty"`
	SealedBy   string            `json:"sealed_by,omitempty"`
	// Pins are the epochs that are kept for it.
	Pins []heldPin `json:"pins,omitempty"`
	// Objects and Bytes are the data objects that are its own.
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// branchSink is where a sink of a branch stands.
type branchSink struct {
	Sink      string         `json:"sink"`
	Start     epoch.Position `json:"start"`
	Confirmed epoch.Position `json:"confirmed"`
	Dropped   string         `json:"dropped,omitempty"`
	// Filling is how far it has been filled before the cut; nil: it isn't, or has all.
	Filling *fillingSink `json:"filling,omitempty"`
}

// fillingSink is how far a sink has been filled.
type fillingSink struct {
	// Branch is the one that fills it, with so many parts by now.
	Branch    string `json:"branch"`
	Parts     int    `json:"parts"`
	Delivered int    `json:"delivered"`
	// Percent is how much of a table has been put out.
	Percent int `json:"percent"`
}

func fillingOf(s epoch.SinkState) *fillingSink {
	if s.Fill == nil {
		return nil
	}
	f := &fillingSink{s.Fill.Branch, s.Fill.Parts, s.Fill.Delivered, 100}
	if r := rewritingOf(s.Rewrite); r != nil {
		f.Percent = r.Percent
	}
	return f
}

// String says it in words.
func (f *fillingSink) String() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d parts, %d%%", f.Delivered, f.Parts, f.Percent)
}

// heldPin is an epoch that is kept for a branch.
type heldPin struct {
	Pin   string      `json:"pin"`
	Epoch epoch.Epoch `json:"epoch"`
	// Branch is the one whose epoch it is.
	Branch string `json:"branch"`
	Made   string `json:"made"`
}

func branchShowCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [JOB] BRANCH",
		Short: "A branch in full",
		Long: `A branch in full: who began it and from where, the generations that it was live as, its
sinks and where they start, partial states, the builds that are replaced, the epochs
that are kept for it, and the room that the data of its own takes.`,
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			job, bs, b, err := jobAndBranch(c, p, args)
			if err != nil {
				return err
			}
			shown, err := showBranch(c.Context(), job, bs, b, listBranch(bs, b, p.env.Clock.Now()))
			if err != nil {
				return err
			}
			if asJSON(c) {
				return writeJSON(c.OutOrStdout(), shown)
			}
			return shown.write(c.OutOrStdout(), job.Name())
		},
	}
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	return c
}

func showBranch(ctx context.Context, job *epoch.Job, bs upgrade.Branches, b upgrade.Branch, listed listedBranch) (shownBranch, error) {
	s := shownBranch{listedBranch: listed, Starts: b.File.Starts, Superseded: b.Head.Manifest.Superseded}
	for name, sink := range sorted(b.Head.Manifest.Sinks) {
		s.Sinks = append(s.Sinks, branchSink{name, sink.Start, sink.Confirmed, sink.Dropped, fillingOf(sink)})
	}
	if b.Head.Seal != nil {
		s.SealedBy = orNobody(b.Head.Seal.By)
	}
	pins, err := job.Pins(ctx)
	if err != nil {
		return s, err
	}
	for id, pin := range sorted(pins) {
		if !pin.Reader && epoch.PinHolder(id) == b.Name {
			s.Pins = append(s.Pins, heldPin{id, pin.Tasks[bs.Task], pin.Branch, stamp(pin.Time)})
		}
	}
	s.Objects, s.Bytes, err = ownData(ctx, job, b.Name, bs.Task)
	return s, err
}

// dataPage is how many data objects are listed at once.
const dataPage = 1000

// ownData counts the data objects of a log, and their bytes.
func ownData(ctx context.Context, job *epoch.Job, branch, task string) (objects, bytes int64, err error) {
	prefix := job.Object(epoch.LogPath(branch, task) + "data/")
	for after := ""; ; {
		page, err := job.Store().List(ctx, prefix, after, dataPage)
		if err != nil {
			return objects, bytes, fmt.Errorf("%s: %w", job.Name(), err)
		}
		for _, listed := range page {
			objects, bytes, after = objects+1, bytes+listed.Size, listed.Name
		}
		if len(page) < dataPage {
			return objects, bytes, nil
		}
	}
}

func (s shownBranch) write(w io.Writer, job string) error {
	style := stylesFor(w)
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s %s, branch %s\n", style.head("job"), job, printable(s.Branch))
	line("state", "%s", s.stands())
	if s.Base != nil {
		line("base", "epoch %d of branch %s", s.Base.Epoch, s.Base.Branch)
	}
	if s.Begun != "" {
		line("begun", "%s, %s, by %s", moment(s.micros), s.Kind, orNobody(s.By))
	}
	if s.Build != nil {
		line("build", "%s", s.Build)
	}
	if s.Epoch != nil {
		line("epoch", "%d, position %d", *s.Epoch, *s.Position)
	}
	if s.Covers != nil {
		line("covers", "position %d, %d behind", *s.Covers, *s.Behind)
	}
	if owner := s.owner(); owner != "" {
		line("owner", "%s", owner)
	}
	for _, why := range s.Objections {
		line("objects", "%s", why)
	}
	if s.SealedBy != "" {
		line("sealed", "by %s", s.SealedBy)
	}
	for sink, start := range sorted(s.Starts) {
		line("starts", "sink %s at the %s", sink, start)
	}
	for _, build := range s.Superseded {
		line("replaced", "%s", build)
	}
	line("data", "%s objects of its own, %s", count(s.Objects), size(s.Bytes))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return writeTables(w, s.sinks(), partialTable(s.Partial, style), s.pins())
}

func (s shownBranch) sinks() *table {
	columns := []column{text("sink"), number("start"), number("confirmed"), text("dropped")}
	if slices.ContainsFunc(s.Sinks, func(b branchSink) bool { return b.Filling != nil }) {
		columns = append(columns, text("filled"))
	}
	t := newTable(columns...)
	for _, sink := range s.Sinks {
		row := []string{sink.Sink, count(sink.Start), count(sink.Confirmed), sink.Dropped, sink.Filling.String()}
		t.row(row[:len(columns)]...)
	}
	return t
}

func (s shownBranch) pins() *table {
	t := newTable(text("pin"), text("branch"), number("epoch"), text("made"))
	for _, pin := range s.Pins {
		t.row(pin.Pin, pin.Branch, count(pin.Epoch), strings.Replace(pin.Made, "T", " ", 1))
	}
	return t
}
