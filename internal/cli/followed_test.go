package cli

import (
	"bytes"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/schema"
)

// shown is what people are shown of what differs: in a log, without what every line has,
// and on a terminal.
func shown(told ...FollowProgress) (log, terminal string) {
	var plain, drawn bytes.Buffer
	toLog, toScreen := newReport("spend", nil, &plain, false, slog.LevelInfo, nil), newReport("spend", nil, io.Discard, false, slog.LevelInfo, nil)
	toScreen.screen = &screen{w: &drawn}
	for _, p := range told {
		toLog.followed(p, true)
		toScreen.followed(p, true)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(plain.String(), "\n"), func(line string) bool { return strings.Contains(line, "msg=following") })
	return regexp.MustCompile(`(?m)^.*msg=(.*) job=spend`).ReplaceAllString(strings.Join(lines, ""), "$1"), drawn.String()
}

// What differs is told once: row by row in a log; on a terminal together, and also that
// nothing does.
func TestWhatDiffersIsTold(t *testing.T) {
	changed := func(key string) compare.Sample {
		return compare.Sample{After: 6, To: 7, Key: key, Columns: []compare.ColumnSample{{Column: "Cents", Old: "1", New: strings.Repeat("2", 100)}}}
	}
	some := compare.Result{
		Sink: "out", After: 2, To: 7, Counts: compare.Counts{Equal: 5, Changed: 1, OnlyNew: 1}, Columns: []compare.ColumnCount{{Column: "Cents", Rows: 1}},
		Samples: []compare.Sample{changed("ann"), {After: 6, To: 7, Key: "bob", New: `{"Cents":3}`, OldDeletes: true}},
		Schemas: []schema.Difference{{Path: "VIP", Change: schema.Added, New: "boolean"}},
	}
	more := some
	more.Samples = append(slices.Clone(some.Samples), changed("cleo"), changed("dan"), changed("eve"), changed("fay"))
	long := strings.Repeat("2", sampleWidth-1) + "…"

	log, terminal := shown(FollowProgress{Results: []compare.Result{some}}, FollowProgress{Results: []compare.Result{some}})
	if want := `"a row differs" sink=out position=7 key=ann column=Cents old=1 new=` + long + `
"a row differs" sink=out position=7 key=bob old=deleted new="{\"Cents\":3}"
"a column differs" sink=out column=VIP change=added old="" new=boolean
`; log != want {
		t.Errorf("the log has\n%s\nexpected\n%s", log, want)
	}
	if want := `SINK  POSITIONS  EQUAL  CHANGED  ONLY OLD  ONLY NEW  NOT COMPARED
out   3 to 7         5        1         0         1             0

SINK  COLUMN  ROWS CHANGED
out   Cents              1

SINK  POSITION  KEY  COLUMN  OLD      NEW
out          7  ann  Cents   1        ` + long + `
out          7  bob          deleted  {"Cents":3}

SINK  COLUMN  ITS SCHEMA  OLD  NEW
out   VIP     added            boolean
`; terminal != want {
		t.Errorf("the terminal shows\n%s\nexpected\n%s", terminal, want)
	}

	before := log
	log, terminal = shown(FollowProgress{Results: []compare.Result{some}}, FollowProgress{Results: []compare.Result{more}})
	rest, ok := strings.CutPrefix(log, before)
	if keys := regexp.MustCompile(`key=\w+`).FindAllString(rest, -1); !ok || !slices.Equal(keys, []string{"key=cleo", "key=dan", "key=eve"}) {
		t.Errorf("behind what it had, the log has %q", rest)
	}
	if n := strings.Count(terminal, "EQUAL"); n != 2 || strings.Contains(terminal, "fay") {
		t.Errorf("the terminal shows\n%s\nexpected a few rows, twice", terminal)
	}

	anew := FollowProgress{Results: []compare.Result{{Sink: "out"}}}
	log, _ = shown(FollowProgress{Results: []compare.Result{some}}, anew, FollowProgress{Results: []compare.Result{some}})
	if log != before+before {
		t.Errorf("compared anew, the log has\n%s\nexpected twice\n%s", log, before)
	}

	equal := FollowProgress{Results: []compare.Result{{Sink: "out", To: 7, Counts: compare.Counts{Equal: 5}}}}
	compared := equal
	compared.Compared = true
	log, terminal = shown(equal, compared, compared)
	if n := strings.Count(terminal, "EQUAL"); n != 1 || log != "" {
		t.Errorf("nothing differs, and it is told %d times:\n%s%s", n, terminal, log)
	}
}

func TestComparedText(t *testing.T) {
	var many []compare.ColumnCount
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, compare.ColumnCount{Column: name, Rows: 3})
	}
	for want, r := range map[string]compare.Result{
		"nothing to compare yet": {},
		"0 equal, 0 changed, 0 only old, 0 only new (not compared in part: a table was written anew)":         {Counts: compare.Counts{Untold: 1}, Reasons: []string{"a table was written anew"}},
		"0 equal, 0 changed, 0 only old, 0 only new, 7 not compared (not compared in part: cleaned up; late)": {Counts: compare.Counts{Untold: 2, UntoldOld: 3, UntoldNew: 4}, Reasons: []string{"cleaned up", "late"}},
		"0 equal, 0 changed, 0 only old, 0 only new, 3 not compared":                                          {Counts: compare.Counts{UntoldOld: 1, UntoldNew: 2}},
		"1 equal, 3 changed (a 3, b 3, c 3, d 3, e 3, and 2 more columns), 4 only old, 5 only new":            {Counts: compare.Counts{Equal: 1, Changed: 3, OnlyOld: 4, OnlyNew: 5}, Columns: many},
	} {
		if got := comparedText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
