package torture

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manifest is what the tests read of a manifest: the fields as the documented
// format has them.
type manifest struct {
	JobID    string `json:"job_id"`
	Epoch    uint64
	Kind     string
	Parent   string
	Owner    string
	Position uint64
	Version  string
	Writer   struct{ PID int }
	Now      int64
	Runs     []run
	Sources  map[string]struct {
		Partitions map[string]struct{ Next int64 }
	}
	Counts map[string]int64

	hash string // of its file
}

type run struct {
	Source, Partition string
	Next              int64
}

// journal is the epoch log of a job's one task on the branch main, read as far
// as it goes.
type journal struct {
	folder    string // of the log
	manifests []manifest
}

func openJournal(store, job string) *journal {
	return &journal{folder: filepath.Join(store, job, "branches", "main", "0.0")}
}

// read reads the manifests that have come since. Their numbers have no gap, and
// each names the hash of the one before.
func (j *journal) read(t *testing.T) {
	t.Helper()
	for {
		path := filepath.Join(j.folder, fmt.Sprintf("%020d.json", len(j.manifests)))
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if m.Epoch != uint64(len(j.manifests)) {
			t.Fatalf("%s says that it is epoch %d", path, m.Epoch)
		}
		if before := j.head().hash; m.Parent != before {
			t.Fatalf("%s: its parent is %s, the manifest before has the hash %s", path, m.Parent, before)
		}
		sum := sha256.Sum256(data)
		m.hash = hex.EncodeToString(sum[:])
		j.manifests = append(j.manifests, m)
	}
}

// head is the newest manifest; zero if there is none.
func (j *journal) head() manifest {
	if len(j.manifests) == 0 {
		return manifest{}
	}
	return j.manifests[len(j.manifests)-1]
}

// written tells whether there are data objects of epochs that have no manifest,
// by the owner of the head.
func (j *journal) written(t *testing.T) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(j.folder, "data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	next := fmt.Sprintf("%020d-%s-", len(j.manifests), j.head().Owner)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), next) {
			return true
		}
	}
	return false
}

// snapshot has the content of every file under the folders given, by path.
func snapshot(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			files[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
