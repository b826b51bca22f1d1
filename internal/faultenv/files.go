package faultenv

import (
	"io/fs"

	"github.com/sluicestream/sluice/env"
)

// files is the file system of a world.
type files struct{ w *world }

// Open implements [env.FS].
func (f files) Open(name string) (env.File, error) {
	return f.w.open("open", name, f.w.env.Files.Open)
}

// Create implements [env.FS].
func (f files) Create(name string) (env.File, error) {
	return f.w.open("create", name, f.w.env.Files.Create)
}

// open carries out a call that opens a file.
func (w *world) open(operation, name string, open func(string) (env.File, error)) (env.File, error) {
	var opened env.File
	err := w.do(operation, name, func() (err error) {
		opened, err = open(name)
		return err
	})
	if err == nil {
		return file{opened, name, w}, nil
	}
	if opened != nil { // it is open, but the reply is lost
		_ = opened.Close()
	}
	return nil, err
}

// Link implements [env.FS].
func (f files) Link(old, new string) error {
	return f.w.do("link", new, func() error {
		err := f.w.env.Files.Link(old, new)
		if err == nil {
			f.w.named(old, new)
		}
		return err
	})
}

// Rename implements [env.FS].
func (f files) Rename(old, new string) error {
	return f.w.do("rename", new, func() error { return f.w.env.Files.Rename(old, new) })
}

// Remove implements [env.FS].
func (f files) Remove(name string) error {
	return f.w.do("remove", name, func() error {
		err := f.w.env.Files.Remove(name)
		if err == nil {
			f.w.forget(name)
		}
		return err
	})
}

// MkdirAll implements [env.FS].
func (f files) MkdirAll(name string) error {
	return f.w.do("mkdir", name, func() error { return f.w.env.Files.MkdirAll(name) })
}

// SyncDir implements [env.FS].
func (f files) SyncDir(name string) error {
	return f.w.do("sync", name, func() error { return f.w.env.Files.SyncDir(name) })
}

// ReadDir implements [env.FS].
func (f files) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.w.do("list", name, func() (err error) {
		entries, err = f.w.env.Files.ReadDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Stat implements [env.FS].
func (f files) Stat(name string) (info fs.FileInfo, err error) {
	err = f.w.do("stat", name, func() (err error) {
		info, err = f.w.env.Files.Stat(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// file is an open file of a world.
type file struct {
	env.File
	name string
	w    *world
}

// Read implements [io.Reader].
func (f file) Read(b []byte) (n int, err error) { return f.transfer("read", b, f.File.Read) }

// ReadAt implements [io.ReaderAt].
func (f file) ReadAt(b []byte, off int64) (n int, err error) {
	return f.transfer("read", b, func(b []byte) (int, error) { return f.File.ReadAt(b, off) })
}

func (f file) transfer(operation string, b []byte, transfer func([]byte) (int, error)) (n int, err error) {
	err = f.w.do(operation, f.name, func() (err error) {
		n, err = transfer(b)
		return err
	})
	return n, err
}

// Write implements [io.Writer]. One that is made to fail has written half.
func (f file) Write(b []byte) (n int, err error) {
	called := false
	err = f.w.do("write", f.name, func() (err error) {
		called = true
		n, err = f.File.Write(b)
		return err
	})
	if !called {
		n, _ = f.File.Write(b[:len(b)/2])
	}
	return n, err
}

// Stat implements [env.File].
func (f file) Stat() (info fs.FileInfo, err error) {
	err = f.w.do("stat", f.name, func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Sync implements [env.File].
func (f file) Sync() error { return f.w.do("sync", f.name, f.File.Sync) }

// Close implements [env.File]. One that is made to fail has closed the file, as
// the operating system has.
func (f file) Close() error {
	closed := false
	err := f.w.do("close", f.name, func() error {
		closed = true
		return f.File.Close()
	})
	if !closed {
		_ = f.File.Close()
	}
	return err
}
