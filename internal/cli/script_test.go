package cli_test

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/avro/ocf"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/cli"
)

var update = flag.Bool("update", false, "write what the scripts' commands print into the scripts")

// The test's own executable is the sluice command and the jobs, by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sluice":       func() { os.Exit(cli.RunSluice(os.Args[1:])) },
		"spend":        func() { sluice.Main(spendJob()) },
		"spend-less":   func() { sluice.Main(spendLessJob()) },
		"spend-more":   func() { sluice.Main(spendMoreJob()) },
		"spend-strict": func() { sluice.Main(spendStrictJob()) },
		"spend-dearer": func() { sluice.Main(spendDearerJob()) },
		"spend-other":  func() { sluice.Main(spendOtherJob()) },
		"spend-asked":  func() { sluice.Main(spendAskedJob()) },
		"follow":       func() { sluice.Main(followJob()) },
		"stuck":        func() { sluice.Main(stuckJob()) },
		"faulty":       func() { sluice.Main(faultyJob()) },
		"clicks":       func() { sluice.Main(clicksJob()) },
		"visits":       func() { sluice.Main(visitsJob(sluice.Tumbling(time.Minute), 0)) },
		"visits-later": func() { sluice.Main(visitsJob(sluice.Tumbling(5*time.Minute), time.Minute)) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"plain":    plain,
			"damage":   damage,
			"avro":     avroFile,
			"parquet":  parquetFile,
			"branches": branches,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[worldKey{}] = new(history)
			return nil
		},
	})
}

// exits runs a command that must end with an exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("%s has ended with the code %d, expected %s", args[1], code, args[0])
	}
}

// what differs from run to run, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`process \d+ on [^\s)",]+`), "PROCESS"},
	{regexp.MustCompile(`heartbeat \d+s ago`), "heartbeat AGO"},
	{regexp.MustCompile(`"writer":{[^}]*}`), `"writer":{}`},
	{regexp.MustCompile(`"build":{[^}]*}`), `"build":{}`},
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "HEX"},
	{regexp.MustCompile(`HEX-HEX-\d+-`), "HEX-HEX-N-"},
	{regexp.MustCompile(`rehearsal-[0-9a-f]{8}-`), "rehearsal-"},
	{regexp.MustCompile(`no revision, executable`), "executable"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\+? HEX\b`), "HEX"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (B|KiB)\b`), "SIZE"},
	{regexp.MustCompile(`,"records_per_second":\d+`), ""},
	{regexp.MustCompile(`"(bytes|memory|beat)":\d+`), `"$1":N`},
	{regexp.MustCompile(` {3,}`), "  "},
}

// plain writes what a command has printed to a file, without what differs from
// run to run: plain stdout FILE.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plain stdout|stderr FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "WORK")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.word)
	}
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs("."), args[1]), []byte(text), 0o644))
}

// damage changes a byte of files, the last one or that of a number counted from the
// end, where the last is 1: damage PATTERN [NUMBER].
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: damage PATTERN [NUMBER]")
	}
	number := 1
	if len(args) == 2 {
		var err error
		number, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || len(files) == 0 {
		ts.Fatalf("damage: no file %s", args[0])
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		ts.Check(err)
		data[len(data)-number] ^= 1
		ts.Check(os.WriteFile(name, data, 0o644))
	}
}

// avroFile writes the records of an Avro file to another as JSON, read by an
// implementation that isn't Sluice's: avro FILE TO.
func avroFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: avro FILE TO")
	}
	in, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer in.Close()
	records, err := ocf.NewReader(in)
	ts.Check(err)
	var out []byte
	for {
		var record map[string]any
		err := records.Decode(&record)
		if err == io.EOF {
			break
		}
		ts.Check(err)
		line, err := json.Marshal(record, json.Deterministic(true))
		ts.Check(err)
		out = append(append(out, line...), '\n')
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out, 0o644))
}

// parquetFile writes what a Parquet file has to another as text: its columns with their
// types, and a line of values for each row, as the library has them: parquet FILE TO.
func parquetFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: parquet FILE TO")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	ts.Check(err)
	var out strings.Builder
	for _, path := range file.Schema().Columns() {
		leaf, _ := file.Schema().Lookup(path...)
		fmt.Fprintf(&out, "%s %s\n", strings.Join(path, "."), leaf.Node.Type())
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		all := make([]parquet.Row, group.NumRows()+1)
		n, err := rows.ReadRows(all)
		if err != io.EOF {
			ts.Fatalf("%d rows were read of %d, with %v", n, group.NumRows(), err)
		}
		for _, row := range all[:n] {
			for i, value := range row {
				if i > 0 {
					out.WriteString(" ")
				}
				out.WriteString(value.String())
			}
			out.WriteString("\n")
		}
		ts.Check(rows.Close())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out.String()), 0o644))
}
