package connectortest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Row is what the suite writes to sinks.
type Row struct {
	ID     int64
	Name   string
	Note   *string
	Amount float64
	At     time.Time
	OK     bool
}

// NewerRow is a [Row] as a newer build has it: with a field more.
type NewerRow struct {
	Row
	Extra string
}

// String writes the row for comparisons.
func (r *NewerRow) String() string { return fmt.Sprintf("%v with %q", &r.Row, r.Extra) }

// Change is what the suite does to a key of a table: puts a row, or deletes it.
type Change struct {
	Key string
	Row *Row // nil: deleted
}

// StreamFixture is a stream's sink set up for one case, with nothing written.
type StreamFixture struct {
	// Sink is the sink; its row is the [Row] as it is. Opening is what it is
	// opened with.
	Sink    connector.StreamSink[Row]
	Opening connector.Opening
	// Read returns what a consumer has got, in its order.
	Read func(t *testing.T) []Row
	// ReadNewer returns what a consumer has got once a newer build's rows have been
	// delivered. Nil: these are left out, as where a sink delivers what NewWire makes.
	ReadNewer func(t *testing.T) []NewerRow
	// Faults are the sink's ways of failing.
	Faults
	// System is what else can be done in the system that the sink writes to.
	System
}

// TableFixture is a table's sink set up for one case, with nothing written.
type TableFixture struct {
	// Sink is the sink; its row is the [Row] as it is. Opening is what it is
	// opened with.
	Sink    connector.TableSink[string, Row]
	Opening connector.Opening
	// Read returns the rows that stand in the table, by key.
	Read func(t *testing.T) map[string]Row
	// Log returns every change that a consumer has got, in its order. Nil: the
	// sink keeps the last of each key only.
	Log func(t *testing.T) []Change
	// ReadNewer returns the rows that stand in the table, by key, once a newer
	// build's have been delivered. Nil: these are left out, as where a sink delivers
	// what NewWire makes.
	ReadNewer func(t *testing.T) map[string]NewerRow
	// Faults are the sink's ways of failing.
	Faults
	// System is what else can be done in the system that the sink writes to.
	System
}

// Faults say how a sink can be made to fail.
type Faults struct {
	// Crash returns an opening with which the sink reaches the world until the
	// call of that number, from 1, where the process crashes. The function tells
	// whether it came to that. [CrashFiles] does it for files. Nil, and no CrashSink:
	// these cases are left out.
	Crash func(o connector.Opening, call int, how Crash) (_ connector.Opening, crashed func() bool)
	// CrashSink is Crash for a sink that doesn't reach the world through its
	// opening: it returns the same sink in a process of its own, which crashes.
	CrashSink func(t *testing.T, call int, how Crash) (_ connector.Sink, crashed func() bool)
	// Break returns the sink, and what to open it with, such that the call of that
	// number fails, [Before] or [After] it takes effect, and later ones succeed: a
	// connection breaks, a disk is full for a moment. [BreakFiles] does it for files.
	// Nil: this is left out.
	Break func(t *testing.T, call int, how Crash) (_ connector.Sink, _ connector.Opening, broken func() bool)
	// Exclusive tells that a delivery holds others out while it decides, as a
	// locked row does. The suite then has nothing delivered in between.
	Exclusive bool
}

// System is what else can be done in the system that a sink writes to. A nil
// function leaves its cases out.
type System struct {
	// Elsewhere returns a sink of the same kind, with another target in the same
	// system, where the records of both are seen.
	Elsewhere func(t *testing.T) connector.Sink
	// Damage makes the record that stands there one that no build can read.
	Damage func(t *testing.T)
	// Lose removes the place where records are kept, with all that are in it.
	Lose func(t *testing.T)
	// Refuse makes the system refuse rows of a [Row.Name], for what they hold, until
	// allow is called: a constraint, a rule of a schema.
	Refuse func(t *testing.T, name string) (allow func())
	// Groups are those of a sink whose targets are [connector.GroupTarget]s.
	Groups *Groups
}

// Groups are groups of consumers in the system that a sink writes to.
type Groups struct {
	// Offsets returns offsets that can be told, of at least one group, each with
	// this Next. The number is below 10.
	Offsets func(next int64) []connector.GroupOffsets
	// Read returns what a group has been told, by partition, as people see it.
	Read func(t *testing.T, group string) map[string]int64
}

// SinkSetup sets up sinks, anew for each case. A nil function leaves a kind
// out.
type SinkSetup struct {
	Stream func(t *testing.T) StreamFixture
	Table  func(t *testing.T) TableFixture
}

// TestSink tests a connector's sinks.
func TestSink(t *testing.T, setup SinkSetup) {
	if setup.Stream != nil {
		t.Run("stream", func(t *testing.T) {
			runAll(t, sinkSuite{func(t *testing.T) *sink { return newStreamSink(t, setup.Stream(t)) }}.cases())
		})
	}
	if setup.Table != nil {
		t.Run("table", func(t *testing.T) {
			runAll(t, sinkSuite{func(t *testing.T) *sink { return newTableSink(t, setup.Table(t)) }}.cases())
		})
	}
}

// sink is a sink of either kind.
type sink struct {
	connector.Sink
	Faults
	System
	opening connector.Opening
	key     *schema.Schema
	row     *schema.Schema
	// wire makes what is delivered of an entry; nil for streams, and where it is
	// the row.
	wire func(dst []byte, key string, r *Row) ([]byte, error)
	// encode makes a frozen row. Any goroutine may call it.
	encode func(t *testing.T, c Change) connector.Row
	// view is what a consumer sees, want what it is to see after all of these.
	view func(t *testing.T) []string
	want func(all []Change) []string
	// viewNewer is what a consumer sees of a newer build's rows; nil: that isn't tried.
	viewNewer func(t *testing.T) []string
}

func newStreamSink(t *testing.T, f StreamFixture) *sink {
	t.Helper()
	rows, err := f.Sink.Rows()
	if err != nil {
		t.Fatalf("the rows of the sink: %v", err)
	}
	s := &sink{Sink: f.Sink, Faults: f.Faults, System: f.System, opening: f.Opening, row: rows.Schema}
	s.encode = func(t *testing.T, c Change) connector.Row {
		r := connector.Row{Op: connector.Append, Row: encoded(t, rows.NewAppend(), c.Row)}
		if rows.NewWire != nil {
			r.Wire = encoded(t, rows.NewWire(), c.Row)
		}
		return r
	}
	s.view = func(t *testing.T) []string {
		var lines []string
		for _, r := range f.Read(t) {
			lines = append(lines, r.String())
		}
		return lines
	}
	s.want = func(all []Change) []string {
		var lines []string
		for _, c := range all {
			lines = append(lines, c.Row.String())
		}
		return lines
	}
	if f.ReadNewer != nil {
		s.viewNewer = func(t *testing.T) []string {
			var lines []string
			for _, r := range f.ReadNewer(t) {
				lines = append(lines, r.String())
			}
			slices.Sort(lines)
			return lines
		}
	}
	return s
}

func encoded(t *testing.T, appendRow func(dst []byte, r *Row) ([]byte, error), r *Row) []byte {
	t.Helper()
	b, err := appendRow(nil, r)
	if err != nil {
		t.Fatalf("encoding %v: %v", r, err)
	}
	return b
}

func newTableSink(t *testing.T, f TableFixture) *sink {
	t.Helper()
	rows, err := f.Sink.TableRows()
	if err != nil {
		t.Fatalf("the rows of the sink: %v", err)
	}
	key, err := schema.KeyOf[string]("key")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{Sink: f.Sink, Faults: f.Faults, System: f.System, opening: f.Opening, row: rows.Schema, key: key.Schema()}
	if rows.NewWire != nil {
		s.wire = rows.NewWire()
	}
	s.encode = func(t *testing.T, c Change) connector.Row {
		r := connector.Row{Op: connector.Delete, Key: key.Append(nil, c.Key)}
		if c.Row != nil {
			r.Op = connector.Put
			appendRow := rows.NewAppend()
			r.Row = encoded(t, func(dst []byte, row *Row) ([]byte, error) { return appendRow(dst, c.Key, row) }, c.Row)
		}
		if rows.NewWire != nil {
			wire := rows.NewWire()
			r.Wire = encoded(t, func(dst []byte, row *Row) ([]byte, error) { return wire(dst, c.Key, row) }, c.Row)
		}
		return r
	}
	s.view = func(t *testing.T) []string {
		var log []Change
		if f.Log != nil {
			log = f.Log(t)
		}
		return tableView(f.Read(t), log)
	}
	s.want = func(all []Change) []string {
		rows := map[string]Row{}
		for _, c := range all {
			delete(rows, c.Key)
			if c.Row != nil {
				rows[c.Key] = *c.Row
			}
		}
		if f.Log == nil {
			all = nil
		}
		return tableView(rows, all)
	}
	if f.ReadNewer != nil {
		s.viewNewer = func(t *testing.T) []string {
			var lines []string
			for key, r := range f.ReadNewer(t) {
				lines = append(lines, fmt.Sprintf("%q stands at %v", key, &r))
			}
			slices.Sort(lines)
			return lines
		}
	}
	return s
}

// tableView writes a table and its changes as lines.
func tableView(rows map[string]Row, log []Change) []string {
	var lines []string
	for key, r := range rows {
		lines = append(lines, fmt.Sprintf("%q stands at %v", key, &r))
	}
	slices.Sort(lines)
	for _, c := range log {
		if c.Row == nil {
			lines = append(lines, fmt.Sprintf("%q was deleted", c.Key))
		} else {
			lines = append(lines, fmt.Sprintf("%q was put at %v", c.Key, c.Row))
		}
	}
	return lines
}

// String writes the row for comparisons.
func (r *Row) String() string {
	note := "nothing"
	if r.Note != nil {
		note = fmt.Sprintf("%q", *r.Note)
	}
	return fmt.Sprintf("{%d %q %s %v %s %v}", r.ID, r.Name, note, r.Amount, r.At.UTC().Format(time.RFC3339Nano), r.OK)
}

// changes makes n changes, of keys in order, told apart by seed.
func changes(seed, n int) []Change {
	texts := []string{"", "plain", "with \"quotes\", and commas", "two\nlines\r\n", "ünïcödé ☂", `back\slash`, "null", " spaced ", "0"}
	var all []Change
	for i := range n {
		row := Row{
			ID:     int64(seed+1)<<53 + int64(i), // more digits than a float64 holds
			Name:   texts[(seed+i)%len(texts)],
			Amount: float64(seed)/3 - float64(i),
			At:     time.Date(1960+seed, 1, 31, 23, 59, 59, (i%1_000_000)*1000, time.UTC),
			OK:     i%2 == 0,
		}
		if (seed+i)%3 > 0 {
			note := texts[(seed+2*i)%len(texts)]
			row.Note = &note
		}
		all = append(all, Change{Key: fmt.Sprintf("key %05d, %s", i, texts[i%len(texts)]), Row: &row})
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// withDeletes turns every third change of a table into a deletion.
func (s *sink) withDeletes(all []Change) []Change {
	if s.key == nil {
		return all
	}
	all = slices.Clone(all)
	for i := 0; i < len(all); i += 3 {
		all[i].Row = nil
	}
	return all
}

// compareLines fails if two views differ, and shows where.
func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%s: a consumer has %d lines, expected %d; line %d is\n%s\nexpected\n%s", what, len(got), len(want), i, strings.TrimSpace(g), w)
		}
	}
}
