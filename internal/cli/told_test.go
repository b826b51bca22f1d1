package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/compare"
)

// listError has a list to tell.
type listError struct{ reasons []string }

func (e *listError) Error() string     { return "spend: refused: " + fmt.Sprint(e.reasons) }
func (e *listError) Summary() string   { return "spend: refused. Nothing was changed." }
func (e *listError) Details() []string { return e.reasons }

// An error with a list is told as one, whatever is around it.
func TestTold(t *testing.T) {
	list := &listError{[]string{"state a: gone", "state b: gone\x1b[1m"}}
	const below = "\n  state a: gone\n  state b: gone\\x1b[1m"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no list":                 {errors.New("one\ntwo"), "one; two"},
		"the list itself":         {list, "spend: refused. Nothing was changed." + below},
		"with text before it":     {fmt.Errorf("opening sink out: %w", list), "opening sink out: spend: refused. Nothing was changed." + below},
		"with text around it":     {fmt.Errorf("one (%w)\nmore", fmt.Errorf("two: %w", list)), "one (two: spend: refused. Nothing was changed.); more" + below},
		"in a text that lacks it": {&quiet{list}, "it can't start" + below},
	} {
		if got := told(c.err); got != c.want {
			t.Errorf("%s:\n%q\nexpected\n%q", name, got, c.want)
		}
	}
}

// quiet is an error that doesn't say what its cause says.
type quiet struct{ cause error }

func (*quiet) Error() string   { return "it can't start" }
func (e *quiet) Unwrap() error { return e.cause }

// How a branch follows is told with what was compared: in words, and in events as
// sluice diff has it.
func TestFollowedIsTold(t *testing.T) {
	p := FollowProgress{
		Stage: "caught up", Branch: "upgrade-1", Position: 7, Lag: 1, Objections: []string{"too many differ", "not yet"},
		Results: []compare.Result{{
			Sink: "out", Counts: compare.Counts{Equal: 5, Changed: 1}, Columns: []compare.ColumnCount{{Column: "Cents", Rows: 1}},
			Samples: []compare.Sample{{After: 6, To: 7, Key: `"ann"`, Columns: []compare.ColumnSample{{Column: "Cents", Old: "1", New: "2"}}}},
		}},
	}
	for events, want := range map[bool]string{
		false: `msg=following job=spend stage="caught up" branch=upgrade-1 position=7 lag=1 compared="out: 5 equal, 1 changed (Cents 1), 0 only old, 0 only new" objections="too many differ; not yet"`,
		true: `"event":"following","job":"spend","stage":"caught up","branch":"upgrade-1","position":7,"lag":1,` +
			`"compared":[{"sink":"out","after":0,"to":0,"equal":5,"changed":1,"only_old":0,"only_new":0,"columns":{"Cents":1},` +
			`"samples":[{"after":6,"to":7,"key":"\"ann\"","columns":[{"column":"Cents","old":"1","new":"2"}]}]}],"objections":"too many differ; not yet"`,
	} {
		var out, errs bytes.Buffer
		newReport("spend", &out, &errs, events, slog.LevelInfo, nil).followed(p, true)
		if told := out.String() + errs.String(); !strings.Contains(told, want) {
			t.Errorf("events %v:\n%s\nexpected\n%s", events, told, want)
		}
	}
}
