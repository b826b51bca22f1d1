package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sluicestream/sluice/env"
)

// folderUpload is an object on its way into a Folder: a temporary file.
type folderUpload struct {
	store     *Folder
	operation string
	name      string
	file      env.File // nil once closed
	temp      string   // its path; "" once removed
}

// Upload implements [Store].
func (f *Folder) Upload(ctx context.Context, name string) (Upload, error) {
	upload, err := f.upload(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	return upload, nil
}

func (f *Folder) upload(ctx context.Context, operation, name string) (*folderUpload, error) {
	if err := begin(ctx, operation, name); err != nil {
		return nil, err
	}
	u := &folderUpload{store: f, operation: operation, name: name}
	for try := 1; ; try++ {
		id, err := f.env.ID()
		if err != nil {
			return nil, err
		}
		u.temp = filepath.Join(f.root, scratch, id)
		u.file, err = f.fs.Create(u.temp)
		if err == nil {
			return u, nil
		}
		if !errors.Is(err, fs.ErrExist) || try == scratchTries {
			return nil, u.failed(err)
		}
	}
}

func (u *folderUpload) Write(p []byte) (int, error) {
	if u.file == nil {
		return 0, u.failed(errEnded)
	}
	n, err := u.file.Write(p)
	if err != nil {
		return n, u.failed(err)
	}
	return n, nil
}

// Commit syncs the file, links it to its name and syncs the folder, in this
// order: the object is never to be seen without all of its bytes.
func (u *folderUpload) Commit(ctx context.Context) error {
	defer u.Abort()
	if err := ctx.Err(); err != nil {
		return u.failed(err)
	}
	if err := u.finish(); err != nil {
		return u.failed(err)
	}
	target := u.store.path(u.name)
	folder := filepath.Dir(target)
	err := u.store.fs.Link(u.temp, target)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder was removed by hand since it was made. Nothing was linked.
		u.store.forgetFolder()
		if err = u.store.makeFolder(folder); err == nil {
			err = u.store.fs.Link(u.temp, target)
		}
	}
	taken := false
	switch {
	case err == nil || u.store.sameFile(u.temp, target):
		// Also when the reply was lost, or a repeated request met its own work.
	case errors.Is(err, fs.ErrExist):
		taken = true
	case clean(err):
		return u.failed(err)
	default:
		return fmt.Errorf("create %s: %w: %w", u.name, ErrUnknown, err)
	}
	// A taken name is made durable too: the caller may act on what it reads there.
	if err := u.store.fs.SyncDir(folder); err != nil {
		return fmt.Errorf("create %s: %w: the folder can't be synced: %w", u.name, ErrUnknown, err)
	}
	if taken {
		return u.taken(target)
	}
	return nil
}

func (u *folderUpload) taken(target string) error {
	if info, err := u.store.fs.Stat(target); err == nil && info.IsDir() {
		return u.failed(fmt.Errorf("%w: objects have names that go on behind it", ErrName))
	}
	return u.failed(ErrExists)
}

// replace moves the file over what has the name.
func (u *folderUpload) replace() error {
	defer u.Abort()
	if err := u.finish(); err != nil {
		return u.failed(err)
	}
	if err := u.store.fs.Rename(u.temp, u.store.path(u.name)); err != nil {
		return u.failed(err)
	}
	u.temp = ""
	return nil
}

// finish makes the file's bytes durable, and the folder that it is to go to.
func (u *folderUpload) finish() error {
	if u.file == nil {
		return errEnded
	}
	err := u.file.Sync()
	if cerr := u.file.Close(); err == nil {
		err = cerr
	}
	u.file = nil
	if err != nil {
		return err
	}
	return u.store.makeFolder(filepath.Dir(u.store.path(u.name)))
}

// Abort removes the temporary file, whatever became of the object. One that
// can't be removed does no harm, and is removed when it is a day old.
func (u *folderUpload) Abort() {
	if u.file != nil {
		u.file.Close()
		u.file = nil
	}
	if u.temp != "" {
		u.store.fs.Remove(u.temp)
		u.temp = ""
	}
}

// failed puts words to an error after which nothing is to be seen of the object.
func (u *folderUpload) failed(err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s %s: %w: an object has the name of a folder that it needs", u.operation, u.name, ErrName)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s %s: the disk of %s is full, nothing was written: %w", u.operation, u.name, u.store, err)
	case errors.Is(err, syscall.EPERM) && linking(err): // either of the two
		return fmt.Errorf("%s %s: %s may not be written to by this process, or has no hard links, which a store needs: %w", u.operation, u.name, u.store, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s %s: %s may not be written to by this process, expected leave to: %w", u.operation, u.name, u.store, err)
	case errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("%s %s: a store needs one file system with hard links, %s is on one without, or on several: %w", u.operation, u.name, u.store, err)
	}
	return fmt.Errorf("%s %s: %w", u.operation, u.name, err)
}

// linking tells whether an error is of making a hard link.
func linking(err error) bool {
	link, is := errors.AsType[*os.LinkError](err)
	return is && link.Op == "link"
}

// clean tells whether a link's error proves that no link was made. Any other
// error may be a reply that was lost on the way from a file server.
func clean(err error) bool {
	for _, proof := range []syscall.Errno{
		syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS,
		syscall.EACCES, syscall.EPERM, syscall.EXDEV, syscall.EMLINK, syscall.ENOTSUP, syscall.ENOSYS,
	} {
		if errors.Is(err, proof) {
			return true
		}
	}
	return false
}
