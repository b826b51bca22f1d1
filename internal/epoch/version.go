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

// Part is a source, an operator or a sink.
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
}

// StateSchemas are the Avro schemas of a state.
type StateSchemas struct {
	// Operator is the part that owns and writes the state.
	Operator string `json:"operator"`
	// Kind is map or list; "" for a state of one value per key.
	Kind string `json:"kind,omitempty"`
	// Meaning is raised by the author when equal types mean something else, and
	// KeyMeaning when equal keys do.
	Meaning    int    `json:"meaning,omitzero"`
	KeyMeaning int    `json:"key_meaning,omitzero"`
	Key        string `json:"key"`
	Element    string `json:"element,omitempty"` // in map and list states
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
	}{v.Sources, v.Operators, v.States, v.Sinks})
	if err == nil {
		err = (*jsontext.Value)(&data).Canonicalize()
	}
	if err != nil {
		return "", fmt.Errorf("hash a version: %w", err)
	}
	return Hash(data), nil
}
