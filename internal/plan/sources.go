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
		case !had && known:
			l.Note("back; it goes on from where it stood")
			c.returnedSource(l, now)
		case !had:
			l.Note("new; it begins where the job's code says")
		default:
			c.source(l, old, now)
		}
		c.readAgain(l, old)
	}
}

// returnedSource compares a source that is back with what it was. If that may have been
// one of several, the one counts that it differs from the most.
func (c *comparison) returnedSource(l *Line, now epoch.Part) {
	was := c.AbsentSources[l.Name]
	if len(was) == 0 {
		l.Note("nothing tells what it was before; see to it that it reads the same")
		return
	}
	c.source(l, c.farthest(l, was, func(tried *Line, was epoch.Part) { c.source(tried, was, now) }), now)
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

// cleaned is a pattern of files as [path] has it.
func cleaned(pattern string) string { return path.Clean(strings.ReplaceAll(pattern, `\`, "/")) }

// relative is a pattern of files without the folder that has no wildcard: so
// files are named.
func relative(pattern string) string {
	return strings.TrimPrefix(strings.TrimPrefix(cleaned(pattern), folder(pattern)), "/")
}

// folder is the folder of a pattern that has no wildcard; "" for the current one.
func folder(pattern string) string {
	parts := strings.Split(cleaned(pattern), "/")
	first := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, `*?[`) })
	if first < 0 {
		first = len(parts) - 1
	}
	if first == 1 && parts[0] == "" {
		return "/"
	}
	return strings.Join(parts[:first], "/")
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
		l.Add(Refused, fmt.Sprintf("%s: %s would not be read any more", cause, list(gone)), keepReading)
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

// readAgain refuses that a new source reads what one has read before, for states
// and sinks that have had it from that: they would count it, or write it, twice.
func (c *comparison) readAgain(l *Line, old epoch.Part) {
	if !c.hasRead(l.Name) {
		return
	}
	for name, now := range sorted(c.New.Sources) {
		if _, had := c.Old.Sources[name]; had || family(old.Kind) != family(now.Kind) || !c.overlap(l.Name, name, old, now) {
			continue
		}
		if twice := c.fedByBoth(l.Name, name); len(twice) > 0 {
			l.Add(Refused, fmt.Sprintf("%s: source %s would read from its start what this one has read for %s: it would count twice", l.Name, name, list(twice)),
				fmt.Sprintf("keep the name %s, under which the offsets are kept, or give what has had it new names", l.Name))
			return
		}
	}
}

// fedByBoth are the states that an earlier source has fed, under the names that
// they have now, and that a new one would feed, and the sinks that write what comes
// of sources without a state in between.
func (c *comparison) fedByBoth(earlier, source string) (parts []string) {
	for state, s := range sorted(c.New.States) {
		if !slices.Contains(sourcesOf(c.New, []string{s.Operator}), source) {
			continue
		}
		if slices.ContainsFunc(c.predecessors(state), func(was string) bool {
			return slices.Contains(sourcesOf(c.Old, []string{c.Old.States[was].Operator}), earlier)
		}) {
			parts = append(parts, "state "+state)
		}
	}
	for sink, s := range sorted(c.New.Sinks) {
		if slices.Contains(s.Inputs, source) && slices.Contains(c.Old.Sinks[sink].Inputs, earlier) {
			parts = append(parts, "sink "+sink)
		}
	}
	return parts
}

// overlap tells whether a new source is known to read something that another has
// read, and that it has not read itself.
func (c *comparison) overlap(earlier, source string, old, now epoch.Part) bool {
	a, b := selectionOf(old), selectionOf(now)
	own := c.Head.Sources[source].Partitions
	for partition, o := range c.Head.Sources[earlier].Partitions {
		if o.Next <= own[partition].Next {
			continue
		}
		if a.what == "files" && fits(b.text, path.Join(folder(a.text), partition)) || a.what != "files" && b.covers(b.of(partition)) {
			return true
		}
	}
	return len(own) == 0 && a.what == b.what && a.text == b.text
}

// fits tells whether a pattern is one of a file. Where only one of both tells the
// whole way to it, the other's part of that decides.
func fits(pattern, file string) bool {
	pattern = cleaned(pattern)
	if path.IsAbs(pattern) != path.IsAbs(file) {
		a, b := strings.Split(pattern, "/"), strings.Split(file, "/")
		n := min(len(a), len(b))
		pattern, file = path.Join(a[len(a)-n:]...), path.Join(b[len(b)-n:]...)
	}
	is, err := path.Match(pattern, file)
	return is && err == nil
}
