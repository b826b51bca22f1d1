package dev_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/cli"
	"github.com/sluicestream/sluice/internal/dev"
)

// The test's own executable is the sluice command.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sluice": func() { os.Exit(cli.RunSluice(os.Args[1:], dev.Command())) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               freeAddress,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"consume": consume,
			"plain":   plain,
			"ready":   ready,
		},
	})
}

// freeAddress sets ADDR to an address that nobody listens at.
func freeAddress(e *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	e.Setenv("ADDR", l.Addr().String())
	return nil
}

// exits runs a command that must end with an exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("%s has ended with the code %d, expected %s", args[1], code, args[0])
	}
}

// plain writes what was printed to a file, without the address: plain FILE TO.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plain FILE TO")
	}
	text := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(ts.ReadFile(args[0]), "ADDR")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// ready waits until a broker has said all that it says at its start: ready FILE.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready FILE")
	}
	text := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		data, _ := os.ReadFile(ts.MkAbs(args[0])) // which isn't there at first
		text = string(data)
		if strings.HasSuffix(text, "Ctrl-C ends it.\n") || strings.HasSuffix(text, "]}\n") {
			return
		}
		runtime.Gosched()
	}
	ts.Fatalf("the broker says no more than %q", text)
}

// consume waits for a broker and a number of records in a topic, and writes them
// to a file, sorted, as partition, key and value: consume TOPIC COUNT FILE. It
// tells whether records of one key are in one partition.
func consume(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: consume TOPIC COUNT FILE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("ADDR")), kgo.ConsumeTopics(args[0]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.UnknownTopicRetries(-1), kgo.MetadataMinAge(50*time.Millisecond))
	ts.Check(err)
	defer c.Close()
	var lines []string
	partitions := map[string]int32{}
	for len(lines) < n {
		for _, r := range c.PollFetches(ctx).Records() {
			key := "-"
			if r.Key != nil {
				key = string(r.Key)
				if p, ok := partitions[key]; ok && p != r.Partition {
					ts.Fatalf("key %s is in the partitions %d and %d", key, p, r.Partition)
				}
				partitions[key] = r.Partition
			}
			lines = append(lines, fmt.Sprintf("%s %s\n", key, r.Value))
		}
		if ctx.Err() != nil {
			ts.Fatalf("%d of %d records have come", len(lines), n)
		}
	}
	// no more than those
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, args[0])
	ts.Check(err)
	ends.Each(func(o kadm.ListedOffset) { n -= int(o.Offset) })
	if n != 0 {
		ts.Fatalf("there are %d records more", -n)
	}
	slices.Sort(lines)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Join(lines, "")), 0o644))
}
