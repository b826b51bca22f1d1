package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/examples/nexmark/queries"
	"github.com/sluicestream/sluice/examples/nexmark/recount"
	"github.com/sluicestream/sluice/schema"
)

// check compares what a query has put out with a recount of all events. What the job has
// not come to yet is left out: windows behind the last one that it has answers for.
func check(s setting, out io.Writer) error {
	g, err := generator.New(s.events)
	if err != nil {
		return err
	}
	events := g.Events(0, s.events.Count)
	var missing, more, all int
	switch s.query {
	case "q5":
		missing, more, all, err = differences(s.dir, recount.HotItems(events, size, slide, nil),
			func(h recount.HotItem) (string, schema.Instant) { return fmt.Sprint(h), h.End },
			func(h queries.HotItem) (string, schema.Instant) { return fmt.Sprint(h), h.End })
	case "q7":
		missing, more, all, err = differences(s.dir, recount.HighestBids(events, size, nil),
			func(h recount.HighestBid) (string, schema.Instant) { return fmt.Sprint(h), h.End },
			func(h queries.HighestBid) (string, schema.Instant) { return fmt.Sprint(h), h.End })
	case "q11":
		missing, more, all, err = differences(s.dir, recount.UserSessions(events, gap, nil),
			func(u recount.UserBids) (string, schema.Instant) { return fmt.Sprint(u), u.End },
			func(u queries.UserBids) (string, schema.Instant) { return fmt.Sprint(u), u.End })
	default:
		return errors.New("q12 goes by the clock of the job: a recount can't tell when that has read an event")
	}
	if err != nil {
		return err
	}
	if all == 0 {
		return fmt.Errorf("%s: there are no answers in %s; nexmark %s run makes some", s.query, s.dir, s.query)
	}
	if missing+more > 0 {
		return fmt.Errorf("%s: of %d answers in %s %d are not those of the recount, which has %d others", s.query, all, s.dir, more, missing)
	}
	_, err = fmt.Fprintf(out, "%s: all %d answers in %s are those of a recount of %d events\n", s.query, all, s.dir, s.events.Count)
	return err
}

// differences counts what only one of two has, as texts with the ends of their windows.
func differences[W, G any](dir string, want []W, wanted func(W) (string, schema.Instant), got func(G) (string, schema.Instant)) (missing, more, all int, err error) {
	left, last := map[string]int{}, schema.Instant(-1<<63)
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.jsonl"))
	if err != nil {
		return 0, 0, 0, err
	}
	slices.Sort(files)
	for _, name := range files {
		err := rows(name, func(row G) {
			text, end := got(row)
			left[text]++
			last = max(last, end)
			all++
		})
		if err != nil {
			return 0, 0, 0, err
		}
	}
	for _, w := range want {
		text, end := wanted(w)
		if left[text] > 0 {
			left[text]--
		} else if end <= last {
			missing++
		}
	}
	for _, n := range left {
		more += n
	}
	return missing, more, all, nil
}

// rows reads the rows of a file.
func rows[G any](name string, each func(G)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, decode := bufio.NewReader(f), codec.JSON[G]().NewDecoder()
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			var row G
			if err := decode([]byte(text), &row); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			each(row)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
