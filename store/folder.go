package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicestream/sluice/env"
)

const (
	// scratch is the folder for files that are being written. It begins with a
	// dot, so no object's name leads there and no listing shows it. It lies
	// inside the store because link works within one file system only.
	scratch = ".tmp"
	// staleAfter is the age from which a temporary file is believed to be left
	// by a dead process. A mistake is harmless: its writer's link then fails.
	staleAfter = 24 * time.Hour
	// scratchTries bounds the search for a temporary name that is free.
	scratchTries = 8
)

// Folder is a store whose objects are files below a folder. Its file system
// must have hard links, and a link that fails if the name is taken: local ones
// on Unix have, and so has NFS. An object is written to a temporary file, which
// is synced, linked to its name and made durable there by syncing the folder.
type Folder struct {
	env  *env.Env
	fs   env.FS
	root string

	mu      sync.Mutex
	durable map[string]bool // folders below root known to outlast a crash
}

// OpenFolder returns the store in the folder at path, which is made if there is
// none. It removes temporary files that are more than a day old.
func OpenFolder(e *env.Env, path string) (*Folder, error) {
	if path == "" {
		return nil, errors.New("open store: the path is empty")
	}
	f := &Folder{env: e, fs: e.Files, root: filepath.Clean(path), durable: map[string]bool{}}
	if err := f.makeRoot(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	f.removeStale()
	return f, nil
}

// makeRoot makes the store's folder, and durable what it had to make for it.
func (f *Folder) makeRoot() error {
	var holders []string // of the folders that are missing
	for at := f.root; ; at = filepath.Dir(at) {
		info, err := f.fs.Stat(at)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a folder", at)
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		holders = append(holders, filepath.Dir(at))
	}
	if err := f.fs.MkdirAll(filepath.Join(f.root, scratch)); err != nil {
		return err
	}
	for _, holder := range holders {
		if err := f.fs.SyncDir(holder); err != nil {
			return err
		}
	}
	return nil
}

// removeStale removes what dead processes have left: their temporary files, and
// what probes have made, in the scratch folder first (see [Race.Judge]).
func (f *Folder) removeStale() {
	f.removeOld(filepath.Join(f.root, scratch), "", staleAfter)
	f.removeOld(filepath.Join(f.root, scratch), raceMark, staleRace)
	f.removeOld(f.root, "."+raceMark, staleRace)
}

// removeOld removes the files of a folder whose names begin with a mark and
// that were made longer ago than age.
func (f *Folder) removeOld(folder, mark string, age time.Duration) {
	entries, err := f.fs.ReadDir(folder)
	if err != nil {
		return // a store that can't be read says so at the first call that matters
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), mark) {
			continue
		}
		if info, err := entry.Info(); err == nil && f.env.Clock.Now().Sub(info.ModTime()) > age {
			f.fs.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

// String implements [Store].
func (f *Folder) String() string { return f.root }

func (f *Folder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// Create implements [Store].
func (f *Folder) Create(ctx context.Context, name string, data []byte) error {
	upload, err := f.Upload(ctx, name)
	if err != nil {
		return err
	}
	defer upload.Abort()
	if _, err := upload.Write(data); err != nil {
		return err
	}
	return upload.Commit(ctx)
}

// Replace implements [Store].
func (f *Folder) Replace(ctx context.Context, name string, data []byte) error {
	upload, err := f.upload(ctx, "replace", name)
	if err != nil {
		return err
	}
	defer upload.Abort()
	if _, err := upload.Write(data); err != nil {
		return err
	}
	return upload.replace()
}

// Read implements [Store].
func (f *Folder) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	file, size, err := f.open(ctx, "read", name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > limit {
		return nil, tooLarge(name, size, limit)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// Open implements [Store].
func (f *Folder) Open(ctx context.Context, name string) (Object, error) {
	file, size, err := f.open(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	return folderObject{file, size}, nil
}

type folderObject struct {
	env.File
	size int64
}

func (o folderObject) Size() int64 { return o.size }

func (f *Folder) open(ctx context.Context, operation, name string) (env.File, int64, error) {
	if err := begin(ctx, operation, name); err != nil {
		return nil, 0, err
	}
	file, err := f.fs.Open(f.path(name))
	if absent(err) {
		return nil, 0, fmt.Errorf("%s %s: %w", operation, name, ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", operation, name, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = ErrNotFound
	case !info.Mode().IsRegular(): // reading it may never end
		err = ErrNoFile
	}
	if err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("%s %s: %w", operation, name, err)
	}
	return file, info.Size(), nil
}

// Exists implements [Store].
func (f *Folder) Exists(ctx context.Context, name string) (bool, error) {
	if err := begin(ctx, "look for", name); err != nil {
		return false, err
	}
	info, err := f.fs.Stat(f.path(name))
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", name, err)
	}
	return !info.IsDir(), nil
}

// Delete implements [Store]. Folders stay, also empty ones: a create may be on
// its way into them.
func (f *Folder) Delete(ctx context.Context, name string) error {
	if exists, err := f.Exists(ctx, name); err != nil || !exists {
		return err
	}
	if err := f.fs.Remove(f.path(name)); err != nil && !absent(err) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// makeFolder makes the folder of an object, durable up to the root. A folder
// that is there already may be another process's of a moment ago, so it counts
// as durable only once this process has synced what holds it.
func (f *Folder) makeFolder(folder string) error {
	f.mu.Lock()
	known := f.durable[folder]
	f.mu.Unlock()
	if known || folder == f.root {
		return nil
	}
	if err := f.fs.MkdirAll(folder); err != nil {
		return err
	}
	holder := filepath.Dir(folder)
	if err := f.makeFolder(holder); err != nil {
		return err
	}
	if err := f.fs.SyncDir(holder); err != nil {
		return err
	}
	f.mu.Lock()
	f.durable[folder] = true
	f.mu.Unlock()
	return nil
}

// forgetFolder is called when a folder that was known turned out to be missing.
func (f *Folder) forgetFolder() {
	f.mu.Lock()
	clear(f.durable)
	f.mu.Unlock()
}

// absent tells whether an error means that nothing has the name; a file where
// the path needs a folder means it as well.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// sameFile tells whether two names are one file. It is how a link whose reply
// was lost is known to have been made.
func (f *Folder) sameFile(a, b string) bool { return sameFile(f.fs, a, b) }
