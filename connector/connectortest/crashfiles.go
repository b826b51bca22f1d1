package connectortest

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/forgetful"
)

// errCrashed is what calls get from the crash on.
var errCrashed = errors.New("the process has crashed")

// CrashFiles is a [Faults.Crash] for sinks that write files.
func CrashFiles(o connector.Opening, call int, how Crash) (_ connector.Opening, crashed func() bool) {
	c := &crashing{left: call, how: how, disk: forgetful.New(o.Env.Files)}
	e := *o.Env
	e.Files = crashFS{c.disk, c}
	o.Env = &e
	return o, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.left <= 0
	}
}

// crashing counts calls down to the crash.
type crashing struct {
	mu   sync.Mutex
	left int // calls up to the crash, which is the last of them
	how  Crash
	disk *forgetful.Disk
}

// step carries out a call, or fails.
func (c *crashing) step(call func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	switch {
	case c.left > 0:
		return call()
	case c.left == 0 && c.how == After:
		return errors.Join(errCrashed, call())
	case c.left == 0 && c.how == PowerLoss:
		return errors.Join(errCrashed, c.disk.Lose())
	default:
		return errCrashed
	}
}

type crashFS struct {
	files env.FS
	c     *crashing
}

func (f crashFS) Open(name string) (file env.File, err error) {
	err = f.c.step(func() (err error) {
		file, err = f.files.Open(name)
		return err
	})
	return f.wrap(file, err)
}

func (f crashFS) Create(name string) (file env.File, err error) {
	err = f.c.step(func() (err error) {
		file, err = f.files.Create(name)
		return err
	})
	return f.wrap(file, err)
}

func (f crashFS) wrap(file env.File, err error) (env.File, error) {
	if err == nil {
		return crashFile{file, f.c}, nil
	}
	if file != nil { // opened, but the reply is lost
		err = errors.Join(err, file.Close())
	}
	return nil, err
}

func (f crashFS) Link(old, new string) error {
	return f.c.step(func() error { return f.files.Link(old, new) })
}

func (f crashFS) Rename(old, new string) error {
	return f.c.step(func() error { return f.files.Rename(old, new) })
}

func (f crashFS) Remove(name string) error {
	return f.c.step(func() error { return f.files.Remove(name) })
}

func (f crashFS) MkdirAll(name string) error {
	return f.c.step(func() error { return f.files.MkdirAll(name) })
}

func (f crashFS) SyncDir(name string) error {
	return f.c.step(func() error { return f.files.SyncDir(name) })
}

func (f crashFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.c.step(func() (err error) {
		entries, err = f.files.ReadDir(name)
		return err
	})
	return entries, err
}

func (f crashFS) Stat(name string) (info fs.FileInfo, err error) {
	err = f.c.step(func() (err error) {
		info, err = f.files.Stat(name)
		return err
	})
	return info, err
}

// crashFile is a file whose writes count; a crash may leave half of one.
type crashFile struct {
	env.File
	c *crashing
}

func (f crashFile) Write(b []byte) (n int, err error) {
	err = f.c.step(func() (err error) {
		n, err = f.File.Write(b)
		return err
	})
	if err != nil && n == 0 {
		n, _ = f.File.Write(b[:len(b)/2])
	}
	return n, err
}

func (f crashFile) Sync() error {
	return f.c.step(f.File.Sync)
}
