package upgrades

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The exit codes by which a supervisor starts a process again, and the one by which it
// does not: another build has taken over.
const (
	signalled  = -1
	pending    = 10
	fenced     = 11
	superseded = 12
)

// backOff is how long a supervisor waits before it starts a process again.
const backOff = 50 * time.Millisecond

// keeper starts a command again and again, as a supervisor does, until that ends for good.
type keeper struct {
	what  string // the command
	start func() *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	always bool      // it is started at once whatever it ends with
	cmd    *exec.Cmd // that runs now; nil: none
	frozen bool      // it was stopped
	starts int
	over   bool  // nothing is to be started any more
	code   int   // that it ended with
	codes  []int // of all that have ended, in their order
	log    bytes.Buffer
}

// keep begins to supervise a command, until the test ends.
func keep(t *testing.T, what string, start func() *exec.Cmd) *keeper {
	t.Helper()
	k := &keeper{what: what, start: start, ended: make(chan struct{})}
	go k.loop()
	t.Cleanup(k.end)
	return k
}

func (k *keeper) loop() {
	defer close(k.ended)
	for k.launch() {
		_ = k.cmd.Wait()
		k.mu.Lock()
		k.code = k.cmd.ProcessState.ExitCode()
		k.codes = append(k.codes, k.code)
		k.cmd, k.frozen = nil, false
		fmt.Fprintf(&k.log, "--- exit code %d\n", k.code)
		always, goesOn := k.always, k.code == signalled || k.code == pending || k.code == fenced
		k.mu.Unlock()
		switch {
		case always:
		case goesOn:
			<-time.After(backOff)
		default:
			return
		}
	}
}

// loops has the command started at once whatever it ends with, or by its exit code.
func (k *keeper) loops(always bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.always = always
}

// lives are the exit codes of those that have ended.
func (k *keeper) lives() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.codes)
}

// pid is the number of the process that runs; 0: none does.
func (k *keeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil || k.cmd.Process == nil {
		return 0
	}
	return k.cmd.Process.Pid
}

// launch starts the process; false if that is not to be.
func (k *keeper) launch() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return false
	}
	k.cmd = k.start()
	k.cmd.Stdout = (*logged)(k)
	k.cmd.Stderr = k.cmd.Stdout
	k.starts++
	fmt.Fprintf(&k.log, "--- start %d of %s\n", k.starts, k.what)
	if err := k.cmd.Start(); err != nil {
		fmt.Fprintln(&k.log, err)
		k.code = 1
		return false
	}
	return true
}

// logged writes to a keeper's log.
type logged keeper

// Write implements [io.Writer].
func (l *logged) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(data)
}

// end ends it with the test.
func (k *keeper) end() {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	k.signal(syscall.SIGKILL)
	<-k.ended
}

// signal sends a signal to the process, if one runs, and returns what undoes a stop: it
// wakes that process, whatever runs by then.
func (k *keeper) signal(s syscall.Signal) (wake func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil || k.cmd.Process == nil {
		return func() {}
	}
	p := k.cmd.Process
	k.frozen = s == syscall.SIGSTOP
	_ = p.Signal(s)
	return func() {
		_ = p.Signal(syscall.SIGCONT)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.cmd != nil && k.cmd.Process == p {
			k.frozen = false
		}
	}
}

// runs tells whether a process runs that was not stopped.
func (k *keeper) runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cmd != nil && !k.frozen
}

// said is what its processes have printed: the end of it.
func (k *keeper) said() string {
	const most = 12_000
	k.mu.Lock()
	defer k.mu.Unlock()
	text := k.log.String()
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}

// awaitEnd waits until it has ended, and returns the exit code.
func (k *keeper) awaitEnd(t *testing.T) int {
	t.Helper()
	select {
	case <-k.ended:
	case <-time.After(patience):
		t.Fatalf("%s has not ended", k.what)
	}
	return k.code
}

// quickFolder is a folder of a test, in memory where that can be had: what a process
// has written outlives its death there as well.
func quickFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "upgrades-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}
