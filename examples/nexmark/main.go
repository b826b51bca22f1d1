// Command nexmark runs a query of the Nexmark benchmark as a job, with all commands that
// a job has, or checks what it has put out against a recount of the same events.
//
//	go run ./examples/nexmark q5 run
//	go run ./examples/nexmark q5 status
//	go run ./examples/nexmark q5 check
//
// The queries are q5, q7, q11 and q12 (which has no check: its windows are of the time
// at which the job runs). NEXMARK_EVENTS is how many events there are, a million if it is
// not set; NEXMARK_DIR the folder for answers, nexmark-answers if it is not.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/examples/nexmark/queries"
	"github.com/sluicestream/sluice/file"
)

// The benchmark's windows, as Beam and Flink have them.
const (
	size  = 10 * time.Second
	slide = 2 * time.Second
	gap   = 10 * time.Second
)

// setting is what is asked for.
type setting struct {
	query  string
	dir    string // for the query's answers
	events generator.Config
}

func main() {
	s, err := settingOf(os.Args[1:], os.Getenv)
	if err == nil && os.Args[2] == "check" {
		err = check(s, os.Stdout)
	} else if err == nil {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		sluice.Main(s.job())
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

// settingOf reads the query's name and the variables.
func settingOf(args []string, variable func(name string) string) (s setting, err error) {
	if len(args) < 2 {
		return s, errors.New("expected a query and a command, as in: nexmark q5 run")
	}
	s.query = args[0]
	switch s.query {
	case "q5", "q7", "q11", "q12":
	default:
		return s, fmt.Errorf("query %q: there are q5, q7, q11 and q12", s.query)
	}
	count, err := strconv.ParseInt(cmp.Or(variable("NEXMARK_EVENTS"), "1000000"), 10, 64)
	if err != nil || count < 1 {
		return s, fmt.Errorf("NEXMARK_EVENTS is %q, expected a number of events", variable("NEXMARK_EVENTS"))
	}
	s.dir = filepath.Join(cmp.Or(variable("NEXMARK_DIR"), "nexmark-answers"), s.query)
	s.events = generator.Config{Seed: 1, OutOfOrder: 1000, Partitions: 4, Count: count}
	return s, nil
}

func (s setting) job() *sluice.Job {
	switch s.query {
	case "q5":
		return queries.HotItems(s.events, size, slide, file.Append[queries.HotItem](s.dir))
	case "q7":
		return queries.HighestBids(s.events, size, file.Append[queries.HighestBid](s.dir))
	case "q11":
		return queries.UserSessions(s.events, gap, file.Append[queries.UserBids](s.dir))
	default:
		return queries.UserWindows(s.events, size, file.Append[queries.UserBids](s.dir))
	}
}
