package plan

import "slices"

// predecessors are the states of the old version that a state comes from: itself,
// or those that it takes over.
func (c *comparison) predecessors(state string) (names []string) {
	add := func(name string) {
		if _, had := c.Old.States[name]; had && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if way := c.Ways[state]; way != nil {
		for _, s := range way.Sources {
			add(s.Stored.Name)
		}
		for _, r := range way.Refusals {
			add(r.State)
		}
	}
	if len(names) == 0 {
		add(state)
	}
	return names
}
