package services

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxStart bounds how long a server may take to start.
const maxStart = 90 * time.Second

// server is what both kinds of servers have in common.
type server struct {
	folder   *folder
	detached bool
	ready    string // what the log says of a server that can be used

	mu  sync.Mutex
	run *process // nil or ended: it doesn't run
}

// await waits for a server that was just started to be of use.
func (s *server) await(run *process, port int) error {
	s.run = run
	if err := os.WriteFile(s.folder.in(pidFile), []byte(strconv.Itoa(run.pid)+"\n"), 0o644); err != nil {
		s.run.end(syscall.SIGKILL)
		return err
	}
	ended := false
	ready := within(maxStart, func() bool {
		ended = !run.alive()
		return ended || s.folder.says(s.ready) && busy(port)
	})
	switch {
	case ended:
		run.release()
		return fmt.Errorf("the server in %s ended while it started: %s (all of it: %s)", s.folder.path, s.folder.complaint(), s.folder.in(logFile))
	case !ready:
		run.end(syscall.SIGKILL)
		return fmt.Errorf("the server in %s was not ready after %v: %s (all of it: %s)", s.folder.path, maxStart, s.folder.complaint(), s.folder.in(logFile))
	}
	return nil
}

// runsNow tells whether the server runs. The watchdog of one that has ended by
// itself is sent away.
func (s *server) runsNow() bool {
	if s.run == nil {
		return false
	}
	if !s.run.alive() {
		s.run.release()
		return false
	}
	return true
}

// Running tells whether the server runs, paused or not.
func (s *server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runsNow()
}

// PID is the number of the server's process, 0 if it doesn't run.
func (s *server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runsNow() {
		return 0
	}
	return s.run.pid
}

// Folder is where the server keeps everything. Its log is server.log in it.
func (s *server) Folder() string { return s.folder.path }

// Stop ends the server cleanly, by a signal. One that doesn't run stays so.
func (s *server) Stop() error { return s.halt(syscall.SIGINT) }

func (s *server) halt(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil
	}
	if s.runsNow() {
		s.wake() // another process may have paused it
	}
	return s.run.end(signal)
}

// Kill ends the server and its processes by SIGKILL.
func (s *server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runsNow() {
		return nil
	}
	// stopped, it starts no further process meanwhile
	if err := syscall.Kill(s.run.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	below := children(s.run.pid)
	err := s.run.end(syscall.SIGKILL)
	for _, pid := range below {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if !within(maxEnding, func() bool {
		for _, pid := range below {
			if runs(pid) {
				return false
			}
		}
		return true
	}) {
		err = fmt.Errorf("a process of the server in %s still runs %v after SIGKILL", s.folder.path, maxEnding)
	}
	return err
}

// Pause stops the server and its processes where they are, by SIGSTOP:
// connections stay open, and nobody answers.
func (s *server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runsNow() {
		return errors.New("pause a server: it doesn't run; Start starts it")
	}
	if err := syscall.Kill(s.run.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	pids := append(children(s.run.pid), s.run.pid)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP) // one that has ended meanwhile needs none
	}
	// a signal takes a while to reach all threads
	if !within(maxEnding, func() bool { return !slices.ContainsFunc(pids, moves) }) {
		return fmt.Errorf("the server in %s still runs %v after SIGSTOP", s.folder.path, maxEnding)
	}
	return nil
}

// moves tells whether a process is neither stopped nor at its end.
func moves(pid int) bool { return runs(pid) && !strings.HasPrefix(ps("stat", pid), "T") }

// Resume lets a paused server go on.
func (s *server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runsNow() {
		return errors.New("resume a server: it doesn't run; Start starts it")
	}
	s.wake()
	return nil
}

func (s *server) wake() {
	for _, pid := range append(children(s.run.pid), s.run.pid) {
		syscall.Kill(pid, syscall.SIGCONT) // one that has ended meanwhile needs none
	}
}

// Close kills the server, and removes its folder if that was made for it.
func (s *server) Close() error {
	if err := s.Kill(); err != nil {
		return err
	}
	return s.folder.remove()
}
