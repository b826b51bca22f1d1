package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/store"
)

// sale is a record, legacyRow a row of what another system knew of a user.
type sale struct {
	User  string
	City  string
	Cents int64
}

type legacyRow struct {
	User   string `avro:"user"`
	Cents  int64  `avro:"cents"`
	Cities string `avro:"cities"` // with spaces between
}

var (
	errNegative = errors.New("nobody owes us money")

	salesByUser = sluice.NewState[string, int64]("by_user").TryImport(func(r legacyRow) (iter.Seq2[string, int64], error) {
		if r.Cents < 0 {
			return nil, errNegative
		}
		if r.User == "panic" {
			panic("a user of that name")
		}
		return func(yield func(string, int64) bool) { yield(r.User, r.Cents) }, nil
	})
	salesCities = sluice.NewMapState[string, string, bool]("cities").Import(func(r legacyRow) iter.Seq2[string, map[string]bool] {
		cities := map[string]bool{}
		for city := range strings.FieldsSeq(r.Cities) {
			cities[city] = true
		}
		return maps.All(map[string]map[string]bool{r.User: cities})
	})
	salesLast = sluice.NewListState[string, string]("last").Import(func(r legacyRow) iter.Seq2[string, []string] {
		return maps.All(map[string][]string{r.User: strings.Fields(r.Cities)})
	})
)

// told is what the job puts out for a record.
type told struct {
	User   string
	Total  int64
	Cities []string
	Last   []string
}

func salesJob(in connector.Source[sale], out connector.StreamSink[told]) *sluice.Job {
	job := sluice.NewJob("sales")
	job.From("sales", in).KeyBy(func(s sale) string { return s.User }).Process(func(p *sluice.Setup[string, told]) func(*sluice.Context[string, told], sale) {
		total, cities, last := p.State(salesByUser), p.Map(salesCities), p.List(salesLast)
		return func(c *sluice.Context[string, told], s sale) {
			*total.Update() += s.Cents
			*cities.Update(s.City) = true
			last.Append(s.City)
			row := told{User: s.User, Total: *total.Update()}
			for city := range cities.All() {
				row.Cities = append(row.Cities, city)
			}
			for _, city := range last.All() {
				row.Last = append(row.Last, city)
			}
			c.Emit(row)
		}
	}).To("told", out)
	return job
}

const oldRows = `{"user":"ann","cents":600,"cities":"Oslo Rome"}
{"user":"bob","cents":50,"cities":""}
`

// sales are the records that oldRows sums up, and those that come after.
const (
	oldSales = `{"User":"ann","City":"Oslo","Cents":200}
{"User":"bob","City":"","Cents":50}
{"User":"ann","City":"Rome","Cents":400}
`
	newSales = `{"User":"ann","City":"Bern","Cents":7}
{"User":"bob","City":"Bern","Cents":8}
{"User":"cid","City":"Bern","Cents":9}
`
)

// importDesk is a folder with sales, and what is imported from it.
type importDesk struct {
	dir string
	im  sluice.Import
}

func newImportDesk(t *testing.T) *importDesk {
	t.Helper()
	d := &importDesk{dir: quickFolder(t)}
	d.write(t, "sales.jsonl", oldSales+newSales)
	d.write(t, "old.jsonl", oldRows)
	d.im.Offsets = map[string]int64{"sales.jsonl": int64(len(oldSales))}
	for _, state := range []string{"by_user", "cities", "last"} {
		d.im.Files = append(d.im.Files, sluice.ImportFile{State: state, Path: filepath.Join(d.dir, "old.jsonl")})
	}
	return d
}

func (d *importDesk) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (d *importDesk) job() *sluice.Job {
	return salesJob(file.JSONLines[sale](filepath.Join(d.dir, "sales.jsonl")), file.Append[told](filepath.Join(d.dir, "told")))
}

func importOptions(st store.Store) sluice.Options {
	world := env.Real()
	world.Clock = faultenv.Hasty(world.Clock, haste)
	return sluice.Options{Store: st, Log: slog.New(slog.DiscardHandler), Volatile: true, Env: world, Epoch: time.Hour}
}

// told is what the job has put out.
func (d *importDesk) told(t *testing.T) (rows []told) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "told", "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var row told
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// check sees that the job went on as one that had read everything.
func (d *importDesk) check(t *testing.T) {
	t.Helper()
	want := []told{
		{"ann", 607, []string{"Bern", "Oslo", "Rome"}, []string{"Oslo", "Rome", "Bern"}},
		{"bob", 58, []string{"Bern"}, []string{"Bern"}},
		{"cid", 9, []string{"Bern"}, []string{"Bern"}},
	}
	if got := fmt.Sprint(d.told(t)); got != fmt.Sprint(want) {
		t.Errorf("the job tells %v, expected %v", got, want)
	}
}

// TestImportFunctions sees what becomes of rows that functions map, and that the
// job goes on from there.
func TestImportFunctions(t *testing.T) {
	t.Parallel()
	d, st := newImportDesk(t), store.NewMemory()
	done, err := d.job().Import(t.Context(), importOptions(st), d.im)
	if err != nil {
		t.Fatal(err)
	}
	want := []sluice.ImportedState{{State: "by_user", Rows: 2, Entries: 2}, {State: "cities", Rows: 2, Entries: 2}, {State: "last", Rows: 2, Entries: 2}}
	if !slices.Equal(done.States, want) {
		t.Errorf("imported %+v, expected %+v", done.States, want)
	}
	if err := d.job().Run(t.Context(), importOptions(st)); err != nil {
		t.Fatal(err)
	}
	d.check(t)
	var has *epoch.HasRunError
	if _, err := d.job().Import(t.Context(), importOptions(st), d.im); !errors.As(err, &has) || has.ExitCode() != 13 {
		t.Errorf("a job that has run is imported: %v", err)
	}
}

// TestImportErrors sees that a function's error or panic names the row.
func TestImportErrors(t *testing.T) {
	t.Parallel()
	for row, says := range map[string]string{
		`{"user":"cid","cents":-1,"cities":""}`:            "old.jsonl, row 3 (line 3): nobody owes us money",
		`{"user":"panic","cents":1,"cities":""}`:           "old.jsonl, row 3 (line 3): panic: a user of that name",
		`{"user":"ann","cents":1,"cities":""}`:             `the key "ann" comes twice: expected one row for each, found file `,
		`{"user":"cid","cents":1.5,"cities":""}`:           "old.jsonl, row 3 (line 3), column cents: expected long, found \"1.5\"",
		`{"user":"cid","cents":1,"cities":"","street":""}`: "column street: expected no such field",
	} {
		d, st := newImportDesk(t), store.NewMemory()
		d.write(t, "old.jsonl", oldRows+row)
		_, err := d.job().Import(t.Context(), importOptions(st), d.im)
		var failed *runner.ImportError
		if !errors.As(err, &failed) || failed.ExitCode() != 16 || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "sales: state by_user: ") {
			t.Errorf("%s: %v, expected that it says %q", row, err, says)
		}
	}
}

// TestImportFails lets each call of the store fail, or lose its reply, in turn: what
// is left is no job, or the whole one, and the next import or run gets over it.
func TestImportFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultstore.Fault{faultstore.Fail, faultstore.LostCall, faultstore.LostReply} {
		for n := 1; ; n += 1 + n/8 {
			d, inner := newImportDesk(t), store.NewMemory()
			st := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault {
				creates := c.Operation == "create" || c.Operation == "commit"
				if c.N >= n && (fault == faultstore.Fail || creates && c.N == n) {
					return fault
				}
				return faultstore.None
			})
			_, err := d.job().Import(t.Context(), importOptions(st), d.im)
			if calls := st.Calls(); len(calls) < n {
				if err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				if n < 10 {
					t.Fatalf("an import of %d calls", n)
				}
				break
			}
			if err != nil {
				var has *epoch.HasRunError // what failed was behind the last step
				if _, err := d.job().Import(t.Context(), importOptions(inner), d.im); err != nil && !errors.As(err, &has) {
					t.Fatalf("fault %d at call %d: the next import: %v", fault, n, err)
				}
			}
			if err := d.job().Run(t.Context(), importOptions(inner)); err != nil {
				t.Fatalf("fault %d at call %d: the run: %v", fault, n, err)
			}
			d.check(t)
			if t.Failed() {
				t.Fatalf("fault %d at call %d", fault, n)
			}
		}
	}
}

// TestImportRaces lets a run begin the job at each of an import's calls of the
// store: one of the two makes the first epoch, and the other says so or goes on
// from it.
func TestImportRaces(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		d, inner := newImportDesk(t), store.NewMemory()
		st := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault {
			if c.N == n {
				if err := d.job().Run(context.Background(), importOptions(inner)); err != nil {
					t.Errorf("the run at call %d: %v", n, err)
				}
			}
			return faultstore.None
		})
		_, err := d.job().Import(t.Context(), importOptions(st), d.im)
		if len(st.Calls()) < n {
			break
		}
		var has *epoch.HasRunError
		switch {
		case errors.As(err, &has): // the run was first, and has read everything
			if got := len(d.told(t)); got != 6 {
				t.Errorf("call %d: the run tells %d rows, expected 6", n, got)
			}
		case err != nil:
			t.Errorf("the import with a run at call %d: %v", n, err)
		default:
			d.check(t)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestImportMerges sees that rows of one key are put together where the state says
// how.
func TestImportMerges(t *testing.T) {
	t.Parallel()
	d, st := newImportDesk(t), store.NewMemory()
	d.write(t, "old.csv", "key,value\nann,100\nbob,50\nann,500\n")
	sums := sluice.NewState[string, int64]("by_user").Merge(func(earlier *int64, later int64) { *earlier += later })
	job := func() *sluice.Job {
		job := sluice.NewJob("sales")
		job.From("sales", file.JSONLines[sale](filepath.Join(d.dir, "sales.jsonl"))).
			KeyBy(func(s sale) string { return s.User }).
			Fold(sums, func(n *int64, s sale) { *n += s.Cents }).
			Changes().Map(func(c sluice.Change[string, int64]) told { return told{User: c.Key, Total: c.New} }).
			To("told", file.Append[told](filepath.Join(d.dir, "told")))
		return job
	}
	d.im.Files = []sluice.ImportFile{{State: "by_user", Path: filepath.Join(d.dir, "old.csv")}}
	done, err := job().Import(t.Context(), importOptions(st), d.im)
	if err != nil || len(done.States) != 1 || done.States[0] != (sluice.ImportedState{State: "by_user", Rows: 3, Entries: 2}) {
		t.Fatalf("imported %+v, %v", done.States, err)
	}
	if err := job().Run(t.Context(), importOptions(st)); err != nil {
		t.Fatal(err)
	}
	totals := map[string]int64{}
	for _, row := range d.told(t) {
		totals[row.User] = row.Total
	}
	if want := map[string]int64{"ann": 607, "bob": 58, "cid": 9}; !maps.Equal(totals, want) {
		t.Errorf("the totals are %v, expected %v", totals, want)
	}
}

// TestImportEndsAtBase lets the store fail, or the import be stopped, at each call
// from that on which creates the first epoch: what the epoch refers to stays unless
// it certainly isn't there, the error says what is known, and the same import, or a
// run, goes on from there.
func TestImportEndsAtBase(t *testing.T) {
	t.Parallel()
	isBase := func(c faultstore.Call) bool {
		return c.Operation == "create" && strings.HasSuffix(c.Name, "0.0/00000000000000000000.json")
	}
	first, all := 0, 0
	d, inner := newImportDesk(t), store.NewMemory()
	counting := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault {
		if all++; isBase(c) {
			first = c.N
		}
		return faultstore.None
	})
	if _, err := d.job().Import(t.Context(), importOptions(counting), d.im); err != nil || first == 0 {
		t.Fatalf("the base is call %d: %v", first, err)
	}
	ends := map[string]func(n int, c faultstore.Call, stop func()) faultstore.Fault{
		"fails for good": func(n int, c faultstore.Call, stop func()) faultstore.Fault {
			if c.N >= n {
				return faultstore.Fail
			}
			return faultstore.None
		},
		"loses calls for good": func(n int, c faultstore.Call, stop func()) faultstore.Fault {
			switch {
			case c.N >= n && c.Operation == "create":
				return faultstore.LostCall
			case c.N >= n:
				return faultstore.Fail
			}
			return faultstore.None
		},
		"does it, and is away": func(n int, c faultstore.Call, stop func()) faultstore.Fault {
			switch {
			case c.N == n && c.Operation == "create":
				return faultstore.LostReply
			case c.N >= n:
				return faultstore.Fail
			}
			return faultstore.None
		},
		"does it, and the import is stopped": func(n int, c faultstore.Call, stop func()) faultstore.Fault {
			if c.N < n {
				return faultstore.None
			}
			stop()
			if c.N == n && c.Operation == "create" {
				return faultstore.LostReply
			}
			return faultstore.Fail
		},
	}
	for name, end := range ends {
		for n := first; n <= all; n++ {
			for _, again := range []bool{true, false} {
				d, inner := newImportDesk(t), store.NewMemory()
				ctx, stop := context.WithCancel(t.Context())
				st := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault { return end(n, c, stop) })
				_, err := d.job().Import(ctx, importOptions(st), d.im)
				stop()
				began, isBegan := errors.AsType[*epoch.BeganError](err)
				_, rerr := inner.Read(t.Context(), "sales/branches/main/0.0/00000000000000000000.json", epoch.MaxObject)
				there := rerr == nil
				if isBegan && began.Made && !there {
					t.Errorf("%s, call %d: said to be made, and is not: %v", name, n, err)
				}
				if there && err != nil && !isBegan {
					t.Errorf("%s, call %d: it is there, but the error is %v", name, n, err)
				}
				if n == first && name != "fails for good" && !isBegan {
					t.Errorf("%s, call %d: expected an error that leaves it open, found %v", name, n, err)
				}
				if again || !there { // if it is not there, a run would begin anew
					done, err := d.job().Import(t.Context(), importOptions(inner), d.im)
					_, has := errors.AsType[*epoch.HasRunError](err)
					if err != nil && !has || err == nil && len(done.Offsets) != 1 {
						t.Errorf("%s, call %d: the next import: %+v, %v", name, n, done, err)
					}
				}
				if err := d.job().Run(t.Context(), importOptions(inner)); err != nil {
					t.Errorf("%s, call %d: the run: %v", name, n, err)
				}
				if d.check(t); t.Failed() {
					t.Fatalf("%s, call %d, imported again: %v", name, n, again)
				}
			}
		}
	}
}

// TestImportOfOthers sees that an import whose first epoch is there without more is
// not taken for another's.
func TestImportOfOthers(t *testing.T) {
	t.Parallel()
	d, inner := newImportDesk(t), store.NewMemory()
	st := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault {
		if strings.Contains(c.Name, "/live/") && c.Operation == "create" {
			return faultstore.Fail
		}
		return faultstore.None
	})
	_, err := d.job().Import(t.Context(), importOptions(st), d.im)
	if began, ok := errors.AsType[*epoch.BeganError](err); !ok || !began.Made || !strings.HasSuffix(err.Error(), "Run the job.") {
		t.Fatalf("expected that it is made, found %v", err)
	}
	d.write(t, "old.jsonl", strings.Replace(oldRows, "600", "601", 1))
	_, err = d.job().Import(t.Context(), importOptions(inner), d.im)
	if has, ok := errors.AsType[*epoch.HasRunError](err); !ok || !has.Imported {
		t.Errorf("other rows: %v", err)
	}
	if err := d.job().Run(t.Context(), importOptions(inner)); err != nil {
		t.Fatal(err)
	}
	d.check(t)
}
