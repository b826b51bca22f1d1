package file

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sluicestream/sluice/env"
)

// asidePrefix marks files that are being written: tmp-<place>-<random>.
const asidePrefix = "tmp-"

// trimAside takes the prefix off, so that the place comes first.
func trimAside(name string) string { return strings.TrimPrefix(name, asidePrefix) }

// createAside makes a file to write a delivery to.
func (t *target) createAside(at place) (string, env.File, error) {
	id, err := t.env.ID()
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(t.hidden, asidePrefix+at.String()+"-"+id)
	f, err := t.env.Files.Create(path)
	return path, f, err
}

// closeDurable syncs and closes a file that was written, unless err says that
// it was not.
func closeDurable(f env.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	return together(err, f.Close())
}

// placeBytes makes a small file durable under a name.
func (t *target) placeBytes(body []byte, at place, name string) (same bool, err error) {
	aside, f, err := t.createAside(at)
	if err != nil {
		return false, err
	}
	defer t.env.Files.Remove(aside)
	_, err = f.Write(body)
	if err := closeDurable(f, err); err != nil {
		return false, err
	}
	return t.place(aside, name)
}

// place gives a written file its name, durably. If the name is taken it tells
// whether by the same bytes: then the file was placed before, by us or by
// another deliverer of the same position. The reply to a link can be lost, so
// that any failure may yet be a success.
func (t *target) place(aside, name string) (same bool, err error) {
	if err := t.env.Files.Link(aside, name); err != nil {
		same, cmpErr := sameContent(t.env.Files, aside, name)
		switch {
		case cmpErr != nil || !same && !errors.Is(err, fs.ErrExist):
			return false, err
		case !same:
			return false, nil
		}
	}
	return true, t.env.Files.SyncDir(filepath.Dir(name))
}

// sameContent compares two files.
func sameContent(files env.FS, a, b string) (bool, error) {
	left, err := files.Open(a)
	if err != nil {
		return false, err
	}
	defer left.Close()
	right, err := files.Open(b)
	if err != nil {
		return false, err
	}
	defer right.Close()
	l, r := make([]byte, writeBuffer), make([]byte, writeBuffer)
	for {
		n, lerr := io.ReadFull(left, l)
		m, rerr := io.ReadFull(right, r)
		if !bytes.Equal(l[:n], r[:m]) {
			return false, nil
		}
		if n < len(l) || m < len(r) {
			return true, together(notEnd(lerr), notEnd(rerr))
		}
	}
}

// notEnd is err, unless it says that a file ended.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// makeFolder makes a folder and those above it that are missing, durably.
func makeFolder(files env.FS, path string) error {
	var parents []string // of folders that are missing, the innermost first
	for p := path; ; p = filepath.Dir(p) {
		_, err := files.Stat(p)
		if err == nil || filepath.Dir(p) == p {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, filepath.Dir(p))
	}
	if err := files.MkdirAll(path); err != nil {
		return err
	}
	for _, p := range append(parents, filepath.Dir(path)) {
		if err := files.SyncDir(p); err != nil {
			return err
		}
	}
	return nil
}
