package torture

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a process of the job steps, whose output can be waited for.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu      sync.Mutex
	output  strings.Builder
	changed chan struct{} // closed and replaced with each line
}

// quickFolder is a folder of a test, in memory where that can be had: what a
// process has written outlives its death there as well, and syncing costs nothing.
func quickFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "torture-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// startSteps starts the job in its folder.
func startSteps(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{}), changed: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(build(t, &binaries.steps, "steps"), "steps"), args...)
	p.cmd.Dir = folder
	read, write := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			p.add(lines.Text())
		}
		_, _ = io.Copy(io.Discard, read)
	})
	go func() {
		defer close(p.ended)
		p.cmd.Wait()
		write.Close()
		reading.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output.WriteString(line + "\n")
	close(p.changed)
	p.changed = make(chan struct{})
}

// said is what the process has printed so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// says waits until the process has printed a text so many times; false if it
// ends before.
func (p *process) says(t *testing.T, text string, times int) bool {
	t.Helper()
	return p.until(t, func(said string) bool { return strings.Count(said, text) >= times })
}

// until waits until what the process has printed is enough; false if it ends
// before.
func (p *process) until(t *testing.T, enough func(said string) bool) bool {
	t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	for {
		p.mu.Lock()
		found, changed := enough(p.output.String()), p.changed
		p.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-p.ended:
			return enough(p.said())
		case <-hung.C:
			p.trace(t)
		}
	}
}

// must waits for a text that has to come.
func (p *process) must(t *testing.T, text string, times int) {
	t.Helper()
	if !p.says(t, text, times) {
		t.Fatalf("the job has ended (%v) before it said %q:\n%s", p.cmd.ProcessState, text, p.said())
	}
}

// wait waits for the end, and returns the exit code; -1 is a signal's.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.trace(t)
	}
	return p.cmd.ProcessState.ExitCode()
}

// over tells whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// trace ends a process that does not move, once it has printed where it stands.
func (p *process) trace(t *testing.T) {
	t.Helper()
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGQUIT)
	<-p.ended
	t.Fatalf("the job has not moved for %v:\n%s", patience, p.said())
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process, if it hasn't ended.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}
