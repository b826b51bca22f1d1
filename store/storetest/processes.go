package storetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/store"
)

const (
	racingProcesses = 4
	racedNames      = 150
	// childVariable tells a process that it is a racer, which one, and where.
	childVariable = "SLUICE_STORETEST_RACER"
	winMark       = "storetest won: "
)

// RunProcesses lets several processes race for the names of one store, and
// checks that each name has one winner, whose bytes it holds. It starts this
// test again in processes of its own, so it must be called by a test function,
// not a subtest, and be all that this function does. The place is a new folder
// that all of them are given; a store elsewhere makes a name for itself of it.
func RunProcesses(t *testing.T, open func(t *testing.T, place string) store.Store) {
	t.Helper()
	if number, place, ok := strings.Cut(os.Getenv(childVariable), ":"); ok {
		race(t, open(t, place), number)
		return
	}
	explain(t, "a fenced owner is a process of its own; the store alone tells it so")
	place := t.TempDir()
	racers := make([]*racer, racingProcesses)
	for i := range racers {
		racers[i] = startRacer(t, i, place)
	}
	for _, r := range racers { // all are ready; off they go
		fmt.Fprintln(r.start)
	}
	winners := map[int][]string{}
	for i, r := range racers {
		for _, name := range r.won(t) {
			winners[name] = append(winners[name], strconv.Itoa(i))
		}
	}
	s := open(t, place)
	for name := range racedNames {
		if len(winners[name]) != 1 {
			t.Errorf("%s has %d winners: %v", racedName(name), len(winners[name]), winners[name])
			continue
		}
		wantBytes(t, s, racedName(name), "by "+winners[name][0])
	}
}

func racedName(i int) string { return fmt.Sprintf("race/%d/%020d.json", i%7, i) }

// race is what a racer does: wait for the start, then try every name.
func race(t *testing.T, s store.Store, number string) {
	fmt.Println(winMark + "ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for name := range racedNames {
		err := s.Create(t.Context(), racedName(name), []byte("by "+number))
		if errors.Is(err, store.ErrUnknown) {
			t.Fatalf("%s: %v: a store that loses replies by itself can't be judged by this test", racedName(name), err)
		}
		if err != nil && !errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
		if err == nil {
			fmt.Println(winMark + strconv.Itoa(name))
		}
	}
}

type racer struct {
	command *exec.Cmd
	start   io.WriteCloser
	lines   *bufio.Scanner
	errors  *bytes.Buffer
}

func startRacer(t *testing.T, i int, place string) *racer {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &racer{command: exec.CommandContext(t.Context(), program, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v=false"), errors: &bytes.Buffer{}}
	r.command.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", childVariable, i, place))
	r.command.Stderr = r.errors
	if r.start, err = r.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.command.Process.Kill() })
	r.lines = bufio.NewScanner(out)
	for r.lines.Scan() {
		if r.lines.Text() == winMark+"ready" {
			return r
		}
	}
	t.Fatalf("racer %d ended before the start: %s", i, r.errors)
	return nil
}

// won waits for the racer's end and returns the names that it won.
func (r *racer) won(t *testing.T) []int {
	t.Helper()
	var names []int
	var rest []string
	for r.lines.Scan() {
		mark, ok := strings.CutPrefix(r.lines.Text(), winMark)
		name, err := strconv.Atoi(mark)
		if !ok || err != nil {
			rest = append(rest, r.lines.Text())
			continue
		}
		names = append(names, name)
	}
	if err := r.command.Wait(); err != nil {
		t.Fatalf("a racer failed: %v\n%s\n%s", err, strings.Join(rest, "\n"), r.errors)
	}
	return names
}
