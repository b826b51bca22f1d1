package changes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/state/statetest"
)

// variantKey is the variable that makes the tests' own binary a job's.
const variantKey = "CHANGES_VARIANT"

func TestMain(m *testing.M) {
	if name := os.Getenv(variantKey); name != "" {
		sluice.Main(job(variants[name]))
	}
	os.Exit(m.Run())
}

// What is read before a change, and after it.
var (
	first = []string{
		`{"User":"ann","Shop":"downtown","Number":1,"Cents":5,"Note":"a"}`,
		`{"User":"bob","Shop":"harbour","Number":2,"Cents":7,"Note":"b"}`,
		`{"User":"ann","Shop":"harbour","Number":1,"Cents":11,"Note":"c"}`,
	}
	second = []string{
		`{"User":"ann","Shop":"downtown","Number":1,"Cents":1,"Note":"d"}`,
		`{"User":"zoe","Shop":"mill","Number":3,"Cents":2,"Note":"e"}`,
	}
)

// states are values by key, as JSON, by the names of states.
type states map[string]map[string]string

// unchanged is what the base job has after the first events, and after both, but
// for the state sum, of which bob's value is looked at: it is only carried over.
var (
	unchanged = states{
		"orders":  {`"ann"`: `{"N":2}`, `"bob"`: `{"N":1}`},
		"cents":   {`"ann"`: `{"N":16}`, `"bob"`: `{"N":7}`},
		"shops":   {`"downtown"`: `{"N":1}`, `"harbour"`: `{"N":2}`},
		"by_shop": {`"ann" "downtown"`: `{"N":1}`, `"ann" "harbour"`: `{"N":1}`, `"bob" "harbour"`: `{"N":1}`},
		"visits":  {`"ann" 0`: `{"Cents":5}`, `"ann" 1`: `{"Cents":11}`, `"bob" 0`: `{"Cents":7}`},
	}
	goneOn = states{
		"orders":  {`"ann"`: `{"N":3}`, `"bob"`: `{"N":1}`, `"zoe"`: `{"N":1}`},
		"cents":   {`"ann"`: `{"N":17}`, `"bob"`: `{"N":7}`, `"zoe"`: `{"N":2}`},
		"shops":   {`"downtown"`: `{"N":2}`, `"harbour"`: `{"N":2}`, `"mill"`: `{"N":1}`},
		"by_shop": {`"ann" "downtown"`: `{"N":2}`, `"ann" "harbour"`: `{"N":1}`, `"bob" "harbour"`: `{"N":1}`, `"zoe" "mill"`: `{"N":1}`},
		"visits":  {`"ann" 0`: `{"Cents":5}`, `"ann" 1`: `{"Cents":11}`, `"ann" 2`: `{"Cents":1}`, `"bob" 0`: `{"Cents":7}`, `"zoe" 0`: `{"Cents":2}`},
	}
)

// bobs are what the state sum has of bob: the base's, and with a piece changed.
const bobs = `{"Orders":1,"Cents":7,"Small":1,"Part":0.5,"Note":"b","Level":"high","Tags":[{"Name":"b","Cents":7}],"Shops":{"harbour":{"Cents":7}},"Maybe":7}`

// bob is bob's value with something replaced.
func bob(replacements ...string) states {
	return states{"sum": {`"bob"`: strings.NewReplacer(replacements...).Replace(bobs)}}
}

// change is a change of the job, with what is right.
type change struct {
	from string // "": base
	to   string
	// plan are the plan's lines that are not the same as before, as "part name
	// verdict"; exit is its exit code.
	plan []string
	exit int
	// flags let it go on; refused is what a run without them says, "" if it needs
	// none. A change without flags that is refused can't be made.
	flags   []string
	refused string
	// after is what the states are then: those of goneOn but for these, and without
	// those that are nil.
	after states
}

var same = []change{
	{to: "base"}, {to: "state type renamed"}, {to: "function renamed"}, {to: "function without a name"},
	{to: "key function renamed"}, {to: "stateless steps"}, {to: "fold that keeps"}, {to: "fold becomes process"},
	{to: "operators in another order"}, {to: "dead letters"}, {to: "sink added"},
}

var resolving = []change{
	{to: "boolean added", plan: []string{"state sum resolves"}, after: bob(`"Maybe":7`, `"Maybe":7,"VIP":false`)},
	{to: "default that isn't zero", plan: []string{"state sum resolves"}, after: bob(`"Maybe":7`, `"Maybe":7,"Limit":7`)},
	{to: "pointer added", plan: []string{"state sum resolves"}, after: bob(`"Maybe":7`, `"Maybe":7,"Best":null`)},
	{to: "nested field added", plan: []string{"state sum resolves"}, after: bob(`"b","Cents":7}`, `"b","Cents":7,"Gift":false}`)},
	{to: "field of a map's values added", plan: []string{"state sum resolves"}, after: bob(`{"harbour":{"Cents":7}}`, `{"harbour":{"Cents":7,"Open":false}}`)},
	{to: "widened", plan: []string{"state sum resolves"}, after: bob()},
	{to: "made nullable", plan: []string{"state sum resolves"}, after: bob()},
	{to: "symbol added", plan: []string{"state sum resolves"}, after: bob()},
	{to: "renamed with an alias", plan: []string{"state sum resolves"}, after: bob(`"Orders":1,"Cents"`, `"Orders":1,"Money"`)},
	{to: "reordered", plan: []string{"state sum resolves"}, after: states{"sum": {`"bob"`: `{"Maybe":7,"Shops":{"harbour":{"Cents":7}},"Tags":[{"Name":"b","Cents":7}],"Level":"high","Note":"b","Small":1,"Part":0.5,"Orders":1,"Cents":7}`}}},
	{to: "text becomes bytes", plan: []string{"state sum resolves"}, after: bob(`"b","Level"`, `"Yg==","Level"`)},
	{to: "alias alone", plan: []string{"state sum resolves"}, after: bob()},
	{to: "list's values grow", plan: []string{"state visits resolves"}, after: states{"visits": {
		`"ann" 0`: `{"Cents":5,"Free":false}`, `"ann" 1`: `{"Cents":11,"Free":false}`, `"ann" 2`: `{"Cents":1,"Free":false}`,
		`"bob" 0`: `{"Cents":7,"Free":false}`, `"zoe" 0`: `{"Cents":2,"Free":false}`,
	}}},
	{to: "map's values grow", plan: []string{"state by_shop resolves"}, after: states{"by_shop": {
		`"ann" "downtown"`: `{"N":2,"Top":""}`, `"ann" "harbour"`: `{"N":1,"Top":""}`, `"bob" "harbour"`: `{"N":1,"Top":""}`, `"zoe" "mill"`: `{"N":1,"Top":""}`,
	}}},
	{to: "renamed state", plan: []string{"state money resolves"}, after: states{"cents": nil, "money": goneOn["cents"]}},
	{to: "sink's nullable column added", plan: []string{"sink orders resolves"}},
	{from: "by number", to: "key wider", plan: []string{"state numbers resolves"}, after: states{"numbers": {"1": `{"N":3}`, "2": `{"N":1}`, "3": `{"N":1}`}}},
	{to: "topic wider", plan: []string{"source events resolves"}},
	{to: "codec stricter", plan: []string{"source events resolves"}},
}

var migrating = []change{
	{to: "retyped with a function", plan: []string{"state sum migrates"}, exit: 20, after: states{"sum": {`"ann"`: `{"Cents":"17"}`, `"bob"`: `{"Cents":"7"}`, `"zoe"`: `{"Cents":"2"}`}}},
	{to: "in two steps", plan: []string{"state cents migrates"}, exit: 20, after: states{"cents": {`"ann"`: `{"Words":"0.16+"}`, `"bob"`: `{"Words":"0.07"}`, `"zoe"`: `{"Words":"+"}`}}},
	{from: "first of two steps", to: "in two steps", plan: []string{"state cents migrates"}, exit: 20, after: states{"cents": {`"ann"`: `{"Words":"0.16+"}`, `"bob"`: `{"Words":"0.07"}`, `"zoe"`: `{"Words":"+"}`}}},
	{to: "meaning with a function", plan: []string{"state cents migrates"}, exit: 20, after: states{"cents": {`"ann"`: `{"N":170}`, `"bob"`: `{"N":70}`, `"zoe"`: `{"N":20}`}}},
	{to: "split", plan: []string{"state euros migrates"}, exit: 20, after: states{"euros": {`"ann"`: `{"Euros":0.17}`, `"bob"`: `{"Euros":0.07}`, `"zoe"`: `{"Euros":0.02}`}}},
	{to: "two become one", plan: []string{"state both migrates"}, exit: 20, after: states{"cents": nil, "orders": nil, "both": {`"ann"`: `{"Orders":3,"Cents":17}`, `"bob"`: `{"Orders":1,"Cents":7}`, `"zoe"`: `{"Orders":1,"Cents":2}`}}},
	{to: "other keys with a function", plan: []string{"key shops migrates", "state shops migrates"}, exit: 20, after: states{"shops": {"8": `{"N":2}`, "7": `{"N":2}`, "4": `{"N":1}`}}},
	{to: "key's meaning with a function", plan: []string{"key shops migrates", "state shops migrates"}, exit: 20, after: states{"shops": {`"DOWNTOWN"`: `{"N":2}`, `"HARBOUR"`: `{"N":2}`, `"MILL"`: `{"N":1}`}}},
	{to: "map's elements with a function", plan: []string{"key by_shop migrates", "state by_shop migrates"}, exit: 20, after: states{"by_shop": {`"ann" 8`: `{"N":2}`, `"ann" 7`: `{"N":1}`, `"bob" 7`: `{"N":1}`, `"zoe" 4`: `{"N":1}`}}},
	{to: "function that fails", plan: []string{"state cents refused"}, exit: 24, flags: []string{"--set-aside", "cents=aside.jsonl"}, refused: "seven can't be", after: states{"cents": {`"ann"`: `{"Euros":0.17}`, `"zoe"`: `{"Euros":0.02}`}}},
}

var dropping = []change{
	{to: "field removed", plan: []string{"state sum consent"}, exit: 22, flags: []string{"--drop", "sum.Note"}, refused: "--drop sum.Note", after: bob(`"Note":"b",`, "")},
	{to: "nested field removed", plan: []string{"state sum consent"}, exit: 22, flags: []string{"--drop", "sum.Tags[].Name"}, refused: "--drop sum.Tags[].Name", after: bob(`"Name":"b",`, "")},
	{to: "state removed", plan: []string{"state cents consent"}, exit: 22, flags: []string{"--drop", "cents"}, refused: "--drop cents", after: states{"cents": nil}},
	{to: "state replaced", plan: []string{"state cents consent", "state money partial"}, exit: 22, flags: []string{"--drop", "cents"}, refused: "--drop cents", after: states{"cents": nil, "money": {`"ann"`: `{"N":1}`, `"zoe"`: `{"N":2}`}}},
	{to: "sink's nullable column removed", plan: []string{"sink orders consent"}, exit: 22, flags: []string{"--drop", "orders.Last"}, refused: "--drop orders.Last"},
	{to: "narrowed", plan: []string{"state sum consent"}, exit: 22, flags: []string{"--drop", "sum.Cents"}, refused: "--drop sum.Cents", after: bob()},
	{to: "symbol removed", plan: []string{"state sum consent"}, exit: 22, flags: []string{"--drop", "sum.Level"}, refused: "--drop sum.Level", after: bob()},
	{to: "made required", plan: []string{"state sum consent"}, exit: 22, flags: []string{"--drop", "sum.Maybe"}, refused: "--drop sum.Maybe", after: bob()},
	{from: "greatest two", to: "greatest one", plan: []string{"state top consent"}, exit: 22, flags: []string{"--drop", "top"}, refused: "--drop top", after: states{"top": {`"ann" 11`: `{"N":11}`, `"bob" 7`: `{"N":7}`, `"zoe" 2`: `{"N":2}`}}},
	{from: "greatest two", to: "greatest three", plan: []string{"state top partial"}, exit: 21, after: states{"top": {`"ann" 1`: `{"N":1}`, `"ann" 5`: `{"N":5}`, `"ann" 11`: `{"N":11}`, `"bob" 7`: `{"N":7}`, `"zoe" 2`: `{"N":2}`}}},
	{to: "state added", plan: []string{"state fresh partial"}, exit: 21, after: states{"fresh": {`"ann"`: `{"N":1}`, `"zoe"`: `{"N":1}`}}},
}

var refusing = []change{
	{to: "retyped", plan: []string{"state sum replay"}, exit: 23, refused: "sum.Cents: long → string"},
	{to: "meaning", plan: []string{"state cents replay"}, exit: 23, refused: "its meaning is 1 and was 0"},
	{to: "key's meaning", plan: []string{"key shops replay"}, exit: 23, refused: "shops, key: its meaning is 1 and was 0"},
	{to: "other keys", plan: []string{"key shops replay"}, exit: 23, refused: "shops, key: string → long"},
	{to: "map's elements", plan: []string{"key by_shop replay"}, exit: 23, refused: "by_shop, element: string → long"},
	{from: "greatest two", to: "smallest two", plan: []string{"state top replay"}, exit: 23, refused: "top: it was descending and is ascending"},
	{to: "another kind", plan: []string{"state cents refused"}, exit: 24, refused: "cents: a state of another kind"},
	{to: "functions crossed", plan: []string{"operator cents refused", "operator orders refused"}, exit: 24, refused: "cents"},
	{to: "key functions exchanged", plan: []string{"key shops refused"}, exit: 24, refused: "shops"},
	{to: "sink's column removed", plan: []string{"sink orders refused"}, exit: 24, refused: "orders.Orders"},
	{to: "sink's column retyped", plan: []string{"sink orders refused"}, exit: 24, refused: "orders.Orders"},
	{to: "sink's column renamed", plan: []string{"sink orders refused"}, exit: 24, refused: "orders.Orders"},
	{to: "source renamed", plan: []string{"source events refused"}, exit: 24, refused: "happenings"},
	{to: "source of another form", plan: []string{"source events refused"}, exit: 24, refused: "events"},
}

// Each change of the job is planned, then run: the plan says what is right, the
// run does what the plan says, and the state is right after it.
func TestChanges(t *testing.T) {
	for _, c := range slices.Concat(same, resolving, migrating, dropping, refusing) {
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(first)
			w.mustRun(c.start(), "run")
			w.try(c, unchanged)
		})
	}
}

// The same where four other changes came before, one behind each event.
func TestChangesBehindOthers(t *testing.T) {
	for _, c := range slices.Concat(same, resolving, migrating, dropping, refusing) {
		if c.from != "" {
			continue // from another beginning
		}
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, line := range first {
				w.append([]string{line})
				w.mustRun(fmt.Sprintf("ancestor %d", i+1), "run")
			}
			w.mustRun("ancestor 4", "run")
			w.try(c, unchanged)
		})
	}
}

// A migration whose process is killed at random moments starts over, and is right
// in the end.
func TestMigrationsKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i, c := range slices.Concat(resolving, migrating) {
		if c.refused != "" {
			continue
		}
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			w := newWorld(t)
			w.append(first)
			w.mustRun(c.start(), "run")
			w.append(second)
			for range 4 {
				w.killed(c.to, time.Duration(random.Int64N(int64(60*time.Millisecond))))
			}
			w.mustRun(c.to, "run", "--takeover")
			want := maps.Clone(goneOn)
			maps.Copy(want, c.after)
			w.check(want, "after four kills")
		})
	}
}

// killed runs a variant and kills it after a time.
func (w *world) killed(variant string, after time.Duration) {
	w.t.Helper()
	cmd := w.command(variant, "run", "--takeover")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	cmd.Wait()
	timer.Stop()
}

func (c change) start() string {
	if c.from == "" {
		return "base"
	}
	return c.from
}

// try plans and makes a change; before is what the states are until then.
func (w *world) try(c change, before states) {
	w.t.Helper()
	w.plan(c)
	w.append(second)
	if c.refused != "" {
		r := w.run(c.to, "run")
		if r.code != 13 || !strings.Contains(r.stderr, c.refused) {
			w.t.Fatalf("a run without flags: exit code %d, want 13 and %q\n%s", r.code, c.refused, r.stderr)
		}
		w.check(before, "after a run that was refused")
		if len(c.flags) == 0 {
			return
		}
		for _, wrong := range wrongFlags(c.flags) {
			if r := w.run(c.to, append([]string{"run"}, wrong...)...); r.code != 13 {
				w.t.Fatalf("a run with %q: exit code %d, want 13\n%s", wrong, r.code, r.stderr)
			}
			w.check(before, fmt.Sprintf("after a run with %q", wrong))
		}
	}
	w.mustRun(c.to, append([]string{"run"}, c.flags...)...)
	want := maps.Clone(goneOn)
	maps.Copy(want, c.after)
	w.check(want, "after the change")
}

// wrongFlags are the flags with a slip of the pen, and the right ones with one
// more that is for nothing.
func wrongFlags(flags []string) [][]string {
	if flags[0] != "--drop" {
		return nil
	}
	return [][]string{{flags[0], flags[1] + "x"}, {flags[0], flags[1], "--drop", "orders"}}
}

// world is a folder in which variants of the job run.
type world struct {
	t      *testing.T
	folder string
}

func newWorld(t *testing.T) *world {
	folder, err := os.MkdirTemp("/dev/shm", "changes-") // syncing costs nothing there
	if err != nil {
		return &world{t, t.TempDir()}
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return &world{t, folder}
}

func (w *world) append(lines []string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.folder, "in"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(w.folder, "in", "events.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		w.t.Fatal(err)
	}
}

// result is what a process has said and ended with.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a variant's command in a process of its own.
func (w *world) run(variant string, args ...string) result {
	w.t.Helper()
	cmd := w.command(variant, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (w *world) command(variant string, args ...string) *exec.Cmd {
	w.t.Helper()
	if variants[variant] == nil {
		w.t.Fatalf("there is no variant %q", variant)
	}
	if args[0] == "run" {
		args = append(args, "--epoch", "20ms", "--listen", "", "--volatile")
	}
	cmd := exec.Command(os.Args[0], append(args, "--store", "store")...)
	cmd.Dir, cmd.Env = w.folder, append(os.Environ(), variantKey+"="+variant)
	return cmd
}

func (w *world) mustRun(variant string, args ...string) result {
	w.t.Helper()
	r := w.run(variant, args...)
	if r.code != 0 {
		w.t.Fatalf("%s: %q: exit code %d\n%s", variant, args, r.code, r.stderr)
	}
	return r
}

// plan compares what a variant's plan says with what is right.
func (w *world) plan(c change) {
	w.t.Helper()
	r := w.run(c.to, "plan", "--json")
	if r.code != c.exit {
		w.t.Errorf("plan: exit code %d, want %d\n%s%s", r.code, c.exit, r.stdout, r.stderr)
	}
	var plan struct {
		Lines []struct{ Part, Name, Verdict string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &plan); err != nil {
		w.t.Fatalf("plan: %v\n%s", err, r.stdout)
	}
	var lines []string
	for _, l := range plan.Lines {
		if l.Verdict != "same" {
			lines = append(lines, l.Part+" "+l.Name+" "+l.Verdict)
		}
	}
	slices.Sort(lines)
	if !slices.Equal(lines, c.plan) {
		w.t.Errorf("plan: %q, want %q\n%s", lines, c.plan, r.stdout)
	}
}

// check compares the states of the job's newest epoch.
func (w *world) check(want states, when string) {
	w.t.Helper()
	head := w.head()
	for name, values := range want {
		got := statetest.Values(w.t, w.store(), "changes", head, name)
		if (got != nil) != (values != nil) {
			w.t.Errorf("%s: state %s is there: %v", when, name, got != nil)
			continue
		}
		if name == "sum" && len(values) == 1 {
			maps.DeleteFunc(got, func(key, _ string) bool { return values[key] == "" })
		}
		if !maps.Equal(got, values) {
			w.t.Errorf("%s: state %s:\n got %v\nwant %v", when, name, got, values)
		}
	}
}
