package avrofile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Packer makes blocks of files, for [Writer.AppendPacked]: what takes time about
// them can be done by several goroutines, each with a Packer of its own. The zero
// value packs with [Snappy].
type Packer struct {
	// Codec compresses the blocks; it is to be the file's.
	Codec Codec

	packed []byte
}

// Pack appends a block of records, one behind the other, as it stands in a file
// before the sync marker.
func (p *Packer) Pack(dst, block []byte, records int) []byte {
	dst = binary.AppendVarint(dst, int64(records))
	if p.Codec == Null {
		dst = binary.AppendVarint(dst, int64(len(block)))
		return append(dst, block...)
	}
	p.packed = slices.Grow(p.packed[:0], s2.MaxEncodedLen(len(block)))
	packed := s2.EncodeSnappy(p.packed[:cap(p.packed)], block)
	dst = binary.AppendVarint(dst, int64(len(packed)+crcBytes))
	dst = append(dst, packed...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(block))
}

// AppendPacked adds a block that a [Packer] has made of records. The block itself
// is looked at in the first call alone: the sync marker comes from it.
func (w *Writer) AppendPacked(packed, block []byte, records int) error {
	if err := w.flush(); err != nil { // what was appended one by one
		return err
	}
	if w.header != nil {
		w.block = append(w.block[:0], block...)
		w.begin()
		w.block = w.block[:0]
	}
	w.write(packed)
	w.write(w.sync[:])
	w.summary.Records += int64(records)
	return w.err
}

// AppendBlocks adds blocks as they stand in a file, each with the sync marker
// behind it, which is to be the one that [Options.Sync] has given.
func (w *Writer) AppendBlocks(blocks []byte, records int64) error {
	if err := w.flush(); err != nil { // what was appended one by one
		return err
	}
	if !w.given || len(blocks) < syncBytes || string(blocks[len(blocks)-syncBytes:]) != string(w.sync[:]) {
		w.err = errors.New("avro file: blocks without the sync marker that the file was given")
		return w.err
	}
	if w.header != nil {
		w.begin()
	}
	w.write(blocks)
	w.summary.Records += records
	return w.err
}
