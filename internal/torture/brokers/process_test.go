package brokers

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/torture/sources"
)

// patience is how long anything may take that has to come.
const patience = 60 * time.Second

// binaries is the folder of the jobs, which are built once.
var binaries struct {
	folder string
	once   sync.Once
}

// atOnce is how many tests run side by side: they wait for others' processes most
// of the time.
const atOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "brokers-")
	if err != nil {
		panic(err)
	}
	binaries.folder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// binary is the path of a job's binary.
func binary(t *testing.T, job string) string {
	t.Helper()
	binaries.once.Do(func() {
		sources.Read(t)
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binaries.folder+"/", "./testjobs/...")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building the jobs: %v\n%s", err, out)
		}
	})
	return filepath.Join(binaries.folder, job)
}

// event is a line that a job prints with --json.
type event struct {
	Event    string
	Epoch    uint64
	Records  int64
	Error    string
	ExitCode int `json:"exit_code"`
}

// process is a process of a job.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu      sync.Mutex
	events  []event
	output  strings.Builder // all that it has printed, the events too
	changed chan struct{}   // closed and replaced with each line
}

// launch starts a job's binary.
func launch(t *testing.T, env []string, job string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{}), changed: make(chan struct{})}
	p.cmd = exec.Command(binary(t, job), args...)
	p.cmd.Env = append(os.Environ(), env...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go func() {
		defer close(p.ended)
		defer read.Close()
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.add(lines.Text())
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) add(line string) {
	var e event
	_ = json.Unmarshal([]byte(line), &e) // what is no event has no name
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output.WriteString(line + "\n")
	p.events = append(p.events, e)
	close(p.changed)
	p.changed = make(chan struct{})
}

// said is what the process has printed.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// sees waits until the events of a name are so many; false if the process ends
// before.
func (p *process) sees(t *testing.T, name string, times int) bool {
	t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	for {
		n := 0
		p.mu.Lock()
		for _, e := range p.events {
			if e.Event == name {
				n++
			}
		}
		changed := p.changed
		p.mu.Unlock()
		if n >= times {
			return true
		}
		select {
		case <-changed:
		case <-p.ended:
			return false
		case <-hung.C:
			p.trace(t)
		}
	}
}

// count is how many events of a name there were.
func (p *process) count(name string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Event == name {
			n++
		}
	}
	return n
}

// must waits for events that have to come.
func (p *process) must(t *testing.T, name string, times int) {
	t.Helper()
	if !p.sees(t, name, times) {
		t.Fatalf("the job has ended (%v) without %d events %q:\n%s", p.cmd.ProcessState, times, name, tail(p.said()))
	}
}

// records is how many records the process has committed.
func (p *process) records() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Event == "committed" {
			n += e.Records
		}
	}
	return n
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
	t.Fatalf("the job has not moved for %v:\n%s", patience, tail(p.said()))
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process, if it hasn't ended.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// tail is the beginning and the end of a long text.
func tail(text string) string {
	const most = 6_000
	if len(text) > 2*most {
		return text[:most] + "\n…\n" + text[len(text)-most:]
	}
	return text
}
