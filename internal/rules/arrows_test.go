package rules

import (
	"path"
	"slices"
	"strings"
)

// arrow is what a folder's code may import besides the standard library.
// A name that ends in "/..." stands for a folder and all below it.
type arrow struct {
	folder    string
	own       string // folders of this module, "." is the API
	libraries string // modules of others
}

// public are the packages for users.
const public = ". codec codec/registry codec/registry/registrytest connector env file kafka kafka/embedded postgres schema sluicetest store"

// arrows has a row for every package of the tree.
var arrows = []arrow{
	// The API knows the runner and the engine. internal/deliver is here for the
	// type of an error alone, internal/operate shows users how a run is.
	{".", "connector env schema store internal/carry internal/cli internal/compare internal/deliver internal/engine internal/epoch internal/memory internal/operate internal/runner internal/tabular internal/vitals internal/window",
		"github.com/prometheus/client_golang"},
	{"sluicetest", ". connector env schema store", ""},

	// The contract, and what it stands on.
	{"env", "", ""},
	{"schema", "internal/twos", ""},
	{"connector", "env schema", ""},
	{"connector/connectortest", "connector env schema internal/faultenv internal/forgetful", ""},
	{"store", "env", ""},
	{"store/storetest", "env store internal/faultstore", ""},

	// Connectors know the contract alone; each is the only importer of its
	// client library.
	{"codec", "connector schema", "google.golang.org/protobuf"},
	{"codec/registry", "codec connector env", "github.com/twmb/franz-go/pkg/sr"},
	{"codec/registry/registrytest", "codec", "github.com/bufbuild/protocompile google.golang.org/protobuf"},
	{"codec", "connector schema env", ""},
	{"kafka/...", "codec connector env schema kafka/...", "github.com/twmb/franz-go"},
	{"file", "codec connector env schema", "github.com/klauspost/compress"},
	{"postgres", "connector env schema internal/twos", "github.com/jackc/pgx/v5"},

	{"kafka/embedded", "", "github.com/twmb/franz-go"},

	// The inside, from the epoch log up.
	{"internal/epoch", "env store internal/window", ""},
	{"internal/clean", "store internal/epoch", ""},
	{"internal/memory", "internal/epoch", ""},
	{"internal/scaffold", "", ""},
	{"internal/avrofile", "", "github.com/klauspost/compress"},
	{"internal/tabular", "schema internal/avrofile internal/twos", "github.com/parquet-go/parquet-go"},
	{"internal/vitals", "env", ""},
	{"internal/operate", "env internal/vitals", "github.com/prometheus/client_golang"},
	{"internal/outbox", "connector schema store internal/avrofile internal/epoch", ""},
	{"internal/compare", "connector schema store internal/epoch internal/outbox internal/twos", "github.com/cespare/xxhash/v2"},
	{"internal/upgrade", "store internal/compare internal/epoch", ""},
	{"internal/upgrade/upgradetest", "connector env schema store internal/clean internal/epoch internal/outbox", "github.com/cespare/xxhash/v2"},
	{"internal/state", "schema store internal/avrofile internal/epoch", "github.com/cespare/xxhash/v2"},
	{"internal/golden", "", ""},
	{"internal/twos", "", ""},
	{"internal/window", "", ""},
	{"internal/state/statetest", "env schema store internal/epoch internal/state", ""},
	{"internal/carry", "connector schema internal/epoch internal/state", "github.com/cespare/xxhash/v2"},
	{"internal/migrate", "env schema store internal/carry internal/epoch internal/state", ""},
	{"internal/plan", "env schema store internal/avrofile internal/carry internal/epoch internal/migrate internal/state internal/window", ""},
	{"internal/engine", "connector env schema internal/carry internal/epoch internal/outbox internal/state internal/window", "github.com/cespare/xxhash/v2"},
	{"internal/deliver", "connector env store internal/epoch internal/outbox", ""},
	{"internal/runner", "connector env schema store internal/carry internal/clean internal/compare internal/deliver internal/engine internal/epoch internal/memory internal/migrate internal/outbox internal/plan internal/state internal/tabular internal/upgrade internal/vitals", "github.com/cespare/xxhash/v2"},
	{"internal/fsck", "schema store internal/epoch internal/outbox internal/state", "github.com/cespare/xxhash/v2"},
	{"internal/cli", "env schema store internal/avrofile internal/carry internal/clean internal/compare internal/epoch internal/fsck internal/memory internal/operate internal/outbox internal/plan internal/scaffold internal/state internal/tabular internal/upgrade internal/vitals internal/window",
		"github.com/cespare/xxhash/v2 github.com/spf13/cobra github.com/spf13/pflag charm.land/lipgloss/v2 github.com/charmbracelet/x/term"},
	{"internal/dev", "kafka/embedded", "github.com/spf13/cobra"},

	// What only tests use.
	{"internal/faultstore", "store", ""},
	{"internal/faultenv", "env internal/epoch", ""},
	{"internal/forgetful", "env", ""},
	{"internal/rules/...", "", ""},
	{"internal/services", "", ""},
	{"internal/services/run", "internal/services", ""},
	{"internal/cutproxy", "", ""},
	{"internal/torture/topics", "", "github.com/twmb/franz-go"},
	// The job stops itself when its client has sent records of a transaction.
	{"internal/torture/upgrades/testjobs/tide", public, "github.com/twmb/franz-go"},
	{"internal/torture/...", public + " internal/faultenv internal/torture/...", ""},

	// Programs. Examples show what users can do, so they do only that.
	{"cmd/sluice", "internal/cli internal/dev", ""},
	// The demo looks into the table by itself, to compare it with its recount.
	{"examples/flights", public + " examples/...", "charm.land/lipgloss/v2 github.com/jackc/pgx/v5"},
	{"examples/...", public + " examples/...", "charm.land/lipgloss/v2"},
	// What bench measures against is written by hand with the client libraries.
	{"bench/...", public + " bench/... examples/nexmark/... internal/...", "github.com/cespare/xxhash/v2 github.com/klauspost/compress github.com/twmb/franz-go github.com/jackc/pgx/v5"},
}

// exampleTests is what the tests of an example may import besides, where they need
// a real server.
var exampleTests = []arrow{
	{"examples/flights", "internal/services", ""},
	{"examples/sqlsink", "connector/connectortest internal/services", "github.com/jackc/pgx/v5"},
	{"examples/nexmark/generator", "connector/connectortest", ""},
}

// edge are the files of internal/epoch that carry out its decisions; all others
// decide.
var edge = map[string]string{
	"internal/epoch/branch.go":     "begins branches",
	"internal/epoch/chainread.go":  "reads the chain of generations, and what they owe",
	"internal/epoch/create.go":     "creates objects",
	"internal/epoch/follower.go":   "reads what a follower covers",
	"internal/epoch/functions.go":  "reads and writes the names of a build's functions",
	"internal/epoch/giveup.go":     "gives a branch up, and looks at what came of one that has ended",
	"internal/epoch/sealedat.go":   "finds where a version was sealed",
	"internal/epoch/within.go":     "finds epochs by offsets, and the oldest that are kept",
	"internal/epoch/rewrite.go":    "finds the ends that a rewriting compares with",
	"internal/epoch/golive.go":     "makes a branch the live one",
	"internal/epoch/heartbeat.go":  "beats",
	"internal/epoch/import.go":     "makes a job's first epoch of what comes from elsewhere",
	"internal/epoch/job.go":        "opens a job's store",
	"internal/epoch/log.go":        "reads the log",
	"internal/epoch/lost.go":       "finds that a record is lost",
	"internal/epoch/owner.go":      "commits",
	"internal/epoch/dropped.go":    "reads and writes how dropped sinks have ended",
	"internal/epoch/pins.go":       "reads and writes pins, savepoints and floors",
	"internal/epoch/savepoints.go": "makes and drops savepoints",
	"internal/epoch/schedule.go":   "reads durations and writes dates, which only package time can; it asks no clock",
	"internal/epoch/process.go":    "asks the operating system who this process is",
	"internal/epoch/reading.go":    "pins what is read",
	"internal/epoch/request.go":    "makes and reads requests",
	"internal/epoch/sealing.go":    "ends logs",
	"internal/epoch/standby.go":    "waits for an owner",
	"internal/epoch/take.go":       "takes a log over",
}

// pure are the packages that can't reach the world.
const pure = "bytes cmp crypto/sha256 encoding/... errors fmt iter maps math/bits math slices strconv strings unicode unicode/utf8 github.com/sluicestream/sluice/internal/window"

func arrowRules() []rule {
	return []rule{
		{"arrows between folders", "dependencies point one way, and table arrows in internal/rules says which; a new arrow is a decision, so it changes the table", checkArrows},
		{"decisions are pure", "what the epoch log decides can be tested exhaustively only if it can't reach the world; files at the edge are listed in internal/rules", checkPure},
	}
}

func checkArrows(t *tree) (faults []fault) {
	for _, p := range t.packages {
		row, ok := rowOf(p.folder)
		if !ok {
			faults = append(faults, t.at(p.all()[0].ast.Name, "folder %s isn't in the table of arrows", p.folder))
			continue
		}
		files := p.code
		if p.under("examples") {
			files = p.all()
		}
		for _, s := range byPath(files) {
			for _, i := range s.ast.Imports {
				if name := imported(i); !row.allows(name) && !(strings.HasSuffix(s.path, "_test.go") && allowedInTests(p.folder, name)) {
					faults = append(faults, t.at(i, "%s may not import %s", p.folder, name))
				}
			}
		}
	}
	return faults
}

func allowedInTests(folder, name string) bool {
	return slices.ContainsFunc(exampleTests, func(a arrow) bool { return a.folder == folder && a.allows(name) })
}

// rowOf finds a folder's row: its own, or the one of a folder above it.
func rowOf(folder string) (arrow, bool) {
	for _, a := range arrows {
		if matches(a.folder, folder) {
			return a, true
		}
	}
	return arrow{}, false
}

// allows tells whether the row has an arrow to an imported path.
func (a arrow) allows(name string) bool {
	if own, ok := strings.CutPrefix(name, module); ok && (own == "" || own[0] == '/') {
		return contains(a.own, path.Clean("./"+own))
	}
	first, _, _ := strings.Cut(name, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(strings.Fields(a.libraries), func(l string) bool { return matches(l+"/...", name) })
}

// contains tells whether a list of patterns has one for the name.
func contains(patterns, name string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return matches(p, name) })
}

func matches(pattern, name string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == above || strings.HasPrefix(name, above+"/")
	}
	return name == pattern
}

func checkPure(t *tree) (faults []fault) {
	needed := map[string]bool{}
	for _, p := range t.packages {
		if p.folder != "internal/epoch" {
			continue
		}
		for _, s := range byPath(p.code) {
			needed[s.path] = true
			if edge[s.path] != "" {
				continue
			}
			for _, i := range s.ast.Imports {
				if name := imported(i); !contains(pure, name) {
					faults = append(faults, t.at(i, "a file that decides may not import %s", name))
				}
			}
		}
	}
	return append(faults, unused(edge, needed, "arrows_test.go")...)
}
