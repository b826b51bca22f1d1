package plan

import (
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// stale adds to a table's sink what of its rows is not what the state behind them
// is after a migration: a row is written when its key changes, and at no other time.
func (c *comparison) stale(l *Line, now epoch.Part, written bool) {
	if now.Schemas["key"] == "" || !written {
		return
	}
	for state, s := range sorted(c.New.States) {
		way := c.Ways[state]
		if way == nil || !slices.Contains(now.Inputs, s.Operator) {
			continue
		}
		c.plan.tables[state] = append(c.plan.tables[state], l.Name)
		for _, source := range way.Sources {
			if len(source.Functions) > 0 {
				l.Note("state " + state + " migrates: rows of keys that don't change stay as the version before has written them, unless --rewrite " + l.Name + "=all")
			}
			if source.Keys != "" {
				l.Add(Partial, l.Name+": the keys of state "+state+" migrate: rows of old keys stay", "write its rows anew with --rewrite "+l.Name+"=all, or give it a new name, so that it has rows of new keys only, as these change")
			}
		}
	}
}
