// Package schema derives Avro schemas from Go types, writes and reads values of
// these types as Avro, and says how one schema differs from another.
package schema
