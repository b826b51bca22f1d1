package compare

import (
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Counts are how many rows are equal, and how many differ. Of a table, a row is
// what becomes of a key over a span: its last row, or that it is deleted.
type Counts struct {
	// Equal rows are on both sides, and so are Changed ones, with other values.
	Equal, Changed int64
	// OnlyOld and OnlyNew are on one side alone. A key that one side has put and the
	// other has deleted is on one side alone.
	OnlyOld, OnlyNew int64
	// DeletesOnlyOld and DeletesOnlyNew are those of OnlyOld and OnlyNew that are
	// deletes: the other side has said nothing of the key, be it that it keeps it or
	// that it never had it.
	DeletesOnlyOld, DeletesOnlyNew int64
	// CameAndWent are keys of a table that one side put, and had deleted again before
	// the end of a span that does not line up, and of which the other side says
	// nothing, as a side does that took both in one step. They count as neither.
	CameAndWent int64
	// Wires are those of the equal rows for which the connector delivers other bytes.
	Wires int64
	// Untold are the spans that were not compared, UntoldOld and UntoldNew the rows
	// in them, by the manifests.
	Untold, UntoldOld, UntoldNew int64
}

// Different is how many rows differ.
func (c Counts) Different() int64 { return c.Changed + c.OnlyOld + c.OnlyNew }

// Compared is how many rows were compared.
func (c Counts) Compared() int64 { return c.Equal + c.Different() }

// Plus returns the sum of two.
func (c Counts) Plus(o Counts) Counts {
	c.Equal += o.Equal
	c.Changed += o.Changed
	c.OnlyOld += o.OnlyOld
	c.OnlyNew += o.OnlyNew
	c.DeletesOnlyOld += o.DeletesOnlyOld
	c.DeletesOnlyNew += o.DeletesOnlyNew
	c.CameAndWent += o.CameAndWent
	c.Wires += o.Wires
	c.Untold += o.Untold
	c.UntoldOld += o.UntoldOld
	c.UntoldNew += o.UntoldNew
	return c
}

// Result is what came of comparing a sink's outputs.
type Result struct {
	// Sink is the sink's name.
	Sink string
	// After and To are the positions that were compared: those behind After, up to
	// To.
	After, To epoch.Position
	Counts
	// Columns are the columns of which changed rows differ, in the order in which
	// they were found.
	Columns []ColumnCount
	// Samples are the first rows that differ.
	Samples []Sample
	// Schemas are the differences of the rows' schemas, without the ignored columns;
	// a column that only one side has is here and in no row.
	Schemas []schema.Difference
	// Reasons are why spans were not compared.
	Reasons []string
}

// Behind returns the result together with one of the same sink that came before it.
func (r Result) Behind(past Result) Result {
	sum := past.clone()
	sum.Counts, sum.To = past.Plus(r.Counts), max(past.To, r.To)
	for _, c := range r.Columns {
		sum.addColumn(c.Column, c.Rows)
	}
	sum.Samples = append(sum.Samples, r.Samples...)
	for _, d := range r.Schemas {
		sum.addSchema(d)
	}
	for _, reason := range r.Reasons {
		sum.addReason(reason)
	}
	return sum
}

// ColumnCount is how many rows differ in a column. A row that differs in several
// counts for each.
type ColumnCount struct {
	Column string
	Rows   int64
}

// Sample is a row that differs, as text.
type Sample struct {
	// After and To are the positions of the span.
	After, To epoch.Position
	// Key is the row's key as JSON; empty for a stream.
	Key string
	// Old and New are the rows as JSON; empty where a side has none or deletes the
	// key. Both are empty for a row that changed.
	Old, New string
	// OldDeletes and NewDeletes tell that the side deletes the key.
	OldDeletes, NewDeletes bool
	// Columns are the columns in which a changed row differs.
	Columns []ColumnSample
}

// ColumnSample is a column of a row that changed, its values as JSON. A text of more
// than 1 KiB is cut, and ends with an ellipsis.
type ColumnSample struct{ Column, Old, New string }

// Sum adds up the counts of several sinks.
func Sum(results []Result) (all Counts) {
	for _, r := range results {
		all = all.Plus(r.Counts)
	}
	return all
}

// maxReasons and maxSchemas bound what is told once: a job has few versions, and a
// row some hundred columns.
const (
	maxReasons = 16
	maxSchemas = 1 << 12
)

func (r *Result) addReason(reason string) {
	if len(r.Reasons) < maxReasons && !slices.Contains(r.Reasons, reason) {
		r.Reasons = append(r.Reasons, reason)
	}
}

func (r *Result) addSchema(d schema.Difference) {
	if len(r.Schemas) < maxSchemas && !slices.Contains(r.Schemas, d) {
		r.Schemas = append(r.Schemas, d)
	}
}

func (r *Result) addColumn(name string, rows int64) {
	i := slices.IndexFunc(r.Columns, func(c ColumnCount) bool { return c.Column == name })
	if i < 0 {
		i = len(r.Columns)
		r.Columns = append(r.Columns, ColumnCount{Column: name})
	}
	r.Columns[i].Rows += rows
}

// clone returns a result that changes no more.
func (r *Result) clone() Result {
	c := *r
	c.Columns, c.Samples, c.Schemas, c.Reasons = slices.Clone(r.Columns), slices.Clone(r.Samples), slices.Clone(r.Schemas), slices.Clone(r.Reasons)
	return c
}
