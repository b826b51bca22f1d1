package avrofile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/s2"
)

// readBuffer is large enough that a usual block is read by one call.
const readBuffer = 128 << 10

// Reader reads one file from begin to end, block by block. It is not safe for
// concurrent use.
type Reader struct {
	in     *bufio.Reader
	offset int64 // in the file, of the next byte
	meta   map[string]string
	codec  Codec
	sync   [syncBytes]byte
	packed []byte // the last piece of the file, as it stands there
}

// NewReader reads the header of a file. A file that is none, or that is cut
// short or damaged, gives a [*FormatError], here and from Next.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, readBuffer), meta: map[string]string{}}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	return r, nil
}

// Schema is the schema of the records, as JSON.
func (r *Reader) Schema() string { return r.meta[schemaKey] }

// Sync is the sync marker.
func (r *Reader) Sync() string { return string(r.sync[:]) }

// Meta returns the value of a metadata key, or "".
func (r *Reader) Meta(key string) string { return r.meta[key] }

// Offset is where the next block begins, in bytes from the file's begin.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the records of the next block, one behind the other, and their
// number, which is never larger than the number of bytes. It uses buf's memory
// if that is enough. At the end of the file the error is [io.EOF].
func (r *Reader) Next(buf []byte) (block []byte, records int, err error) {
	if _, err := r.in.Peek(1); err == io.EOF {
		return nil, 0, io.EOF
	}
	at := r.offset
	count, err := r.long("a block's number of records")
	if err != nil {
		return nil, 0, err
	}
	if count < 0 || count > MaxBlockBytes {
		return nil, 0, &FormatError{at, fmt.Sprintf("a block of 0 to %d records", MaxBlockBytes), strconv.FormatInt(count, 10)}
	}
	if block, err = r.readBlock(buf); err != nil {
		return nil, 0, err
	}
	if count > int64(len(block)) {
		return nil, 0, &FormatError{at, fmt.Sprintf("at most one record for each of the block's %d bytes", len(block)), fmt.Sprintf("%d records", count)}
	}
	if err := r.checkSync(); err != nil {
		return nil, 0, err
	}
	return block, int(count), nil
}

func (r *Reader) readBlock(buf []byte) ([]byte, error) {
	at := r.offset
	size, err := r.long("a block's size")
	if err != nil {
		return nil, err
	}
	if size < 0 || size > MaxBlockBytes {
		return nil, &FormatError{at, fmt.Sprintf("a block of 0 to %d bytes", MaxBlockBytes), strconv.FormatInt(size, 10)}
	}
	at = r.offset
	packed, err := r.take(int(size), "a block")
	if err != nil {
		return nil, err
	}
	if r.codec == Null {
		return append(buf[:0], packed...), nil
	}
	return unpack(buf, packed, at)
}

// snappyRatio bounds what snappy can make of a byte: its longest element is 64
// bytes written in 3.
const snappyRatio = 22

// unpack decompresses a block that stands at the given offset, and checks it.
func unpack(buf, packed []byte, at int64) ([]byte, error) {
	if len(packed) < crcBytes {
		return nil, &FormatError{at, "a block with a check sum", fmt.Sprintf("%d bytes", len(packed))}
	}
	packed, crc := packed[:len(packed)-crcBytes], binary.BigEndian.Uint32(packed[len(packed)-crcBytes:])
	size, err := s2.DecodedLen(packed)
	if err != nil || size > min(MaxBlockBytes, snappyRatio*len(packed)) {
		return nil, &FormatError{at, fmt.Sprintf("snappy data of at most %d bytes", MaxBlockBytes), fmt.Sprintf("%d bytes from %d", size, len(packed))}
	}
	block, err := s2.Decode(slices.Grow(buf[:0], size)[:size], packed)
	if err != nil {
		return nil, &FormatError{at, "snappy data", "none: " + err.Error()}
	}
	if found := crc32.ChecksumIEEE(block); found != crc {
		return nil, &FormatError{at, fmt.Sprintf("a block with the check sum %08x", crc), fmt.Sprintf("%08x", found)}
	}
	return block, nil
}
