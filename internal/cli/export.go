package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/tabular"
)

// exporting are the flags of state export.
type exporting struct {
	looking
	format, to string
	compress   string
	clock      env.Clock
}

func stateExportCommand(p *place) *cobra.Command {
	var x exporting
	c := &cobra.Command{
		Use:   "export [JOB] [STATE...]",
		Short: "All entries of states, as Avro, Parquet, JSON lines or CSV",
		Long: `Exports all entries of the states named, or of all states, as they were at the end
of one epoch: a file for each state, STATE.avro, STATE.parquet, STATE.jsonl or
STATE.csv, in the folder --to, which is made if need be; files that are there are
replaced. --to - writes one state to standard output.

  avro     an Avro object container file of records {slot, key, value}, as the state's
           segments have them; the slot is the key's hash, and the value is never null
  parquet  the same as columns key and value, which have columns of their own
  jsonl    a JSON object {"key":…,"value":…} in each line
  csv      a column key, or key.FIELD for each field of a struct, and the value's fields

Map and list states have an element between key and value. Entries are in the order
of their slots and keys: equal states give equal files, but for Avro's and Parquet's,
which may divide equal entries into other blocks. Avro's are the fastest, since most
of a large state is copied as it is stored; --compress none leaves them uncompressed.

The job may be running: clean-up leaves the epoch alone until the export ends, or for
an hour if the export dies.

If the first name is that of a job in the store, it is the job's.`,
		Args: arguments(0, -1),
		RunE: func(c *cobra.Command, args []string) error { return x.run(c, p, args) },
	}
	x.addTo(c)
	c.Flags().StringVar(&x.format, "format", "jsonl", "the `kind` of file: avro, parquet, jsonl or csv")
	c.Flags().StringVar(&x.compress, "compress", "snappy", "how Avro's blocks are compressed: `snappy or none`")
	c.Flags().Bool("json", false, "say as JSON objects what was written (default false)")
	c.Flags().StringVar(&x.to, "to", ".", "the `folder` to write to, or - for standard output")
	return c
}

func (x *exporting) run(c *cobra.Command, p *place, args []string) error {
	if _, err := tabular.ParseFormat(x.format); err != nil {
		return usagef("--format %s: use avro, parquet, jsonl or csv", x.format)
	}
	switch {
	case x.compress != "snappy" && x.compress != "none":
		return usagef("--compress %s: use snappy or none", x.compress)
	case c.Flags().Changed("compress") && x.format != string(tabular.Avro):
		return usagef("--compress is for Avro; with --format %s leave it out", x.format)
	}
	x.clock = p.env.Clock
	job, states, err := p.jobAndRest(c.Context(), args)
	if err != nil {
		return err
	}
	s, err := x.at(c.Context(), job)
	if err != nil {
		return err
	}
	if len(states) == 0 {
		for name := range sorted(s.epoch.State) {
			states = append(states, name)
		}
	}
	forms := make([]state.Form, len(states))
	for i, name := range states {
		if forms[i], err = s.form(name); err != nil {
			return err
		}
	}
	if x.to == "-" && len(forms) != 1 {
		return usagef("--to -: one state at a time; epoch %d has %d: say which", s.epoch.Epoch, len(forms))
	}
	return pinned(c, job, []epoch.Manifest{s.epoch}, func(ctx context.Context) error {
		if x.to != "-" {
			return x.files(ctx, c, s, forms)
		}
		_, err := x.export(ctx, c.OutOrStdout(), nil, c.ErrOrStderr(), s, forms[0])
		return err
	})
}

// jobAndRest takes the first of the arguments for the job's name if the store
// has a job of that name.
func (p *place) jobAndRest(ctx context.Context, args []string) (*epoch.Job, []string, error) {
	if len(args) == 0 {
		job, err := p.job(ctx, "")
		return job, nil, err
	}
	s, err := p.find()
	if err != nil {
		return nil, nil, err
	}
	names, err := jobs(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 1 && !slices.Contains(names, args[0]) {
		job, err := p.job(ctx, "")
		return job, args, err
	}
	job, err := p.job(ctx, args[0])
	return job, args[1:], err
}

// files exports each state to a file of its own.
func (x *exporting) files(ctx context.Context, c *cobra.Command, s snapshot, forms []state.Form) error {
	if err := os.MkdirAll(x.to, 0o755); err != nil {
		return err
	}
	for _, f := range forms {
		path := filepath.Join(x.to, f.Name+"."+x.format)
		n, err := x.file(ctx, c.ErrOrStderr(), path, s, f)
		if err != nil {
			return fmt.Errorf("export to %s: %w", path, err)
		}
		if err := tell(c, exported{f.Name, path, s.epoch.Epoch, n}); err != nil {
			return err
		}
	}
	return nil
}

// exported is a file that was written.
type exported struct {
	State   string      `json:"state"`
	File    string      `json:"file"`
	Epoch   epoch.Epoch `json:"epoch"`
	Entries int64       `json:"entries"`
}

func tell(c *cobra.Command, e exported) error {
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), e)
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s entries of epoch %d\n", e.File, count(e.Entries), e.Epoch)
	return err
}

// file exports a state to a file, which appears under its name once it is whole.
func (x *exporting) file(ctx context.Context, errs io.Writer, path string, s snapshot, f state.Form) (n int64, err error) {
	unfinished := "." + filepath.Base(path) + "-*.unfinished"
	if err := x.dropUnfinished(filepath.Join(filepath.Dir(path), unfinished)); err != nil {
		return 0, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) // fails once it has its name
	defer file.Close()
	if n, err = x.export(ctx, file, file.Sync, errs, s, f); err != nil {
		return 0, err
	}
	if err := file.Chmod(0o644); err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	return n, os.Rename(file.Name(), path)
}

// unfinishedStays is how long a file that nobody writes to stays: longer than an
// export takes between two writes.
const unfinishedStays = time.Hour

// dropUnfinished removes what exports have left that were killed.
func (x *exporting) dropUnfinished(pattern string) error {
	left, err := filepath.Glob(pattern)
	if err != nil {
		return nil // a folder's name that is no pattern: what is left there stays
	}
	for _, path := range left {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || x.clock.Now().Sub(info.ModTime()) < unfinishedStays {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// exportBuffer is what is written at once.
const exportBuffer = 256 << 10

// export writes a state and returns the number of its entries. sync, if not nil, may
// be called meanwhile.
func (x *exporting) export(ctx context.Context, w io.Writer, sync func() error, errs io.Writer, s snapshot, f state.Form) (n int64, err error) {
	format, err := tabular.ParseFormat(x.format)
	if err != nil {
		return 0, err
	}
	progress, end := x.progress(errs, s, f)
	defer end()
	if format == tabular.Avro {
		o := state.ExportOptions{Plain: x.compress == "none", Workers: runtime.GOMAXPROCS(0), Written: progress, Sync: sync}
		n, err = state.Export(ctx, s.job.Store(), s.job.Name(), f, s.epoch.State[f.Name].Segments, w, o)
		return n, s.job.Missed(ctx, s.epoch, err)
	}
	out := bufio.NewWriterSize(w, exportBuffer)
	layout := tabular.Entries(f.Name, f.Key, f.Element, f.Value)
	n, err = tabular.Write(ctx, out, format, layout, tabular.WriteOptions{Workers: runtime.GOMAXPROCS(0), Written: progress}, s.rows(ctx, f))
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}

// rows are a state's entries as rows of a file.
func (s snapshot) rows(ctx context.Context, f state.Form) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var row []byte
		for e, err := range s.entries(ctx, f, epoch.AllSlots) {
			if err == nil {
				row = append(append(append(row[:0], e.Key...), e.Element...), e.Value...)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// shownEvery is the time between two looks of a person at how far something is.
const shownEvery = 200 * time.Millisecond

// progress tells on a terminal how far the export is, how fast it goes, and how
// long it takes yet: at most, since the rows of segments count entries that were
// changed again. end takes the line away.
func (x *exporting) progress(errs io.Writer, s snapshot, f state.Form) (told func(rows, bytes int64), end func()) {
	if _, ok := terminal(errs); !ok {
		return nil, func() {}
	}
	var total int64
	for _, segment := range s.epoch.State[f.Name].Segments {
		total += segment.Rows
	}
	line, began := &screen{w: errs}, x.clock.Now()
	shown := began
	return func(rows, bytes int64) {
		now := x.clock.Now()
		if now.Sub(shown) < shownEvery {
			return
		}
		shown = now
		line.show(exportLine(f.Name, rows, total, bytes, now.Sub(began)))
	}, func() { line.show("") }
}

// exportLine tells how far an export is.
func exportLine(name string, rows, total, bytes int64, took time.Duration) string {
	rate := perSecond(rows, took)
	text := fmt.Sprintf("state %s · %s entries · %s · %s/s", name, count(rows), size(bytes), count(int64(rate)))
	if rate > 0 && total > rows {
		left := time.Duration(float64(total-rows) / rate * float64(time.Second))
		text += " · at most " + left.Round(time.Second).String() + " left"
	}
	return text
}
