package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// files begins the kinds of sinks whose records lie beside what they write, so
// that a folder may have another path on another machine.
const files = "file."

// sinks has a line for each sink.
func (c *comparison) sinks() {
	known := map[string]bool{}
	for name := range c.Old.Sinks {
		known[name] = true
	}
	for name := range c.Head.Sinks {
		known[name] = true
	}
	for name := range both(known, c.New.Sinks) {
		l := c.line(SinkPart, name)
		head, delivered := c.Head.Sinks[name]
		old, had := c.Old.Sinks[name]
		now, has := c.New.Sinks[name]
		switch {
		case !has:
			c.goneSink(l, head)
		case !known[name]:
			c.newSink(l, now)
		case head.Dropped != "":
			c.sinkBack(l, head)
			c.returned(l, now, head.Record != "")
		case had:
			c.noteFunction(l, "function", epoch.RowFunction(l.Name))
			c.sink(l, old, now, delivered && head.Record != "")
		}
	}
}

// goneSink is one that this build lacks.
func (c *comparison) goneSink(l *Line, head epoch.SinkState) {
	if c.Follows && head.Dropped == "" {
		l.Note("gone; the build that has it delivers what it is owed at the cut before it ends, unless --drop-deliveries " + l.Name + " gives that up")
		return
	}
	if head.Dropped == "" && head.Record != "" && head.Confirmed < c.Head.Position {
		l.Add(Refused, fmt.Sprintf("%s: removed while positions %d to %d are to be delivered", l.Name, head.Confirmed+1, c.Head.Position),
			"run the build that has it until it is stopped with nothing pending")
		return
	}
	l.Note("gone; what it has written stays, and it gets nothing more")
}

func (c *comparison) newSink(l *Line, now epoch.Part) {
	table, next := now.Schemas["key"] != "", c.Head.Position+1
	switch {
	case c.Backfill && table:
		l.Note("new; it is filled with all rows of its table before the cut")
		return
	case c.Backfill:
		l.Note(fmt.Sprintf("new; it is filled before the cut with what this build puts out from where it begins, by now position %d", next))
		return
	case table && c.Head.Position > 0:
		note := fmt.Sprintf("new; it gets the rows of keys that change from position %d on", next)
		if c.Follows {
			note += "; --backfill fills it with all rows before the cut"
		}
		l.Note(note)
		return
	}
	l.Note(fmt.Sprintf("new; it begins at position %d", c.Head.Position+1))
}

// sinkBack is one that an earlier version had, and the head's has not.
func (c *comparison) sinkBack(l *Line, head epoch.SinkState) {
	if head.Confirmed >= c.Head.Position {
		l.Note("back; it goes on where it stood")
		return
	}
	gap := fmt.Sprintf("%s: back after an absence, in which it did not get positions %d to %d", l.Name, head.Confirmed+1, c.Head.Position)
	if slices.Contains(c.Gap, l.Name) {
		l.Add(Resolves, gap, "")
		l.Note("it goes on without them, as --gap " + l.Name + " allows")
		return
	}
	l.needs("--gap", l.Name, gap, fmt.Sprintf("%s; allow that with --gap %s, or give it a new name and target", gap, l.Name))
}

// returned compares a sink that is back with what it was. If that may have been
// one of several, the one counts that it differs from the most.
func (c *comparison) returned(l *Line, now epoch.Part, written bool) {
	was := c.Absent[l.Name]
	if len(was) == 0 {
		l.Note("nothing tells what it was before; see to it that it writes to the same place")
		return
	}
	c.sink(l, c.farthest(l, was, func(tried *Line, was epoch.Part) { c.sink(tried, was, now, written) }), now, written)
}

// farthest is the one, of several that a part that is back may have been, from which
// it differs the most.
func (c *comparison) farthest(l *Line, was []epoch.Part, compare func(tried *Line, was epoch.Part)) epoch.Part {
	most, worst := was[0], Same
	for _, p := range was {
		tried := &Line{Part: l.Part, Name: l.Name}
		if compare(tried, p); tried.Verdict > worst {
			most, worst = p, tried.Verdict
		}
	}
	if len(was) > 1 {
		l.Note(fmt.Sprintf("the log does not tell any more which of %d forms it had last; the one counts that it differs from the most", len(was)))
	}
	return most
}

// sink compares a sink that was there. As long as nothing was written, it may be
// anything.
func (c *comparison) sink(l *Line, old, now epoch.Part, written bool) {
	if !written {
		if !samePart(old, now) {
			l.Note("nothing was written yet, so that it may be another")
		}
		return
	}
	inFolders := strings.HasPrefix(old.Kind, files) && strings.HasPrefix(now.Kind, files)
	switch {
	case inFolders:
		if old.Kind != now.Kind || old.Parameters["target"] != now.Parameters["target"] {
			l.Note("its files may lie elsewhere or have another form: its record lies beside them, and is looked for there")
		}
	case old.Kind != now.Kind:
		l.Add(Refused, fmt.Sprintf("%s, connector: %q → %q: %s", l.Name, old.Kind, now.Kind, elsewhere.effect), newSink)
		return
	}
	c.compareParameters(l, old, now, func(string) bool { return inFolders })
	c.rows(l, old, now)
	c.sinkInputs(l, old, now)
	c.stale(l, now, written)
}

func samePart(a, b epoch.Part) bool {
	return a.Kind == b.Kind && slices.Equal(a.Inputs, b.Inputs) && maps.Equal(a.Parameters, b.Parameters) && maps.Equal(a.Schemas, b.Schemas)
}

// sinkInputs compares what a sink gets its rows from. A table's rows that another
// table has written are no part of its own.
func (c *comparison) sinkInputs(l *Line, old, now epoch.Part) {
	added, gone := without(now.Inputs, old.Inputs), without(old.Inputs, now.Inputs)
	if len(added) == 0 && len(gone) == 0 {
		return
	}
	text := fmt.Sprintf("%s, of: %s → %s", l.Name, list(old.Inputs), list(now.Inputs))
	if now.Schemas["key"] == "" || c.succeeds(added, gone) {
		l.Note(text + ", from now on")
		return
	}
	l.Add(Partial, text+": rows of the one stay, and those of the other come as their keys change", "write its rows anew with --rewrite "+l.Name+"=all, or give it a new name, so that it has but its own")
}

// succeeds tells whether the states of new inputs take over those that are gone.
func (c *comparison) succeeds(added, gone []string) bool {
	for _, name := range gone {
		if !slices.ContainsFunc(c.takers(name), func(by string) bool { return slices.Contains(added, by) }) {
			return false
		}
	}
	return len(gone) > 0
}
