package env

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FS is a file system, in the few calls that Sluice makes.
// Names are the operating system's. Errors are those of package os, so that
// errors.Is with [fs.ErrNotExist] and [fs.ErrExist] works.
type FS interface {
	// Open opens a file for reading. It doesn't wait for somebody who writes to a
	// named pipe.
	Open(name string) (File, error)
	// Create makes a new file for writing and fails if there is one.
	Create(name string) (File, error)
	// Link gives the file old a second name; it fails if new exists.
	Link(old, new string) error
	// Rename moves a file over whatever has the new name.
	Rename(old, new string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// MkdirAll makes a folder and those above it.
	MkdirAll(name string) error
	// ReadDir lists a folder in the order of the names.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Stat describes the file.
	Stat() (fs.FileInfo, error)
	// Sync makes what was written durable.
	Sync() error
}

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err // not f: a nil *os.File would be a File that isn't nil
	}
	return f, nil
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Link(old, new string) error                 { return os.Link(old, new) }
func (osFS) Rename(old, new string) error               { return os.Rename(old, new) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) MkdirAll(name string) error                 { return os.MkdirAll(name, 0o755) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
