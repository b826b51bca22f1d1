package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine is what the figures were measured on.
type machine struct {
	cores      int
	model      string
	goVersion  string
	fileSystem string
	fsync      time.Duration // of 4 KB, with the creation of the file
	empty      time.Duration // an empty Go program, from start to end
}

func (m machine) String() string {
	return fmt.Sprintf("%d cores, %s, %s, files on %s; an fsync of a new file of 4 KB takes %.2f ms, an empty Go program %.1f ms.",
		m.cores, m.model, m.goVersion, m.fileSystem, m.fsync.Seconds()*1e3, m.empty.Seconds()*1e3)
}

// inUnits says a time as a multiple of the machine's own.
func (m machine) inUnits(seconds float64) string {
	return fmt.Sprintf("%.0f times an fsync, %.1f times an empty program", seconds/m.fsync.Seconds(), seconds/m.empty.Seconds())
}

func lookAtMachine(dir string) (m machine, err error) {
	m = machine{cores: runtime.GOMAXPROCS(0), model: cpuModel(), goVersion: runtime.Version()}
	if m.fileSystem, err = fileSystem(dir); err != nil {
		return m, err
	}
	if m.fileSystem == "tmpfs" {
		return m, fmt.Errorf("%s is on a tmpfs, where an fsync costs nothing; name a folder on a disk with -dir", dir)
	}
	if m.fsync, err = timeFsync(dir); err != nil {
		return m, err
	}
	m.empty, err = timeEmptyProgram(dir)
	return m, err
}

// commitOf is the commit that is measured, with a + if files differ from it.
func commitOf() (string, error) {
	head, err := exec.Command("git", "rev-parse", "--short=7", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("the commit that is measured: git rev-parse: %w", err)
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs").Output()
	if err != nil {
		return "", fmt.Errorf("the commit that is measured: git status: %w", err)
	}
	name := strings.TrimSpace(string(head))
	if len(changed) > 0 {
		name += "+"
	}
	return name, nil
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystem names the file system of a folder by the system's magic numbers.
func fileSystem(dir string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("file system of %s: %w", dir, err)
	}
	names := map[uint32]string{
		0x01021994: "tmpfs", 0x858458f6: "tmpfs", // the second is ramfs, which is no better
		0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x794c7630: "overlayfs", 0x2fc12fc1: "zfs", 0x6969: "nfs",
	}
	if name, ok := names[uint32(s.Type)]; ok {
		return name, nil
	}
	return fmt.Sprintf("file system %#x", uint32(s.Type)), nil
}

// timeFsync is the median time to write a small file durably.
func timeFsync(dir string) (time.Duration, error) {
	var times []time.Duration
	page := make([]byte, 4096)
	for i := range 21 {
		name := filepath.Join(dir, fmt.Sprintf("fsync-%d", i))
		began := time.Now()
		if err := writeSynced(name, page); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
		if err := os.Remove(name); err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func writeSynced(name string, data []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// timeEmptyProgram builds a program that does nothing, and returns the median
// time that it takes.
func timeEmptyProgram(dir string) (time.Duration, error) {
	folder, err := os.MkdirTemp(dir, "empty-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	source, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "empty")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return 0, err
	}
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building an empty program: %w: %s", err, out)
	}
	var times []time.Duration
	for range 11 {
		began := time.Now()
		if err := exec.Command(program).Run(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
