package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// source is where the job's two versions are.
const source = "github.com/sluicestream/sluice/examples/flights/"

// build makes a real executable of a version of the job, dir/bin/version. The
// name is given, as go would take a last part "v2" for a module's version.
func build(ctx context.Context, dir, version string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-w", "-o", filepath.Join(dir, "bin", version), source+version).CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("go build %s (it needs the go command, and Sluice's own folder to be in): %w\n%s", source+version, err, out)
	}
	return nil
}

// process is a running job.
type process struct {
	name  string
	log   string
	tells *events // what a build that follows tells; nil of others
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended, with result set
	// result is how it ended.
	result error
}

// start runs a command of a build of the job in the demo's folder, as a user would
// there. It is killed when ctx ends.
func start(ctx context.Context, o options, environment []string, name string, args ...string) (*process, error) {
	log := filepath.Join(o.dir, "job.log")
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the process has its own
	p := &process{name: name, log: log, ended: make(chan struct{})}
	args = append(args, "--epoch", o.epoch.String(), "--listen=")
	cmd := exec.CommandContext(ctx, "./bin/"+name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.dir, f, f
	if slices.Contains(args, "--json") {
		p.tells = newEvents()
		cmd.Stdout = p.tells
	}
	cmd.Env = append(os.Environ(), environment...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.cmd = cmd
	go func() {
		p.result = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process as a crash does, and waits until it is gone.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return p.unexpected()
	}
	return err
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	if p.result != nil {
		return p.unexpected()
	}
	return nil
}

// superseded is the exit code of a build that another one has replaced.
const superseded = 12

// replaced waits until the process has ended by itself, since another build has taken
// over, and complains if it ended otherwise.
func (p *process) replaced(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); !errors.As(p.result, &exit) || exit.ExitCode() != superseded {
		return p.unexpected()
	}
	return nil
}

// unexpected says that the process has ended otherwise than it was meant to.
func (p *process) unexpected() error {
	how := "exit status 0"
	if p.result != nil {
		how = p.result.Error()
	}
	return fmt.Errorf("%s has ended: %s; its log, %s, ends with: %s", p.name, how, p.log, lastLine(p.log))
}

func lastLine(name string) []byte {
	log, _ := os.ReadFile(name)
	log = bytes.TrimSpace(log)
	return log[bytes.LastIndexByte(log, '\n')+1:]
}
