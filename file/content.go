package file

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/sluicestream/sluice/env"
)

// content is an open file as the sequence of bytes that offsets count.
type content interface {
	// Read reads on; io.EOF means that there is no more for now.
	io.Reader
	// skip moves on by n bytes; io.EOF means that there are fewer.
	skip(n int64) error
	// size is how many bytes there are, as far as it is known.
	size() (int64, error)
	io.Closer
}

// plain is the content of a file that isn't packed.
type plain struct {
	file env.File
	at   int64
}

func (p *plain) Read(b []byte) (int, error) {
	n, err := p.file.ReadAt(b, p.at)
	p.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (p *plain) skip(n int64) error {
	size, err := p.size()
	if err != nil {
		return err
	}
	if n > size-p.at {
		return io.EOF
	}
	p.at += n
	return nil
}

func (p *plain) size() (int64, error) {
	info, err := p.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// newlineStep is how much is looked through at a time for the last newline.
const newlineStep = 64 << 10

// lastNewline finds the offset behind the last newline between from and to; from
// if there is none.
func (p *plain) lastNewline(from, to int64) (int64, error) {
	var buf [newlineStep]byte
	for to > from {
		start := max(from, to-newlineStep)
		n, err := p.file.ReadAt(buf[:to-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return from, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		to = start
	}
	return from, nil
}

func (p *plain) Close() error { return p.file.Close() }

// gzipBuffer is how many packed bytes are read at a time.
const gzipBuffer = 64 << 10

// packed is the content of a gzip file.
type packed struct {
	file     env.File
	unpacker *gzip.Reader
	at       int64
	expected int64 // what the trailer says, which knows only the last 32 bits
}

func newPacked(f env.File) (content, error) {
	unpacker, err := gzip.NewReader(bufio.NewReaderSize(f, gzipBuffer))
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // an empty file is no gzip file
		}
		return nil, fmt.Errorf("not a gzip file: %w", err)
	}
	return &packed{file: f, unpacker: unpacker, expected: unpackedSize(f)}, nil
}

// unpackedSize reads the size from a gzip file's last bytes; 0 if it can't. It
// is for the lag only.
func unpackedSize(f env.File) int64 {
	info, err := f.Stat()
	if err != nil || info.Size() < 4 {
		return 0
	}
	var last [4]byte
	if _, err := f.ReadAt(last[:], info.Size()-4); err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(last[:]))
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.unpacker.Read(b)
	p.at += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("gzip data damaged at unpacked byte %d: %w", p.at, err)
	}
	return n, err
}

func (p *packed) skip(n int64) error {
	_, err := io.CopyN(io.Discard, p, n)
	return err
}

func (p *packed) size() (int64, error) { return max(p.at, p.expected), nil }

func (p *packed) Close() error {
	err := p.unpacker.Close()
	if ferr := p.file.Close(); err == nil {
		err = ferr
	}
	return err
}
