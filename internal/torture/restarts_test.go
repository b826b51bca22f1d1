package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// spendOrder is a line of the input of the job spend.
type spendOrder struct {
	User   string
	Number int64
	Cents  int64
	Weight float64
	Note   string
	Code   string
}

// spendRow is a row of its sink.
type spendRow struct {
	Orders, Cents int64
	Weight        float64
	Note, Status  string
	Code          string
	VIP           bool
}

// take is the fold that all builds have in common.
func (r *spendRow) take(o spendOrder) {
	r.Orders++
	r.Cents += o.Cents
	r.Weight += o.Weight
	r.Note, r.Code = o.Note, o.Code
	r.Status = "new"
	if r.Orders > 2 {
		r.Status = "regular"
	}
}

const (
	spendUsers = 40
	spendHalf  = 150 // orders before the restart, and after it
)

// spendOrders are orders number from to to. Some users come before the restart
// only, some after it only; each user's orders stand in one file.
func spendOrders(from, to int) []spendOrder {
	var orders []spendOrder
	for i := from; i < to; i++ {
		user := (i*i + i/7) % spendUsers
		if i < spendHalf && user < 5 || i >= spendHalf && user >= 35 {
			user = 20
		}
		orders = append(orders, spendOrder{
			User: fmt.Sprintf("user-%02d", user), Number: int64(user), Cents: int64(i*37%1000 + 1), Weight: float64(i%9) / 4,
			Note: fmt.Sprintf("note %d", i), Code: fmt.Sprintf("c%d", i%11),
		})
	}
	return orders
}

// appendSpend appends orders to the job's two files.
func appendSpend(t *testing.T, folder string, orders []spendOrder) {
	t.Helper()
	for part := range 2 {
		var text strings.Builder
		for _, o := range orders {
			if o.Number%2 == int64(part) {
				line, _ := json.Marshal(o)
				text.Write(append(line, '\n'))
			}
		}
		appendTo(t, filepath.Join(folder, "in", fmt.Sprintf("%d.jsonl", part)), text.String())
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// spendBefore is a folder in which the job's first build has run to its end.
func spendBefore(t *testing.T, bin string) string {
	t.Helper()
	folder := t.TempDir()
	appendSpend(t, folder, spendOrders(0, spendHalf))
	mustRun(t, folder, filepath.Join(bin, "base"))
	return folder
}

// mustRun runs a job's binary to the end of its input.
func mustRun(t *testing.T, folder, binary string, args ...string) result {
	t.Helper()
	r := runCommand(t, folder, binary, args...)
	if r.code != 0 {
		t.Fatalf("%s: exit code %d\n%s", filepath.Base(binary), r.code, r.stderr)
	}
	return r
}

// runCommand is the job's command run.
func runCommand(t *testing.T, folder, binary string, args ...string) result {
	t.Helper()
	return runJob(t, folder, binary, append([]string{"run", "--store", "store", "--epoch", "20ms"}, args...)...)
}

// restart is what another build does with what the first one has left.
type restart struct {
	build string
	flags []string
	// plan is the exit code of the job's command plan, with the same flags, and lines
	// has what it says of each part that isn't same: part, name, verdict and causes.
	plan  int
	lines []string
	// change is what the build makes of a row otherwise than the first one.
	change func(*spendRow, spendOrder)
	// sameVersion tells that nothing has changed for the engine.
	sameVersion bool
	// anew tells that the state begins empty.
	anew bool
	// check looks at what was printed.
	check func(*testing.T, result)
}

// TestRestarts continues a job with builds whose code or state's type differs:
// all go on from the checkpoint, as the plan says before, and the final rows are
// exact.
func TestRestarts(t *testing.T) {
	t.Parallel()
	bin := build(t, &binaries.spend, "spend/...")
	before := spendBefore(t, bin)
	for _, r := range []restart{
		{build: "base", sameVersion: true},
		{build: "unrelated", sameVersion: true},
		{build: "printing", sameVersion: true, check: func(t *testing.T, r result) {
			if n := strings.Count(r.stderr, "folding an order of"); n != spendHalf {
				t.Errorf("the fold's new print was seen %d times, expected once for each of %d records", n, spendHalf)
			}
		}},
		{build: "moved", sameVersion: true},
		{build: "boolean", lines: []string{"state spend resolves: spend.VIP: added (boolean)"}, change: func(r *spendRow, o spendOrder) { r.VIP = r.VIP || o.Cents >= 900 }},
		{build: "removed", flags: []string{"--drop", "spend.Note"}, lines: []string{"state spend resolves: spend.Note: removed (string)"}, change: func(r *spendRow, _ spendOrder) { r.Note = "" }},
		{build: "reordered", lines: []string{"state spend resolves: spend: reordered: Orders, Cents, Weight, Note, Status, Code → Code, Status, Note, Weight, Cents, Orders"}},
		{build: "widened", lines: []string{"state spend resolves: spend.Orders: int → long | spend.Weight: float → double"}},
		{build: "narrowed", flags: []string{"--drop", "spend.Cents"}, lines: []string{"state spend resolves: spend.Cents: long → int (narrowed)"}},
		{build: "nullable", lines: []string{"state spend resolves: spend.Code: string → nullable string (made nullable)"}},
		{build: "renamed", lines: []string{"state spend resolves: spend.Amount: renamed from Cents"}},
		{build: "symbol", lines: []string{"state spend resolves: spend.Status: symbol added (gold)"}, change: func(r *spendRow, _ spendOrder) {
			if r.Orders > 4 {
				r.Status = "gold"
			}
		}},
		{build: "newstate", flags: []string{"--drop", "spend"}, anew: true, plan: 21, lines: []string{
			"state spend resolves: spend: no operator has it any more", newStateBegins, newStateRows,
		}},
	} {
		t.Run(r.build, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(before)); err != nil {
				t.Fatal(err)
			}
			r.run(t, folder, filepath.Join(bin, r.build))
		})
	}
}

func (r restart) run(t *testing.T, folder, binary string) {
	j := openJournal(filepath.Join(folder, "store"), "spend")
	j.read(t)
	old := j.head()
	had := len(j.manifests)

	after := spendOrders(spendHalf, 2*spendHalf)
	appendSpend(t, folder, after)
	checkPlan(t, folder, binary, r.flags, r.plan, r.lines)
	out := mustRun(t, folder, binary, r.flags...)
	if r.check != nil {
		r.check(t, out)
	}

	j.read(t)
	records := int64(0)
	for _, m := range j.manifests[had:] {
		records += m.Counts["records"]
	}
	if records != int64(len(after)) {
		t.Errorf("the restart has read %d records, %d were new", records, len(after))
	}
	if same := j.head().Version == old.Version; same != r.sameVersion {
		t.Errorf("the version after the restart is the one before: %v, expected %v", same, r.sameVersion)
	}
	sameRows(t, filepath.Join(folder, "out", "rows"), r.rows(after))
}

// What the plan says of a state of another name, and of the sink of its rows.
const (
	newStateBegins = "state spending partial: spending: it begins empty: it has not seen what was read of orders before epoch N, and never will"
	newStateRows   = "sink rows partial: rows, of: spend → spending: rows of the one stay, and those of the other come as their keys change"
)

// someEpoch is an epoch in what a plan says: how many there are depends on how
// fast the job ran.
var someEpoch = regexp.MustCompile(`epoch \d+`)

// checkPlan compares what a build's command plan says, which changes nothing.
func checkPlan(t *testing.T, folder, binary string, flags []string, code int, want []string) {
	t.Helper()
	before := snapshot(t, folder)
	out := runJob(t, folder, binary, append([]string{"plan", "--store", "store", "--json"}, flags...)...)
	var plan struct {
		Lines []struct {
			Part, Name, Verdict string
			Causes              []string
		}
	}
	if err := json.Unmarshal([]byte(out.stdout), &plan); err != nil {
		t.Fatalf("plan: exit code %d: %v\n%s%s", out.code, err, out.stdout, out.stderr)
	}
	var got []string
	for _, l := range plan.Lines {
		if l.Verdict != "same" {
			got = append(got, someEpoch.ReplaceAllString(fmt.Sprintf("%s %s %s: %s", l.Part, l.Name, l.Verdict, strings.Join(l.Causes, " | ")), "epoch N"))
		}
	}
	if out.code != code || !slices.Equal(got, want) {
		t.Errorf("plan: exit code %d, expected %d; it says\n\t%s\nexpected\n\t%s", out.code, code, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	sameFiles(t, before, snapshot(t, folder))
}

// rows are the rows that must stand in the sink in the end.
func (r restart) rows(after []spendOrder) map[string]spendRow {
	rows, states := map[string]spendRow{}, map[string]spendRow{}
	for _, o := range spendOrders(0, spendHalf) {
		s := states[o.User]
		s.take(o)
		states[o.User], rows[o.User] = s, s
	}
	if r.anew {
		clear(states)
	}
	for _, o := range after {
		s := states[o.User]
		s.take(o)
		if r.change != nil {
			r.change(&s, o)
		}
		states[o.User], rows[o.User] = s, s
	}
	return rows
}

func sameRows[R comparable](t *testing.T, folder string, want map[string]R) {
	t.Helper()
	got := lastRows[string, R](t, folder)
	for _, key := range sortedKeys(want) {
		if got[key] != want[key] {
			t.Errorf("sink %s, key %s: expected %+v, found %+v", filepath.Base(folder), key, want[key], got[key])
		}
	}
	for _, key := range sortedKeys(got) {
		if _, ok := want[key]; !ok {
			t.Errorf("sink %s, key %s: found %+v, expected none", filepath.Base(folder), key, got[key])
		}
	}
}

// TestRefused continues a job with builds that can't go on from what is stored:
// each is refused with the path of what differs, as the plan says before, and
// changes nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	bin := build(t, &binaries.spend, "spend/...")
	folder := spendBefore(t, bin)
	appendSpend(t, folder, spendOrders(spendHalf, 2*spendHalf))
	before := snapshot(t, folder)
	for _, r := range []struct {
		build string
		flags []string
		says  []string
		plan  int
		lines []string
	}{
		{"number", nil, []string{"spend.Note", "string", "long"}, 23, []string{"state spend replay: spend.Note: string → long: can't be carried over"}},
		{"narrowed", nil, []string{"spend.Cents", "--drop spend.Cents"}, 22, []string{"state spend consent: spend.Cents: long → int (narrowed)"}},
		{"otherkey", nil, []string{"spend", "key", "string", "long"}, 24, []string{
			"key spend replay: spend, key: string → long: stored keys can't be carried over without MigrateKeys",
			"sink rows refused: rows, key: string → long: its rows would be told apart by another key",
		}},
		{"removed", nil, []string{"spend.Note", "--drop spend.Note"}, 22, []string{"state spend consent: spend.Note: removed (string)"}},
		{"removed", []string{"--drop", "spend.Nota"}, []string{"spend.Note", "spend.Nota"}, 24, []string{
			"state spend consent: spend.Note: removed (string)", "flag --drop spend.Nota refused: --drop spend.Nota: that is not dropped",
		}},
		{"newstate", nil, []string{"--drop spend"}, 22, []string{
			"state spend consent: spend: no operator has it any more", newStateBegins, newStateRows,
		}},
	} {
		t.Run(strings.Join(append([]string{r.build}, r.flags...), " "), func(t *testing.T) {
			checkPlan(t, folder, filepath.Join(bin, r.build), r.flags, r.plan, r.lines)
			out := runCommand(t, folder, filepath.Join(bin, r.build), r.flags...)
			if out.code != 13 {
				t.Errorf("exit code %d, expected 13\n%s", out.code, out.stderr)
			}
			for _, text := range r.says {
				if !strings.Contains(out.stderr, text) {
					t.Errorf("the refusal does not say %q:\n%s", text, out.stderr)
				}
			}
			if strings.Contains(out.stderr, "goroutine ") {
				t.Errorf("the refusal is a panic:\n%s", out.stderr)
			}
			sameFiles(t, before, snapshot(t, folder))
		})
	}
	// The first build goes on as if nothing had been.
	mustRun(t, folder, filepath.Join(bin, "base"))
	sameRows(t, filepath.Join(folder, "out", "rows"), restart{}.rows(spendOrders(spendHalf, 2*spendHalf)))
}

func sameFiles(t *testing.T, before, after map[string]string) {
	t.Helper()
	for _, path := range sortedKeys(before) {
		if text, ok := after[path]; !ok || text != before[path] {
			t.Errorf("%s was changed", path)
		}
	}
	for _, path := range sortedKeys(after) {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}
