// Package statetest reads a job's states for tests, as JSON.
package statetest

import (
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Head is the newest manifest of a job's branch main.
func Head(t testing.TB, st store.Store, job string) epoch.Manifest {
	t.Helper()
	j, err := epoch.FindJob(t.Context(), env.Real(), st, job)
	if err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	return head.Manifest
}

// Values are the values of a state that a manifest holds, as JSON, by key, or by
// key and element with a space between, as JSON too. It is nil if there is no such
// state.
func Values(t testing.TB, st store.Store, job string, m epoch.Manifest, name string) map[string]string {
	t.Helper()
	entry, ok := m.State[name]
	if !ok {
		return nil
	}
	form, err := state.FormOf(name, entry)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for e, err := range state.Read(t.Context(), st, job, form, entry.Segments, epoch.AllSlots) {
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := schema.JSON(form.Key)(nil, e.Key)
		if err == nil && form.Element != nil {
			key, _, err = schema.JSON(form.Element)(append(key, ' '), e.Element)
		}
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := schema.JSON(form.Value)(nil, e.Value)
		if err != nil {
			t.Fatal(err)
		}
		out[string(key)] = string(value)
	}
	return out
}
