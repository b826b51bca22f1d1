package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// summing hashes a segment from its begin to its end, whoever reads what of it.
type summing struct {
	segment *seekable
	hash    hash.Hash
	at      int64 // hashed up to here
	buf     []byte
}

func newSumming(s *seekable) *summing { return &summing{segment: s, hash: sha256.New()} }

// add hashes the bytes that come next.
func (s *summing) add(p []byte) {
	s.hash.Write(p)
	s.at += int64(len(p))
}

// upTo reads and hashes what comes next, up to an offset.
func (s *summing) upTo(ctx context.Context, offset int64) error {
	if s.buf == nil {
		s.buf = make([]byte, sumBytes)
	}
	for s.at < offset {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := s.buf[:min(sumBytes, offset-s.at)]
		if _, err := s.segment.object.ReadAt(p, s.at); err != nil && err != io.EOF {
			return failed("read", s.segment.form, s.segment.name, err)
		}
		s.add(p)
	}
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
