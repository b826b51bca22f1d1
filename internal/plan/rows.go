package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// rows compares what a sink's rows are made of. Rows that are written stay as
// they are, and whoever reads them has to understand both.
func (c *comparison) rows(l *Line, old, now epoch.Part) {
	if !sameSchema(old.Schemas["key"], now.Schemas["key"]) {
		l.Add(Refused, fmt.Sprintf("%s, key: %s → %s: its rows would be told apart by another key", l.Name, word(old.Schemas["key"]), word(now.Schemas["key"])), newSink)
	}
	was, err := schema.Parse([]byte(old.Schemas["row"]))
	if err != nil {
		l.Add(Refused, fmt.Sprintf("%s: the schema of the rows as they were can't be read: %v", l.Name, err), newSink)
		return
	}
	is, err := schema.Parse([]byte(now.Schemas["row"]))
	if err != nil {
		l.Add(Refused, fmt.Sprintf("%s: the schema of the rows can't be read: %v", l.Name, err), newSink)
		return
	}
	for _, d := range schema.Differences(was, is) {
		c.row(l, d, now.Kind, was, is)
	}
}

// row adds one difference of a sink's rows.
func (c *comparison) row(l *Line, d schema.Difference, kind string, was, is *schema.Schema) {
	cause := told(l.Name, d)
	switch d.Change {
	case schema.Added:
		f, found := fieldAt(is, d.Path)
		if !found || f.Default == "" {
			break
		}
		l.Add(Resolves, cause, "")
		l.Note(joined(l.Name, d.Path) + ": " + seenBefore(kind, f))
		return
	case schema.Removed:
		f, found := fieldAt(was, d.Path)
		if !found || !nullable(f.Type) {
			break
		}
		path := joined(l.Name, d.Path)
		c.drop(l, path, cause)
		l.Note(path + ": rows that are written keep what stands there")
		return
	case schema.Reordered, schema.DefaultChanged, schema.SymbolAdded, schema.SymbolRemoved:
		l.Add(Resolves, cause, "")
		return
	}
	l.Add(Refused, cause+": whoever reads the rows knows the other", newSink)
}

// seenBefore says what is seen of a new column in rows that were written before.
func seenBefore(kind string, f schema.Field) string {
	switch {
	case kind == "postgres":
		return "null in rows written before"
	case strings.HasPrefix(kind, files):
		return "absent in rows written before"
	}
	return "absent in rows written before; who reads them by the new schema sees " + f.Default
}

// fieldAt finds a field by a difference's path, such as Tags[].Name.
func fieldAt(s *schema.Schema, path string) (found schema.Field, ok bool) {
	for step := range strings.SplitSeq(path, ".") {
		if s = record(s); s == nil {
			return found, false
		}
		end := strings.IndexAny(step+"[", "[{")
		i := slices.IndexFunc(s.Fields(), func(f schema.Field) bool { return f.Name == step[:end] })
		if i < 0 {
			return found, false
		}
		found = s.Fields()[i]
		if s = within(found.Type, step[end:]); s == nil {
			return found, false
		}
	}
	return found, true
}

// within descends into elements, [], and the values of maps, {}.
func within(s *schema.Schema, path string) *schema.Schema {
	for path != "" {
		outer, _ := s.NonNull()
		if s = outer.Element(); s == nil || !strings.HasPrefix(path, "[]") && !strings.HasPrefix(path, "{}") {
			return nil
		}
		if entry := s.Fields(); path[0] == '{' && outer.Logical() == schema.LogicalMap && len(entry) == 2 {
			s = entry[1].Type // a map whose keys are no strings is an array of entries
		}
		path = path[2:]
	}
	return s
}

// record is a schema's record, if it is one or null.
func record(s *schema.Schema) *schema.Schema {
	inner, _ := s.NonNull()
	if inner.Kind() != schema.KindRecord {
		return nil
	}
	return inner
}

func nullable(s *schema.Schema) bool {
	_, is := s.NonNull()
	return is
}

// word tells a stored schema in a few words.
func word(text string) string {
	if text == "" {
		return "none"
	}
	s, err := schema.Parse([]byte(text))
	if err != nil {
		return "unreadable schema"
	}
	return s.Word()
}
