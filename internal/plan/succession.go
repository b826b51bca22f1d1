package plan

import (
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

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

// origins are the operators of the old version, but for one of the same name, whose
// states a state of an operator takes over.
func (c *comparison) origins(state, operator string) (names []string) {
	for _, was := range c.predecessors(state) {
		if o := c.Old.States[was].Operator; o != operator && !slices.Contains(names, o) {
			names = append(names, o)
		}
	}
	slices.Sort(names)
	return names
}

// succession compares an operator with those whose states it takes over: it goes on
// with these as if it had been they.
func (c *comparison) succession(l *Line, now epoch.Part) {
	mixed := map[string]bool{}
	for state, s := range sorted(c.New.States) {
		if s.Operator != l.Name {
			continue
		}
		origins := c.origins(state, l.Name)
		var fed []string
		for _, o := range origins {
			fed = append(fed, c.Old.Operators[o].Inputs...)
			if !mixed[o] {
				mixed[o] = true
				c.refuseCrossed(l, o)
				c.windows(l, o, c.Old.Operators[o], now)
			}
		}
		if len(origins) > 0 {
			c.missed(l, fed, now.Inputs, []string{state})
		}
	}
}

// successors are the operators of this build that go on with the states of one,
// itself among them if it is still there.
func (c *comparison) successors(operator string) (names []string) {
	if _, has := c.New.Operators[operator]; has {
		names = append(names, operator)
	}
	for state, s := range sorted(c.New.States) {
		if slices.Contains(c.origins(state, s.Operator), operator) {
			names = append(names, s.Operator)
		}
	}
	return names
}

// saysSo tells whether the author says what becomes of the values, or the keys,
// that a state of one operator has from another: functions, or another meaning.
func (c *comparison) saysSo(operator, from string, keys bool) bool {
	for name, s := range c.New.States {
		if s.Operator != operator || c.Ways[name] == nil {
			continue
		}
		for _, source := range c.Ways[name].Sources {
			old, had := c.Old.States[source.Stored.Name]
			switch {
			case !had || old.Operator != from:
			case keys && (source.Keys != "" || s.KeyMeaning != old.KeyMeaning):
				return true
			case !keys && (len(source.Functions) > 0 && operator != from || s.Meaning != old.Meaning):
				return true
			}
		}
	}
	return false
}
