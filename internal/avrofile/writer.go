package avrofile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"maps"
	"runtime"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Options describe a file that is to be written.
type Options struct {
	// Schema is the schema of the records, as JSON.
	Schema string
	// Meta is further metadata. Keys that begin with "avro." are Avro's own.
	Meta map[string]string
	// BlockBytes is the size, in bytes before compression, from which on a block
	// is written. Defaults to [DefaultBlockBytes]; at most [MaxBlockBytes].
	BlockBytes int
	// Codec compresses the blocks. Defaults to [Snappy].
	Codec Codec
	// Sync is the sync marker, of 16 bytes; a file that takes over blocks of another
	// has that one's. Defaults to one that comes from the content.
	Sync string
	// Unsummed leaves out the hash of the file, which takes time.
	Unsummed bool
}

// Summary is what was written.
type Summary struct {
	// Records is their number, Bytes the file's size.
	Records, Bytes int64
	// SHA256 is the hash of the file, in hexadecimal; "" if it is [Options.Unsummed].
	SHA256 string
}

// Writer writes one file. It is not safe for concurrent use.
type Writer struct {
	out        io.Writer
	header     []byte // what comes before the sync marker, until it is written
	codec      Codec
	blockBytes int

	block   []byte // records of the block in hand
	records int64  // their number
	frame   []byte // a block as it goes out, reused
	sync    [syncBytes]byte
	given   bool // the marker was, and doesn't come from the content

	summary Summary
	hash    hash.Hash // nil if nobody wants it
	err     error     // the first one; nothing works after it
}

// New returns a writer of a file to out. Nothing is written before the first
// block is full: the sync marker comes from it.
func New(out io.Writer, o Options) *Writer {
	if o.BlockBytes <= 0 {
		o.BlockBytes = DefaultBlockBytes
	}
	w := &Writer{out: out, header: appendHeader(nil, o), codec: o.Codec, blockBytes: min(o.BlockBytes, MaxBlockBytes)}
	if !o.Unsummed {
		w.hash = sha256.New()
	}
	if w.given = o.Sync != ""; w.given {
		if len(o.Sync) != syncBytes {
			w.err = fmt.Errorf("avro file: a sync marker of %d bytes; expected %d", len(o.Sync), syncBytes)
		}
		copy(w.sync[:], o.Sync)
	}
	return w
}

func appendHeader(dst []byte, o Options) []byte {
	meta := maps.Clone(o.Meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[schemaKey], meta[codecKey] = o.Schema, o.Codec.String()
	dst = append(dst, magic...)
	dst = binary.AppendVarint(dst, int64(len(meta)))
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		dst = appendString(dst, key)
		dst = appendString(dst, meta[key])
	}
	return append(dst, 0)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

// Written is what has been written so far, without a hash.
func (w *Writer) Written() Summary { return w.summary }

// Append adds a record, which it copies.
func (w *Writer) Append(record []byte) error {
	if len(w.block)+len(record) > MaxBlockBytes {
		if err := w.makeRoom(record); err != nil {
			return err
		}
	}
	w.block = append(w.block, record...)
	w.records++
	if len(w.block) < w.blockBytes {
		return w.err
	}
	return w.flush()
}

func (w *Writer) makeRoom(record []byte) error {
	if len(record) > MaxBlockBytes && w.err == nil {
		w.err = fmt.Errorf("avro file: record %d has %d bytes, the limit is %d: store it in smaller parts",
			w.summary.Records+w.records, len(record), MaxBlockBytes)
	}
	return w.flush()
}

// Close writes what is left and returns what the file has become. It does not
// close the writer below.
func (w *Writer) Close() (Summary, error) {
	if w.records > 0 && w.err == nil {
		w.flush()
	}
	if w.header != nil && w.err == nil { // a file without records
		w.begin()
	}
	if w.err != nil {
		return Summary{}, w.err
	}
	if w.hash != nil {
		w.summary.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	}
	w.err = errors.New("avro file: the writer is closed")
	return w.summary, nil
}

// begin writes the header. A sync marker that comes from the content is as
// unlikely to occur inside a block as a random one.
func (w *Writer) begin() {
	if !w.given {
		sum := sha256.New()
		sum.Write(w.header)
		sum.Write(w.block)
		copy(w.sync[:], sum.Sum(nil))
	}
	w.write(append(w.header, w.sync[:]...))
	w.header = nil
}

func (w *Writer) flush() error {
	if w.err != nil || w.records == 0 {
		return w.err
	}
	if w.header != nil {
		w.begin()
	}
	w.frame = w.appendBlock(w.frame[:0])
	w.write(w.frame)
	w.summary.Records += w.records
	w.block, w.records = w.block[:0], 0
	runtime.Gosched() // files are written in the background: who waits for a processor comes first
	return w.err
}

// appendBlock appends the block in hand as it stands in the file.
func (w *Writer) appendBlock(dst []byte) []byte {
	dst = binary.AppendVarint(dst, w.records)
	if w.codec == Null {
		dst = binary.AppendVarint(dst, int64(len(w.block)))
		dst = append(dst, w.block...)
		return append(dst, w.sync[:]...)
	}
	// The length comes first and is known last: the data is written behind room
	// for the longest length, and the few bytes before it move up to it.
	head := len(dst)
	data := head + binary.MaxVarintLen64
	dst = slices.Grow(dst, binary.MaxVarintLen64+s2.MaxEncodedLen(len(w.block))+crcBytes+syncBytes)
	packed := s2.EncodeSnappy(dst[data:cap(dst)], w.block)
	dst = dst[:data+len(packed)]
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(w.block))
	dst = append(dst, w.sync[:]...)

	var length [binary.MaxVarintLen64]byte
	n := binary.PutVarint(length[:], int64(len(packed)+crcBytes))
	shift := binary.MaxVarintLen64 - n
	copy(dst[shift:], dst[:head])
	copy(dst[shift+head:], length[:n])
	return dst[shift:]
}

func (w *Writer) write(p []byte) {
	if w.err != nil {
		return
	}
	if w.hash != nil {
		w.hash.Write(p)
	}
	w.summary.Bytes += int64(len(p))
	if _, err := w.out.Write(p); err != nil {
		w.err = err
	}
}
