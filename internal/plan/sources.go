package plan

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// sources has a line for each source.
func (c *comparison) sources() {
	for name := range both(c.Old.Sources, c.New.Sources) {
		l := c.line(SourcePart, name)
		old, had := c.Old.Sources[name]
		now, has := c.New.Sources[name]
		_, known := c.Head.Sources[name]
		switch {
		case !has:
			l.Note("gone; how far it was read is kept, and it goes on from there if it comes back")
			c.goneSource(l, old)
		case !had && known:
			l.Note("back; it goes on from where it stood")
		case !had:
			l.Note("new; it begins where the job's code says")
		default:
			c.source(l, old, now)
		}
	}
}

// source compares a source that was there.
func (c *comparison) source(l *Line, old, now epoch.Part) {
	if old.Kind != now.Kind {
		if family(old.Kind) != family(now.Kind) {
			l.Add(Refused, fmt.Sprintf("%s: its connector is %s, and was %s: what was read of the one is no place in the other", l.Name, now.Kind, old.Kind), newSource)
			return
		}
		l.Add(Resolves, fmt.Sprintf("%s: its connector is %s, and was %s", l.Name, now.Kind, old.Kind), "")
		c.noteOffsets(l)
	}
	c.covers(l, selectionOf(old), selectionOf(now))
	c.compareParameters(l, old, now, func(name string) bool { return selects[name] })
}

// family is what kinds of sources have in common that read one thing's records
// under one partition's name and offsets.
func family(kind string) string {
	switch kind {
	case "kafka", "kafka.messages":
		return "kafka"
	case "file.json", "file.lines":
		return "file.lines"
	}
	return kind
}

// selects are the parameters that say what a source reads.
var selects = map[string]bool{"topics": true, "pattern": true, "target": true}

// selection is what a source reads: topics or files.
type selection struct {
	what  string   // topics, files, or the connector's own word
	text  string   // as the author wrote it
	names []string // if they are named one by one
	// of is what a partition belongs to; covers tells whether that is selected.
	of     func(partition string) string
	covers func(of string) bool
}

func selectionOf(p epoch.Part) selection {
	s := selection{what: "target", text: p.Parameters["target"], of: func(partition string) string { return partition }}
	switch family(p.Kind) {
	case "kafka":
		s.of = func(partition string) string { topic, _, _ := strings.Cut(partition, "/"); return topic }
		if pattern, is := p.Parameters["pattern"]; is {
			s.what, s.text = "topics", pattern
			expression, err := regexp.Compile("^(?:" + pattern + ")$")
			s.covers = func(topic string) bool { return err == nil && expression.MatchString(topic) }
			return s
		}
		s.what, s.text = "topics", p.Parameters["topics"]
		s.names = strings.Split(s.text, ",")
	case "file.lines", "file.csv":
		s.what = "files"
		glob := relative(s.text)
		s.covers = func(name string) bool { fits, err := path.Match(glob, name); return fits && err == nil }
		return s
	default:
		s.names = []string{s.text}
	}
	s.covers = func(of string) bool { return slices.Contains(s.names, of) }
	return s
}

// relative is a pattern of files without the folder that has no wildcard: so
// files are named.
func relative(pattern string) string {
	parts := strings.Split(path.Clean(strings.ReplaceAll(pattern, `\`, "/")), "/")
	first := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, `*?[`) })
	if first < 0 {
		first = len(parts) - 1
	}
	return strings.Join(parts[first:], "/")
}

// covers adds what a source reads besides, or no longer.
func (c *comparison) covers(l *Line, old, now selection) {
	if old.text == now.text && old.what == now.what {
		return
	}
	cause := fmt.Sprintf("%s, %s: %s → %s", l.Name, now.what, old.text, now.text)
	read := slices.Clone(old.names)
	for partition := range c.Head.Sources[l.Name].Partitions {
		read = append(read, old.of(partition))
	}
	if !c.hasRead(l.Name) {
		read = nil
	}
	slices.Sort(read)
	if gone := slices.DeleteFunc(slices.Compact(read), now.covers); len(gone) > 0 {
		l.Add(Refused, fmt.Sprintf("%s: %s would not be read any more", cause, list(gone)), newSource)
		return
	}
	l.Add(Resolves, cause, "")
	l.Note("what comes in addition is read from its beginning; what was read goes on")
}

// noteOffsets notes from which offsets on what changes holds.
func (c *comparison) noteOffsets(l *Line) {
	var from []string
	for partition, o := range sorted(c.Head.Sources[l.Name].Partitions) {
		from = append(from, fmt.Sprintf("%s offset %d", partition, o.Next))
	}
	if len(from) > 0 {
		l.Note("from " + list(from) + " on")
	}
}

// goneSource refuses that a new source reads what one has read that is gone, for
// states that have that already: they would count it twice.
func (c *comparison) goneSource(l *Line, old epoch.Part) {
	if !c.hasRead(l.Name) {
		return
	}
	for name, now := range sorted(c.New.Sources) {
		if _, had := c.Old.Sources[name]; had || family(old.Kind) != family(now.Kind) || !overlap(selectionOf(old), selectionOf(now)) {
			continue
		}
		for state, s := range sorted(c.New.States) {
			was, kept := c.Old.States[state]
			if kept && slices.Contains(sourcesOf(c.New, []string{s.Operator}), name) && slices.Contains(sourcesOf(c.Old, []string{was.Operator}), l.Name) {
				l.Add(Refused, fmt.Sprintf("%s: source %s would read from its start what this one has read for state %s, which would count it twice", l.Name, name, state),
					fmt.Sprintf("keep the name %s, under which the offsets are kept, or give the states new names", l.Name))
				return
			}
		}
	}
}

// overlap tells whether two sources are known to read something in common.
func overlap(a, b selection) bool {
	if a.what != b.what {
		return false
	}
	return a.text == b.text || slices.ContainsFunc(a.names, b.covers) || slices.ContainsFunc(b.names, a.covers)
}
