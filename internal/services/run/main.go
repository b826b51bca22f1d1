// Command run starts and ends real servers for people and demos; scripts/kafka
// and scripts/postgres are its two faces.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"context"
)

// service is a kind of server that the command knows.
type service struct {
	usage string
	start func(o startOptions) (server, error)
	open  func(folder string) (server, error) // nil if none runs there
	// tools are what can be run against a server.
	tools map[string]func(ctx context.Context, s server, arguments []string) error
	// alone are what needs no server.
	alone map[string]func() error
}

// server is what the servers have in common.
type server interface {
	PID() int
	Stop() error
	Kill() error
	Pause() error
	Resume() error
	address() string
}

// startOptions are what start is given.
type startOptions struct {
	folder   string
	port     int
	settings map[string]string
}

// errUsage is the error of a command line that can't be understood.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	services := map[string]service{"kafka": kafka(), "postgres": postgres()}
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	s, ok := services[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: run kafka|postgres COMMAND …")
		os.Exit(2)
	}
	err := s.run(ctx, os.Args[2:])
	switch {
	case err == errUsage:
		fmt.Fprint(os.Stderr, s.usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func (s service) run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errUsage
	}
	command, rest := arguments[0], arguments[1:]
	if alone := s.alone[command]; alone != nil && len(rest) == 0 {
		return alone()
	}
	switch command {
	case "start":
		return s.startCommand(rest)
	case "help", "-h", "--help":
		fmt.Print(s.usage)
		return nil
	}
	if len(rest) == 0 {
		return errUsage
	}
	folder := rest[0]
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	found, err := s.open(folder)
	if err != nil {
		return err
	}
	if tool := s.tools[command]; tool != nil {
		if found == nil {
			return notRunning(folder)
		}
		return tool(ctx, found, rest[1:])
	}
	if len(rest) != 1 {
		return errUsage
	}
	return s.control(command, folder, found)
}

// control carries out what needs no more than the folder.
func (s service) control(command, folder string, found server) error {
	actions := map[string]func() error{
		"stop":    func() error { return found.Stop() },
		"kill":    func() error { return found.Kill() },
		"pause":   func() error { return found.Pause() },
		"resume":  func() error { return found.Resume() },
		"pid":     func() error { fmt.Println(found.PID()); return nil },
		"address": func() error { fmt.Println(found.address()); return nil },
	}
	act := actions[command]
	switch {
	case act == nil:
		return errUsage
	case found == nil && (command == "stop" || command == "kill"):
		fmt.Fprintf(os.Stderr, "%v\n", notRunning(folder))
		return nil
	case found == nil:
		return notRunning(folder)
	}
	return act()
}

func notRunning(folder string) error {
	return fmt.Errorf("no server runs in %s; start it with `start %s`", folder, folder)
}

func (s service) startCommand(arguments []string) error {
	o := startOptions{settings: map[string]string{}}
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	flags.Usage = func() {}
	flags.Func("set", "", func(setting string) error {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return errors.New("expected name=value")
		}
		o.settings[name] = value
		return nil
	})
	if flags.Parse(arguments) != nil || flags.NArg() < 1 || flags.NArg() > 2 {
		return errUsage
	}
	o.folder = flags.Arg(0)
	if flags.NArg() == 2 {
		port, err := strconv.ParseUint(flags.Arg(1), 10, 16)
		if err != nil {
			return errUsage
		}
		o.port = int(port)
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return err
	}
	running, err := s.open(o.folder)
	if err == nil && running == nil {
		running, err = s.start(o)
	}
	if err != nil {
		return err
	}
	fmt.Println(running.address())
	return nil
}
