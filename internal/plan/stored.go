package plan

import (
	"fmt"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Stored gives the states that a manifest of a version has, for [carry.Carrier];
// nil for a name that it has none of. A state that has no entries yet counts: it
// is what its version says. The error is of a schema that can't be read.
func Stored(v epoch.Version, m epoch.Manifest) (func(name string) *carry.Stored, error) {
	all := map[string]*carry.Stored{}
	for name, s := range sorted(v.States) {
		entry, has := m.State[name]
		if !has {
			entry = epoch.StateEntry{Key: s.Key, Element: s.Element, Value: s.Value}
		}
		form, err := state.FormOf(name, entry)
		if err != nil {
			return nil, err
		}
		migrations, err := parsed(s.Migrations)
		if err != nil {
			return nil, fmt.Errorf("state %s: a type that it was migrated from: %w", name, err)
		}
		all[name] = &carry.Stored{
			Name: name, Kind: kindOf(s.Kind, s.Element), Limit: state.Limit{Entries: s.Limit, Descending: s.Descending}, Meaning: s.Meaning, KeyMeaning: s.KeyMeaning, Form: form,
			Migrations: migrations, MigratesKeys: s.MigratesKeys,
		}
	}
	for name, entry := range sorted(m.State) {
		if all[name] != nil {
			continue
		}
		form, err := state.FormOf(name, entry)
		if err != nil {
			return nil, err
		}
		all[name] = &carry.Stored{Name: name, Kind: kindOf("", entry.Element), Form: form}
	}
	return func(name string) *carry.Stored { return all[name] }, nil
}

func parsed(schemas []string) (all []*schema.Schema, err error) {
	for _, text := range schemas {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// kindOf is the kind of a state as the ways have it.
func kindOf(kind, element string) string {
	switch {
	case kind != "":
		return kind
	case element != "":
		return "map"
	}
	return "value"
}

// Dropped are the names that a consent may have given to starts before this one:
// what some earlier version had and now lacks.
func Dropped(earlier []epoch.Version, now epoch.Version) (names []string, err error) {
	for _, v := range earlier {
		for name, s := range sorted(v.States) {
			is, has := now.States[name]
			if !has {
				names = append(names, name)
				continue
			}
			if is.Limit < s.Limit {
				names = append(names, name)
			}
			drops, err := dropsBetween(name, s.Value, is.Value)
			if err != nil {
				return nil, fmt.Errorf("state %s: %w", name, err)
			}
			names = append(names, drops...)
		}
		for name, s := range sorted(v.Sinks) {
			is, has := now.Sinks[name]
			if !has {
				continue
			}
			drops, err := dropsBetween(name, s.Schemas["row"], is.Schemas["row"])
			if err != nil {
				return nil, fmt.Errorf("sink %s: %w", name, err)
			}
			names = append(names, drops...)
		}
	}
	return names, nil
}

// dropsBetween are the paths that one schema has and a later one lacks.
func dropsBetween(name, old, now string) (paths []string, err error) {
	a, err := schema.Parse([]byte(old))
	if err != nil {
		return nil, err
	}
	b, err := schema.Parse([]byte(now))
	if err != nil {
		return nil, err
	}
	for _, d := range schema.Differences(a, b) {
		if d.Drops || d.Narrows {
			paths = append(paths, joined(name, d.Path))
		}
	}
	return paths, nil
}
