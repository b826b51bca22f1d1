package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/store"
)

const (
	// createBytes is up to where an object is created by one call, which costs a
	// bucket one request; larger ones are not held in memory.
	createBytes = 4 << 20
	// createTries bounds how often a create of unknown outcome is repeated. The
	// caller tries again later, under another name.
	createTries = 4
)

// upload is an object on its way into the store.
type upload struct {
	st    store.Store
	name  string
	small bytes.Buffer
	large store.Upload // if not nil, the bytes go there
}

// newUpload begins the creation of an object of about the given size.
func newUpload(ctx context.Context, st store.Store, name string, size int64) (*upload, error) {
	u := &upload{st: st, name: name}
	if size <= createBytes {
		return u, nil
	}
	var err error
	u.large, err = st.Upload(ctx, name)
	return u, err
}

func (u *upload) Write(p []byte) (int, error) {
	if u.large != nil {
		return u.large.Write(p)
	}
	return u.small.Write(p)
}

// abort drops what is not committed.
func (u *upload) abort() {
	if u.large != nil {
		u.large.Abort()
	}
}

// commit makes the object visible. A name that is taken by the same bytes is
// this writer's own, from an earlier try whose reply was lost.
func (u *upload) commit(ctx context.Context, sum avrofile.Summary) error {
	if u.large != nil {
		err := u.large.Commit(ctx)
		if doubtful(err) && u.stands(ctx, sum) == nil {
			return nil
		}
		return err
	}
	for try := 1; ; try++ {
		err := u.st.Create(ctx, u.name, u.small.Bytes())
		if !doubtful(err) {
			return err
		}
		absent := u.stands(ctx, sum)
		if absent == nil {
			return nil
		}
		if try == createTries || !errors.Is(absent, store.ErrNotFound) {
			return err
		}
	}
}

func doubtful(err error) bool {
	return errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrUnknown)
}

var errOthers = errors.New("the object has other bytes")

// stands returns nil if the object is there with the bytes that were written.
func (u *upload) stands(ctx context.Context, sum avrofile.Summary) error {
	o, err := u.st.Open(ctx, u.name)
	if err != nil {
		return err
	}
	defer o.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(o, 0, o.Size())); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum.SHA256 {
		return errOthers
	}
	return nil
}
