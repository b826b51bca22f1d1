package torture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// life is one process of the shop's job.
type life struct {
	cmd      *exec.Cmd
	progress string
	begun    time.Time
	started  chan struct{} // main runs
	first    chan struct{} // the first record has been taken up
	commits  chan struct{} // an epoch has been committed
	ended    chan struct{}
	boot     time.Duration // from started to first, once that is closed
	stderr   bytes.Buffer
}

// manyCommits is more than a life that is to be killed can have.
const manyCommits = 1 << 16

// start begins a life.
func start(t *testing.T, folder, binary string, args ...string) *life {
	t.Helper()
	l := &life{
		progress: filepath.Join(folder, "progress"),
		started:  make(chan struct{}), first: make(chan struct{}), ended: make(chan struct{}),
		commits: make(chan struct{}, manyCommits),
	}
	if err := os.WriteFile(l.progress, make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	l.cmd = exec.Command(binary, append([]string{"-folder", folder}, args...)...)
	l.cmd.Stderr = &l.stderr
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			switch lines.Text() {
			case "started":
				l.begun = time.Now()
				close(l.started)
			case "first record":
				l.boot = time.Since(l.begun)
				close(l.first)
			case "committed":
				l.commits <- struct{}{}
			}
		}
		l.cmd.Wait()
	}()
	t.Cleanup(func() {
		l.cmd.Process.Kill()
		<-l.ended
	})
	return l
}

// seen is how many records the process has taken up; it can be read when the
// process is dead.
func (l *life) seen(t *testing.T) int64 {
	t.Helper()
	page, err := os.ReadFile(l.progress)
	if err != nil {
		t.Fatal(err)
	}
	return int64(binary.NativeEndian.Uint64(page))
}

// patience is far above what anything here takes. A process that does not move
// for so long is made to print where it stands.
const patience = time.Minute

// await waits for an event of the life, or its end, which it must not come to.
func (l *life) await(t *testing.T, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
		return
	case <-l.ended:
	case <-time.After(patience):
		l.cmd.Process.Signal(syscall.SIGQUIT)
		<-l.ended
		t.Fatalf("the job has not moved for %v:\n%s", patience, l.stderr.String())
	}
	select {
	case <-event: // both: it has come, and the process has died since
	default:
		t.Fatalf("the job has ended by itself: %v\n%s", l.cmd.ProcessState, l.stderr.String())
	}
}

// kill ends the life by SIGKILL; it must not have ended before.
func (l *life) kill(t *testing.T) {
	t.Helper()
	l.cmd.Process.Kill()
	<-l.ended
	if l.cmd.ProcessState.Exited() {
		t.Fatalf("the job has ended by itself: %v\n%s", l.cmd.ProcessState, l.stderr.String())
	}
}
