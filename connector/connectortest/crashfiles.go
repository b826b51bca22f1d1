package connectortest

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// errCrashed is what calls get from the crash on.
var errCrashed = errors.New("the process has crashed")

// CrashFiles is a [Faults.Crash] for sinks that write files.
func CrashFiles(o connector.Opening, call int, how Crash) (_ connector.Opening, crashed func() bool) {
	c := &crashing{left: call, how: how, disk: disk{files: o.Env.Files, names: map[string]bool{}, contents: map[string]string{}}}
	e := *o.Env
	e.Files = crashFS{o.Env.Files, c}
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
	disk disk
}

// step carries out a call and notes it, or fails.
func (c *crashing) step(call func() error, note func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	switch {
	case c.left > 0:
		err := call()
		if err == nil && note != nil {
			note()
		}
		return err
	case c.left == 0 && c.how == After:
		return errors.Join(errCrashed, call())
	case c.left == 0 && c.how == PowerLoss:
		return errors.Join(errCrashed, c.disk.lose())
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
	}, nil)
	return f.wrap(name, file, err)
}

func (f crashFS) Create(name string) (file env.File, err error) {
	err = f.c.step(func() (err error) {
		file, err = f.files.Create(name)
		return err
	}, func() { f.c.disk.created(name) })
	return f.wrap(name, file, err)
}

func (f crashFS) wrap(name string, file env.File, err error) (env.File, error) {
	if err == nil {
		return crashFile{file, name, f.c}, nil
	}
	if file != nil { // opened, but the reply is lost
		err = errors.Join(err, file.Close())
	}
	return nil, err
}

func (f crashFS) Link(old, new string) error {
	return f.c.step(func() error { return f.files.Link(old, new) }, func() { f.c.disk.linked(old, new) })
}

func (f crashFS) Rename(old, new string) error {
	return f.c.step(func() error { return f.files.Rename(old, new) }, func() { f.c.disk.linked(old, new) })
}

func (f crashFS) Remove(name string) error {
	return f.c.step(func() error { return f.files.Remove(name) }, nil)
}

func (f crashFS) MkdirAll(name string) error {
	missing := f.c.disk.missing(name)
	return f.c.step(func() error { return f.files.MkdirAll(name) }, func() {
		for _, folder := range missing {
			f.c.disk.names[folder] = true
		}
	})
}

func (f crashFS) SyncDir(name string) error {
	return f.c.step(func() error { return f.files.SyncDir(name) }, func() { f.c.disk.syncedDir(name) })
}

func (f crashFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.c.step(func() (err error) {
		entries, err = f.files.ReadDir(name)
		return err
	}, nil)
	return entries, err
}

func (f crashFS) Stat(name string) (info fs.FileInfo, err error) {
	err = f.c.step(func() (err error) {
		info, err = f.files.Stat(name)
		return err
	}, nil)
	return info, err
}

// crashFile is a file whose writes count; a crash may leave half of one.
type crashFile struct {
	env.File
	name string
	c    *crashing
}

func (f crashFile) Write(b []byte) (n int, err error) {
	err = f.c.step(func() (err error) {
		n, err = f.File.Write(b)
		return err
	}, func() { f.c.disk.contents[f.name] = f.name })
	if err != nil && n == 0 {
		n, _ = f.File.Write(b[:len(b)/2])
	}
	return n, err
}

func (f crashFile) Sync() error {
	return f.c.step(f.File.Sync, func() { f.c.disk.synced(f.name) })
}

// disk is what of a file system a power loss takes away. Removals are taken to
// be durable at once.
type disk struct {
	files env.FS
	// names are those of files and folders that their folder's sync doesn't
	// cover yet.
	names map[string]bool
	// contents are the names of files that hold unsynced bytes, with the name
	// that each was written under.
	contents map[string]string
}

func (d *disk) created(name string) {
	d.names[name] = true
	d.contents[name] = name
}

func (d *disk) linked(old, new string) {
	d.names[new] = true
	if written, ok := d.contents[old]; ok {
		d.contents[new] = written
	}
}

func (d *disk) synced(name string) {
	maps.DeleteFunc(d.contents, func(_, written string) bool { return written == name })
}

func (d *disk) syncedDir(folder string) {
	folder = filepath.Clean(folder)
	maps.DeleteFunc(d.names, func(name string, _ bool) bool { return filepath.Dir(name) == folder })
}

// missing lists the folders on the way to a path that are not there.
func (d *disk) missing(path string) (folders []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := d.files.Stat(path); err == nil || filepath.Dir(path) == path {
			return folders
		}
		folders = append(folders, path)
	}
}

// lose takes away what isn't durable: files lose their bytes, names go.
func (d *disk) lose() error {
	for name := range d.contents {
		if err := d.files.Remove(name); err != nil {
			continue // it was removed since
		}
		f, err := d.files.Create(name)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	for name := range d.names {
		if err := d.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file, or a folder with what is in it.
func (d *disk) remove(name string) error {
	if entries, err := d.files.ReadDir(name); err == nil {
		for _, e := range entries {
			if err := d.remove(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := d.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
