package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/compare"
)

// toldSink is how much was told of what differs for a sink.
type toldSink struct{ samples, columns, schemas int }

const (
	// fewSamples is how many of a sink's rows that differ a process that follows tells;
	// sluice diff has more.
	fewSamples = 5
	// fewColumns is how many of the columns that differ stand in a line.
	fewColumns = 5
	// sampleWidth bounds a value of such a row, in characters.
	sampleWidth = 60
)

// followed is told how a branch follows; news says that its stage is another, or that all
// is compared by now.
func (r *report) followed(p FollowProgress, news bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.events && !news && now.Sub(r.told) < tellEvery {
		return
	}
	r.told = now
	var machines []comparedSink
	var people []string
	for _, s := range p.Results {
		machines, people = append(machines, sinkOf(s)), append(people, s.Sink+": "+comparedText(s))
	}
	compared := any(machines)
	if !r.events {
		compared = strings.Join(people, "; ")
	}
	r.own.Info("following", "stage", p.Stage, "branch", p.Branch, "position", p.Position, "lag", p.Lag,
		"compared", compared, "objections", strings.Join(p.Objections, "; "))
	if !r.events && p.Stage != "rehearsed" { // whose outcome has it all
		r.differs(p)
	}
}

// comparedText says in a few words what came of comparing a sink's outputs, and why some
// were not compared.
func comparedText(s compare.Result) string {
	if s.Compared()+s.UntoldOld+s.UntoldNew == 0 && len(s.Reasons) == 0 {
		return "nothing to compare yet"
	}
	text := fmt.Sprintf("%d equal, %d changed%s, %d only old, %d only new", s.Equal, s.Changed, columnsText(s.Columns), s.OnlyOld, s.OnlyNew)
	if n := s.UntoldOld + s.UntoldNew; n > 0 {
		text += fmt.Sprintf(", %d not compared", n)
	}
	if len(s.Reasons) > 0 {
		text += " (not compared in part: " + strings.Join(s.Reasons, "; ") + ")"
	}
	return text
}

// columnsText says how many of the changed rows differ in which columns.
func columnsText(columns []compare.ColumnCount) string {
	if len(columns) == 0 {
		return ""
	}
	var parts []string
	for _, c := range columns[:min(len(columns), fewColumns)] {
		parts = append(parts, fmt.Sprintf("%s %d", c.Column, c.Rows))
	}
	if more := len(columns) - fewColumns; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more columns", more))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// comparedOf is what has been compared, as sluice diff has it.
func comparedOf(job string, p FollowProgress) comparedBranches {
	b := comparedBranches{Job: job, Old: "branch " + p.Followed, New: "branch " + p.Branch, Sinks: []comparedSink{}}
	for _, r := range p.Results {
		s := sinkOf(r)
		b.Sinks, b.Different = append(b.Sinks, s), b.Different || s.differs()
	}
	return b
}

// differs tells people what of the comparison they have not seen: a few rows that differ,
// column by column, and columns that one side has alone. Each row is told once in a log; on
// a terminal all stand together, so that who decides about the cut sees them at a glance.
func (r *report) differs(p FollowProgress) {
	b := comparedOf("", p)
	news := p.Compared && !r.compared
	r.compared = r.compared || p.Compared
	for i := range b.Sinks {
		s := &b.Sinks[i]
		s.Samples = few(s.Samples)
		before, now := r.differed[s.Sink], toldSink{len(s.Samples), len(s.Columns), len(s.Schemas)}
		news = news || before != now
		r.differed[s.Sink] = now
		if now.samples < before.samples || now.schemas < before.schemas {
			before = toldSink{} // the branch has gone back to its last epoch, and compares anew
		}
		if r.screen == nil {
			r.logRows(s.Sink, s.Samples[before.samples:])
			r.logColumns(s.Sink, s.Schemas[before.schemas:])
		}
	}
	if news && r.screen != nil && len(b.Sinks) > 0 {
		var text strings.Builder
		b.writeTables(&text)
		io.WriteString(r.screen, text.String())
	}
}

// few are the first of the rows that differ, with values that fit a line.
func few(rows []comparedRow) []comparedRow {
	rows = rows[:min(len(rows), fewSamples)]
	for i := range rows {
		row := &rows[i]
		row.Key, row.Old, row.New = cut(row.Key, sampleWidth), cut(row.Old, sampleWidth), cut(row.New, sampleWidth)
		for j := range row.Columns {
			c := &row.Columns[j]
			c.Old, c.New = cut(c.Old, sampleWidth), cut(c.New, sampleWidth)
		}
	}
	return rows
}

func (r *report) logRows(sink string, rows []comparedRow) {
	for _, row := range rows {
		if len(row.Columns) == 0 {
			r.own.Info("a row differs", "sink", sink, "position", row.To, "key", row.Key, "old", rowText(row.Old, row.OldDeletes), "new", rowText(row.New, row.NewDeletes))
		}
		for _, c := range row.Columns {
			r.own.Info("a row differs", "sink", sink, "position", row.To, "key", row.Key, "column", c.Column, "old", c.Old, "new", c.New)
		}
	}
}

func (r *report) logColumns(sink string, schemas []columnChange) {
	for _, d := range schemas {
		r.own.Info("a column differs", "sink", sink, "column", d.Path, "change", d.Change, "old", d.Old, "new", d.New)
	}
}
