package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// exporting are the flags of state export.
type exporting struct {
	looking
	format, to string
}

func stateExportCommand(p *place) *cobra.Command {
	var x exporting
	c := &cobra.Command{
		Use:   "export [JOB] [STATE...]",
		Short: "All entries of states, as Avro, JSON lines or CSV",
		Long: `Exports all entries of the states named, or of all states, as they were at the end
of one epoch: a file for each state, STATE.avro, STATE.jsonl or STATE.csv, in the
folder --to, which is made if need be; files that are there are replaced. --to - writes
one state to standard output.

  avro    an Avro object container file of records {key, value}
  jsonl   a JSON object {"key":…,"value":…} in each line
  csv     a column key, or key.FIELD for each field of a struct, and the value's fields

Map and list states have an element between key and value. Entries are in the order
of their slots and keys: equal states give equal files.

If the first name is that of a job in the store, it is the job's.`,
		Args: arguments(0, -1),
		RunE: func(c *cobra.Command, args []string) error { return x.run(c, p, args) },
	}
	x.addTo(c)
	c.Flags().StringVar(&x.format, "format", "jsonl", "the `kind` of file: avro, jsonl or csv")
	c.Flags().Bool("json", false, "say as JSON objects what was written (default false)")
	c.Flags().StringVar(&x.to, "to", ".", "the `folder` to write to, or - for standard output")
	return c
}

func (x *exporting) run(c *cobra.Command, p *place, args []string) error {
	if !slices.Contains([]string{"avro", "jsonl", "csv"}, x.format) {
		return usagef("--format %s: use avro, jsonl or csv", x.format)
	}
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
	if x.to != "-" {
		return x.files(c, s, forms)
	}
	if len(forms) != 1 {
		return usagef("--to -: one state at a time; epoch %d has %d: say which", s.epoch.Epoch, len(forms))
	}
	_, err = x.export(c.Context(), c.OutOrStdout(), s, forms[0])
	return err
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
func (x *exporting) files(c *cobra.Command, s snapshot, forms []state.Form) error {
	if err := os.MkdirAll(x.to, 0o755); err != nil {
		return err
	}
	for _, f := range forms {
		path := filepath.Join(x.to, f.Name+"."+x.format)
		n, err := x.file(c.Context(), path, s, f)
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
func (x *exporting) file(ctx context.Context, path string, s snapshot, f state.Form) (n int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) // fails once it has its name
	defer file.Close()
	if n, err = x.export(ctx, file, s, f); err != nil {
		return 0, err
	}
	if err := file.Chmod(0o644); err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	return n, os.Rename(file.Name(), path)
}

// exporter writes the entries of a state.
type exporter interface {
	entry(e *state.Entry) error
	close() error
}

// export writes a state and returns the number of its entries.
func (x *exporting) export(ctx context.Context, w io.Writer, s snapshot, f state.Form) (n int64, err error) {
	out := bufio.NewWriterSize(w, exportBuffer)
	to := newExporter(x.format, out, f)
	for e, err := range s.entries(ctx, f, epoch.AllSlots) {
		if err == nil {
			err = to.entry(e)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	if err := to.close(); err != nil {
		return n, err
	}
	return n, out.Flush()
}

// exportBuffer is what is written at once.
const exportBuffer = 256 << 10

func newExporter(format string, w *bufio.Writer, f state.Form) exporter {
	switch format {
	case "avro":
		return newAvroExporter(w, f)
	case "csv":
		return newCSVExporter(w, f)
	default:
		return jsonExporter{w, newJSONWriter(f, true)}
	}
}

type jsonExporter struct {
	w      *bufio.Writer
	render *jsonWriter
}

func (x jsonExporter) entry(e *state.Entry) error {
	line, err := x.render.line(e)
	if err == nil {
		_, err = x.w.Write(line)
	}
	return err
}

func (x jsonExporter) close() error { return nil }

type avroExporter struct {
	file   *avrofile.Writer
	record []byte
}

func newAvroExporter(w io.Writer, f state.Form) *avroExporter {
	fields := []schema.Field{{Name: "key", Type: f.Key}}
	if f.Element != nil {
		fields = append(fields, schema.Field{Name: "element", Type: f.Element})
	}
	fields = append(fields, schema.Field{Name: "value", Type: f.Value})
	return &avroExporter{file: avrofile.New(w, avrofile.Options{
		Schema: schema.Record("sluice.export", fields...).String(),
		Meta:   map[string]string{"sluice.state": f.Name},
	})}
}

func (x *avroExporter) entry(e *state.Entry) error {
	x.record = append(append(append(x.record[:0], e.Key...), e.Element...), e.Value...)
	return x.file.Append(x.record)
}

func (x *avroExporter) close() error {
	_, err := x.file.Close()
	return err
}
