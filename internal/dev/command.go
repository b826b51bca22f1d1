// Package dev is the command `sluice dev`: a Kafka broker for trying a job out on
// a machine that has none. It is a package of its own so that a job's binary,
// which has the command line of internal/cli, doesn't hold a broker.
package dev

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/kafka/embedded"
)

const (
	defaultFolder = "sluice-dev"
	defaultAddr   = "127.0.0.1:9092"
)

// flags are what the command was given.
type flags struct {
	folder, addr    string
	brokers         int
	topics          []string
	seed, into, key string
	json            bool
}

// Command is the command `dev`.
func Command() *cobra.Command {
	f := new(flags)
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a Kafka broker for trying things out, until Ctrl-C",
		Long: `Run a Kafka broker for trying things out, until Ctrl-C. It is embedded in this
command and needs no Java; what it holds is kept in a folder. It speaks Kafka's
protocol, with transactions and consumer groups, and is not the real one: ` + "`go doc\ngithub.com/sluicestream/sluice/kafka/embedded`" + ` tells what it does otherwise.

--topic makes topics unless they are there. --seed fills the topic that --into names
from a file of JSON lines, one record from each line, if the topic is empty; with
--key the records' key is the value of that field.

  sluice dev --topic orders:4 --topic spend:4 --seed orders.jsonl --into orders --key user`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%s: %d arguments; use it as `%s`", c.CommandPath(), len(args), c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer restore()
			return f.run(ctx, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.folder, "folder", defaultFolder, "the `folder` that everything is kept in")
	c.Flags().StringVar(&f.addr, "addr", defaultAddr, "the `host:port` to listen at; port 0 takes a free one")
	c.Flags().IntVar(&f.brokers, "brokers", 1, "the `number` of brokers; the others have the ports that follow")
	c.Flags().StringArrayVar(&f.topics, "topic", nil, "make the topic `name:partitions`, with one partition if the number is left out; may be repeated (default none)")
	c.Flags().StringVar(&f.seed, "seed", "", "fill a topic from this `file` of JSON lines (default none)")
	c.Flags().StringVar(&f.into, "into", "", "the `topic` that --seed fills (default the only --topic)")
	c.Flags().StringVar(&f.key, "key", "", "the `field` whose value is the records' key (default none: records have no key)")
	c.Flags().BoolVar(&f.json, "json", false, "write a JSON object when it is ready (default false)")
	return c
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// ExitCode is the exit code of the command line.
func (usageError) ExitCode() int { return 2 }

// Unwrap returns what is wrong.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// settle checks what was given, and returns the topics to be made.
func (f *flags) settle() (topics []embedded.Topic, err error) {
	for _, text := range f.topics {
		t, err := parseTopic(text)
		if err != nil {
			return nil, err
		}
		topics = append(topics, t)
	}
	switch {
	case f.seed == "" && f.into != "":
		return nil, usagef("--into %s: there is nothing to fill it from; give --seed too", f.into)
	case f.seed == "" && f.key != "":
		return nil, usagef("--key %s: there is nothing to take it from; give --seed too", f.key)
	case f.seed != "" && f.into == "" && len(topics) == 1:
		f.into = topics[0].Name
	case f.seed != "" && f.into == "":
		return nil, usagef("--seed %s: into which of %d topics? name it with --into", f.seed, len(topics))
	}
	return topics, nil
}

// parseTopic reads name or name:partitions.
func parseTopic(text string) (embedded.Topic, error) {
	name, number, numbered := strings.Cut(text, ":")
	t := embedded.Topic{Name: name, Partitions: 1}
	if !numbered {
		return t, nil
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 {
		return t, usagef("--topic %s: %q is no number of partitions; write it as --topic %s:4", text, number, name)
	}
	t.Partitions = int(n)
	return t, nil
}

// run starts the broker, fills it, tells where it is, and waits for the end.
func (f *flags) run(ctx context.Context, out io.Writer) (err error) {
	topics, err := f.settle()
	if err != nil {
		return err
	}
	s := seed{file: f.seed, key: f.key}
	if f.seed != "" { // what is wrong with it is told before anything is made
		if err := s.check(); err != nil {
			return err
		}
	}
	b, err := embedded.Start(embedded.Options{Folder: f.folder, Addr: f.addr, Brokers: f.brokers, Topics: topics})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := b.Close(); err == nil {
			err = closeErr
		}
	}()
	filled, err := f.fill(ctx, b, s)
	if err != nil {
		return err
	}
	if err := f.ready(ctx, out, b, filled); err != nil || ctx.Err() != nil {
		return err
	}
	<-ctx.Done()
	if err := b.Close(); err != nil {
		return err
	}
	if !f.json {
		_, err = fmt.Fprintf(out, "Stopped. Everything is kept in %s.\n", f.folder)
	}
	return err
}

// fill fills the topic of --into if it is empty, and tells whether it was.
func (f *flags) fill(ctx context.Context, b *embedded.Broker, s seed) (filled bool, err error) {
	if f.seed == "" {
		return false, nil
	}
	topics, err := b.Topics(ctx)
	if err != nil {
		return false, err
	}
	names := make([]string, len(topics))
	there := false
	for i, t := range topics {
		names[i] = t.Name
		there = there || t.Name == f.into
	}
	if !there {
		return false, usagef("--into %s: there is no such topic among %q; make it with --topic %s:4", f.into, names, f.into)
	}
	if b.Records(f.into) > 0 {
		return false, nil
	}
	n, err := b.Fill(ctx, f.into, s.records())
	if err != nil && ctx.Err() == nil {
		return false, fmt.Errorf("--seed %s: %d records are in topic %s: %w; start anew with another --folder", f.seed, n, f.into, err)
	}
	return true, nil
}

// topicState is a topic as --json tells of it.
type topicState struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Records    int64  `json:"records"`
	Filled     bool   `json:"filled"` // by this run
}

// state is what --json tells once the broker is ready.
type state struct {
	Addr      []string     `json:"addr"`
	Folder    string       `json:"folder"`
	Recovered bool         `json:"recovered"` // the last run was killed
	Topics    []topicState `json:"topics"`
}

// ready tells where the broker is, and what it holds.
func (f *flags) ready(ctx context.Context, out io.Writer, b *embedded.Broker, filled bool) error {
	topics, err := b.Topics(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // ended before it was ready
		}
		return err
	}
	s := state{Addr: b.Addrs(), Folder: f.folder, Recovered: b.Recovered(), Topics: []topicState{}}
	for _, t := range topics {
		s.Topics = append(s.Topics, topicState{t.Name, t.Partitions, b.Records(t.Name), filled && t.Name == f.into})
	}
	if f.json {
		line, err := json.Marshal(s, json.Deterministic(true))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", line)
		return err
	}
	_, err = io.WriteString(out, s.text(f))
	return err
}

// text is what people are told.
func (s state) text(f *flags) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Kafka at %s, embedded, kept in %s\n", strings.Join(s.Addr, ","), s.Folder)
	if s.Recovered {
		text.WriteString("The last run was killed: all that was acknowledged is there. Transactions that were open are aborted.\n")
	}
	for _, t := range s.Topics {
		fmt.Fprintf(&text, "topic %s: %s, %s", t.Name, count(int64(t.Partitions), "partition"), count(t.Records, "record"))
		switch {
		case t.Filled:
			fmt.Fprintf(&text, ", filled from %s", f.seed)
		case f.seed != "" && t.Name == f.into:
			fmt.Fprintf(&text, ", so not filled from %s again", f.seed)
		}
		text.WriteByte('\n')
	}
	text.WriteString("Ctrl-C ends it.\n")
	return text.String()
}

func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
