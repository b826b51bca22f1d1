package cli

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/store"
)

// ImportSettings are what a job's first epoch is to be made of.
type ImportSettings struct {
	Store             store.Store
	Log               *slog.Logger
	TransactionPrefix string
	Volatile          bool
	Files             []ImportFile
	// Offsets are by the partitions' names, Groups groups of consumers whose offsets
	// count besides.
	Offsets map[string]int64
	Groups  []string
	// From begins partitions that those lack with the first record of that time or later;
	// zero: it doesn't.
	From                               time.Time
	BeginRest, IgnoreUnknown, Defaults bool
	// MemoryLimit is the memory, in bytes, that the job may have; 0: what there is.
	MemoryLimit int64
	// Read is told how far the files have been read.
	Read func(state string, rows, bytes int64)
}

// ImportFile is a file of rows for a state.
type ImportFile struct{ State, Path, Format string }

// Imported is what came of an import.
type Imported struct {
	States  []ImportedState  `json:"states"`
	Offsets []ImportedOffset `json:"offsets"`
	// Defaults are the columns that took their defaults in all rows.
	Defaults []ImportedDefault `json:"defaults,omitempty"`
}

// ImportedDefault is a column that a state's file lacks.
type ImportedDefault struct {
	State  string `json:"state"`
	Column string `json:"column"`
	// Value is the default, as Avro's JSON has it; Implied says that it is the zero
	// value of the type, and no default of the field's own.
	Value   jsontext.Value `json:"value"`
	Implied bool           `json:"implied,omitzero"`
}

// ImportedState is a state that was imported.
type ImportedState struct {
	State   string `json:"state"`
	Rows    int64  `json:"rows"`
	Entries int64  `json:"entries"`
}

// ImportedOffset is where a partition is read on.
type ImportedOffset struct {
	Source    string `json:"source"`
	Partition string `json:"partition"`
	Next      int64  `json:"next"`
}

// importing are the flags of import.
type importing struct {
	flag            string // that names states
	states, offsets []string
	from            string
	format, memory  string
	settings        ImportSettings
}

// stateFlag names states and their files in import.
const stateFlag = "state"

func importCommand(job Job, p *place) *cobra.Command {
	m := importing{flag: stateFlag}
	c := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Begin a new job with state from files, at given offsets",
		Long: `Makes the first epoch of a job that has never run: its states' entries come from
files, and its sources are read on from given offsets. ` + "`run`" + ` goes on from there. A
job that has epochs is refused. Nothing exists of the job until the last step, so
that an import that fails or is killed is done again from its beginning.

  spend import spend.parquet --state spend --offsets orders:0=1841,orders:1=1790
  spend import --state spend=spend.csv --state shops=shops.avro --offsets group:old-spend

Rows are those that ` + "`sluice state export`" + ` writes, in any order: a key, an element for map
and list states, and a value, or the fields of keys and values as columns of their
own. Columns are found by their names. A missing one takes the default in the tag of
its field, or with --defaults the zero value of its type, and the output says so; else
it is an error. If the state has an Import function, the rows are what that takes. Two
rows of one key are an error.

--offsets gives offsets as SOURCE:PARTITION=OFFSET, with commas between, with the
partitions' names as ` + "`sluice show`" + ` prints them; for Kafka also as TOPIC:NUMBER=OFFSET.
Or it names a file with one in each line, or with JSON {"TOPIC":{"NUMBER":OFFSET}};
or, as group:NAME, a group of consumers that has been stopped. All partitions of all
sources must have one, unless --from TIME begins the others with the first record of that
time or later, which Kafka can find and files can't, or --begin-rest where a new job would.

Imported entries are not sent to sinks before they change. What would not fit into the
memory that the job may have is refused, before anything is made.

` + exitCodes(exitDone, exitError, exitUsage, 13, 14, 16, 17),
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error { return m.run(c, job, p, args) },
	}
	f := c.Flags()
	f.StringArrayVar(&m.states, stateFlag, nil, "the `state` of FILE, or STATE=FILE; may be repeated (default none)")
	f.StringArrayVar(&m.offsets, offsetsFlag, nil, "the `offsets` at which sources are read on; may be repeated (default none)")
	f.StringVar(&m.from, "from", "", "begin partitions without an offset with the first record of a `time` or later, as 2026-11-30T09:00:00Z (default none)")
	m.addRowFlags(f)
	f.StringVar(&m.settings.TransactionPrefix, "transaction-prefix", "", "what the `names` of the job's transactions in Kafka begin with; fixed now (default the job's name and a slash)")
	addMemoryLimit(f, &m.memory)
	f.BoolVar(&m.settings.Volatile, "volatile", false, "let the store be on a file system that forgets it when the machine stops (default false)")
	f.Bool("json", false, "write what was imported as a JSON object (default false)")
	return c
}

// addRowFlags adds the flags that say how files and offsets are to be read.
func (m *importing) addRowFlags(f *pflag.FlagSet) {
	f.StringVar(&m.format, "format", "", "the `kind` of files: avro, parquet, jsonl or csv (default by the end of their names)")
	f.BoolVar(&m.settings.BeginRest, "begin-rest", false, "begin partitions without an offset where a new job would (default false)")
	f.BoolVar(&m.settings.IgnoreUnknown, "ignore-unknown", false, "leave out columns and fields that the state lacks (default false)")
	f.BoolVar(&m.settings.Defaults, "defaults", false, "take the zero value for columns that files lack and whose fields have no default of their own (default false)")
}

func (m *importing) run(c *cobra.Command, job Job, p *place, args []string) error {
	s := &m.settings
	var err error
	if s.Files, err = m.files(args); err != nil {
		return err
	}
	given, err := parseOffsets(offsetsFlag, m.offsets)
	if err != nil {
		return err
	}
	s.Offsets, s.Groups = given.offsets, given.groups
	if m.from != "" {
		if s.From, err = time.Parse(time.RFC3339, m.from); err != nil {
			return usagef("--from %s: a time such as 2026-11-30T09:00:00Z is expected", m.from)
		}
	}
	limit, err := memoryLimit(m.memory)
	if err != nil {
		return err
	}
	if m.memory != "" {
		s.MemoryLimit = limit.Bytes
	}
	memory.Tune(limit, memory.DefaultGCPercent, false, os.Getenv)
	if err := job.Check(); err != nil {
		return err
	}
	if s.Store, err = p.open(); err != nil {
		return err
	}
	s.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	progress, end := importProgress(c.ErrOrStderr(), p.env.Clock, s.Files)
	s.Read = progress
	var done Imported
	var began *epoch.BeganError
	_, err = untilSignal(c.Context(), func() {}, func(ctx context.Context) error {
		if done, err = job.Import(ctx, *s); err == nil {
			err = ctx.Err()
		}
		began, _ = errors.AsType[*epoch.BeganError](err)
		return err
	})
	end()
	if began != nil { // even if the signal was the cause
		return began
	}
	if err != nil {
		return err
	}
	if done.States == nil && done.Offsets == nil {
		return fmt.Errorf("%s: stopped; nothing was made of the job. Start the import again", job.Name)
	}
	slices.SortFunc(done.Offsets, func(a, b ImportedOffset) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Partition, b.Partition))
	})
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), done)
	}
	return done.write(c.OutOrStdout(), job.Name)
}

// files are the files of the states.
func (m *importing) files(args []string) (files []ImportFile, err error) {
	alone := ", or as STATE with FILE as the argument"
	if m.flag != stateFlag {
		alone = ""
	}
	if m.format != "" {
		if _, err := tabular.ParseFormat(m.format); err != nil {
			return nil, usagef("--format %s: use avro, parquet, jsonl or csv", m.format)
		}
	}
	for _, value := range m.states {
		name, path, own := strings.Cut(value, "=")
		switch {
		case name == "" || own && path == "":
			return nil, usagef("--%s %s: use it as STATE=FILE%s", m.flag, value, alone)
		case !own && len(args) == 0:
			return nil, usagef("--%s %s: which file? Use it as --%s %s=FILE", m.flag, value, m.flag, value)
		case !own:
			path, args = args[0], args[1:]
		}
		if m.format == "" {
			if _, ok := tabular.FormatOf(path); !ok {
				return nil, usagef("file %s: the end of its name tells no format; name it with --format", path)
			}
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("--%s %s: there is no file %s", m.flag, name, path)
		}
		files = append(files, ImportFile{State: name, Path: path, Format: m.format})
	}
	if len(args) > 0 {
		return nil, usagef("file %s: of which state? Name it with --state", args[0])
	}
	return files, nil
}

func (i Imported) write(w io.Writer, job string) error {
	for _, s := range i.States {
		if _, err := fmt.Fprintf(w, "state %s: %s entries from %s rows\n", s.State, count(s.Entries), count(s.Rows)); err != nil {
			return err
		}
	}
	for _, d := range i.Defaults {
		which := "its default"
		if d.Implied {
			which = "its type's zero value"
		}
		if _, err := fmt.Fprintf(w, "state %s, column %s: not in the file, all rows have %s, %s\n", d.State, printable(d.Column), which, printable(string(d.Value))); err != nil {
			return err
		}
	}
	for _, o := range i.Offsets {
		if _, err := fmt.Fprintf(w, "source %s, partition %s: from offset %d on\n", o.Source, printable(o.Partition), o.Next); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s has its first epoch; `run` goes on from there\n", job)
	return err
}

// importProgress tells on a terminal how far the files have been read.
func importProgress(errs io.Writer, clock env.Clock, files []ImportFile) (told func(state string, rows, bytes int64), end func()) {
	if _, ok := terminal(errs); !ok {
		return nil, func() {}
	}
	sizes := map[string]int64{}
	for _, f := range files {
		if info, err := os.Stat(f.Path); err == nil {
			sizes[f.State] = info.Size()
		}
	}
	line, began, of := &screen{w: errs}, clock.Now(), ""
	shown := began
	return func(state string, rows, bytes int64) {
		now := clock.Now()
		if state != of {
			of, began = state, now
		}
		if now.Sub(shown) < shownEvery {
			return
		}
		shown = now
		line.show(importLine(state, rows, bytes, sizes[state], now.Sub(began)))
	}, func() { line.show("") }
}

// importLine tells how far an import is.
func importLine(state string, rows, bytes, of int64, took time.Duration) string {
	text := fmt.Sprintf("state %s · %s rows · %s · %s/s", state, count(rows), size(bytes), count(int64(perSecond(rows, took))))
	if speed := perSecond(bytes, took); speed > 0 && of > bytes {
		left := time.Duration(float64(of-bytes) / speed * float64(time.Second))
		text += " · about " + left.Round(time.Second).String() + " left"
	}
	return text
}
