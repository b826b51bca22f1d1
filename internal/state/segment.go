package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// segment is one that is open for reading, from begin to end.
type segment struct {
	form   Form
	job    string
	name   string
	told   epoch.Segment // by the manifest
	object store.Object
	hash   hash.Hash
	body   io.Reader // the object, hashed as it is read
	file   *avrofile.Reader
	rows   int64 // read so far
}

// openSegment opens a segment and compares what can be seen at once with what
// the manifest and the form say.
func openSegment(ctx context.Context, st store.Store, job string, f Form, told epoch.Segment) (*segment, error) {
	s := &segment{form: f, job: job, name: objectName(job, told.Path), told: told, hash: sha256.New()}
	var err error
	if s.object, err = st.Open(ctx, s.name); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, &missingError{s.damaged(fmt.Sprintf("a segment of %d bytes", told.Bytes), "no such object"), err}
		}
		if errors.Is(err, store.ErrNoFile) {
			return nil, s.damaged(fmt.Sprintf("a segment of %d bytes", told.Bytes), "something that is no regular file")
		}
		return nil, failed("read", f, s.name, err)
	}
	s.body = io.TeeReader(io.NewSectionReader(s.object, 0, s.object.Size()), s.hash)
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *segment) begin() (err error) {
	if size := s.object.Size(); size != s.told.Bytes {
		return s.damaged(fmt.Sprintf("%d bytes", s.told.Bytes), strconv.FormatInt(size, 10))
	}
	if s.file, err = avrofile.NewReader(s.body); err != nil {
		return s.unreadable(err)
	}
	if err := s.checkHeader(); err != nil {
		return s.unreadable(err)
	}
	return nil
}

func (s *segment) checkHeader() error {
	if found := s.file.Meta(formatKey); found != strconv.Itoa(segmentFormat) {
		return fmt.Errorf("written in format %q of segments, this build reads format %d: use a newer build", found, segmentFormat)
	}
	if found := s.file.Meta(stateKey); found != s.form.Name {
		return fmt.Errorf("expected a segment of the state %s, found one of %q", s.form.Name, found)
	}
	expected, found := s.form.Schema().String(), s.file.Schema()
	if found == expected {
		return nil
	}
	parsed, err := schema.Parse([]byte(found))
	if err != nil {
		return fmt.Errorf("its schema: %w", err)
	}
	if !parsed.Equal(s.form.Schema()) {
		return fmt.Errorf("expected records of the schema that the manifest has, %s; found %s", expected, found)
	}
	return nil
}

func (s *segment) close() { s.object.Close() }

// next returns the records of the next block and their number; buf is used for
// them if it is large enough. After the last block, once the hash has been
// found right, the error is [io.EOF].
func (s *segment) next(ctx context.Context, buf []byte) ([]byte, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, failed("read", s.form, s.name, err)
	}
	block, n, err := s.file.Next(buf)
	if err == io.EOF {
		return nil, 0, s.end()
	}
	if err != nil {
		return nil, 0, s.unreadable(err)
	}
	s.rows += int64(n)
	return block, n, nil
}

func (s *segment) end() error {
	if found := hex.EncodeToString(s.hash.Sum(nil)); found != s.told.SHA256 {
		return s.damaged("sha256 "+s.told.SHA256, found)
	}
	if s.rows != s.told.Rows {
		return s.damaged(fmt.Sprintf("%d rows", s.told.Rows), strconv.FormatInt(s.rows, 10))
	}
	return io.EOF
}

// unreadable says why a segment can't be read: if its hash is another than the
// manifest's, because it is damaged.
func (s *segment) unreadable(cause error) error {
	if _, err := io.Copy(io.Discard, s.body); err != nil {
		return failed("read", s.form, s.name, err)
	}
	if found := hex.EncodeToString(s.hash.Sum(nil)); found != s.told.SHA256 {
		return s.damaged("sha256 "+s.told.SHA256, fmt.Sprintf("%s (%v)", found, cause))
	}
	return failed("read", s.form, s.name, cause)
}

func (s *segment) damaged(expected, found string) *epoch.DamagedError {
	return &epoch.DamagedError{At: epoch.At{Job: s.job}, Object: s.name, Expected: expected, Found: found}
}

// missingError is damage that a reader has to look at twice: clean-up may have
// removed the segment together with the manifest that names it.
type missingError struct {
	*epoch.DamagedError
	cause error
}

// Unwrap makes the error match *[epoch.DamagedError] and [store.ErrNotFound].
func (e *missingError) Unwrap() []error { return []error{e.DamagedError, e.cause} }
