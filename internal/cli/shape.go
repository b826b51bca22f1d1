package cli

import (
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// shapeDepth is how deep records within records are spelled out.
const shapeDepth = 3

// shape tells a schema in a few words, a record by its fields: {Orders long,
// VIP boolean}.
func shape(s *schema.Schema) string { return shapeTo(s, shapeDepth) }

func shapeTo(s *schema.Schema, depth int) string {
	inner, nullable := s.NonNull()
	if nullable && inner != s {
		return "nullable " + shapeTo(inner, depth)
	}
	switch {
	case depth == 0 || s.Logical() != "":
	case s.Kind() == schema.KindRecord:
		fields := make([]string, 0, len(s.Fields()))
		for _, f := range s.Fields() {
			fields = append(fields, f.Name+" "+shapeTo(f.Type, depth-1))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case s.Kind() == schema.KindArray:
		return "array of " + shapeTo(s.Element(), depth-1)
	case s.Kind() == schema.KindMap:
		return "map of " + shapeTo(s.Element(), depth-1)
	case s.Kind() == schema.KindEnum:
		return "one of " + strings.Join(s.Symbols(), ", ")
	}
	return s.Word()
}

// shapeOf is shape for a schema as it is stored.
func shapeOf(text string) string {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		return "unreadable schema"
	}
	return shape(s)
}

// stateStatusOf sums up a state of a manifest.
func stateStatusOf(name string, e epoch.StateEntry) (stateStatus, error) {
	form, err := state.FormOf(name, e)
	if err != nil {
		return stateStatus{}, err
	}
	s := stateStatus{State: name, Key: shape(form.Key), Value: shape(form.Value), Segments: len(e.Segments)}
	if form.Element != nil {
		s.Element = shape(form.Element)
	}
	for _, segment := range e.Segments {
		s.Rows += segment.Rows
		s.Bytes += segment.Bytes
		s.Memory += segment.Memory
	}
	return s, nil
}
