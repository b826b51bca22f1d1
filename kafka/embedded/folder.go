package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Names in a broker's folder.
const (
	dataName    = "data"
	lockName    = "lock"
	runningName = "running" // is there from a start until a clean end
	decidedName = "decisions"
)

// folder is where a broker keeps everything.
type folder struct {
	path string
	lock *os.File
}

// openFolder takes a folder for a broker, and tells whether the last one in it
// was killed.
func openFolder(path string) (f *folder, killed bool, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, false, fmt.Errorf("folder %s can't be made: %w", path, err)
	}
	if err := checkContent(path); err != nil {
		return nil, false, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("folder %s: %w", path, err)
	}
	f = &folder{path, lock}
	if err := lockFile(lock); err != nil {
		f.leave()
		return nil, false, fmt.Errorf("folder %s: %w", path, err)
	}
	running, err := os.OpenFile(filepath.Join(path, runningName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return f, true, nil
	case err != nil:
		f.leave()
		return nil, false, fmt.Errorf("folder %s: %w", path, err)
	}
	return f, false, running.Close()
}

// checkContent refuses a folder with files of something else.
func checkContent(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("folder %s: %w", path, err)
	}
	for _, e := range entries {
		switch e.Name() {
		case dataName, lockName, runningName, decidedName, decidedName + ".new":
		default:
			return fmt.Errorf("folder %s holds %s, which is no broker's; name an empty folder", path, e.Name())
		}
	}
	return nil
}

func (f *folder) data() string { return filepath.Join(f.path, dataName) }

func (f *folder) decisions() string { return filepath.Join(f.path, decidedName) }

// close notes a clean end.
func (f *folder) close() error {
	err := os.Remove(filepath.Join(f.path, runningName))
	f.leave()
	return err
}

// leave lets others have the folder.
func (f *folder) leave() {
	if f != nil {
		f.lock.Close() // which unlocks it
	}
}
