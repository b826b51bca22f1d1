package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// wayOut says what helps where a state can't be carried over.
const wayOut = "give it a migration, or the state a new name, under which it begins empty"

// states has a line for each state.
func (c *comparison) states() {
	stored := map[string]bool{}
	for name := range c.Old.States {
		stored[name] = true
	}
	for name := range c.Head.State {
		stored[name] = true
	}
	for name := range both(stored, c.New.States) {
		l := c.line(StatePart, name)
		if _, has := c.New.States[name]; !has {
			c.goneState(l)
			continue
		}
		if partial, is := c.Head.Partial[name]; is {
			l.Note("incomplete already: " + partial.Why)
			c.plan.partial[name] = partial
		}
		c.keepIncomplete(l)
		c.state(l, c.Ways[name])
	}
}

// keepIncomplete has a state that takes incomplete ones over be so as well.
func (c *comparison) keepIncomplete(l *Line) {
	for _, was := range c.predecessors(l.Name) {
		taken, is := c.Head.Partial[was]
		if !is || was == l.Name {
			continue
		}
		l.Note("incomplete already, as " + was + ": " + taken.Why)
		if has, is := c.plan.partial[l.Name]; is && (has.Until == 0 || taken.Until != 0 && has.Until > taken.Until) {
			continue // which lasts longer
		}
		c.plan.partial[l.Name] = taken
	}
}

// goneState is a stored state that this build lacks.
func (c *comparison) goneState(l *Line) {
	if by := c.takers(l.Name); len(by) > 0 {
		l.Note("taken over by state " + list(by))
		return
	}
	c.drop(l, l.Name, l.Name+": no operator has it any more")
}

// state is a state of this build.
func (c *comparison) state(l *Line, way *carry.Way) {
	if way == nil {
		l.Add(Refused, l.Name+": nothing says how it is carried over", "")
		return
	}
	for _, name := range way.Untaken {
		why := "no state of that name is stored"
		if slices.ContainsFunc(way.Sources, func(s carry.Source) bool { return s.Stored.Name == l.Name }) ||
			slices.ContainsFunc(way.Refusals, func(r carry.Refusal) bool { return r.State == l.Name }) {
			why = "the state goes on with what is stored under its own name"
		}
		l.Note(fmt.Sprintf("TakesOver(%q) has no effect: %s", name, why))
	}
	switch way.Verdict {
	case carry.Empty:
		c.newState(l)
	case carry.Refused:
		c.refusedState(l, way)
	default:
		c.carriedState(l, way)
	}
}

// newState is one of which nothing is stored.
func (c *comparison) newState(l *Line) {
	operator := c.New.States[l.Name].Operator
	read := c.read(sourcesOf(c.New, []string{operator}))
	if len(read) == 0 {
		l.Note("new; it begins empty, and nothing of what comes to it has been read yet")
		return
	}
	why := fmt.Sprintf("it begins empty: it has not seen what was read of %s before epoch %d", list(read), c.At.Epoch+1)
	c.incomplete(l, operator, why)
	c.plan.partial[l.Name] = epoch.Partial{Why: why}
}

// refusedState is one that can't be carried over. What is wrong with its key
// stands in the key's line alone.
func (c *comparison) refusedState(l *Line, way *carry.Way) {
	for _, r := range way.Refusals {
		switch {
		case r.OfRows():
			l.Note("its key can't be carried over; the key's line says why")
		case r.Part == carry.OfKind:
			l.Add(Refused, r.String(), "give the state a new name")
		case r.Part == carry.OfOrder:
			l.Add(Replay, r.String(), "give the state a new name, under which it begins empty, or raise the key's Meaning and say with MigrateKeys what becomes of the entries")
		default:
			l.Add(Replay, r.String(), wayOut)
		}
	}
	c.otherDifferences(l)
}

// otherDifferences adds in what else a state differs that can't be carried over:
// what a migration has to take in, or loses.
func (c *comparison) otherDifferences(l *Line) {
	old, had := c.Old.States[l.Name]
	now := c.New.States[l.Name]
	if !had || old.Kind != now.Kind {
		return
	}
	was, err := schema.Parse([]byte(old.Value))
	if err != nil {
		return // which its way says
	}
	is, err := schema.Parse([]byte(now.Value))
	if err != nil {
		return
	}
	for _, d := range schema.Differences(was, is) {
		if d.Resolves {
			l.Add(Resolves, told(l.Name, d), "")
		}
	}
}

// carriedState is one that comes from what is stored.
func (c *comparison) carriedState(l *Line, way *carry.Way) {
	for _, s := range way.Sources {
		name := s.Stored.Name
		if name != l.Name {
			l.Add(Resolves, fmt.Sprintf("%s: taken over from state %s", l.Name, name), "")
		}
		for _, d := range s.Differences {
			if d.Drops || d.Narrows {
				c.drop(l, joined(name, d.Path), told(name, d))
			} else {
				l.Add(Resolves, told(name, d), "")
			}
		}
		c.limit(l, s.Stored, way.Limit)
		if len(s.Functions) > 0 {
			l.Add(Migrates, fmt.Sprintf("%s: values go through %s", name, strings.Join(s.Functions, ", then ")), "")
		}
		if s.Keys != "" {
			l.Add(Migrates, fmt.Sprintf("%s: entries get new keys by %s", name, s.Keys), "")
			continue
		}
		for _, d := range differences(s.Stored.Form.Key, way.Form.Key) {
			l.Add(Resolves, told(name+", key", d), "")
		}
		for _, d := range differences(s.Stored.Form.Element, way.Form.Element) {
			l.Add(Resolves, told(name+", element", d), "")
		}
	}
	if v := verdictOf(way.Verdict); v > l.Verdict {
		l.Add(v, l.Name+": its schema is put otherwise", "")
	}
}

// limit compares how many entries a key of a sorted state has at most.
func (c *comparison) limit(l *Line, was carry.Stored, is state.Limit) {
	changed := fmt.Sprintf("%s, limit: %d → %d", was.Name, was.Limit.Entries, is.Entries)
	switch {
	case is.Entries < was.Limit.Entries:
		c.drop(l, was.Name, fmt.Sprintf("%s: the entries of a key that are behind the new one go", changed))
	case is.Entries > was.Limit.Entries:
		why := fmt.Sprintf("a key has kept no more than %d entries before epoch %d", was.Limit.Entries, c.At.Epoch+1)
		l.Add(Partial, fmt.Sprintf("%s: %s: those that were behind them are missing, until as many others have come before them", changed, why), "a job of another name, which reads from the beginning, has them all")
		if sinks := sinksBehind(c.New, c.New.States[l.Name].Operator); len(sinks) > 0 {
			l.Note("incomplete because of it until then: sink " + list(sinks))
		}
		if _, already := c.plan.partial[l.Name]; !already {
			c.plan.partial[l.Name] = epoch.Partial{Why: why}
		}
	}
}

// verdictOf is a way's verdict as a plan has it.
func verdictOf(v carry.Verdict) Verdict {
	switch v {
	case carry.Resolves:
		return Resolves
	case carry.Migrates:
		return Migrates
	case carry.Refused:
		return Replay
	}
	return Same
}

// differences is [schema.Differences] for schemas of which there may be none.
func differences(old, now *schema.Schema) []schema.Difference {
	if old == nil || now == nil {
		return nil
	}
	return schema.Differences(old, now)
}
