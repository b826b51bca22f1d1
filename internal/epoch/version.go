package epoch

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
)

// Version describes what a build of a job is. Builds with one description are
// one version, whatever their code: its functions' names are for people only.
type Version struct {
	Format    int                     `json:"format"`
	Sources   map[string]Part         `json:"sources,omitempty"`
	Operators map[string]Part         `json:"operators,omitempty"`
	States    map[string]StateSchemas `json:"states,omitempty"`
	Sinks     map[string]Part         `json:"sinks,omitempty"`
	// Times are the event times, by the names that their watermarks have.
	Times map[string]Part `json:"times,omitempty"`
	// Functions are the names of the user's named functions, by the part that
	// calls them. They are no part of the hash.
	Functions map[string]string `json:"functions,omitempty"`
}

// KeyFunction is where [Version.Functions] has the function that gives an
// operator's key.
func KeyFunction(operator string) string { return operator + " key" }

// RowFunction is where [Version.Functions] has the function that makes a sink's
// rows. A sink may have the name of an operator.
func RowFunction(sink string) string { return sink + " row" }

// TimeFunction is where [Version.Functions] has the function that gives records their
// event time.
func TimeFunction(eventTime string) string { return eventTime + " time" }

// TimeKind is the kind of the parts of [Version.Times].
const TimeKind = "event time"

// WindowKind is the kind of operators with windows. Their parameters say what these are,
// and besides that how long they wait behind their ends, that they share panes, and when
// they are put out before and behind their ends, if they do and are.
const (
	WindowKind      = "window"
	AllowedLateness = "allowed lateness"
	SharedPanes     = "panes"
	Firings         = "firings"
)

// Part is a source, an operator, a sink or an event time.
type Part struct {
	// Kind is the sort of part: fold, process, file, and so on.
	Kind string `json:"kind"`
	// Inputs are the names of the parts before it, in the order that it has
	// them; a stateless step has no name and stands for what is before it.
	Inputs []string `json:"inputs,omitempty"`
	// Parameters are its settings that change results, by name.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Schemas are the Avro schemas of its records, by role: key, row.
	Schemas map[string]string `json:"schemas,omitempty"`
	// Times are the event times that an operator goes by: by the least of their
	// watermarks.
	Times []string `json:"times,omitempty"`
}

// StateSchemas are the Avro schemas of a state.
type StateSchemas struct {
	// Operator is the part that owns and writes the state.
	Operator string `json:"operator"`
	// Kind is map, list, sorted, window or timer; "" for a state of one value per key.
	Kind string `json:"kind,omitempty"`
	// Limit is how many entries a key of a sorted state has at most, and Descending
	// that the greatest come first.
	Limit      int  `json:"limit,omitzero"`
	Descending bool `json:"descending,omitzero"`
	// Meaning is raised by the author when equal types mean something else, and
	// KeyMeaning when equal keys do.
	Meaning    int    `json:"meaning,omitzero"`
	KeyMeaning int    `json:"key_meaning,omitzero"`
	Key        string `json:"key"`
	Element    string `json:"element,omitempty"` // in map, list and sorted states
	// Migrations are the schemas of the types that the version's functions migrate
	// values from, and MigratesKeys tells that it has a function for keys: what such a
	// version holds has been through them.
	Migrations   []string `json:"migrations,omitempty"`
	MigratesKeys bool     `json:"migrates_keys,omitzero"`
	Value        string   `json:"value"`
}

// Hash is the version's name: the sha256, in hexadecimal, of its description in
// canonical JSON (RFC 8785), without the format and the functions' names. So it
// is the same on every machine, and in every release.
func (v Version) Hash() (string, error) {
	data, err := json.Marshal(struct {
		Sources   map[string]Part         `json:"sources,omitempty"`
		Operators map[string]Part         `json:"operators,omitempty"`
		States    map[string]StateSchemas `json:"states,omitempty"`
		Sinks     map[string]Part         `json:"sinks,omitempty"`
		Times     map[string]Part         `json:"times,omitempty"`
	}{v.Sources, v.Operators, v.States, v.Sinks, v.Times})
	if err == nil {
		err = (*jsontext.Value)(&data).Canonicalize()
	}
	if err != nil {
		return "", fmt.Errorf("hash a version: %w", err)
	}
	return Hash(data), nil
}
