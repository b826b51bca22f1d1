package cli

import (
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

// A request that took several epochs is told by its last one, and by what all of them
// have met; an earlier request of the same keys doesn't count.
func TestForgottenInParts(t *testing.T) {
	edit := func(n epoch.Slot) []epoch.Edit { return []epoch.Edit{{State: "spend", Slot: n, Hash: "ab"}} }
	met := func(n int64) map[string]int64 { return map[string]int64{"forgotten": n} }
	request := epoch.Request{N: 3, Edits: append(edit(1), append(edit(2), edit(3)...)...)}
	parts := []epoch.Manifest{
		{Epoch: 4, Request: 2, Edits: edit(2), Counts: met(100)}, // of request 2
		{Epoch: 5, Request: 2, Edits: edit(1), EditsOf: 3, Counts: met(2)},
		{Epoch: 6, Request: 2}, // it was killed
		{Epoch: 7, Request: 2, Edits: edit(1), EditsOf: 3, Counts: met(0)},
		{Epoch: 8, Request: 2, Edits: edit(2), EditsOf: 3, Counts: met(1)},
	}
	for what, c := range map[string]struct {
		last    epoch.Manifest
		found   bool
		edits   epoch.Epoch
		entries int64
	}{
		"done":     {epoch.Manifest{Epoch: 9, Request: 3, Edits: edit(3), Counts: met(4)}, true, 9, 7},
		"given up": {epoch.Manifest{Epoch: 9, Request: 3, Kind: epoch.Open}, false, 8, 3},
	} {
		tr := &tracked{request: request, named: map[epoch.Edit]bool{}, states: request.States()}
		for _, e := range request.Edits {
			tr.named[e] = true
		}
		for _, m := range append(parts[:len(parts):len(parts)], c.last) {
			tr.pass(m)
		}
		if !tr.part || !tr.done || tr.found != c.found || tr.edits != c.edits || tr.entries != c.entries {
			t.Errorf("%s: %+v, expected epoch %d with %d entries", what, tr, c.edits, c.entries)
		}
	}
}
