package codec

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/schema"
)

// maxReferences bounds how many schemas one refers to, and those in turn.
const maxReferences = 1000

// parseAvro parses a schema with those that it refers to by name.
func parseAvro(s *Schema) (*schema.Schema, error) {
	if len(s.References) == 0 {
		return schema.Parse([]byte(s.Text))
	}
	// Avro has no imports: the fields of one record hold the schemas in an order
	// in which each knows the names of those before it.
	var ordered []*Schema
	seen := map[string]bool{}
	if err := inOrder(s, seen, &ordered); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"type":"record","name":"_","fields":[`)
	for i, one := range ordered {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := avroJSON(one.Text)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, `{"name":"_%d","type":%s}`, i, text)
	}
	b.WriteString(`]}`)
	all, err := schema.Parse(b.Bytes())
	if err != nil {
		return nil, err
	}
	fields := all.Fields()
	return fields[len(fields)-1].Type, nil
}

// inOrder appends what a schema refers to, and then the schema.
func inOrder(s *Schema, seen map[string]bool, ordered *[]*Schema) error {
	for _, r := range s.References {
		if seen[r.Name] {
			continue
		}
		if seen[r.Name] = true; len(seen) > maxReferences {
			return fmt.Errorf("it refers to more than %d schemas", maxReferences)
		}
		if err := inOrder(r.Schema, seen, ordered); err != nil {
			return err
		}
	}
	*ordered = append(*ordered, s)
	return nil
}

// avroJSON returns the JSON form of a schema's text, which may be a bare name.
func avroJSON(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if jsontext.Value(text).IsValid() {
		return []byte(text), nil
	}
	if schema.CheckName(text) != nil {
		return nil, errors.New("the text of a schema is no JSON")
	}
	return json.Marshal(text)
}

// unresolvable says why records of a writer's schema can't be read as a Go type.
type unresolvable struct {
	reader      string
	writer      *schema.Schema
	differences []schema.Difference
}

// shownDifferences bounds how many of them an error tells.
const shownDifferences = 5

// Error implements error.
func (e *unresolvable) Error() string {
	var parts []string
	more := 0
	for _, d := range e.differences {
		switch {
		case d.Resolves:
		case len(parts) == shownDifferences:
			more++
		default:
			parts = append(parts, shortenTo(shownPath, e.text(d)))
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	name := e.writer.Name()
	if name == "" {
		name = e.writer.Word()
	}
	return fmt.Sprintf("%s as it was written can't be read as %s: %s", shortenTo(shownPath, name), e.reader, strings.Join(parts, "; "))
}

// text tells a difference, and what a Go type can't have.
func (e *unresolvable) text(d schema.Difference) string {
	text := d.String()
	if d.Path == "" {
		text = "as a whole: " + text
	}
	switch {
	case strings.Contains(d.Old, " or "):
		text += " (a Go type can hold one of a union's types, and a pointer null too)"
	case d.Change == schema.MadeRequired:
		text += " (a pointer can be null)"
	case d.Change == schema.Added:
		text += " (it has no default)"
	case d.Change == schema.SymbolRemoved:
		text += " (add it to Symbols, or have a DefaultSymbol)"
	case strings.HasPrefix(d.Old, "timestamp"), strings.HasPrefix(d.Old, "local-timestamp-"):
		text += " (a time.Time or a schema.Instant can hold it)"
	case d.Old == "date":
		text += " (a time.Time, a schema.Instant or an integer can hold it)"
	case strings.HasPrefix(d.Old, "time-"):
		text += " (a time.Duration or an integer can hold it)"
	}
	return text
}
