package registrytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// avroType is a type of an Avro schema.
type avroType struct {
	kind     string // Avro's word
	name     string // the full name of a named type
	aliases  []string
	fields   []avroField
	element  *avroType
	branches []*avroType
	symbols  []string
	fallback bool // an enum has a default
	size     int
}

type avroField struct {
	names      []string // its name, then its aliases
	typ        *avroType
	hasDefault bool
}

// avroNames are the types that are known by their full names.
type avroNames map[string]*avroType

// parseAvro parses a schema, given the names that those before it defined.
func parseAvro(text string, names avroNames) (*avroType, error) {
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	return names.parse(tree, "")
}

func (names avroNames) parse(tree any, space string) (*avroType, error) {
	switch tree := tree.(type) {
	case string:
		return names.find(tree, space)
	case []any:
		union := &avroType{kind: "union"}
		for _, t := range tree {
			branch, err := names.parse(t, space)
			if err != nil {
				return nil, err
			}
			union.branches = append(union.branches, branch)
		}
		return union, nil
	case map[string]any:
		return names.object(tree, space)
	}
	return nil, fmt.Errorf("%v is no type", tree)
}

func (names avroNames) find(name, space string) (*avroType, error) {
	switch name {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return &avroType{kind: name}, nil
	}
	if t := names[full(name, space)]; t != nil {
		return t, nil
	}
	if t := names[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %q", name)
}

// full is a name with the namespace that it stands in.
func full(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func spaceOf(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

func (names avroNames) object(tree map[string]any, space string) (t *avroType, err error) {
	kind, ok := tree["type"].(string)
	if !ok {
		return names.parse(tree["type"], space)
	}
	t = &avroType{kind: kind}
	switch kind {
	case "array":
		t.element, err = names.parse(tree["items"], space)
		return t, err
	case "map":
		t.element, err = names.parse(tree["values"], space)
		return t, err
	case "record", "enum", "fixed":
	default:
		return names.find(kind, space)
	}
	if own, ok := tree["namespace"].(string); ok {
		space = own
	}
	name, _ := tree["name"].(string)
	if name == "" {
		return nil, fmt.Errorf("a %s has no name", kind)
	}
	t.name = full(name, space)
	space = spaceOf(t.name)
	if names[t.name] != nil {
		return nil, fmt.Errorf("%s is defined twice", t.name)
	}
	names[t.name] = t
	for _, alias := range texts(tree["aliases"]) {
		t.aliases = append(t.aliases, full(alias, space))
	}
	t.symbols = texts(tree["symbols"])
	_, t.fallback = tree["default"]
	if size, ok := tree["size"].(float64); ok {
		t.size = int(size)
	}
	fields, _ := tree["fields"].([]any)
	if kind == "record" && fields == nil {
		return nil, fmt.Errorf("record %s has no fields", t.name)
	}
	for _, f := range fields {
		field, err := names.field(f, space)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", t.name, err)
		}
		t.fields = append(t.fields, field)
	}
	return t, nil
}

func (names avroNames) field(tree any, space string) (f avroField, err error) {
	object, _ := tree.(map[string]any)
	name, _ := object["name"].(string)
	if name == "" {
		return f, fmt.Errorf("a field has no name")
	}
	f.names = append([]string{name}, texts(object["aliases"])...)
	_, f.hasDefault = object["default"]
	f.typ, err = names.parse(object["type"], space)
	return f, err
}

func texts(tree any) (all []string) {
	list, _ := tree.([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// promoted are the types that a reader of the first may find written.
var promoted = map[string]string{
	"long": "int", "float": "int long", "double": "int long float", "string": "bytes", "bytes": "string",
}

// avroReading finds what keeps a reader from what a writer wrote.
type avroReading struct {
	open     map[[2]*avroType]bool
	messages []string
}

// avroCanRead returns what keeps a reader from reading what a writer wrote.
func avroCanRead(reader, writer *avroType) []string {
	r := &avroReading{open: map[[2]*avroType]bool{}}
	r.read("", reader, writer)
	return r.messages
}

func (r *avroReading) fault(path, kind, format string, args ...any) {
	r.messages = append(r.messages, fmt.Sprintf("%s at %s/: %s", kind, path, fmt.Sprintf(format, args...)))
}

func (r *avroReading) read(path string, reader, writer *avroType) {
	pair := [2]*avroType{reader, writer}
	switch {
	case r.open[pair]:
		return
	case writer.kind == "union":
		for _, branch := range writer.branches {
			r.read(path, reader, branch)
		}
		return
	case reader.kind == "union":
		for _, branch := range reader.branches {
			// What is being compared further out counts as readable here too.
			trial := &avroReading{open: r.open}
			if trial.read(path, branch, writer); len(trial.messages) == 0 {
				return
			}
		}
		r.fault(path, "MISSING_UNION_BRANCH", "the reader's union has no branch for %s", writer.kind)
		return
	case reader.kind != writer.kind:
		if !slices.Contains(strings.Fields(promoted[reader.kind]), writer.kind) {
			r.fault(path, "TYPE_MISMATCH", "reader %s, writer %s", reader.kind, writer.kind)
		}
		return
	case reader.name != "" && !named(reader, writer):
		r.fault(path, "NAME_MISMATCH", "reader %s, writer %s", reader.name, writer.name)
		return
	}
	r.open[pair] = true
	defer delete(r.open, pair)
	switch reader.kind {
	case "record":
		r.records(path, reader, writer)
	case "enum":
		for _, symbol := range writer.symbols {
			if !slices.Contains(reader.symbols, symbol) && !reader.fallback {
				r.fault(path, "MISSING_ENUM_SYMBOLS", "the reader has no %s", symbol)
			}
		}
	case "fixed":
		if reader.size != writer.size {
			r.fault(path, "FIXED_SIZE_MISMATCH", "reader %d, writer %d", reader.size, writer.size)
		}
	case "array", "map":
		r.read(path+"/element", reader.element, writer.element)
	}
}

// named tells whether a reader takes a writer's type for its own: by the name
// without the namespace, or by an alias.
func named(reader, writer *avroType) bool {
	short := func(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
	return short(reader.name) == short(writer.name) || slices.Contains(reader.aliases, writer.name)
}

func (r *avroReading) records(path string, reader, writer *avroType) {
	for _, f := range reader.fields {
		here := path + "/" + f.names[0]
		if from := writer.fieldOf(f.names); from != nil {
			r.read(here, f.typ, from.typ)
		} else if !f.hasDefault {
			r.fault(here, "READER_FIELD_MISSING_DEFAULT_VALUE", "%s", f.names[0])
		}
	}
}

// fieldOf finds the field that has the first of some names.
func (t *avroType) fieldOf(names []string) *avroField {
	for _, name := range names {
		for i := range t.fields {
			if t.fields[i].names[0] == name {
				return &t.fields[i]
			}
		}
	}
	return nil
}
