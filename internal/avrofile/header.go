package avrofile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// readHeader reads what stands before the first block.
func (r *Reader) readHeader() error {
	found, err := r.take(len(magic), "the begin of an Avro object container file")
	if err != nil {
		return err
	}
	if string(found) != magic {
		return &FormatError{0, fmt.Sprintf("%q, the begin of an Avro object container file", magic), strconv.Quote(string(found))}
	}
	if err := r.readMeta(); err != nil {
		return err
	}
	switch name := r.meta[codecKey]; name {
	case "", Null.String():
		r.codec = Null
	case Snappy.String():
		r.codec = Snappy
	default:
		return &FormatError{r.offset, "the codec snappy or null", clip(name)}
	}
	if _, ok := r.meta[schemaKey]; !ok {
		return &FormatError{r.offset, "metadata with " + schemaKey, "none"}
	}
	sync, err := r.take(syncBytes, "the sync marker")
	if err != nil {
		return err
	}
	copy(r.sync[:], sync)
	return nil
}

// readMeta reads the map of metadata: blocks of entries up to an empty one.
func (r *Reader) readMeta() error {
	for {
		at := r.offset
		n, err := r.long("a number of metadata entries")
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if n < 0 { // then the block's size in bytes follows
			if _, err := r.long("the size of the metadata"); err != nil {
				return err
			}
			n = -max(n, -math.MaxInt64)
		}
		if n > int64(maxHeaderEntries-len(r.meta)) {
			return &FormatError{at, fmt.Sprintf("at most %d metadata entries", maxHeaderEntries), strconv.FormatInt(n, 10)}
		}
		for range n {
			key, err := r.text("a metadata key")
			if err != nil {
				return err
			}
			if r.meta[key], err = r.text("a metadata value"); err != nil {
				return err
			}
		}
	}
}

func (r *Reader) text(what string) (string, error) {
	at := r.offset
	n, err := r.long("the length of " + what)
	if err != nil {
		return "", err
	}
	if n < 0 || n > MaxHeaderBytes-r.offset {
		return "", &FormatError{at, fmt.Sprintf("a header of at most %d bytes", MaxHeaderBytes), fmt.Sprintf("%s of %d bytes", what, n)}
	}
	data, err := r.take(int(n), what)
	return string(data), err
}

// long reads a variable-length number.
func (r *Reader) long(what string) (int64, error) {
	at := r.offset
	var u uint64
	for shift := 0; ; shift += 7 {
		b, err := r.in.ReadByte()
		if err != nil {
			return 0, r.ended(at, what, r.offset-at, err)
		}
		r.offset++
		if shift == 63 && b > 1 {
			return 0, &FormatError{at, what, "a number that is too long"}
		}
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
}

// takeStep bounds what is allocated ahead of the bytes that are really there.
const takeStep = 1 << 20

// take reads n bytes into the reader's buffer.
func (r *Reader) take(n int, what string) ([]byte, error) {
	at := r.offset
	r.packed = r.packed[:0]
	for len(r.packed) < n {
		have := len(r.packed)
		step := min(n-have, max(takeStep, cap(r.packed)-have))
		r.packed = append(r.packed, make([]byte, step)...)
		got, err := io.ReadFull(r.in, r.packed[have:])
		r.offset += int64(got)
		if err != nil {
			return nil, r.ended(at, fmt.Sprintf("%s of %d bytes", what, n), r.offset-at, err)
		}
	}
	return r.packed, nil
}

// ended describes a read that failed: mostly the end of a file cut short.
func (r *Reader) ended(at int64, what string, got int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FormatError{at, what, fmt.Sprintf("the end of the file after %d bytes of it", got)}
	}
	return fmt.Errorf("avro file, byte %d: read %s: %w", r.offset, what, err)
}

// clip quotes what a file holds, shortened.
func clip(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}

func (r *Reader) checkSync() error {
	at := r.offset
	found, err := r.take(syncBytes, "a sync marker")
	if err != nil {
		return err
	}
	if !bytes.Equal(found, r.sync[:]) {
		return &FormatError{at, fmt.Sprintf("the sync marker %x", r.sync), fmt.Sprintf("%x", found)}
	}
	return nil
}
