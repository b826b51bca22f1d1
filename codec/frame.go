package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/connector"
)

// frameSize is the length of what stands before a framed record: a byte 0 and
// the id of the schema.
const frameSize = 5

// readFrame returns the id that a framed record begins with.
func readFrame(src []byte) (id uint32, err error) {
	if len(src) < frameSize {
		return 0, &connector.DecodeError{At: 0, Cause: fmt.Errorf("no schema's id in front: expected a byte 0 and 4 bytes, found %d bytes in all", len(src))}
	}
	if src[0] != 0 {
		return 0, &connector.DecodeError{At: 0, Cause: fmt.Errorf("no schema's id in front: expected a byte 0, found 0x%02x; a codec without codec.Registered reads plain records", src[0])}
	}
	return binary.BigEndian.Uint32(src[1:]), nil
}

// appendFrame appends what stands before a framed record.
func appendFrame(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0), id)
}

// blameless is an error that is no record's fault.
type blameless struct {
	codec string
	cause error
}

// Error implements error.
func (e *blameless) Error() string { return "codec " + e.codec + ": " + e.cause.Error() }

// Unwrap returns the cause, and what it comes to.
func (e *blameless) Unwrap() []error { return []error{e.cause, connector.ErrUnavailable} }

// unfit is the error of a codec that can't be used, for now or at all.
func unfit(codec string, cause error) error { return &blameless{codec, cause} }

// fetchFault says whose fault it is that the schema of an id can't be had.
func fetchFault(codec string, id uint32, err error) error {
	if errors.Is(err, ErrUnknownID) {
		return badSchema(id, err)
	}
	return unfit(codec, fmt.Errorf("schema %d: %w", id, err))
}

// badSchema is the fault of a record that says that it was written with a schema
// by which it can't be read.
func badSchema(id uint32, cause error) error {
	return &connector.DecodeError{At: 1, Cause: fmt.Errorf("schema %d: %w", id, cause)}
}
