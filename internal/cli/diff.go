package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
	"github.com/sluicestream/sluice/schema"
)

// comparing are the flags of diff.
type comparing struct {
	ignore, tolerance []string
	samples           int
}

func diffCommand(p *place) *cobra.Command {
	var d comparing
	c := &cobra.Command{
		Use:   "diff [JOB] BRANCH [OTHER]",
		Short: "What differs in the outputs of two branches",
		Long: `Tells what differs between the outputs of two branches, over the positions that both
have: of OTHER, which is old, and of BRANCH, which is new. OTHER defaults to what was
live, generation after generation, up to where BRANCH itself went live. Each sink that
both have is compared: rows that are equal, changed, or on one side alone, with the
columns that differ and the first rows that do. A table is compared key by key, a stream
record by record; epochs that were taken in one step by the last row of each key, and
without their order.

A column that only one side has is a difference as well, unless --ignore leaves it out;
one that was retyped is none where its values are equal. What clean-up has removed is
told, and not compared.

  sluice diff spend next-0123456789abcdef
  sluice diff spend next-0123456789abcdef --ignore totals.updated --tolerance totals.mean=0.1%

` + exitCodes(exitDone, exitError, exitUsage, exitDiffers, 14),
		Args: arguments(1, 3),
		RunE: func(c *cobra.Command, args []string) error { return d.run(c, p, args) },
	}
	f := c.Flags()
	d.addTo(f)
	f.IntVar(&d.samples, "samples", 20, "tell at most this `number` of rows that differ for each sink; 0: none")
	f.Bool("json", false, "write it as a JSON object (default false)")
	return c
}

// addTo adds the flags that say how columns are compared.
func (d *comparing) addTo(f *pflag.FlagSet) {
	f.StringArrayVar(&d.ignore, "ignore", nil, "compare all but the column `SINK.COLUMN`; may be repeated (default none)")
	f.StringArrayVar(&d.tolerance, "tolerance", nil, "values of `SINK.COLUMN=BY` are equal that differ by so much at most: a number, a share as 0.1%, a time as 5s; may be repeated (default none)")
}

func (d comparing) run(c *cobra.Command, p *place, args []string) error {
	if d.samples < 0 {
		return usagef("--samples %d: 0 or more", d.samples)
	}
	ctx := c.Context()
	job, names, err := p.jobAndRest(ctx, args)
	if err != nil {
		return err
	}
	if len(names) < 1 || len(names) > 2 {
		return usagef("%s: one branch or two are needed; use it as `%s`", c.CommandPath(), c.UseLine())
	}
	if len(names) == 2 && names[0] == names[1] {
		return usagef("%s: branch %s is the same as itself; name two", c.CommandPath(), names[0])
	}
	for _, name := range names {
		_, b, err := theBranch(ctx, job, name)
		if err != nil {
			return err
		}
		if b.Gone {
			return fmt.Errorf("%s: branch %s was cleaned away, so that nothing of its outputs is left to compare; `sluice branch list %s` shows the others", job.Name(), name, job.Name())
		}
	}
	out, err := d.compare(ctx, job, names)
	if err != nil {
		return err
	}
	if asJSON(c) {
		err = writeJSON(c.OutOrStdout(), out)
	} else {
		err = out.write(c.OutOrStdout())
	}
	if err == nil && out.Different {
		return outcome(exitDiffers)
	}
	return err
}

// maxOvertaken bounds how often a sink is compared anew because clean-up was faster. It
// comes by about once a minute.
const maxOvertaken = 10

// compare compares the sinks, each from where both sides are kept at the time.
func (d comparing) compare(ctx context.Context, job *epoch.Job, names []string) (comparedBranches, error) {
	pair, err := pairOf(ctx, job, names)
	if err != nil {
		return comparedBranches{}, err
	}
	out := comparedBranches{Job: job.Name(), Old: pair.Old.Name, New: pair.New.Name, Sinks: []comparedSink{}}
	both, onlyOld, onlyNew := pair.Sinks()
	out.OnlyOld, out.OnlyNew = onlyOld, onlyNew
	columns, err := d.columns(both)
	if err != nil {
		return out, err
	}
	switch {
	case !pair.Any:
		return out, nothingToCompare(job.Name(), pair)
	case len(both) == 0:
		return out, fmt.Errorf("%s: there is nothing to compare: %s has the sinks %s, %s the sinks %s, and none is in both", job.Name(),
			pair.Old.Name, strings.Join(onlyOld, ", "), pair.New.Name, strings.Join(onlyNew, ", "))
	}
	for _, sink := range both {
		options := compare.Options{Columns: columns[sink], Samples: d.samples}
		if d.samples == 0 {
			options.Samples = -1
		}
		one, err := compareSink(ctx, job, names, pair, sink, options)
		if err != nil {
			return out, err
		}
		out.Sinks = append(out.Sinks, one)
		out.Different = out.Different || one.differs()
	}
	return out, nil
}

// compareSink compares one sink; where clean-up is faster, from a later position.
func compareSink(ctx context.Context, job *epoch.Job, names []string, pair upgrade.Pair, sink string, options compare.Options) (comparedSink, error) {
	for range maxOvertaken {
		result, err := pair.Compare(ctx, job.Name(), sink, options)
		if err == nil {
			one := sinkOf(result)
			if one.Missing = pair.Missing(); result.To == 0 {
				one.After, one.To = pair.After, pair.After
			}
			return one, nil
		}
		if option := (*compare.OptionError)(nil); errors.As(err, &option) {
			return comparedSink{}, usageError{err}
		}
		if err := unlessOvertaken(ctx, pair, err); err != nil {
			return comparedSink{}, err
		}
		if pair, err = pairOf(ctx, job, names); err != nil {
			return comparedSink{}, err
		}
		if !pair.Any {
			return comparedSink{}, nothingToCompare(job.Name(), pair)
		}
	}
	return comparedSink{}, fmt.Errorf("%s: sink %s: clean-up was faster %d times; keep more with --keep, or try again", job.Name(), sink, maxOvertaken)
}

// pairOf looks at the outputs of both sides.
func pairOf(ctx context.Context, job *epoch.Job, names []string) (pair upgrade.Pair, err error) {
	for range maxOvertaken {
		if pair, err = lookAtPair(ctx, job, names); err == nil {
			return pair, nil
		}
		if err := unlessOvertaken(ctx, pair, err); err != nil {
			return pair, err
		}
	}
	return pair, err
}

// unlessOvertaken is an error, or nil if it comes from clean-up, which was faster.
func unlessOvertaken(ctx context.Context, pair upgrade.Pair, err error) error {
	overtaken, oerr := pair.Overtaken(ctx, err)
	switch {
	case oerr != nil:
		return fmt.Errorf("%w; and whether it was cleaned away is not known: %w", err, oerr)
	case overtaken:
		return nil
	}
	return err
}

// lookAtPair returns what it has looked at also with an error.
func lookAtPair(ctx context.Context, job *epoch.Job, names []string) (pair upgrade.Pair, err error) {
	if len(names) == 2 {
		pair.Old, err = upgrade.OutputsOf(ctx, job, epoch.FirstTask, names[1])
	} else {
		pair.Old, err = upgrade.LiveOutputs(ctx, job, epoch.FirstTask, names[0])
	}
	if err != nil {
		return pair, err
	}
	if pair.New, err = upgrade.OutputsOf(ctx, job, epoch.FirstTask, names[0]); err != nil {
		return pair, err
	}
	return upgrade.NewPair(ctx, pair.Old, pair.New)
}

func nothingToCompare(job string, pair upgrade.Pair) error {
	has := func(o upgrade.Outputs) string {
		if o.To <= o.After {
			return "none of " + o.Name
		}
		return fmt.Sprintf("%d to %d of %s", o.After+1, o.To, o.Name)
	}
	text := fmt.Sprintf("%s; %s", has(pair.Old), has(pair.New))
	if missing := pair.Missing(); missing != "" {
		text += "; " + missing
	}
	return fmt.Errorf("%s: there is nothing to compare: expected positions at whose ends both sides have an epoch, found %s. Try again when there are more, or name another branch", job, text)
}

// columns are the options of columns, by sink.
func (d comparing) columns(sinks []string) (map[string]map[string]compare.Column, error) {
	all := map[string]map[string]compare.Column{}
	set := func(flag, text, name string, change func(c *compare.Column) error) error {
		sink, column, err := columnOf(sinks, name)
		if err != nil {
			return usagef("--%s %s: %w", flag, text, err)
		}
		if all[sink] == nil {
			all[sink] = map[string]compare.Column{}
		}
		c := all[sink][column]
		if err := change(&c); err != nil {
			return usagef("--%s %s: %w", flag, text, err)
		}
		all[sink][column] = c
		return nil
	}
	for _, text := range d.ignore {
		if err := set("ignore", text, text, func(c *compare.Column) error { c.Ignore = true; return nil }); err != nil {
			return nil, err
		}
	}
	for _, text := range d.tolerance {
		cut := strings.LastIndexByte(text, '=')
		if cut < 0 {
			return nil, usagef("--tolerance %s: expected SINK.COLUMN=BY, as totals.mean=0.01", text)
		}
		if err := set("tolerance", text, text[:cut], func(c *compare.Column) error { return addTolerance(c, text[cut+1:]) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// columnOf takes a name apart. Both a sink's and a column's may have dots: the longest
// sink that there is counts.
func columnOf(sinks []string, name string) (sink, column string, err error) {
	for _, s := range sinks {
		if rest, ok := strings.CutPrefix(name, s+"."); ok && rest != "" && len(s) > len(sink) {
			sink, column = s, rest
		}
	}
	if sink == "" {
		return "", "", fmt.Errorf("expected SINK.COLUMN, of a sink that both sides have: %s", strings.Join(sinks, ", "))
	}
	return sink, column, nil
}

func addTolerance(c *compare.Column, text string) error {
	share, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(share, 64)
	switch {
	case err == nil && !(n >= 0):
		return fmt.Errorf("expected 0 or more")
	case err == nil && percent:
		c.Relative = n / 100
	case err == nil:
		c.Absolute = n
	default:
		by, terr := time.ParseDuration(text)
		if terr != nil || by < 0 {
			return fmt.Errorf("expected a number, a share as 0.1%%, or a time as 5s")
		}
		c.Time = by
	}
	return nil
}

// comparedBranches is what came of comparing two branches.
type comparedBranches struct {
	Job       string         `json:"job"`
	Old       string         `json:"old"`
	New       string         `json:"new"`
	Different bool           `json:"different"`
	Sinks     []comparedSink `json:"sinks"`
	// OnlyOld and OnlyNew are sinks that one side has alone; they are not compared.
	OnlyOld []string `json:"only_old,omitempty"`
	OnlyNew []string `json:"only_new,omitempty"`
}

// comparedSink is what came of one sink, over the positions behind After up to To.
type comparedSink struct {
	Sink    string         `json:"sink"`
	After   epoch.Position `json:"after"`
	To      epoch.Position `json:"to"`
	Equal   int64          `json:"equal"`
	Changed int64          `json:"changed"`
	OnlyOld int64          `json:"only_old"`
	OnlyNew int64          `json:"only_new"`
	// Untold are rows of the old and the new side that could not be compared, for these
	// Reasons.
	UntoldOld int64    `json:"untold_old,omitzero"`
	UntoldNew int64    `json:"untold_new,omitzero"`
	Reasons   []string `json:"reasons,omitempty"`
	// Columns counts the changed rows by column.
	Columns map[string]int64 `json:"columns,omitempty"`
	Samples []comparedRow    `json:"samples,omitempty"`
	Schemas []columnChange   `json:"schemas,omitempty"`
	// Missing says which positions were not compared since they are not kept.
	Missing string `json:"missing,omitempty"`

	untold, lonely bool // not all was compared; a column is on one side alone
}

// comparedRow is a row that differs.
type comparedRow struct {
	After epoch.Position `json:"after"`
	To    epoch.Position `json:"to"`
	Key   string         `json:"key,omitempty"`
	Old   string         `json:"old,omitempty"`
	New   string         `json:"new,omitempty"`
	// OldDeletes and NewDeletes say that a side deletes the key.
	OldDeletes bool             `json:"old_deletes,omitzero"`
	NewDeletes bool             `json:"new_deletes,omitzero"`
	Columns    []comparedColumn `json:"columns,omitempty"`
}

// comparedColumn is a column of a row that changed.
type comparedColumn struct {
	Column string `json:"column"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

// columnChange is a difference of the rows' schemas.
type columnChange struct {
	Path   string `json:"path"`
	Change string `json:"change"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

func sinkOf(r compare.Result) comparedSink {
	s := comparedSink{
		Sink: r.Sink, After: r.After, To: r.To, Equal: r.Equal, Changed: r.Changed, OnlyOld: r.OnlyOld, OnlyNew: r.OnlyNew,
		UntoldOld: r.UntoldOld, UntoldNew: r.UntoldNew, Reasons: r.Reasons, untold: r.Untold > 0,
	}
	for _, c := range r.Columns {
		if s.Columns == nil {
			s.Columns = map[string]int64{}
		}
		s.Columns[c.Column] = c.Rows
	}
	for _, x := range r.Samples {
		row := comparedRow{After: x.After, To: x.To, Key: x.Key, Old: x.Old, New: x.New, OldDeletes: x.OldDeletes, NewDeletes: x.NewDeletes}
		for _, c := range x.Columns {
			row.Columns = append(row.Columns, comparedColumn(c))
		}
		s.Samples = append(s.Samples, row)
	}
	for _, d := range r.Schemas {
		s.Schemas = append(s.Schemas, columnChange{d.Path, string(d.Change), d.Old, d.New})
		s.lonely = s.lonely || d.Change == schema.Added || d.Change == schema.Removed
	}
	return s
}

func (s comparedSink) differs() bool {
	return s.Changed+s.OnlyOld+s.OnlyNew > 0 || s.untold || s.lonely
}

func (b comparedBranches) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: old is %s, new is %s\n\n", b.Job, b.Old, b.New); err != nil {
		return err
	}
	if err := b.writeTables(w); err != nil {
		return err
	}
	notes := b.notes()
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(w, printable(note)); err != nil {
			return err
		}
	}
	return nil
}

func (b comparedBranches) writeTables(w io.Writer) error {
	if err := b.sums().write(w); err != nil {
		return err
	}
	return writeTables(w, b.columns(), b.samples(), b.schemas())
}

func (b comparedBranches) sums() *table {
	t := newTable(text("sink"), text("positions"), number("equal"), number("changed"), number("only old"), number("only new"), number("not compared"))
	for _, s := range b.Sinks {
		positions := "none"
		if s.To > s.After {
			positions = fmt.Sprintf("%d to %d", s.After+1, s.To)
		}
		t.row(s.Sink, positions, count(s.Equal), count(s.Changed), count(s.OnlyOld), count(s.OnlyNew), count(s.UntoldOld+s.UntoldNew))
	}
	return t
}

func (b comparedBranches) columns() *table {
	t := newTable(text("sink"), text("column"), number("rows changed"))
	for _, s := range b.Sinks {
		for name, rows := range sorted(s.Columns) {
			t.row(s.Sink, name, count(rows))
		}
	}
	return t
}

// samples are the rows that differ: of one that changed, each column that does.
func (b comparedBranches) samples() *table {
	t := newTable(text("sink"), number("position"), text("key"), text("column"), text("old"), text("new"))
	for _, s := range b.Sinks {
		for _, row := range s.Samples {
			position := fmt.Sprint(row.To)
			if row.To > row.After+1 {
				position = fmt.Sprintf("%d-%d", row.After+1, row.To)
			}
			if len(row.Columns) == 0 {
				t.row(s.Sink, position, row.Key, "", rowText(row.Old, row.OldDeletes), rowText(row.New, row.NewDeletes))
			}
			for _, c := range row.Columns {
				t.row(s.Sink, position, row.Key, c.Column, c.Old, c.New)
			}
		}
	}
	return t
}

func rowText(text string, deletes bool) string {
	switch {
	case deletes:
		return "deleted"
	case text == "":
		return "nothing"
	}
	return text
}

func (b comparedBranches) schemas() *table {
	t := newTable(text("sink"), text("column"), text("its schema"), text("old"), text("new"))
	for _, s := range b.Sinks {
		for _, d := range s.Schemas {
			t.row(s.Sink, d.Path, d.Change, d.Old, d.New)
		}
	}
	return t
}

// notes say what was not compared, and why.
func (b comparedBranches) notes() (notes []string) {
	for _, s := range b.Sinks {
		for _, reason := range s.Reasons {
			notes = append(notes, fmt.Sprintf("sink %s: not compared in part: %s", s.Sink, reason))
		}
	}
	missing := map[string][]string{}
	for _, s := range b.Sinks {
		if s.Missing != "" {
			missing[s.Missing] = append(missing[s.Missing], s.Sink)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		notes = append(notes, fmt.Sprintf("not compared: %s (sinks %s)", why, strings.Join(missing[why], ", ")))
	}
	for _, sink := range b.OnlyOld {
		notes = append(notes, fmt.Sprintf("not compared: %s alone has sink %s", b.Old, sink))
	}
	for _, sink := range b.OnlyNew {
		notes = append(notes, fmt.Sprintf("not compared: %s alone has sink %s", b.New, sink))
	}
	return notes
}
