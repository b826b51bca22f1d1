package epoch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
)

// ThisProcess describes the running process. What the system doesn't tell stays
// empty; a process with an empty field is never taken for a dead one.
func ThisProcess() Writer {
	host, _ := os.Hostname()
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return Writer{
		Host:         host,
		Machine:      firstLine("/etc/machine-id"),
		Boot:         firstLine("/proc/sys/kernel/random/boot_id"),
		PIDNamespace: namespace,
		PID:          os.Getpid(),
		Started:      startTime(firstLine("/proc/self/stat")),
	}
}

// Gone tells whether the process is known to be gone: it ran on this machine,
// since its last boot and in this process's namespace, and there is none of its
// number that began when it did. Of any other process nothing is known.
func (w Writer) Gone() bool { return w.near() && w.ended() }

// near tells whether this process would know that the other has ended.
func (w Writer) near() bool {
	if w.Boot == "" || w.PIDNamespace == "" || w.PID == 0 || w.Started == "" {
		return false
	}
	me := ThisProcess()
	return w.Machine == me.Machine && w.Boot == me.Boot && w.PIDNamespace == me.PIDNamespace
}

// ended tells whether a process that is near has ended.
func (w Writer) ended() bool {
	process, err := os.FindProcess(w.PID)
	if err == nil {
		err = process.Signal(syscall.Signal(0)) // asks, and does nothing
		process.Release()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return true
	}
	stat := firstLine(fmt.Sprintf("/proc/%d/stat", w.PID))
	if stat == "" {
		return false // another user's, hidden from this one
	}
	return startTime(stat) != w.Started || isZombie(stat)
}

// isZombie tells whether a process has ended and waits for its parent to ask
// how: the state is the field behind the command.
func isZombie(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}

// maxSystemFile bounds what is read of the system's one-line files.
const maxSystemFile = 4096

func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxSystemFile))
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// startTime is the 22nd field of a /proc/PID/stat: clock ticks since the boot.
// The second field is a command in brackets that may hold anything.
func startTime(stat string) string {
	const behindCommand = 22 - 3
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= behindCommand {
		return ""
	}
	return fields[behindCommand]
}

// ThisExecutable describes the running program: the sha256 of its file and the
// revision of the source it was built from, "+dirty" if that had been changed.
// The version is left to the caller, who knows the job. The file is read once: what
// runs does not become another program when its file does.
func ThisExecutable() (Build, error) { return thisExecutable() }

var thisExecutable = sync.OnceValues(readExecutable)

func readExecutable() (Build, error) {
	path, err := os.Executable()
	if err != nil {
		return Build{}, fmt.Errorf("find this program's own file: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return Build{}, fmt.Errorf("read this program's own file: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return Build{}, fmt.Errorf("read this program's own file: %w", err)
	}
	return Build{Revision: revision(), Executable: hex.EncodeToString(sum.Sum(nil))}, nil
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	r := settings["vcs.revision"]
	if r != "" && settings["vcs.modified"] == "true" {
		r += "+dirty"
	}
	return r
}
