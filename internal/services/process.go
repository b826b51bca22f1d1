package services

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// lookEvery is how long to wait between two looks at a server.
	lookEvery = 20 * time.Millisecond
	// maxEnding bounds how long a server may take to end, cleanly or not.
	maxEnding = 30 * time.Second
)

// process is a server's process.
type process struct {
	pid   int
	child bool // of this process, so that its end has to be taken note of
	leash int  // descriptor that its watchdog reads the other end of; 0 without one
	dog   *exec.Cmd
}

// spawn starts a server. A watched one ends with this process, however that
// ends, and litter, a folder, is removed then.
func spawn(cmd *exec.Cmd, watched bool, litter string) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, child: true}
	if !watched {
		return p, nil
	}
	if err := p.watch(litter); err != nil {
		p.end(syscall.SIGKILL)
		return nil, fmt.Errorf("start the watchdog of process %d: %w", p.pid, err)
	}
	return p, nil
}

// watchdog ends a server when its standard input ends without a word.
const watchdog = `read -r word && exit 0
kill -KILL "$1"
if [ -n "$2" ]; then
  # the server's own processes end by and by, and may write meanwhile
  for try in 1 2 3 4 5; do sleep 1; rm -rf "$2" && exit; done
fi`

func (p *process) watch(litter string) error {
	var ends [2]int
	syscall.ForkLock.RLock() // no child that is started meanwhile gets the ends
	err := syscall.Pipe(ends[:])
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	read := os.NewFile(uintptr(ends[0]), "leash")
	defer read.Close()
	dog := exec.Command("sh", "-c", watchdog, "watchdog", strconv.Itoa(p.pid), litter)
	dog.Stdin = read
	dog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what interrupts a terminal's processes must not end it
	if err := dog.Start(); err != nil {
		syscall.Close(ends[1])
		return err
	}
	// A plain descriptor: an os.File would be closed once nothing refers to it.
	p.leash, p.dog = ends[1], dog
	return nil
}

// release sends the watchdog away.
func (p *process) release() {
	if p.leash != 0 {
		syscall.Write(p.leash, []byte("done\n"))
		syscall.Close(p.leash)
		p.leash = 0
		p.dog.Wait()
	}
}

// alive tells whether the process still runs.
func (p *process) alive() bool {
	if p.pid == 0 {
		return false
	}
	if p.child {
		if found, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil); found != 0 || err == syscall.ECHILD {
			p.pid = 0
			return false
		}
		return true
	}
	return runs(p.pid)
}

// runs tells whether a process runs that need not be a child of this one.
func runs(pid int) bool {
	state := ps("stat", pid)
	return state != "" && state[0] != 'Z' // one that nobody took note of holds neither ports nor files
}

// ps asks the system for a fact about a process; empty if there is none.
func ps(fact string, pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", fact+"=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// children lists the processes that a process has started.
func children(pid int) (pids []int) {
	out, err := exec.Command("ps", "-A", "-o", "ppid=,pid=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		var parent, child int
		if n, _ := fmt.Sscan(line, &parent, &child); n == 2 && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// end sends a signal and waits for the process to end.
func (p *process) end(signal syscall.Signal) error {
	if !p.alive() {
		p.release()
		return nil
	}
	pid := p.pid
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %v to process %d: %w", signal, pid, err)
	}
	if !within(maxEnding, func() bool { return !p.alive() }) {
		return fmt.Errorf("process %d still runs %v after signal %v; kill -KILL %d ends it", pid, maxEnding, signal, pid)
	}
	p.release()
	return nil
}

// within waits until a condition holds, at most for a while.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(lookEvery) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
