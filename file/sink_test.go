package file_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
)

// deliveries reads the files of a folder in the order of their names, as a
// consumer does.
func deliveries(t testing.TB, dir string) (names []string, contents [][]byte) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() == ".sluice" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names, contents = append(names, e.Name()), append(contents, b)
	}
	return names, contents
}

func readJSON[T any](t testing.TB, dir string) []T {
	t.Helper()
	decode := codec.JSON[T](codec.Strict()).NewDecoder()
	var all []T
	_, contents := deliveries(t, dir)
	for _, content := range contents {
		for line := range bytes.Lines(content) {
			var v T
			if err := decode(line, &v); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, v)
		}
	}
	return all
}

// csvRow is what a CSV sink writes of a row; what an older build lacks is
// optional.
type csvRow struct {
	Op     string `csv:"op,optional"`
	Key    string `csv:"key,optional"`
	ID     *int64
	Name   *string
	Note   *string
	Amount *float64
	At     *time.Time
	OK     *bool
}

func readCSV(t testing.TB, dir string) []csvRow {
	t.Helper()
	var all []csvRow
	_, contents := deliveries(t, dir)
	for _, content := range contents {
		rows, err := decodeCSV[csvRow](t, string(content))
		if err != nil {
			t.Fatalf("%v in\n%s", err, content)
		}
		all = append(all, rows...)
	}
	return all
}

func (c *csvRow) row() connectortest.Row {
	r := connectortest.Row{ID: *c.ID, Name: *c.Name, Note: c.Note}
	if c.At != nil {
		r.Amount, r.At, r.OK = *c.Amount, *c.At, *c.OK
	}
	return r
}

type change struct {
	Op  string             `json:"op"`
	Key string             `json:"key"`
	Row *connectortest.Row `json:"row"`
}

type newerChange struct {
	Op  string                 `json:"op"`
	Key string                 `json:"key"`
	Row connectortest.NewerRow `json:"row"`
}

// system lets the suite damage a folder's record, and lose it. A folder is one
// sink's, so that there is no elsewhere, and it refuses no row.
func system(dir string) connectortest.System {
	return connectortest.System{
		Damage: func(t *testing.T) { write(t, filepath.Join(dir, ".sluice", "record.json"), []byte("{")) },
		Lose: func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(dir, ".sluice")); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func sameRow(_ string, r connectortest.Row) connectortest.Row { return r }

// table is what stands in a table after its changes.
func table(log []connectortest.Change) map[string]connectortest.Row {
	rows := map[string]connectortest.Row{}
	for _, c := range log {
		delete(rows, c.Key)
		if c.Row != nil {
			rows[c.Key] = *c.Row
		}
	}
	return rows
}

func TestSinkSuite(t *testing.T) {
	fast := opening()
	fast.Env.Files = unsynced{env.OS()}
	faults := func(sink connector.Sink) connectortest.Faults {
		return connectortest.Faults{
			Crash: connectortest.CrashFiles,
			Break: func(_ *testing.T, call int, how connectortest.Crash) (connector.Sink, connector.Opening, func() bool) {
				o, broken := connectortest.BreakFiles(fast, call, how)
				return sink, o, broken
			},
		}
	}
	t.Run("json", func(t *testing.T) {
		connectortest.TestSink(t, connectortest.SinkSetup{
			Stream: func(t *testing.T) connectortest.StreamFixture {
				dir := filepath.Join(t.TempDir(), "some", "where")
				return connectortest.StreamFixture{
					Sink: file.Append[connectortest.Row](dir), Opening: fast, Faults: faults(file.Append[connectortest.Row](dir)),
					Read:      func(t *testing.T) []connectortest.Row { return readJSON[connectortest.Row](t, dir) },
					ReadNewer: func(t *testing.T) []connectortest.NewerRow { return readJSON[connectortest.NewerRow](t, dir) },
					System:    system(dir),
				}
			},
			Table: func(t *testing.T) connectortest.TableFixture {
				dir := filepath.Join(t.TempDir(), "out")
				log := func(t *testing.T) []connectortest.Change {
					var all []connectortest.Change
					for _, c := range readJSON[change](t, dir) {
						if c.Op != "put" && c.Op != "delete" || (c.Op == "put") != (c.Row != nil) {
							t.Fatalf("op %q with row %v", c.Op, c.Row)
						}
						all = append(all, connectortest.Change{Key: c.Key, Row: c.Row})
					}
					return all
				}
				return connectortest.TableFixture{
					Sink: file.Upsert(dir, sameRow), Opening: fast, Faults: faults(file.Upsert(dir, sameRow)), System: system(dir), Log: log,
					Read: func(t *testing.T) map[string]connectortest.Row { return table(log(t)) },
					ReadNewer: func(t *testing.T) map[string]connectortest.NewerRow {
						rows := map[string]connectortest.NewerRow{}
						for _, c := range readJSON[newerChange](t, dir) {
							rows[c.Key] = c.Row
						}
						return rows
					},
				}
			},
		})
	})
	t.Run("csv", func(t *testing.T) {
		connectortest.TestSink(t, connectortest.SinkSetup{
			Stream: func(t *testing.T) connectortest.StreamFixture {
				dir := filepath.Join(t.TempDir(), "out")
				return connectortest.StreamFixture{
					Sink: file.Append[connectortest.Row](dir, file.AsCSV()), Opening: fast, Faults: faults(file.Append[connectortest.Row](dir, file.AsCSV())), System: system(dir),
					Read: func(t *testing.T) []connectortest.Row {
						var all []connectortest.Row
						for _, r := range readCSV(t, dir) {
							all = append(all, r.row())
						}
						return all
					},
				}
			},
			Table: func(t *testing.T) connectortest.TableFixture {
				dir := filepath.Join(t.TempDir(), "out")
				log := func(t *testing.T) []connectortest.Change {
					var all []connectortest.Change
					for _, r := range readCSV(t, dir) {
						c := connectortest.Change{Key: r.Key}
						if r.Op == "put" {
							row := r.row()
							c.Row = &row
						}
						all = append(all, c)
					}
					return all
				}
				return connectortest.TableFixture{
					Sink: file.Upsert(dir, sameRow, file.AsCSV()), Opening: fast, Faults: faults(file.Upsert(dir, sameRow, file.AsCSV())), System: system(dir), Log: log,
					Read: func(t *testing.T) map[string]connectortest.Row { return table(log(t)) },
				}
			},
		})
	})
}
