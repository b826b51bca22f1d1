package sluice_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// A job of plannedJobs is a process of its own: this binary, with the job's name
// and its desk in the environment.
const (
	plannedJob  = "SLUICE_TEST_JOB"
	plannedDesk = "SLUICE_TEST_DESK"
)

func TestMain(m *testing.M) {
	if job := plannedJobs[os.Getenv(plannedJob)]; job != nil {
		sluice.Main(job(desk{os.Getenv(plannedDesk)}))
	}
	os.Exit(m.Run())
}

// command runs a command of a job, and returns what it prints and its exit code.
func (d desk) command(job string, args ...string) (out string, code int) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), plannedJob+"="+job, plannedDesk+"="+d.dir, "SLUICE_STORE="+d.path("sluice-data"))
	printed, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		panic(err)
	}
	return string(printed), code
}

// What the job of the docs keeps, and kept.
type (
	docTag   struct{ Name string }
	docLevel string
	docSpend struct {
		Orders, Cents int64
		Level         docLevel
		Tags          []docTag
	}

	docWeighed struct {
		Name   string
		Weight int64
	}
	docLevel3 string
	docMore   struct {
		Orders, Cents int64
		Level         docLevel3
		Tags          []docWeighed
		VIP           bool
	}
	docText struct {
		Orders int64
		Cents  string
		Level  docLevel
		Tags   []docTag
	}
	docLess struct {
		Orders int64
		Level  docLevel
		Tags   []docTag
	}
)

func (docLevel) Symbols() []string  { return []string{"new", "gold"} }
func (docLevel3) Symbols() []string { return []string{"new", "gold", "lost"} }

// The functions of its migrations.
func centsText(s docSpend) (docText, error) {
	return docText{s.Orders, fmt.Sprint(s.Cents), s.Level, s.Tags}, nil
}

func smallCents(s docSpend) (docText, error) {
	if s.Cents >= 1000 {
		return docText{}, fmt.Errorf("expected less than 1000 cents, found %d", s.Cents)
	}
	return centsText(s)
}

func withCountry(user string, s docSpend) iter.Seq2[Account, docSpend] {
	return func(yield func(Account, docSpend) bool) { yield(Account{"no", user}, s) }
}

func ordersOf(s docSpend) (Count, error)       { return Count{s.Orders}, nil }
func centsSum(s docSpend) (Sum, error)         { return Sum{s.Cents}, nil }
func tenths(s docSpend) (docSpend, error)      { s.Cents *= 10; return s, nil }
func accountOf(o Order) Account                { return Account{"no", o.User} }
func addDoc(s *docSpend, o Order)              { s.Orders++; s.Cents += o.Cents; s.Level = "new" }
func addMore(s *docMore, o Order)              { s.Orders++; s.Cents += o.Cents; s.Level = "new" }
func addText(s *docText, _ Order)              { s.Orders++; s.Level = "new" }
func addLess(s *docLess, _ Order)              { s.Orders++; s.Level = "new" }
func addCount(c *Count, _ Order)               { c.Orders++ }
func addSum(s *Sum, o Order)                   { s.Cents += o.Cents }
func docState() sluice.State[string, docSpend] { return sluice.NewState[string, docSpend]("spend") }

func docKeyed(d desk) (*sluice.Job, *sluice.Keyed[string, Order]) {
	job := sluice.NewJob("spend")
	return job, d.orders(job).KeyBy(Order.UserID)
}

func docFold[S any](d desk, state sluice.State[string, S], add func(*S, Order)) *sluice.Job {
	job, keyed := docKeyed(d)
	keyed.Fold(state, add).To("out", file.Upsert(d.path("out"), func(string, S) Sum { return Sum{} }))
	return job
}

// plannedJobs are what becomes of the job spend.
var plannedJobs = map[string]func(d desk) *sluice.Job{
	"spend":   func(d desk) *sluice.Job { return docFold(d, docState(), addDoc) },
	"more":    func(d desk) *sluice.Job { return docFold(d, sluice.NewState[string, docMore]("spend"), addMore) },
	"retyped": func(d desk) *sluice.Job { return docFold(d, sluice.NewState[string, docText]("spend"), addText) },
	"migrated": func(d desk) *sluice.Job {
		return docFold(d, sluice.NewState[string, docText]("spend").Migrate(sluice.Migrate(centsText)), addText)
	},
	"strict": func(d desk) *sluice.Job {
		return docFold(d, sluice.NewState[string, docText]("spend").Migrate(sluice.Migrate(smallCents)), addText)
	},
	"less": func(d desk) *sluice.Job { return docFold(d, sluice.NewState[string, docLess]("spend"), addLess) },
	"keys": func(d desk) *sluice.Job {
		job := sluice.NewJob("spend")
		d.orders(job).KeyBy(accountOf).Fold(sluice.NewState[Account, docSpend]("spend").MigrateKeys(withCountry, nil), addDoc).
			To("accounts", file.Upsert(d.path("accounts"), func(Account, docSpend) Sum { return Sum{} }))
		return job
	},
	"renamed": func(d desk) *sluice.Job {
		return docFold(d, sluice.NewState[string, docSpend]("spending").TakesOver("spend"), addDoc)
	},
	"split": func(d desk) *sluice.Job {
		job, keyed := docKeyed(d)
		keyed.Fold(sluice.NewState[string, Count]("counts").TakesOver("spend", sluice.Migrate(ordersOf)), addCount).
			To("counts", file.Upsert(d.path("counts"), func(string, Count) Sum { return Sum{} }))
		keyed.Fold(sluice.NewState[string, Sum]("sums").TakesOver("spend", sluice.Migrate(centsSum)), addSum).
			To("sums", file.Upsert(d.path("sums"), func(string, Sum) Sum { return Sum{} }))
		return job
	},
	"meaning": func(d desk) *sluice.Job {
		return docFold(d, docState().Meaning(1).Migrate(sluice.Migrate(tenths).From(0)), addDoc)
	},
	"beside": func(d desk) *sluice.Job {
		job, keyed := docKeyed(d)
		keyed.Fold(docState(), addDoc).To("out", file.Upsert(d.path("out"), func(string, docSpend) Sum { return Sum{} }))
		keyed.Fold(sluice.NewState[string, Count]("counts"), addCount).
			To("counts", file.Upsert(d.path("counts"), func(string, Count) Sum { return Sum{} }))
		return job
	},
}

// howLong is what a plan says of how long a migration takes, which differs from
// run to run, and someEpoch an epoch of which that is so as well.
var (
	howLong   = regexp.MustCompile(`; all take about [^;\n]*`)
	someEpoch = regexp.MustCompile(`before epoch \d+`)
)

// plainSame is a line of a plan that says same, and nothing else.
var plainSame = regexp.MustCompile(`^\S+ +\S+ +same$`)

// planOf is what a job's plan prints, without its head, and without lines that say
// same and nothing else.
func (d desk) planOf(job string, args ...string) string {
	out, _ := d.command(job, append([]string{"plan"}, args...)...)
	_, lines, _ := strings.Cut(out, "\n\n")
	lines = someEpoch.ReplaceAllString(howLong.ReplaceAllString(lines, ""), "before epoch 1842")
	var kept []string
	for line := range strings.SplitSeq(lines, "\n") {
		if line = strings.TrimRight(line, " "); !plainSame.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// A plan says what becomes of each part of a job with another build, before that
// is started: here with one whose state has its cents as text.
func ExampleMain_plan() {
	d := newDesk()
	defer d.clear()
	d.command("spend", "run")
	fmt.Println(d.planOf("migrated"))
	// Output:
	// PART      NAME    VERDICT   WHY
	// operator  spend   same      note: its function is sluice_test.addText, and was sluice_test.addDoc
	// state     spend   migrates  spend: values go through sluice_test.centsText
	//                             tried: 2 of 2 entries, 0 failed; 1.28 × as large
	// sink      out     same      note: state spend migrates: rows of keys that don't change stay as the version before has written them, unless --rewrite out=all
	//
	// migrates: a run goes on from here (exit code 20)
}

// TestPlansOfTheDocs compares the plans that the docs show with those that are
// printed.
func TestPlansOfTheDocs(t *testing.T) {
	pages := map[string]string{}
	for _, name := range []string{"README.md", "docs/upgrading.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(page)
	}
	d := newDesk()
	defer d.clear()
	if out, code := d.command("spend", "run"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, c := range []struct {
		job  string
		args []string
	}{
		{"more", nil}, {"less", nil}, {"less", []string{"--drop", "spend.Cents"}}, {"retyped", nil}, {"migrated", nil},
		{"strict", nil}, {"strict", []string{"--set-aside", "spend=aside.jsonl", "--all"}},
		{"keys", nil}, {"renamed", nil}, {"split", nil}, {"meaning", nil}, {"beside", nil},
	} {
		// The docs' job is a program, whose functions are of package main.
		want := "$ " + strings.Join(append([]string{"spend plan"}, c.args...), " ") + "\n" + strings.ReplaceAll(d.planOf(c.job, c.args...), "sluice_test.", "main.") + "\n"
		if !strings.Contains(pages["docs/upgrading.md"], want) {
			t.Errorf("%s: docs/upgrading.md lacks\n%s", c.job, want)
		}
		pages["README.md"] = strings.Replace(pages["README.md"], want, "", 1)
	}
	if strings.Contains(pages["README.md"], "$ spend plan") {
		t.Error("README.md shows a plan that none of these prints")
	}
}
