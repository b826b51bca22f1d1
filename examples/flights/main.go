// Command flights is Sluice's demo: a job counts real flights as they leave New
// York, is killed, and comes back; a newer version follows it, is compared with it,
// takes its place, and is replaced by the older one again, while the flights go on.
// In the end every number that was put out is compared with a recount.
//
//	go run ./examples/flights [--dir sluice-demo] [--for 24s]
//
// The job is in the folders v1 and v2. It reads Kafka and writes to Kafka, to a
// folder, and to PostgreSQL where SLUICE_POSTGRES names a database. The cluster is
// the one of SLUICE_KAFKA, or a broker in the demo's own process. What is here
// stands around the job: the writer of its input, the hand that kills it, and the
// recount.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are how the demo is to run.
type options struct {
	dir   string        // where everything goes
	lasts time.Duration // how long the writer takes for the week
	epoch time.Duration // the job's epochs

	kafka    string // addresses of a cluster's brokers; empty: a broker in this process
	postgres string // a database's URL; empty: none
}

func main() {
	o := options{epoch: 500 * time.Millisecond, kafka: os.Getenv("SLUICE_KAFKA"), postgres: os.Getenv("SLUICE_POSTGRES")}
	flag.StringVar(&o.dir, "dir", "sluice-demo", "the `folder` that the demo makes, or makes anew")
	flag.DurationVar(&o.lasts, "for", 24*time.Second, "the `time` in which the flights of the week are written")
	flag.Parse()
	if flag.NArg() > 0 || o.lasts <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	// Whatever ends the demo, a closed pipe too, must end the job that it started.
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer done()
	if err := run(ctx, o, newStory(os.Stdout)); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the job was killed")
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		done()
		os.Exit(1)
	}
}
