package rules

import "strings"

// examples are small trees by the name of the rule that they keep and break.
func examples() map[string]map[string]string {
	return map[string]map[string]string{
		"arrows between folders": {
			"stream.go": `package sluice
import "github.com/sluicestream/sluice/internal/engine"
import "github.com/sluicestream/sluice/internal/state" // fault
import "net/http"
import "example.org/kit" // fault
`,
			"internal/epoch/log.go":               "package epoch\nimport \"github.com/sluicestream/sluice\" // fault\nimport \"github.com/sluicestream/sluice/store\"\n",
			"internal/epoch/log_test.go":          "package epoch\nimport \"github.com/sluicestream/sluice/sluicetest\"\n",
			"internal/torture/testjobs/shop/m.go": "package main\nimport \"github.com/sluicestream/sluice\"\nimport \"github.com/sluicestream/sluice/internal/cli\" // fault\n",
			"examples/flights/main.go":            "package main\nimport \"github.com/sluicestream/sluice/file\"\n",
			"examples/flights/main_test.go":       "package main\nimport \"github.com/sluicestream/sluice/internal/epoch\" // fault\n",
			"examples/sqlsink/sink.go":            "package sqlsink\nimport \"github.com/jackc/pgx/v5\" // fault\n",
			"examples/sqlsink/sink_test.go":       "package sqlsink\nimport \"github.com/jackc/pgx/v5/stdlib\"\nimport \"github.com/sluicestream/sluice/internal/state\" // fault\n",
			"file/klauspost.go":                   "package file\nimport \"github.com/klauspost/compress/gzip\"\nimport \"github.com/klauspost/compressed\" // fault\n",
			"somewhere/else.go":                   "package somewhere // fault\n",
		},
		"decisions are pure": {
			"internal/epoch/decide.go": "package epoch\nimport \"slices\"\nimport \"context\" // fault\nimport \"encoding/json/v2\"\nimport \"time\" // fault\n",
			"internal/epoch/log.go":    "package epoch\nimport \"context\"\n",
		},
		"keys of the log": {
			"docs/operations.md": "# Operating\n\n## Logs\n\n| key | what |\n|---|---|\n| `sink` | a sink |\n\n## Metrics\n\n| `source` | |\n",
			"run.go": `package sluice
func (r *run) note(name string) {
	r.o.Log.Warn("delivery failed", "sink", name)
	r.o.Log.Warn("delivery failed", "Sink", name) // fault
	log.Info("reads", "source", name) // fault
	log.Info("stopped", r.attrs()...)
	r.o.Log.Info("reads", name, name) // fault
	t.Error("no log", name)
}
`,
		},
		"no any in the API": {
			"stream.go": `package sluice
type Stream[T any] struct {
	inner any
	Outer any // fault
}
func (s Stream[T]) Map[U any](f func(T) U) Stream[U] { return Stream[U]{} }
func (s Stream[T]) Loose(f func(T) interface{}) {} // fault
func Print(args ...any) {} // fault
func print(args ...any) {}
type Visitor interface {
	Visit(map[string]any) // fault
	hidden(any)
	Exit(interface{ Code() int })
}
type hidden struct{ Field any }
func (hidden) Method(any) {}
var Table map[string]any // fault
type any2 = any
type Error = engine.Error
`,
			"internal/engine/errors.go": "package engine\ntype Error struct {\n\tValue any // fault\n}\nfunc Loose(any) {}\n",
			"examples/x/main.go":        "package main\nfunc Print(args ...any) {}\n",
		},
		"doc comments": {
			"stream.go": `// Package sluice is an example.
package sluice
type Bare int // fault
// Stream is a stream.
type Stream int
// A Table is one.
type Table int
// Something else altogether, not a Word.
type Word int // fault
func (Stream) Map() {} // fault
// Filter keeps some.
func (*Stream) Filter() {}
type hidden int
func (hidden) Map() {}
// The units of time.
const (
	Second = 1
	Minute = 60
)
`,
			"stream_test.go":     "package sluice\nfunc TestStream() {}\n",
			"internal/cli/a.go":  "// Package client is misnamed.\npackage cli // fault\n",
			"cmd/sluice/main.go": "// Command sluice is a command.\npackage main\ntype Flags int\n",
		},
		"no mutable globals": {
			"a.go": `package sluice
import ("errors"; "sync"; "sync/atomic")
var errA = errors.New("a")
var table = [...]string{"a", "b"}
var words = map[string]int{"a": 1}
var later string // fault
var made = make(map[string]int) // fault
var once = sync.Once{} // fault
var count = new(atomic.Int64) // fault
var shared = &struct{}{} // fault
//go:embed a.go
var text string
var hook = func() {}
func f(words map[string]int) { words["b"] = 2 }
`,
			"b.go": `package sluice
func g() { words["b"] = 2 } // fault
func h() { table := []string{"a"}; table[0] = "b" }
func i() { hook = nil } // fault
func j() *[2]string { return &table } // fault
`,
			"a_test.go": "package sluice\nvar seen int\n",
		},
		"no init": {
			"a.go": "package sluice\nfunc init() {} // fault\nfunc (T) init() {}\n",
		},
		"no goroutine in a constructor": {
			"a.go": `package sluice
func NewJob() { go run() } // fault
func newJob() { f := func() { go run() }; f() } // fault
func Newest() { go run() }
func (j Job) New() { go run() }
func Run() { go run() }
`,
		},
		"no context in a struct": {
			"a.go": "package sluice\nimport \"context\"\ntype A struct {\n\tctx context.Context // fault\n\tstop context.CancelFunc\n}\nfunc f(ctx context.Context) {}\n",
		},
		"the world behind env": {
			"internal/engine/a.go": `package engine
import "os" // fault
import "time"
import clock "time"
import "math/rand/v2" // fault
func f() time.Time { return time.Now() } // fault
func g() { clock.Sleep(time.Second) } // fault
func h() { f := time.After; f(0) } // fault
func i(t time.Time) { t.After(t) }
`,
			"internal/engine/a_test.go": "package engine\nimport \"os\"\n",
			"env/a.go":                  "package env\nimport \"os\"\n",
			"examples/x/main.go":        "package main\nimport \"os\"\n",
		},
		"no names made from a position": {
			"a.go": `package sluice
import ("fmt"; "strconv")
func f(i int) {
	NewState[string, int](fmt.Sprintf("filter-%03d", i)) // fault
	NewState[string, int]("filter")
	job.From("orders-" + strconv.Itoa(i), nil) // fault
	s.To(fmt.Sprintf("%s-out", name), sink)
	_ = Node{Operator: fmt.Sprintf("step %d", i)} // fault
	_ = fmt.Sprintf("step %d", i)
}
`,
			"bench/a.go": "package main\nimport \"strconv\"\nvar a = account{Name: strconv.Itoa(i)}\nvar s = NewState[string, int](strconv.Itoa(i)) // fault\n",
		},
		"texts of errors": {
			"a.go": `package sluice
import ("errors"; "fmt")
var errA = errors.New("the block ends early")
var errB = errors.New("The block ends early") // fault
var errC = errors.New("CSV has no header")
var errD = errors.New("Avro has no header")
func f(err error) error { return fmt.Errorf("read %s: %w", name, err) }
func g(err error) error { return fmt.Errorf("read %s: %v", name, err) } // fault
func h() error { return fmt.Errorf("failed to read %s", name) } // fault
func i() error { return fmt.Errorf("two\nlines") } // fault
func j(err error) error { return fmt.Errorf("%d%% of %T", n, err) }
func k() error { return usagef("Shards: %d", n) } // fault
func l(e *E) error { return fmt.Errorf("%.*q: %s", n, name, e.Cause) } // fault
func m() error { return fmt.Errorf(text) }
func o(a, b error) error { return errors.Join(a, b) } // fault
`,
			"a_test.go":     "package sluice\nvar errA = errors.New(\"Any\")\n",
			"bench/main.go": "package main\nvar errA = errors.New(\"Any\")\n",
		},
		"no sleeping tests": {
			"a_test.go":            "package sluice\nimport (\"testing\"; \"time\")\nfunc TestA(t *testing.T) {\n\ttime.Sleep(1) // fault\n}\n",
			"store/storetest/a.go": "package storetest\nimport (\"testing\"; \"time\")\nfunc TestA(t *testing.T) {\n\ttime.Sleep(1) // fault\n}\n",
			"examples/x/pace.go":   "package main\nimport \"time\"\nfunc main() { time.Sleep(1) }\n",
		},
		"skips say why": {
			"a_test.go": "package sluice\nimport \"testing\"\nfunc TestA(t *testing.T) {\n\tt.Skip(\"no Kafka\")\n\tt.Skipf(\"no %s\", x)\n\tt.Skip() // fault\n\tt.SkipNow() // fault\n}\n",
			"a.go":      "package sluice\nfunc f() { reader.Skip() }\n",
		},
		"short files": {
			"a.go":             "package sluice // fault" + strings.Repeat("\n", maxLines+1),
			"b.go":             "package sluice" + strings.Repeat("\n", maxLines),
			"testdata/long.go": strings.Repeat("\n", maxLines+1),
		},
		"nothing for later": {
			"a.go":      "package sluice\n// TO" + "DO: more // fault\n// TO" + "DOS is an old system\n",
			"README.md": "FIX" + "ME // fault\nfixme is a name\n",
		},
		"no paths of a machine": {
			"Makefile": "cd /wo" + "rk/main // fault\ncd ./wo" + "rk/main\nHOME=/ro" + "ot/x // fault\ncd net" + "wo" + "rk/\n",
		},
	}
}
