package plan_test

import (
	"iter"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// sortedBy adds a sorted state to a build.
func sortedBy(limit int, descending bool) func(b *build) {
	return func(b *build) {
		keep[string, visit](b, "visits", "ranks", "sorted", meanings{limit: state.Limit{Entries: limit, Descending: descending}}, carry.Spec[string, visit]{})
	}
}

// sortedChanges are those of sorted states.
var sortedChanges = []change{
	{name: "the same limit", before: sortedBy(3, true), after: sortedBy(3, true)},
	{name: "a smaller limit", before: sortedBy(3, true), after: sortedBy(2, true),
		want:     []string{"state ranks: consent: ranks, limit: 3 → 2: the entries of a key that are behind the new one go"},
		refusals: []string{"state ranks, limit: 3 → 2: the entries of a key that are behind the new one go: data would be lost; allow it with --drop ranks"}},
	{name: "a smaller limit, by consent", before: sortedBy(3, true), after: sortedBy(2, true), drop: []string{"ranks"},
		want:  []string{"state ranks: resolves: ranks, limit: 3 → 2: the entries of a key that are behind the new one go"},
		notes: []string{"state ranks: dropped, as --drop ranks allows"}},
	{name: "a larger limit", before: sortedBy(3, false), after: sortedBy(10, false),
		want:  []string{"state ranks: partial: ranks, limit: 3 → 10: a key has kept no more than 3 entries before epoch 42: those that were behind them are missing, until as many others have come before them"},
		notes: []string{"state ranks: incomplete because of it until then: sink topic"}},
	{name: "the other order", before: sortedBy(3, false), after: sortedBy(3, true),
		want:     []string{"state ranks: replay: ranks: it was ascending and is descending: the entries that a key has kept are those of the other end"},
		refusals: []string{"state ranks: it was ascending and is descending: the entries that a key has kept are those of the other end; give the state a new name, under which it begins empty, or raise the key's Meaning and say with MigrateKeys what becomes of the entries"}},
	{name: "the other order, with a function for the keys", before: sortedBy(3, false), after: func(b *build) {
		keep(b, "visits", "ranks", "sorted", meanings{key: 1, limit: state.Limit{Entries: 3, Descending: true}}, carry.Spec[string, visit]{Keys: &carry.Keys[string, visit]{
			Function: "main.turned", Open: func(_, _ *schema.Schema) (func(key, element []byte, v visit) (iter.Seq2[string, visit], error), error) {
				return nil, nil
			},
		}})
	}, want: []string{"key visits: migrates: ranks, key: meaning 0 → 1, by main.turned", "state ranks: migrates: ranks: entries get new keys by main.turned"}},
	{name: "a map becomes sorted", before: func(b *build) {
		keep[string, visit](b, "visits", "ranks", "map", meanings{}, carry.Spec[string, visit]{})
	}, after: sortedBy(3, false),
		want:     []string{"state ranks: refused: ranks: a state of another kind: it was a map state and is a sorted state"},
		refusals: []string{"state ranks: a state of another kind"}},
}
