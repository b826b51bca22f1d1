package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"slices"
)

// summing hashes a segment from its begin to its end.
type summing struct {
	segment *seekable
	hash    hash.Hash
	at      int64 // hashed up to here
	buf     []byte
}

func newSumming(s *seekable) *summing { return &summing{segment: s, hash: sha256.New()} }

// upTo reads and hashes what comes next, up to an offset.
func (s *summing) upTo(ctx context.Context, offset int64) error {
	if s.buf == nil {
		s.buf = make([]byte, sumBytes)
	}
	for s.at < offset {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.read(s.buf[:min(sumBytes, offset-s.at)]); err != nil {
			return err
		}
	}
	return nil
}

// through reads and hashes what comes next up to an offset, and returns what of it
// stands behind another, in buf's memory if that is enough.
func (s *summing) through(ctx context.Context, from, to int64, buf []byte) ([]byte, error) {
	if err := s.upTo(ctx, from); err != nil {
		return nil, err
	}
	buf = slices.Grow(buf[:0], int(to-from))[:to-from]
	if err := s.read(buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// read reads and hashes the bytes that come next.
func (s *summing) read(p []byte) error {
	if _, err := s.segment.object.ReadAt(p, s.at); err != nil && err != io.EOF {
		return failed("read", s.segment.form, s.segment.name, err)
	}
	s.hash.Write(p)
	s.at += int64(len(p))
	return nil
}

// end hashes the rest, and holds the hash against the manifest's.
func (s *summing) end(ctx context.Context) error {
	if err := s.upTo(ctx, s.segment.told.Bytes); err != nil {
		return err
	}
	if found := hex.EncodeToString(s.hash.Sum(nil)); found != s.segment.told.SHA256 {
		return s.segment.damaged("sha256 "+s.segment.told.SHA256, found)
	}
	return nil
}
