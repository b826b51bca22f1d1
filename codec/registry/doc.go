// Package registry speaks with a schema registry, for the codecs of package
// codec:
//
//	schemas, err := registry.New(registry.URLs("https://registry:8081"), registry.Bearer(token))
//	orders := codec.Avro[Order](codec.Registered(schemas))
//
// The URL defaults to what the environment variable SLUICE_REGISTRY says.
//
// # What fails how
//
// A registry that can't be reached, answers with a 5xx, 429 or 408, or takes too
// long is asked again after growing pauses, for some 30 seconds in all ([Patience]). An
// [*Error] says that it stayed so, or that it refused (401, 403). It matches
// connector.ErrUnavailable: a job stops, no record becomes a dead letter. An id
// that the registry says it does not know is the record's own fault, and matches
// codec.ErrUnknownID.
//
// Before a schema is registered, it is compared with the subject's versions by
// the subject's mode. If it doesn't fit, an [*IncompatibleError] names the
// version and what the registry has against it.
//
// Passwords and tokens stand in no error.
package registry
