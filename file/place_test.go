package file

import (
	"slices"
	"testing"
)

// Whoever reads a folder in the order of the names reads parts behind the
// position that they follow, and before the next.
func TestFileNamesSortAsPlacesDo(t *testing.T) {
	var names []string
	for _, p := range []place{{7, 0}, {8, 0}, {8, 1}, {8, 2}, {8, 10}, {9, 0}, {10, 0}} {
		name := p.String() + ".jsonl"
		if got, ok := parsePlace(name); !ok || got != p {
			t.Errorf("%s reads as %v, %t, want %v", name, got, ok, p)
		}
		names = append(names, name)
	}
	if !slices.IsSorted(names) {
		t.Errorf("not in order: %v", names)
	}
}
