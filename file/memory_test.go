package file_test

import (
	"errors"
	"io"
	"io/fs"
	"testing/fstest"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// memory is a file system of files that are only read, for tests that make many.
type memory struct {
	env.FS // nil: nothing else is called
	files  fstest.MapFS
}

// inMemory is an opening in which there is one file.
func inMemory(name string, content []byte) connector.Opening {
	e := env.Real()
	e.Files = memory{files: fstest.MapFS{name: {Data: content}}}
	return connector.Opening{Env: e}
}

func (m memory) Stat(name string) (fs.FileInfo, error) { return m.files.Stat(name) }

func (m memory) Open(name string) (env.File, error) {
	f, err := m.files.Open(name)
	if err != nil {
		return nil, err
	}
	return memoryFile{f, f.(io.ReaderAt)}, nil
}

type memoryFile struct {
	fs.File
	io.ReaderAt
}

func (memoryFile) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (memoryFile) Sync() error               { return errors.ErrUnsupported }

// unsynced is the system's files without the wait for the disk, for tests of
// crashes: what isn't synced is lost in a layer above.
type unsynced struct{ env.FS }

func (f unsynced) SyncDir(name string) error {
	_, err := f.Stat(name)
	return err
}

func (f unsynced) Create(name string) (env.File, error) {
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{file}, nil
}

type unsyncedFile struct{ env.File }

func (unsyncedFile) Sync() error { return nil }
