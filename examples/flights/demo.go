package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// patience is how long the story may take besides the writing: three starts, and
// twice an epoch to wait for, on a slow machine.
const patience = 45 * time.Second

// demo is what the steps of the story share.
type demo struct {
	options
	*story
	week    []event
	writer  *writer
	failed  chan error // gets the writer's error, if any
	output  *output
	running *process
}

// run plays the demo and returns an error if it did not go as it must.
func run(ctx context.Context, o options, s *story) error {
	d, err := prepare(ctx, o, s)
	if err != nil {
		return err
	}
	late := fmt.Errorf("not done within %v; see %s", o.lasts+patience, filepath.Join(o.dir, "job.log"))
	ctx, cancel := context.WithTimeoutCause(ctx, o.lasts+patience, late)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		if err := d.writer.write(ctx, d.week, o.lasts); err != nil {
			d.failed <- err
		}
	}()
	defer func() {
		cancel()
		<-writing
		d.writer.close()
		if d.running != nil {
			<-d.running.ended
		}
	}()
	before, err := d.play(ctx)
	if err != nil {
		return err
	}
	return d.check(before)
}

// prepare makes the folder with the builds and the empty inputs.
func prepare(ctx context.Context, o options, s *story) (*demo, error) {
	week, err := readWeek()
	if err != nil {
		return nil, err
	}
	if err := makeFolder(o.dir); err != nil {
		return nil, err
	}
	s.tell(bold, "build", "two versions of the job, into %s", filepath.Join(o.dir, "bin"))
	for _, version := range []string{"v1", "v2"} {
		if err := build(ctx, o.dir, version); err != nil {
			return nil, err
		}
	}
	w, err := newWriter(filepath.Join(o.dir, "in"), week)
	if err != nil {
		return nil, err
	}
	s.tell(bold, "write", "%s real flights of a week in 2013 go to %d files, one per airport, %s a second",
		grouped(len(week)), len(w.files), grouped(int(float64(len(week))/o.lasts.Seconds())))
	return &demo{
		options: o, story: s, week: week, writer: w, failed: make(chan error, 1),
		output: &output{dir: filepath.Join(o.dir, "out"), rows: map[key]row{}},
	}, nil
}

// play is the story. It returns how many flights of each key the first version
// had counted when the second took over.
func (d *demo) play(ctx context.Context) (map[key]int64, error) {
	third := len(d.week) / 3
	if err := d.start(ctx, "v1", "counts what leaves, per carrier and airport"); err != nil {
		return nil, err
	}
	if err := d.await(ctx, third); err != nil {
		return nil, err
	}
	if err := d.crash(ctx); err != nil {
		return nil, err
	}
	if err := d.start(ctx, "v1", "again: goes on from the last epoch"); err != nil {
		return nil, err
	}
	if err := d.await(ctx, 2*third); err != nil {
		return nil, err
	}
	if err := d.stop(); err != nil {
		return nil, err
	}
	before := d.output.counts()
	if err := d.start(ctx, "v2", "a newer build: its state also has OnTime; what v1 kept reads as 0"); err != nil {
		return nil, err
	}
	if err := d.await(ctx, len(d.week)); err != nil {
		return nil, err
	}
	return before, d.stop()
}

func (d *demo) start(ctx context.Context, name, why string) error {
	p, err := start(ctx, d.options, name)
	if err != nil {
		return err
	}
	d.running = p
	d.tell(good, "start", "%s, process %d: %s", name, p.pid(), why)
	return nil
}

// crash kills the job at any moment of its epoch.
func (d *demo) crash(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rand.N(d.epoch)):
	}
	if err := d.running.kill(); err != nil {
		return err
	}
	if err := d.output.read(); err != nil {
		return err
	}
	d.tell(bad, "kill", "kill -9 %d, in the middle of it: %s flights written, %s in the output", d.running.pid(),
		grouped(int(d.writer.written.Load())), grouped(d.output.counted()))
	return nil
}

// stop ends the job in good order; all that it has counted is in the output then.
func (d *demo) stop() error {
	if err := d.running.stop(); err != nil {
		return err
	}
	if err := d.output.read(); err != nil {
		return err
	}
	d.tell(bold, "stop", "%s, by SIGTERM, with %s flights counted", d.running.name, grouped(d.output.counted()))
	return nil
}

// await waits until the job's output has so many flights, and tells of the way
// there.
func (d *demo) await(ctx context.Context, flights int) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	tell := time.NewTicker(2 * time.Second)
	defer tell.Stop()
	for {
		if err := d.output.read(); err != nil {
			return err
		}
		if d.output.counted() >= flights {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-d.failed:
			return err
		case <-d.running.ended:
			return d.running.unexpected()
		case <-tell.C:
			d.tell(faint, "", "%s written, %s counted", grouped(int(d.writer.written.Load())), grouped(d.output.counted()))
		case <-look.C:
		}
	}
}

// check compares the output with the recount, and says what there is to see.
func (d *demo) check(before map[key]int64) error {
	if err := compare(d.output.rows, recount(d.week, before)); err != nil {
		return err
	}
	d.tell(good, "check", "all %s flights counted once: every number equals an independent recount", grouped(len(d.week)))
	d.line(plain, "")
	d.line(bold, "%-8s %-8s %8s %10s %8s %12s %12s", "airport", "carrier", "flights", "cancelled", "on time", "mean delay", "worst delay")
	busiest := slices.SortedFunc(maps.Keys(d.output.rows), func(a, b key) int { return int(d.output.rows[b].Flights - d.output.rows[a].Flights) })
	for _, k := range busiest[:min(8, len(busiest))] {
		r := d.output.rows[k]
		d.line(plain, "%-8s %-8s %8d %10d %8d %8.1f min %8d min", k.Airport, k.Carrier, r.Flights, r.Cancelled, r.OnTime, r.MeanDelay, r.WorstDelay)
	}
	d.line(faint, "(on time: since v2 took over, behind the first %s flights)", grouped(sum(before)))
	d.explore()
	return nil
}

func sum(counts map[key]int64) int {
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	return total
}

// explore says what can be done with the folder.
func (d *demo) explore() {
	store := filepath.Join(d.dir, "sluice-data")
	d.line(plain, "")
	d.line(bold, "To look around:")
	d.line(plain, "  go run ./cmd/sluice log flights --store %s", store)
	d.line(plain, "  go run ./cmd/sluice state list flights --store %s", store)
	d.line(plain, `  go run ./cmd/sluice state read flights delays '{"Airport":"JFK","Carrier":"B6"}' --store %s`, store)
	d.line(plain, "  go run ./cmd/sluice state export flights delays --format csv --to - --store %s", store)
	d.line(plain, "  ls %s", filepath.Join(d.dir, "out"))
	d.line(plain, "  (cd %s && bin/v1 run)   # the older build: refused, as it would drop OnTime", d.dir)
}

// The demo's folder holds these. A second run makes them anew, and touches
// nothing else.
var contents = []string{"bin", "in", "out", "sluice-data", "job.log"}

// marker is the file that tells a folder of the demo's from any other.
const marker = ".sluice-demo"

// makeFolder makes the demo's folder, or clears that of an earlier run.
func makeFolder(dir string) error {
	_, err := os.Stat(filepath.Join(dir, marker))
	if errors.Is(err, fs.ErrNotExist) {
		if there, _ := os.ReadDir(dir); len(there) > 0 {
			return fmt.Errorf("%s is not empty and not a folder of this demo: name another with --dir", dir)
		}
	} else if err != nil {
		return err
	}
	for _, name := range contents {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "in"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte("Made by Sluice's flights demo, which clears this folder when it runs again.\n"), 0o644)
}
