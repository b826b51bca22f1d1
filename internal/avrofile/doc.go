// Package avrofile reads and writes Avro object container files whose records
// are encoded already: it knows blocks, check sums and headers, and nothing of
// what a record holds.
//
// A file is canonical: records, schema, metadata and options determine its
// bytes, the sync marker included. (The compressor is deterministic too, but
// another release of it may find a shorter form of the same records.)
package avrofile

import "fmt"

// Codec is how the blocks of a file are compressed.
type Codec uint8

// The codecs.
const (
	Snappy Codec = iota // with a check sum for each block
	Null                // not at all, without check sums
)

// String is the codec's name in a file's header.
func (c Codec) String() string {
	if c == Null {
		return "null"
	}
	return "snappy"
}

const (
	// DefaultBlockBytes is the size from which on a block is written. At 64 KiB
	// snappy has found nearly all there is to find, and a reader's buffer stays
	// in the processor's second cache.
	DefaultBlockBytes = 64 << 10
	// MaxBlockBytes bounds a block, compressed or not: what a damaged or hostile
	// length can make a reader allocate.
	MaxBlockBytes = 64 << 20
	// MaxHeaderBytes bounds the metadata of a file, its schema included.
	MaxHeaderBytes = 16 << 20

	maxHeaderEntries = 10_000
)

const (
	magic     = "Obj\x01"
	syncBytes = 16
	crcBytes  = 4

	schemaKey = "avro.schema"
	codecKey  = "avro.codec"
)

// FormatError says that what is read is no Avro object container file, or a
// damaged one.
type FormatError struct {
	// Offset is where in the file, in bytes from its begin.
	Offset int64
	// Expected and Found say what should be there and what is.
	Expected, Found string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("avro file, byte %d: expected %s, found %s", e.Offset, e.Expected, e.Found)
}
