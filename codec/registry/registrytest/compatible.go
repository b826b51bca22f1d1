package registrytest

import (
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/codec"
)

// The compatibility modes.
const (
	None               = "NONE"
	Backward           = "BACKWARD"
	BackwardTransitive = "BACKWARD_TRANSITIVE"
	Forward            = "FORWARD"
	ForwardTransitive  = "FORWARD_TRANSITIVE"
	Full               = "FULL"
	FullTransitive     = "FULL_TRANSITIVE"
)

// Modes returns all compatibility modes.
func Modes() []string {
	return []string{None, Backward, BackwardTransitive, Forward, ForwardTransitive, Full, FullTransitive}
}

// judged is a schema that can be compared with others of its format.
type judged interface {
	// reads returns what keeps it from reading what another wrote.
	reads(writer judged) []string
}

type judgedAvro struct{ *avroType }

func (a judgedAvro) reads(writer judged) []string {
	w, ok := writer.(judgedAvro)
	if !ok {
		return []string{"another format"}
	}
	return avroCanRead(a.avroType, w.avroType)
}

// judge makes a schema comparable. The error says why it is none.
func judge(s *codec.Schema) (judged, error) {
	switch s.Format {
	case codec.FormatAvro:
		t, err := parseAvroWith(s, avroNames{})
		return judgedAvro{t}, err
	case codec.FormatProtobuf:
		imports := map[string]string{}
		gather(s, imports)
		f, err := parseProtobuf(s.Text, imports)
		return judgedProtobuf{f}, err
	}
	return nil, fmt.Errorf("format %s", s.Format)
}

func parseAvroWith(s *codec.Schema, names avroNames) (*avroType, error) {
	for _, r := range s.References {
		if names[r.Name] == nil {
			if _, err := parseAvroWith(r.Schema, names); err != nil {
				return nil, err
			}
		}
	}
	return parseAvro(s.Text, names)
}

// gather collects the texts of what a schema imports, by path.
func gather(s *codec.Schema, imports map[string]string) {
	for _, r := range s.References {
		if imports[r.Name] == "" {
			imports[r.Name] = r.Schema.Text
			gather(r.Schema, imports)
		}
	}
}

// clash returns what a mode has against a new schema beside an earlier one.
func clash(mode string, now, earlier judged) (messages []string) {
	way := strings.TrimSuffix(mode, "_TRANSITIVE")
	if way == Backward || way == Full {
		messages = append(messages, now.reads(earlier)...)
	}
	if way == Forward || way == Full {
		messages = append(messages, earlier.reads(now)...)
	}
	return messages
}

// transitive tells whether a mode counts for all earlier versions.
func transitive(mode string) bool { return strings.HasSuffix(mode, "_TRANSITIVE") }
