// Package registrytest is a schema registry in the test's own process. It speaks
// the REST interface that registries have in common (schemas by id, subjects,
// versions, compatibility, configuration), and judges compatibility by rules of
// its own: Avro's, of what a reader can read, and Protobuf's, of what a field's
// number may become.
//
//	server := registrytest.Start(t)
//	schemas, err := registry.New(registry.URLs(server.URL))
//
// It keeps schemas in memory, forgets nothing, and can be told to fail.
package registrytest
