package registry_test

import (
	"errors"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/connector"
)

// TestRehearse: what enrolling would come to is told, and nothing is registered,
// nor what a schema refers to.
func TestRehearse(t *testing.T) {
	eachRegistry(t, func(t *testing.T, to target) {
		r := open(t, registry.URLs(to.url))
		subject := to.prefix + "orders"
		avro := func(fields string, references ...codec.Reference) *codec.Schema {
			return &codec.Schema{Format: codec.FormatAvro, Text: `{"type":"record","name":"Order","fields":[` + fields + `]}`, References: references}
		}
		const id = `{"name":"ID","type":"string"}`
		shop := codec.Reference{Name: to.prefix + "shop", Schema: &codec.Schema{Format: codec.FormatAvro, Text: `{"type":"record","name":"Shop","fields":[` + id + `]}`}}
		referring := avro(id+`,{"name":"Shop","type":["null","Shop"],"default":null}`, shop)
		registered := func() (n int) {
			for _, s := range []string{subject, shop.Name} {
				versions, _ := to.client.SubjectVersions(t.Context(), s) // an error: there is none
				n += len(versions)
			}
			return n
		}
		if err := r.Rehearse(t.Context(), subject, referring, false); err != nil || registered() != 0 {
			t.Errorf("the first, with another that it refers to: %v, %d registered", err, registered())
		}
		if _, err := r.Enroll(t.Context(), subject, avro(id), false); err != nil {
			t.Fatal(err)
		}
		if err := r.Rehearse(t.Context(), subject, referring, false); !errors.Is(err, connector.ErrNotAsked) {
			t.Errorf("with another that isn't there yet: %v", err)
		}
		if err := r.Rehearse(t.Context(), subject, avro(id+`,{"name":"Cents","type":"long","default":0}`), false); err != nil {
			t.Errorf("a field added: %v", err)
		}
		clash, is := errors.AsType[*registry.IncompatibleError](r.Rehearse(t.Context(), subject, avro(`{"name":"ID","type":"long"}`), false))
		if !is || clash.Version != 1 {
			t.Errorf("a field retyped: %v", clash)
		}
		if registered() != 1 {
			t.Errorf("%d are registered, expected that one which was enrolled", registered())
		}
		if _, err := r.Enroll(t.Context(), shop.Name, shop.Schema, false); err != nil {
			t.Fatal(err)
		}
		if err := r.Rehearse(t.Context(), subject, referring, false); err != nil || registered() != 2 {
			t.Errorf("with another that is there: %v", err)
		}
	})
}
