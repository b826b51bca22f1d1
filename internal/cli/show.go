package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// showing are the flags of show.
type showing struct {
	branch string
	runs   bool
}

func showCommand(p *place) *cobra.Command {
	var s showing
	c := &cobra.Command{
		Use:   "show [JOB] [EPOCH]",
		Short: "An epoch in full",
		Long: `An epoch in full: who wrote it, what it read and in which order, where the sources
stood then, the files of its states and outboxes, and what each sink was known to
have got; of a job with event times also where these stood, what its windows were, how
far they had closed, and how many records had come too late or without a time. EPOCH is its number, as log tells it, or a savepoint; it defaults to the
newest that is no seal. A number alone is an epoch, any other word alone the job, or a
savepoint if there is no such job. With --json the manifest itself is written, byte
for byte as it stands in the store.`,
		Args: arguments(0, 2),
	}
	f := c.Flags()
	f.StringVar(&s.branch, "branch", "", "the `branch`; defaults to the live one")
	f.BoolVar(&s.runs, "runs", false, "list the runs one by one, in the order of reading (default false)")
	f.Bool("json", false, "write the manifest (default false)")
	c.RunE = func(c *cobra.Command, args []string) error { return s.print(c, p, args) }
	return c
}

// epochArgument opens the job that the arguments name, and says which epoch they do.
func epochArgument(ctx context.Context, p *place, args []string) (job *epoch.Job, e epochName, err error) {
	name := ""
	switch len(args) {
	case 1:
		e = epochName(args[0])
		if _, number := e.number(); !number {
			name, e = args[0], ""
		}
	case 2:
		name, e = args[0], epochName(args[1])
	}
	job, err = p.job(ctx, name)
	if len(args) != 1 || err == nil || epoch.CheckName("savepoint", name) != nil {
		return job, e, err
	}
	// No job of that name: a savepoint of the only one?
	only, oerr := p.job(ctx, "")
	if oerr != nil {
		return nil, "", err
	}
	switch _, ok, serr := only.Savepoint(ctx, name); {
	case serr != nil:
		return nil, "", serr
	case !ok:
		return nil, "", err
	}
	return only, epochName(name), nil
}

func (s showing) print(c *cobra.Command, p *place, args []string) error {
	ctx := c.Context()
	job, name, err := epochArgument(ctx, p, args)
	if err != nil {
		return err
	}
	m, err := name.manifest(ctx, job, s.branch)
	if err != nil {
		return err
	}
	s.branch = m.Branch
	head, err := job.Head(ctx, s.branch, epoch.FirstTask)
	if err != nil {
		return err
	}
	path := job.Object(epoch.ManifestPath(s.branch, epoch.FirstTask, m.Epoch))
	data, err := job.Store().Read(ctx, path, epoch.MaxObject)
	if err != nil {
		return fmt.Errorf("%s: %w", job.Name(), err)
	}
	if asJSON(c) {
		_, err := c.OutOrStdout().Write(data)
		return err
	}
	times, err := timesOf(ctx, job, m)
	if err != nil {
		return err
	}
	v := view{job.Name(), m, epoch.Hash(data), head, times}
	return v.write(c.OutOrStdout(), s.runs)
}

// view is an epoch that is shown.
type view struct {
	job  string
	m    epoch.Manifest
	hash string
	head epoch.Head
	timesStatus
}

func (v view) write(w io.Writer, runs bool) error {
	if _, err := io.WriteString(w, v.summary(stylesFor(w))); err != nil {
		return err
	}
	tables := []*table{v.partitions(), v.times(), v.operators(), v.windows(), v.states(), v.segments(), v.sinks(), v.outboxes(), v.counts()}
	if runs {
		tables = append(tables, v.runs())
	}
	return writeTables(w, tables...)
}

// summary is what there is one of in an epoch.
func (v view) summary(style styles) string {
	m := v.m
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s %s, branch %s, task %s\n", style.head("job"), v.job, m.Branch, m.Task)
	line("epoch", "%d, %s, position %d, of %s", m.Epoch, m.Kind, m.Position, moment(m.Time))
	if seal := v.head.Seal; seal != nil && m.Epoch == v.head.Manifest.Epoch {
		line("sealed", "in epoch %d, by %s", seal.Epoch, orNobody(seal.By))
	}
	if m.Kind == epoch.Seal {
		line("by", "%s", orNobody(m.By))
	}
	line("sha256", "%s", v.hash)
	if m.Parent != "" {
		line("parent", "%s", m.Parent)
	}
	line("owner", "%s, %s", m.Owner, m.Writer)
	line("build", "%s", m.Build)
	line("version", "%s", m.Version)
	if m.Live != nil {
		line("live", "generation %d", *m.Live)
	}
	for task, position := range sorted(m.Covers) {
		line("covers", "position %d of task %s", position, task)
	}
	if m.Now != 0 {
		line("now", "%s", moment(m.Now))
	}
	for name, to := range sorted(m.Advanced) {
		line("advanced", "watermark of %s, to %s, so that all windows close", name, moment(int64(to)))
	}
	if m.Request != 0 {
		line("request", "%d was the newest done", m.Request)
	}
	if m.EditsOf != 0 {
		line("edits", "a part of request %d, of which more comes", m.EditsOf)
	}
	for _, e := range m.Edits {
		line("edit", "state %s: the entry of slot %d with the hash %s was deleted", e.State, e.Slot, short(e.Hash))
	}
	for name, partial := range sorted(m.Partial) {
		line("partial", "state %s: %s%s", name, partial.Why, until(partial.Until))
	}
	for _, build := range m.Superseded {
		line("replaced", "%s", build)
	}
	return b.String()
}

func orNobody(by string) string {
	if by == "" {
		return "nobody who says so"
	}
	return by
}

func until(micros int64) string {
	if micros == 0 {
		return ""
	}
	return ", until " + moment(micros)
}

// partitions are how far each has been read, and in how many runs of this epoch.
func (v view) partitions() *table {
	t := newTable(text("source"), text("partition"), number("runs"), number("next offset"), text("event time"))
	type key struct{ source, partition string }
	runs := map[key]int{}
	for _, r := range v.m.Runs {
		runs[key{r.Source, r.Partition}]++
	}
	for source, at := range sorted(v.m.Sources) {
		for partition, offset := range sorted(at.Partitions) {
			t.row(source, partition, count(runs[key{source, partition}]), count(offset.Next), v.watermark(source, partition))
		}
	}
	return t
}

// watermark tells a partition's watermarks, by event time if there is more than one.
func (v view) watermark(source, partition string) string {
	var all []string
	for name, at := range sorted(v.m.Watermarks) {
		p, ok := at.Partitions[source][partition]
		switch {
		case !ok || p.Watermark.IsZero():
		case len(v.m.Watermarks) == 1:
			all = append(all, moment(int64(p.Watermark)))
		default:
			all = append(all, name+" "+moment(int64(p.Watermark)))
		}
	}
	return strings.Join(all, ", ")
}

// runs are the batches in the order of reading.
func (v view) runs() *table {
	t := newTable(number("run"), text("source"), text("partition"), number("next offset"))
	for i, r := range v.m.Runs {
		t.row(count(i+1), r.Source, r.Partition, count(r.Next))
	}
	return t
}

func (v view) states() *table {
	t := newTable(text("state"), number("rows"), number("bytes"), number("in memory"), number("segments"))
	for name, e := range sorted(v.m.State) {
		var rows, bytes, memory int64
		for _, s := range e.Segments {
			rows, bytes, memory = rows+s.Rows, bytes+s.Bytes, memory+s.Memory
		}
		t.row(name, count(rows), size(bytes), size(memory), count(len(e.Segments)))
	}
	return t
}

func (v view) segments() *table {
	t := newTable(text("state"), text("segment"), text("slots"), number("rows"), number("bytes"), text("sha256"))
	for name, e := range sorted(v.m.State) {
		for _, s := range e.Segments {
			t.row(name, s.Path, fmt.Sprintf("%d-%d", s.Slots.First, s.Slots.Last), count(s.Rows), size(s.Bytes), short(s.SHA256))
		}
	}
	return t
}

func (v view) sinks() *table {
	t := newTable(text("sink"), number("start"), number("confirmed"), text("record"), number("rows out"), text("note"))
	for name, s := range sorted(v.m.Sinks) {
		var rows int64
		for _, o := range s.Outbox {
			rows += o.Rows
		}
		t.row(name, count(s.Start), count(s.Confirmed), s.Record, count(rows), remarks(s))
	}
	return t
}

// remarks are what is seldom to be said of a sink.
func remarks(s epoch.SinkState) string {
	var all []string
	if s.Dropped != "" {
		all = append(all, "dropped: "+s.Dropped)
	}
	if len(s.Parts) > 0 {
		all = append(all, fmt.Sprintf("%d parts", len(s.Parts)))
	}
	if s.Rewrite != nil {
		all = append(all, fmt.Sprintf("to be rewritten (%s) from slot %d on", s.Rewrite.Mode, s.Rewrite.Cursor))
	}
	if s.Rewrote != nil {
		all = append(all, fmt.Sprintf("slots %d to %d rewritten", s.Rewrote.First, s.Rewrote.Last))
	}
	if s.Fill != nil {
		all = append(all, fmt.Sprintf("filled by branch %s, %d of %d parts", s.Fill.Branch, s.Fill.Delivered, s.Fill.Parts))
	}
	if s.Takes != "" {
		all = append(all, "in the place of record "+s.Takes)
	}
	if s.Note != "" {
		all = append(all, s.Note)
	}
	return strings.Join(all, ", ")
}

func (v view) outboxes() *table {
	t := newTable(text("sink"), text("outbox"), number("rows"), number("bytes"), text("sha256"))
	for name, s := range sorted(v.m.Sinks) {
		for _, o := range s.Outbox {
			t.row(name, o.Path, count(o.Rows), size(o.Bytes), short(o.SHA256))
		}
	}
	return t
}

func (v view) counts() *table {
	t := newTable(text("count"), number("number"))
	for name, n := range sorted(v.m.Counts) {
		t.row(name, count(n))
	}
	return t
}
