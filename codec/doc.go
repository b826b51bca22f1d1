// Package codec turns bytes into values and values into bytes. A [Codec] says
// which type it makes, so that a source built with one is typed from there on:
//
//	file.Lines("access.log", codec.String())
//	file.Lines("orders.jsonl", codec.JSON[Order](codec.Strict()))
//
// Decoded values never point into the bytes that they were decoded from.
//
// # Plain bytes
//
// [JSON] follows encoding/json/v2; with [Strict] an object may have no names that
// the type doesn't. [Avro] follows the schema that package schema derives from
// the type, or reads what was written with another ([Writer]). [Protobuf] maps a
// generated message to a value that can be copied, compared and stored, and back.
// [String] and [Bytes] take what there is.
//
// # A schema registry
//
// With [Registered], records of [Avro] and [Protobuf] begin with the id of the
// schema that they were written with:
//
//	schemas, err := registry.New() // of package codec/registry
//	orders := codec.Avro[Order](codec.Record("shop.Order"), codec.Registered(schemas))
//
//	reading   0 | id, 4 bytes | [message's place] | record
//	          the id's schema is fetched once, and resolved to that of the type
//	writing   the type's schema is compared with what the subject has, and
//	          registered, before the first record
//
// A message's place in its .proto file stands before Protobuf messages, as
// registries have it: the indexes of the message and of those around it, where
// the entries of maps don't count.
//
// A subject is named by the topic, unless [ByRecord], [ByTopicAndRecord] or
// [Subject] say otherwise; so a sink uses what [For] makes of the codec for its
// topic, and calls [Preparer] when it is opened. What was not prepared does the
// same at the first record, with the same errors. With [LookUpOnly] the schema has
// to be there.
//
// # Whose fault an error is
//
// What can't be decoded is a *[connector.DecodeError] with the field's path and
// the place in the bytes, where they are known: bytes that are no value, no id in
// front, an id that the registry doesn't know, a schema that doesn't resolve. It
// may become a dead letter.
//
// What isn't the record's fault matches [connector.ErrUnavailable]: a registry
// that does not answer, a schema that it refuses, a codec that can be of no use.
// The last are known beforehand: [Check] tells, when the job is built.
package codec
