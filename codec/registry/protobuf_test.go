package registry_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/typepb"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
)

// TestProtobufCodec writes and reads messages through a registry. What is
// registered is made of the message's descriptor.
func TestProtobufCodec(t *testing.T) {
	type column struct {
		Name string
		Tags []string
	}
	eachRegistry(t, func(t *testing.T, to target) {
		use := codec.Use{Topic: to.prefix + "columns", Key: true}
		made := func() codec.Codec[column] {
			return codec.Protobuf(
				func(m *typepb.Field, c *column) error {
					c.Name = m.GetName()
					for _, o := range m.GetOptions() {
						c.Tags = append(c.Tags, o.GetName())
					}
					return nil
				},
				func(c *column, m *typepb.Field) error {
					m.Name = c.Name
					for _, tag := range c.Tags {
						m.Options = append(m.Options, &typepb.Option{Name: tag})
					}
					return nil
				}, codec.Registered(open(t, registry.URLs(to.url))))
		}
		for range 2 { // the second time it is there
			if err := made().(codec.Preparer).Prepare(t.Context(), use); err != nil {
				t.Fatal(err)
			}
		}
		want := column{"id", []string{"key", "long"}}
		bytes, err := codec.For(made(), use).NewEncoder()(nil, &want)
		if err != nil || string(bytes[5:7]) != "\x02\x02" {
			t.Fatalf("%q, %v", bytes, err)
		}
		var got column
		if err := made().NewDecoder()(bytes, &got); err != nil || got.Name != "id" || len(got.Tags) != 2 || got.Tags[1] != "long" {
			t.Errorf("%+v, %v", got, err)
		}
		if versions, err := to.client.SubjectVersions(t.Context(), use.Topic+"-key"); err != nil || len(versions) != 1 {
			t.Errorf("versions %v, %v", versions, err)
		}
	})
}
