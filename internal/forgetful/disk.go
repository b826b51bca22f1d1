package forgetful

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"

	"github.com/sluicestream/sluice/env"
)

// ErrPower is what calls answer once the power is gone.
var ErrPower = errors.New("the power is gone")

// Disk is a file system on top of another one, which stands for what was
// written to it. Removals are taken to be durable at once, and a folder's name
// as soon as the folder above it is synced. A file that a rename has replaced
// comes back with its old bytes.
type Disk struct {
	files env.FS

	// power is held for reading while a call is carried out, so that nothing is
	// half done when the power goes.
	power sync.RWMutex
	gone  bool

	mu sync.Mutex
	// names are those of files and folders that no sync covers.
	names map[string]bool
	// contents are the names of files that hold unsynced bytes, with the name
	// that each was written under.
	contents map[string]string
	// replaced are the bytes that a name of names had before.
	replaced map[string][]byte
}

// New returns a disk on top of a file system. What stands there is durable.
func New(files env.FS) *Disk {
	return &Disk{files: files, names: map[string]bool{}, contents: map[string]string{}, replaced: map[string][]byte{}}
}

// Lose takes the power away, and with it what isn't durable: files lose their
// bytes, names go. All calls from then on answer [ErrPower].
func (d *Disk) Lose() error {
	d.power.Lock()
	defer d.power.Unlock()
	if d.gone {
		return nil
	}
	d.gone = true
	for name := range d.contents {
		if err := d.files.Remove(name); err != nil {
			continue // it was removed since
		}
		if err := d.write(name, nil); err != nil {
			return err
		}
	}
	for name := range d.names {
		if err := d.remove(name); err != nil {
			return err
		}
		if before, ok := d.replaced[name]; ok {
			if err := d.write(name, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// write makes a file with its content.
func (d *Disk) write(name string, data []byte) error {
	f, err := d.files.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// remove removes a file, or a folder with what is in it.
func (d *Disk) remove(name string) error {
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

// call carries out a call while there is power, and notes it if it went well.
func (d *Disk) call(do func() error, note func()) error {
	d.power.RLock()
	defer d.power.RUnlock()
	if d.gone {
		return ErrPower
	}
	err := do()
	if err == nil && note != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		note()
	}
	return err
}

// Open implements [env.FS].
func (d *Disk) Open(name string) (opened env.File, err error) {
	err = d.call(func() error {
		f, err := d.files.Open(name)
		opened = file{f, filepath.Clean(name), d}
		return err
	}, nil)
	return orNil(opened, err)
}

// Create implements [env.FS].
func (d *Disk) Create(name string) (created env.File, err error) {
	clean := filepath.Clean(name)
	err = d.call(func() error {
		f, err := d.files.Create(name)
		created = file{f, clean, d}
		return err
	}, func() {
		d.names[clean] = true
		d.contents[clean] = clean
	})
	return orNil(created, err)
}

func orNil(f env.File, err error) (env.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Link implements [env.FS].
func (d *Disk) Link(old, new string) error {
	return d.call(func() error { return d.files.Link(old, new) }, func() { d.named(old, new) })
}

// named notes that a file has a new name; d.mu is held.
func (d *Disk) named(old, new string) {
	old, new = filepath.Clean(old), filepath.Clean(new)
	d.names[new] = true
	delete(d.contents, new)
	if written, ok := d.contents[old]; ok {
		d.contents[new] = written
	}
}

// Rename implements [env.FS].
func (d *Disk) Rename(old, new string) error {
	var before []byte
	had := false
	return d.call(func() error {
		before, had = d.content(new)
		return d.files.Rename(old, new)
	}, func() {
		clean := filepath.Clean(new)
		if had && !d.names[clean] {
			d.replaced[clean] = before
		}
		d.named(old, new)
		d.forget(old)
	})
}

// content reads what a name holds, if it is a file.
func (d *Disk) content(name string) ([]byte, bool) {
	f, err := d.files.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return data, err == nil
}

// Remove implements [env.FS].
func (d *Disk) Remove(name string) error {
	return d.call(func() error { return d.files.Remove(name) }, func() { d.forget(name) })
}

// forget notes that a name is gone; d.mu is held.
func (d *Disk) forget(name string) {
	name = filepath.Clean(name)
	delete(d.names, name)
	delete(d.contents, name)
	delete(d.replaced, name)
}

// MkdirAll implements [env.FS].
func (d *Disk) MkdirAll(name string) error {
	var missing []string
	return d.call(func() error {
		missing = d.missing(name)
		return d.files.MkdirAll(name)
	}, func() {
		for _, folder := range missing {
			d.names[folder] = true
		}
	})
}

// missing lists the folders on the way to a path that are not there.
func (d *Disk) missing(path string) (folders []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := d.files.Stat(path); err == nil || filepath.Dir(path) == path {
			return folders
		}
		folders = append(folders, path)
	}
}

// SyncDir implements [env.FS].
func (d *Disk) SyncDir(name string) error {
	return d.call(func() error { return d.files.SyncDir(name) }, func() {
		folder := filepath.Clean(name)
		maps.DeleteFunc(d.names, func(name string, _ bool) bool { return filepath.Dir(name) == folder })
		maps.DeleteFunc(d.replaced, func(name string, _ []byte) bool { return filepath.Dir(name) == folder })
	})
}

// ReadDir implements [env.FS].
func (d *Disk) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = d.call(func() (err error) {
		entries, err = d.files.ReadDir(name)
		return err
	}, nil)
	return entries, err
}

// Stat implements [env.FS].
func (d *Disk) Stat(name string) (info fs.FileInfo, err error) {
	err = d.call(func() (err error) {
		info, err = d.files.Stat(name)
		return err
	}, nil)
	return info, err
}

// file is an open file of a disk.
type file struct {
	env.File
	name string
	disk *Disk
}

// Read implements [io.Reader].
func (f file) Read(b []byte) (n int, err error) {
	err = f.disk.call(func() (err error) {
		n, err = f.File.Read(b)
		return err
	}, nil)
	return n, err
}

// ReadAt implements [io.ReaderAt].
func (f file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.disk.call(func() (err error) {
		n, err = f.File.ReadAt(b, off)
		return err
	}, nil)
	return n, err
}

// Write implements [io.Writer].
func (f file) Write(b []byte) (n int, err error) {
	note := func() { f.disk.contents[f.name] = f.name }
	err = f.disk.call(func() (err error) {
		n, err = f.File.Write(b)
		return err
	}, note)
	return n, err
}

// Sync makes what was written durable.
func (f file) Sync() error {
	return f.disk.call(f.File.Sync, func() {
		maps.DeleteFunc(f.disk.contents, func(_, written string) bool { return written == f.name })
	})
}
