package avrofile

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
)

// Block says where a block stands in a file, and what its head tells of it.
type Block struct {
	offset int64 // of its data
	packed int32 // bytes of it in the file
	head   uint8 // bytes before the data
	shown  uint8 // bytes of begin that are known
	begin  [beginBytes]byte
	// Bytes is the size of its records, Records their number: as the head has it,
	// which no check sum covers.
	Bytes, Records int32
}

// Blocks are the blocks of a file, to be read in any order, by any number of
// goroutines.
type Blocks struct {
	in    io.ReaderAt
	codec Codec
	list  []Block
}

const (
	// beginBytes is how much of its records a block's head is to show.
	beginBytes = 3
	// headBytes is enough for a sync marker, a block's head behind it, the size that
	// snappy data begins with, and the first bytes that are packed.
	headBytes = syncBytes + 2*binary.MaxVarintLen64 + binary.MaxVarintLen32 + mostLiteralHead + beginBytes
)

// Blocks lists the blocks of the file that the reader has read the header of, and
// nothing else yet: in has its bytes, size is their number. Only the blocks' heads
// are read, a few bytes each. A file whose blocks do not follow each other from
// the header to its end gives a [*FormatError]. Blocks without records are left
// out.
func (r *Reader) Blocks(in io.ReaderAt, size int64) (*Blocks, error) {
	b := &Blocks{in: in, codec: r.codec}
	var buf [headBytes]byte
	for at := r.offset - syncBytes; ; { // of the marker before a block
		head := buf[:min(headBytes, max(0, size-at))]
		n, err := in.ReadAt(head, at)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("avro file, byte %d: read the head of a block: %w", at, err)
		}
		if head = head[:n]; len(head) < syncBytes || string(head[:syncBytes]) != string(r.sync[:]) {
			return nil, &FormatError{at, fmt.Sprintf("the sync marker %x", r.sync), fmt.Sprintf("%x", head[:min(syncBytes, len(head))])}
		}
		if at += syncBytes; at == size {
			return b, nil
		}
		block, err := r.blockOf(head[syncBytes:], at)
		if err != nil {
			return nil, err
		}
		if block.Records > 0 {
			b.list = append(b.list, block)
		}
		at = block.offset + int64(block.packed)
	}
}

// blockOf reads the head of the block at an offset.
func (r *Reader) blockOf(head []byte, at int64) (Block, error) {
	count, n := binary.Varint(head)
	if n <= 0 || count < 0 || count > MaxBlockBytes {
		return Block{}, &FormatError{at, fmt.Sprintf("a block of 0 to %d records", MaxBlockBytes), clip(string(head))}
	}
	size, m := binary.Varint(head[n:])
	if m <= 0 || size < 0 || size > MaxBlockBytes {
		return Block{}, &FormatError{at + int64(n), fmt.Sprintf("a block of 0 to %d bytes", MaxBlockBytes), clip(string(head[n:]))}
	}
	block := Block{offset: at + int64(n+m), packed: int32(size), head: uint8(n + m), Bytes: int32(size), Records: int32(count)}
	data := head[n+m : min(int64(len(head)), int64(n+m)+size)]
	if r.codec == Snappy {
		unpacked, k := binary.Uvarint(head[n+m:])
		if k <= 0 || unpacked > MaxBlockBytes {
			return Block{}, &FormatError{block.offset, fmt.Sprintf("snappy data of at most %d bytes", MaxBlockBytes), clip(string(head[n+m:]))}
		}
		block.Bytes = int32(unpacked)
		data = literal(data[min(k, len(data)):])
	}
	block.shown = uint8(copy(block.begin[:], data))
	if block.Records > block.Bytes || block.Records == 0 && block.Bytes > 0 {
		return Block{}, &FormatError{at, fmt.Sprintf("records for the block's %d bytes, at most one for each", block.Bytes), strconv.FormatInt(count, 10)}
	}
	return block, nil
}

// mostLiteralHead is the most that stands before the bytes of a snappy literal.
const mostLiteralHead = 5

// literal returns as much as is there of the literal that snappy data begins with,
// behind its size: the first bytes have none before them that they could repeat.
func literal(data []byte) []byte {
	if len(data) == 0 || data[0]&3 != 0 {
		return nil
	}
	size, head := int64(data[0]>>2), 1
	if more := int(size) - 59; more > 0 { // bytes of a longer size follow
		if head += more; len(data) < head {
			return nil
		}
		size = 0
		for i := head - 1; i > 0; i-- {
			size = size<<8 | int64(data[i])
		}
	}
	return data[head:min(int64(len(data)), int64(head)+size+1)]
}

// Begin is what the block's records begin with, as far as its head shows it, at
// most 3 bytes. No check sum covers it.
func (b *Block) Begin() []byte { return b.begin[:b.shown] }

// Span is where blocks from one number to before another stand in the file, the
// sync marker behind the last included.
func (b *Blocks) Span(i, before int) (from, to int64) {
	first, last := b.list[i], b.list[before-1]
	return first.offset - int64(first.head), last.offset + int64(last.packed) + syncBytes
}

// Checked tells whether each block has a check sum.
func (b *Blocks) Checked() bool { return b.codec == Snappy }

// Bytes is the size of all records.
func (b *Blocks) Bytes() (n int64) {
	for i := range b.list {
		n += int64(b.list[i].Bytes)
	}
	return n
}

// Len is the number of blocks.
func (b *Blocks) Len() int { return len(b.list) }

// At is the block of a number.
func (b *Blocks) At(i int) Block { return b.list[i] }

// Read returns the records of the block of a number. It uses the memory of buf and
// scratch if that is enough; scratch is what it was, or larger, to be used again.
func (b *Blocks) Read(i int, buf []byte, scratch *[]byte) ([]byte, error) {
	block := b.list[i]
	n := int(block.packed)
	if cap(*scratch) < n {
		*scratch = make([]byte, n)
	}
	packed := (*scratch)[:n]
	if _, err := b.in.ReadAt(packed, block.offset); err != nil {
		if err == io.EOF {
			return nil, &FormatError{block.offset, fmt.Sprintf("a block of %d bytes", n), "the end of the file"}
		}
		return nil, fmt.Errorf("avro file, byte %d: read a block: %w", block.offset, err)
	}
	if b.codec == Null {
		return append(buf[:0], packed...), nil
	}
	return unpack(buf, packed, block.offset)
}
