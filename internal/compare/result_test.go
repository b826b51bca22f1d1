package compare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// A comparison that begins anew behind a gap goes on with what was found before.
func TestBehind(t *testing.T) {
	past := Result{
		Sink: "out", After: 2, To: 5, Counts: Counts{Equal: 3, Changed: 1}, Columns: []ColumnCount{{"a", 1}}, Samples: []Sample{{Key: "1"}},
		Schemas: []schema.Difference{{Path: "x", Change: schema.Added}}, Reasons: []string{"gap"},
	}
	now := Result{
		Sink: "out", After: 7, To: 9, Counts: Counts{Equal: 1, Changed: 4, Untold: 1}, Columns: []ColumnCount{{"b", 3}, {"a", 4}}, Samples: []Sample{{Key: "2"}},
		Schemas: past.Schemas, Reasons: []string{"gap", "other"},
	}
	want := Result{
		Sink: "out", After: 2, To: 9, Counts: Counts{Equal: 4, Changed: 5, Untold: 1}, Columns: []ColumnCount{{"a", 5}, {"b", 3}}, Samples: []Sample{{Key: "1"}, {Key: "2"}},
		Schemas: past.Schemas, Reasons: []string{"gap", "other"},
	}
	if got := now.Behind(past); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !slices.Equal(past.Columns, []ColumnCount{{"a", 1}}) || len(past.Samples) != 1 {
		t.Errorf("the past has changed: %+v", past)
	}
	if got := (Result{Sink: "out"}).Behind(past); got.To != 5 {
		t.Errorf("with nothing behind it, it ends at %d", got.To)
	}
}
