package services

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// folder is where a server keeps everything: data/ and, beside it, what is
// needed to find and start it again.
type folder struct {
	path  string
	ours  bool // made for this server alone, and removed with it
	ports []int
}

// Names in a server's folder.
const (
	dataFolder = "data"
	logFile    = "server.log"
	pidFile    = "pid"
	portsFile  = "ports"
)

// openFolder makes a server's folder, at the path or, without one, where
// temporary files are.
func openFolder(path, pattern string) (*folder, error) {
	f := &folder{path: path}
	if path == "" {
		made, err := os.MkdirTemp("", pattern)
		if err != nil {
			return nil, err
		}
		f.path, f.ours = made, true
		// a server that runs as another user has to get in
		if err := os.Chmod(made, 0o755); err != nil {
			return nil, err
		}
	}
	absolute, err := filepath.Abs(f.path)
	if err != nil {
		return nil, err
	}
	f.path = absolute
	return f, os.MkdirAll(f.path, 0o755)
}

func (f *folder) in(name string) string { return filepath.Join(f.path, name) }

// litter is what goes with the process: the folder, if it was made for it.
func (f *folder) litter() string {
	if f.ours {
		return f.path
	}
	return ""
}

// claim settles on n ports: the wanted first one, those used last, or free ones.
func (f *folder) claim(first, n int) error {
	last := f.numbers(portsFile)
	if len(last) == n && (first == 0 || first == last[0]) {
		f.ports = last
	} else {
		free, err := freePorts(n)
		if err != nil {
			return err
		}
		if f.ports = free; first != 0 {
			f.ports[0] = first
		}
	}
	for _, p := range f.ports {
		if busy(p) {
			return fmt.Errorf("start a server in %s: port %d is taken by another program; end that, or remove %s to have other ports", f.path, p, f.in(portsFile))
		}
	}
	var text bytes.Buffer
	for _, p := range f.ports {
		fmt.Fprintln(&text, p)
	}
	return os.WriteFile(f.in(portsFile), text.Bytes(), 0o644)
}

// numbers reads a file of numbers; none if there is no such file.
func (f *folder) numbers(name string) (all []int) {
	data, _ := os.ReadFile(f.in(name))
	for field := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(field); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// running finds the process of a server that an earlier process has started in
// the folder, by the mark in its command line; nil if there is none. Where its
// number now belongs to another process, there is none.
func (f *folder) running(mark string) *process {
	pids := f.numbers(pidFile)
	if len(pids) == 0 || !runs(pids[0]) || !strings.Contains(ps("args", pids[0])+" ", mark+" ") {
		return nil
	}
	return &process{pid: pids[0]}
}

// newLog puts the last run's log aside, and opens one.
func (f *folder) newLog() (*os.File, error) {
	path := f.in(logFile)
	if err := os.Rename(path, path+".1"); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// says tells whether the server's log has a text.
func (f *folder) says(text string) bool {
	data, err := os.ReadFile(f.in(logFile))
	return err == nil && bytes.Contains(data, []byte(text))
}

// complaint is what the end of the server's log says is the matter.
func (f *folder) complaint() string {
	data, _ := os.ReadFile(f.in(logFile))
	return complaintIn(string(data))
}

// complaintIn is the last line that tells of an error, or else the last.
func complaintIn(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "FATAL") || strings.Contains(line, "Exception") {
			return strings.TrimSpace(line)
		}
	}
	return lines[len(lines)-1]
}

func (f *folder) remove() error {
	if f.ours {
		return os.RemoveAll(f.path)
	}
	return nil
}
