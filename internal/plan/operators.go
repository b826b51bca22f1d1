package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
)

// operators has a line for each operator.
func (c *comparison) operators() {
	for name := range both(c.Old.Operators, c.New.Operators) {
		l := c.line(OperatorPart, name)
		old, had := c.Old.Operators[name]
		now, has := c.New.Operators[name]
		switch {
		case !has:
			l.Note("gone; the lines of its states say what becomes of these")
		case !had:
			l.Note("new")
		default:
			c.operator(l, old, now)
		}
		if has {
			c.succession(l, now)
		}
	}
}

func (c *comparison) operator(l *Line, old, now epoch.Part) {
	if old.Kind != now.Kind {
		l.Note(fmt.Sprintf("it is a %s, and was a %s; its states stay", now.Kind, old.Kind))
	}
	c.noteFunction(l, "function", l.Name)
	c.refuseCrossed(l, l.Name)
	c.inputs(l, old.Inputs, now.Inputs)
	c.operatorTimes(l, old.Times, now.Times)
	c.windows(l, l.Name, old, now)
	c.compareParameters(l, old, now, func(name string) bool {
		if old.Kind == epoch.WindowKind && now.Kind == epoch.WindowKind && (window.IsParameter(name) || name == epoch.AllowedLateness) {
			return true
		}
		if !strings.HasPrefix(name, "timer ") {
			return false
		}
		_, had := old.Parameters[name]
		_, has := now.Parameters[name]
		return !had || !has // the line of its state says what becomes of it
	})
}

// refuseCrossed refuses an operator's function that was another's than that of the
// operator whose states it goes on with.
func (c *comparison) refuseCrossed(l *Line, from string) {
	if other, is := c.crossed(l.Name, from); is {
		l.Add(Refused, fmt.Sprintf("%s: its function is %s, which was that of %s, whose values are of the same type: the two seem to be mixed up", l.Name, c.New.Functions[l.Name], other),
			"put them right; if it is meant, raise the state's Meaning and migrate, or give the function another name")
	}
}

// inputs compares what an operator gets its records from. What was read of a new
// input before is what the states lack: they are what they would have been only
// if it has not been read, or if it stands for others of the same sources.
func (c *comparison) inputs(l *Line, old, now []string) {
	gone := without(old, now)
	if len(gone) > 0 {
		l.Note("it gets nothing more of " + list(gone) + "; what came of that stays")
	}
	var states []string
	for name, s := range sorted(c.New.States) {
		if s.Operator == l.Name && len(c.origins(name, l.Name)) == 0 {
			states = append(states, name)
		}
	}
	c.missed(l, old, now, states)
}

// missed adds what states have not seen that is read already of what their operator
// gets besides what they had.
func (c *comparison) missed(l *Line, old, now, states []string) {
	added, gone := without(now, old), without(old, now)
	if len(added) == 0 {
		return
	}
	before := sourcesOf(c.Old, old)
	var missed []string
	for _, input := range added {
		sources := sourcesOf(c.New, []string{input})
		if len(gone) > 0 {
			sources = without(sources, before) // it may stand for what is gone
		}
		switch read := c.read(sources); {
		case len(read) > 0:
			missed = append(missed, input)
		case len(sources) > 0:
			l.Note("it gets what comes of " + input + " from its start on")
		default:
			l.Note("it gets what comes of " + input + " from now on")
		}
	}
	if len(missed) == 0 {
		return
	}
	why := fmt.Sprintf("it has not seen what came of %s before epoch %d", list(missed), c.At.Epoch+1)
	if !slices.ContainsFunc(l.Causes, func(cause string) bool { return strings.Contains(cause, why) }) {
		c.incomplete(l, l.Name, why)
	}
	for _, name := range states {
		c.plan.partial[name] = epoch.Partial{Why: why}
	}
}

// incomplete adds that what an operator has is not all that there was, and what
// depends on that.
func (c *comparison) incomplete(l *Line, operator, why string) {
	l.Add(Partial, l.Name+": "+why+", and never will", "a job of another name, which reads from the beginning, has it all")
	if sinks := sinksBehind(c.New, operator); len(sinks) > 0 {
		l.Note("incomplete because of it, for ever: sink " + list(sinks))
	}
}

// keys has a line for each operator's key.
func (c *comparison) keys() {
	for operator := range sorted(c.New.Operators) {
		if _, had := c.Old.Operators[operator]; !had && !c.carried(operator) {
			continue
		}
		l := c.line(KeyPart, operator)
		c.noteFunction(l, "function", epoch.KeyFunction(operator))
		origins := []string{operator}
		for name, s := range sorted(c.New.States) {
			if s.Operator == operator {
				origins = append(origins, without(c.origins(name, operator), origins)...)
			}
		}
		for _, from := range origins {
			other, is := c.exchangedKey(operator, from)
			if !is {
				continue
			}
			l.Add(Refused, fmt.Sprintf("%s, key: it is keyed by %s, by which %s was keyed: the two seem to be mixed up", operator, c.New.Functions[epoch.KeyFunction(operator)], other),
				"put them right; if it is meant, raise the key's Meaning and say with MigrateKeys what becomes of the keys")
		}
		for name, s := range sorted(c.New.States) {
			if s.Operator == operator {
				c.key(l, name)
			}
		}
	}
}

// carried tells whether a state of an operator comes from what is stored.
func (c *comparison) carried(operator string) bool {
	for name, s := range c.New.States {
		if way := c.Ways[name]; s.Operator == operator && way != nil && (len(way.Sources) > 0 || len(way.Refusals) > 0) {
			return true
		}
	}
	return false
}

// key adds how the keys of a state are carried over.
func (c *comparison) key(l *Line, state string) {
	way := c.Ways[state]
	if way == nil {
		return
	}
	for _, r := range way.Refusals {
		if r.OfRows() {
			l.Add(Replay, r.String(), wayOut)
		}
	}
	for _, s := range way.Sources {
		if was, is := s.Stored.KeyMeaning, c.New.States[state].KeyMeaning; s.Keys != "" && was != is && s.Stored.Form.Key.Equal(way.Form.Key) {
			l.Add(Migrates, fmt.Sprintf("%s, key: meaning %d → %d, by %s", s.Stored.Name, was, is, s.Keys), "")
		} else if s.Keys != "" {
			l.Add(Migrates, fmt.Sprintf("%s, key: %s → %s, by %s", s.Stored.Name, s.Stored.Form.Key.Word(), way.Form.Key.Word(), s.Keys), "")
		}
	}
}

// takers name the states of this build that take a stored one over, or would if
// they could.
func (c *comparison) takers(name string) (by []string) {
	for state, way := range sorted(c.Ways) {
		if state == name || way == nil {
			continue
		}
		if slices.ContainsFunc(way.Sources, func(s carry.Source) bool { return s.Stored.Name == name }) ||
			slices.ContainsFunc(way.Refusals, func(r carry.Refusal) bool { return r.State == name }) {
			by = append(by, state)
		}
	}
	return by
}
