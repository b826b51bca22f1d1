package cli

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// defaultGCPercent lets the heap grow to five times what is live. At Go's
	// 100 a quarter of a job's CPU goes into the collector.
	defaultGCPercent = 400
	// memoryShare is the part of what a process may have that it lets itself
	// use: the rest is for what the collector doesn't see.
	memoryShare = 0.9
)

// tuneMemory sets the garbage collector's targets. What the environment says in
// Go's own variables stays, but for a percentage that was asked for.
func tuneMemory(percent int, asked bool) {
	if asked || os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, ok := memoryLimit(os.DirFS("/")); ok {
		debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
	}
}

// memoryLimit is the memory that this process may have: the least of what its
// cgroups and those above them allow, and of what the machine has. ok is false
// if nothing says so.
func memoryLimit(root fs.FS) (limit int64, ok bool) {
	limit = math.MaxInt64
	for _, file := range limitFiles(root) {
		if n, found := readLimit(root, file); found {
			limit, ok = min(limit, n), true
		}
	}
	if n, found := machineMemory(root); found {
		limit, ok = min(limit, n), true
	}
	return limit, ok
}

// limitFiles are the files that may hold a limit of this process: of its cgroup
// (version 2 or 1) and of each above it. In a container its path may be the
// host's, of which only the end, or nothing, is there.
func limitFiles(root fs.FS) []string {
	list, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, name := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			mount, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			files = append(files, mount+path.Join(at, "/")+"/"+name)
			if at == "/" {
				break
			}
		}
	}
	for i, file := range files {
		files[i] = path.Clean(file)
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
