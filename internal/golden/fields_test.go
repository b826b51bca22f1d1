package golden

import (
	"encoding/json/v2"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

// objects are the types of the JSON objects, by what their names say that they are.
var objects = map[epoch.ObjectKind]reflect.Type{
	epoch.JobObject:       reflect.TypeFor[epoch.JobFile](),
	epoch.VersionObject:   reflect.TypeFor[epoch.Version](),
	epoch.FunctionsObject: reflect.TypeFor[epoch.Functions](),
	epoch.LayoutObject:    reflect.TypeFor[epoch.Layout](),
	epoch.BranchObject:    reflect.TypeFor[epoch.BranchFile](),
	epoch.ManifestObject:  reflect.TypeFor[epoch.Manifest](),
	epoch.FloorObject:     reflect.TypeFor[epoch.Floor](),
	epoch.HeartbeatObject: reflect.TypeFor[epoch.Heartbeat](),
	epoch.LiveObject:      reflect.TypeFor[epoch.LiveRecord](),
	epoch.ControlObject:   reflect.TypeFor[epoch.Request](),
	epoch.PinObject:       reflect.TypeFor[epoch.Pin](),
	epoch.SavepointObject: reflect.TypeFor[epoch.Savepoint](),
	epoch.DrainedObject:   reflect.TypeFor[epoch.Drain](),
}

// excused are fields that no object of the store has with more than nothing in it, and
// why.
var excused = map[string]string{
	"branch.layout":                  onlyLayout,
	"live.layout":                    onlyLayout,
	"layout.layout":                  onlyLayout,
	"layout.tasks.slots.first":       onlyLayout,
	"branch.build.revision":          noRevision,
	"heartbeat.build.revision":       noRevision,
	"manifest.build.revision":        noRevision,
	"manifest.superseded.revision":   noRevision,
	"manifest.writer_build.revision": noRevision,
	"version.sources.inputs":         "a source has none: operators and sinks do",
	"version.sources.schemas":        "sinks have them: of a source's records nothing is stored",
	"version.operators.schemas":      "an operator's are those of its state",
	"heartbeat.sources.start":        "no source of the store has lost records",
	"floor.by":                       unwritten,
	"manifest.partial.until":         unwritten,
	"manifest.sinks.note":            unwritten,
	"version.times.schemas":          "of an event time no record is stored",
	"version.times.times":            "operators have them",
	"version.sources.times":          "operators have them",
	"version.sinks.times":            "operators have them",
	"heartbeat.objections":           noGuard,
}

const (
	onlyLayout = "there is no other layout than 0, with its one task"
	noRevision = "go test stamps no revision into its programs"
	unwritten  = "nothing writes it yet"
	noGuard    = "no follower of the store has a guard"
	command    = "a command"
)

// TestEveryFieldIsThere sees that each field of each object stands in the checkpoint of
// today's format, with more than nothing in it: a field that comes to be, or is written
// where none was, has to be brought into the generator.
func TestEveryFieldIsThere(t *testing.T) {
	found := stored(t)
	lacking := map[string]bool{}
	for kind, object := range objects {
		fields(object, string(kind), found[kind], func(field string, values []any) {
			above := field[:strings.LastIndexByte(field, '.')]
			if lacking[field] = len(values) == 0; lacking[field] && !lacking[above] && excused[field] == "" {
				t.Errorf("no object of the store has the field %s", field)
			}
		})
	}
	for field := range excused {
		if !lacking[field] {
			t.Errorf("the field %s is excused, and there", field)
		}
	}
}

// TestEveryFieldIsNamed sees that the page on the format names each field of each object.
func TestEveryFieldIsNamed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for i, quoted := range strings.Split(string(page), "`") {
		if i%2 == 0 {
			continue // between two words
		}
		for name := range strings.FieldsFuncSeq(quoted, func(r rune) bool { return r != '_' && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') }) {
			named[name] = true
		}
	}
	for kind, object := range objects {
		fields(object, string(kind), nil, func(field string, _ []any) {
			if !named[field[strings.LastIndexByte(field, '.')+1:]] {
				t.Errorf("docs/format.md does not name the field %s", field)
			}
		})
	}
}

// unseen are words of the page on the format that no object of the store has as a field
// or a value, and why.
var unseen = map[string]string{
	"changed":      "only PostgreSQL's sinks can be written anew in this way",
	"cut":          "each sink that is new in the store was filled",
	"drain":        "its object is that of a stop, but for the word",
	"failover":     "its objects are those of an upgrade, but for the word",
	"fresh":        "its objects are those of an upgrade, but for the word",
	"resume":       "its objects are those of an upgrade, but for the word",
	"revision":     noRevision,
	"note":         unwritten,
	"generator":    "the event time of the store has a lateness",
	"objections":   noGuard,
	"op":           "a field of outboxes",
	"wire":         "a field of outboxes",
	"plan":         command,
	"state diff":   command,
	"state export": command,
}

// TestEveryWordIsThere sees that each word that the page on the format has in quotes, a
// field's name or a value, stands in the checkpoint of today's format.
func TestEveryWordIsThere(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			there[v] = true
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for name, e := range v {
				there[name] = true
				walk(e)
			}
		}
	}
	found := stored(t)
	for _, all := range found {
		walk(all)
	}
	words := map[string]bool{}
	for _, line := range strings.Split(string(page), "\n") {
		for i, word := range strings.Split(line, "`") {
			if i%2 == 1 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_ ") == "" {
				words[word] = true
			}
		}
	}
	for word := range words {
		if !there[word] && unseen[word] == "" {
			t.Errorf("docs/format.md has the word %q, and no object of the store", word)
		}
	}
	for word := range unseen {
		if there[word] || !words[word] {
			t.Errorf("the word %q is excused, and there, or not on the page", word)
		}
	}
}

// fields visits the fields of a type, and of the types of these, with what values of the
// type have there: what says no more than its absence is left out.
func fields(t reflect.Type, path string, values []any, visit func(field string, values []any)) {
	switch t.Kind() {
	case reflect.Pointer:
		if t.Implements(reflect.TypeFor[json.Marshaler]()) {
			return // it has a form of its own
		}
		fields(t.Elem(), path, values, visit)
	case reflect.Slice, reflect.Map:
		var elements []any
		for _, v := range values {
			switch v := v.(type) {
			case []any:
				elements = append(elements, v...)
			case map[string]any:
				elements = slices.AppendSeq(elements, maps.Values(v))
			}
		}
		fields(t.Elem(), path, elements, visit)
	case reflect.Struct:
		for f := range t.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case tag == "-":
				continue
			case f.Anonymous && tag == "":
				fields(f.Type, path, values, visit)
				continue
			}
			var theirs []any
			for _, v := range values {
				if field := v.(map[string]any)[tag]; !empty(field) {
					theirs = append(theirs, field)
				}
			}
			visit(path+"."+tag, theirs)
			fields(f.Type, path+"."+tag, theirs, visit)
		}
	}
}

// empty tells whether a JSON value says no more than its absence.
func empty(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// stored are the JSON objects of the checkpoint of today's format, by their kinds.
func stored(t *testing.T) map[epoch.ObjectKind][]any {
	t.Helper()
	found := map[epoch.ObjectKind][]any{}
	root := filepath.Join(newest(), "store")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, _ := filepath.Rel(root, path)
		_, object, _ := strings.Cut(filepath.ToSlash(below), "/")
		name, ok := epoch.ParsePath(object)
		switch {
		case !ok:
			t.Errorf("%s is no object of a store", below)
			return nil
		case name.Kind == epoch.DataObject:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var value map[string]any
		if err := json.Unmarshal(text, &value); err != nil {
			return err
		}
		found[name.Kind] = append(found[name.Kind], value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
