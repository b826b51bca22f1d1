package memory

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Limit is the memory that this process may have.
type Limit struct {
	// Bytes is the limit; 0 means that none is known.
	Bytes int64
	// Source is who set it, for people: one of the From constants.
	Source string
}

// Who sets limits.
const (
	FromCgroup  = "cgroup memory.max"
	FromCgroup1 = "cgroup memory.limit_in_bytes"
	FromGo      = "GOMEMLIMIT"
	FromMachine = "the machine's memory"
	FromFlag    = "--memory-limit"
)

// String writes the limit as people read it: "2.0 GiB (GOMEMLIMIT)".
func (l Limit) String() string { return size(l.Bytes) + " (" + l.Source + ")" }

// wayOut is what a person can do to raise the limit.
func (l Limit) wayOut() string {
	switch l.Source {
	case FromCgroup, FromCgroup1:
		return "raise the memory limit of its container or unit"
	case FromMachine:
		return "use a machine with more memory"
	}
	return "raise " + l.Source
}

// Find returns the least of what the process's cgroups and those above them
// allow, of GOMEMLIMIT, and of what the machine has. files is the file system
// from its root, getenv the environment. ok is false if nothing says so, as on
// systems other than Linux.
func Find(files fs.FS, getenv func(string) string) (limit Limit, ok bool) {
	least := func(n int64, found bool, source string) {
		if found && (!ok || n < limit.Bytes) {
			limit, ok = Limit{n, source}, true
		}
	}
	if n, err := ParseSize(getenv("GOMEMLIMIT")); err == nil {
		least(n, true, FromGo)
	}
	for _, f := range limitFiles(files) {
		n, found := readLimit(files, f.path)
		least(n, found, f.source)
	}
	n, found := machineMemory(files)
	least(n, found, FromMachine)
	return limit, ok
}

// limitFile is a file that may hold a limit.
type limitFile struct{ path, source string }

// limitFiles are the files that may hold a limit of this process: of its cgroup
// (version 2 or 1) and of each above it. In a container its path may be the
// host's, of which only the end, or nothing, is there.
func limitFiles(root fs.FS) (files []limitFile) {
	list, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, name, source := "sys/fs/cgroup", "memory.max", FromCgroup
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			mount, name, source = "sys/fs/cgroup/memory", "memory.limit_in_bytes", FromCgroup1
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			files = append(files, limitFile{path.Join(mount, at, name), source})
			if at == "/" {
				break
			}
		}
	}
	return files
}

// unlimited is from where on a number of version 1 means that there is no limit.
const unlimited = 1 << 60

func readLimit(root fs.FS, file string) (int64, bool) {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64) // or "max"
	return n, err == nil && n > 0 && n < unlimited
}

func machineMemory(root fs.FS) (int64, bool) {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil && n > 0 && n < unlimited>>10
		}
	}
	return 0, false
}
