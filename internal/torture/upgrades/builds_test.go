package upgrades

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/sources"
	"github.com/sluicestream/sluice/internal/torture/topics"
)

// versions is how many there are of the job, from 1.
const versions = 4

// builds are the executables of the versions: one file, which differs in what stands
// behind its end, since a build is known by its file.
var builds struct {
	folder string
	once   sync.Once
	hashes [versions + 1]string
}

// atOnce is how many histories run side by side: their processes wait for each other
// most of the time.
const atOnce = "4"

func TestMain(m *testing.M) {
	if broker := os.Getenv(wayBroker); broker != "" {
		sluice.Main(first(&way{cluster: &topics.Cluster{Addr: broker}}, build{version: 1}))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "upgrades-")
	if err != nil {
		panic(err)
	}
	builds.folder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// buildAll builds the versions.
func buildAll(t *testing.T) {
	t.Helper()
	builds.once.Do(func() {
		const source = "testjobs/tide"
		sources.Read(t)
		first := executable(1)
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", first, "./"+source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building the job: %v\n%s", err, out)
		}
		file, err := os.ReadFile(first)
		if err != nil {
			t.Fatal(err)
		}
		for version := range versions + 1 {
			if version == 0 {
				continue
			}
			own := fmt.Appendf(file[:len(file):len(file)], "version %d", version)
			if err := os.WriteFile(executable(version), own, 0o755); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(own)
			builds.hashes[version] = hex.EncodeToString(sum[:])
		}
	})
	if builds.hashes[versions] == "" {
		t.Fatal("the job could not be built")
	}
}

// executable is the path of a version's.
func executable(version int) string {
	return filepath.Join(builds.folder, fmt.Sprint("tide-", version))
}
