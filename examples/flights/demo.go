package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicestream/sluice/examples/flights/flight"
)

// patience is how long the story may take besides the writing: three starts, and
// twice an epoch to wait for, on a slow machine.
const patience = 90 * time.Second

// demo is what the steps of the story share.
type demo struct {
	options
	*story
	week    []event
	writer  *writer
	servers *servers
	outputs []output
	failed  chan error // gets the errors of what runs beside the story
	running *process
}

// run plays the demo and returns an error if it did not go as it must.
func run(ctx context.Context, o options, s *story) (err error) {
	d, err := prepare(ctx, o, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.servers.close()) }()
	late := fmt.Errorf("not done within %v; see %s", o.lasts+patience, d.log())
	ctx, cancel := context.WithTimeoutCause(ctx, o.lasts+patience, late)
	end, err := d.begin(ctx)
	defer func() {
		cancel()
		end()
		if d.running != nil {
			<-d.running.ended
		}
	}()
	if err != nil {
		return err
	}
	before, err := d.play(ctx)
	if err != nil {
		return err
	}
	return d.check(ctx, before)
}

// prepare makes the folder with the builds and the empty inputs, and finds the
// servers.
func prepare(ctx context.Context, o options, s *story) (d *demo, err error) {
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
	servers, err := reach(o)
	if err != nil {
		w.close()
		return nil, err
	}
	return &demo{
		options: o, story: s, week: week, writer: w, servers: servers, outputs: outputsOf(o.dir, servers), failed: make(chan error, 2),
	}, nil
}

// begin has the flights written, and carried to their topic. It returns when the
// topic is there. What it has begun ends with ctx, and end waits for that.
func (d *demo) begin(ctx context.Context) (end func(), err error) {
	log, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return d.writer.close, err
	}
	d.tell(bold, "kafka", "%s", d.servers.where())
	for _, made := range d.servers.makes() {
		d.tell(faint, "", "made by this run: %s", made)
	}
	d.tell(bold, "write", "%s real flights of a week in 2013 go to topic %s, %s a second",
		grouped(len(d.week)), d.servers.names.Flights, grouped(int(float64(len(d.week))/d.lasts.Seconds())))
	var running sync.WaitGroup
	there := make(chan struct{})
	beside := func(do func() error) {
		running.Go(func() {
			if err := do(); err != nil {
				d.failed <- err
			}
		})
	}
	beside(func() error { return d.writer.write(ctx, d.week, d.lasts) })
	beside(func() error {
		return runFeed(ctx, d.dir, d.servers, slog.New(slog.NewTextHandler(log, nil)), sync.OnceFunc(func() { close(there) }))
	})
	end = func() {
		running.Wait()
		d.writer.close()
		log.Close()
	}
	select {
	case <-there:
		return end, nil
	case err := <-d.failed:
		return end, err
	case <-ctx.Done():
		return end, context.Cause(ctx)
	}
}

// log is the file to which the jobs say what they have to say.
func (d *demo) log() string { return filepath.Join(d.dir, "job.log") }

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
	counted, err := d.stop(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.start(ctx, "v2", "a newer build: its state also has OnTime; what v1 kept reads as 0"); err != nil {
		return nil, err
	}
	if err := d.await(ctx, len(d.week)); err != nil {
		return nil, err
	}
	_, err = d.stop(ctx)
	return countsOf(counted), err
}

func (d *demo) start(ctx context.Context, name, why string) error {
	p, err := start(ctx, d.options, d.servers.environment(), name)
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
	rows, err := d.outputs[0].read(ctx)
	if err != nil {
		return err
	}
	d.tell(bad, "kill", "kill -9 %d, in the middle of it: %s flights written, %s in the output", d.running.pid(),
		grouped(int(d.writer.written.Load())), grouped(counted(rows)))
	return nil
}

// stop ends the job in good order. All that it has counted is in all outputs then.
func (d *demo) stop(ctx context.Context) (map[key]row, error) {
	if err := d.running.stop(); err != nil {
		return nil, err
	}
	rows, err := readAll(ctx, d.outputs)
	if err != nil {
		return nil, err
	}
	d.tell(bold, "stop", "%s, by SIGTERM, with %s flights counted", d.running.name, grouped(counted(rows)))
	return rows, nil
}

// await waits until the job's output has so many flights, and tells of the way
// there.
func (d *demo) await(ctx context.Context, flights int) error {
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	tell := time.NewTicker(2 * time.Second)
	defer tell.Stop()
	for {
		rows, err := d.outputs[0].read(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if counted(rows) >= flights {
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
			d.tell(faint, "", "%s written, %s counted", grouped(int(d.writer.written.Load())), grouped(counted(rows)))
		case <-look.C:
		}
	}
}

// check compares the outputs with the recount, and says what there is to see.
func (d *demo) check(ctx context.Context, before map[key]int64) error {
	rows, err := readAll(ctx, d.outputs)
	if err != nil {
		return err
	}
	if err := compare("the job's output", rows, "the recount", recount(d.week, before)); err != nil {
		return err
	}
	d.tell(good, "check", "all %s flights counted once: every number equals an independent recount", grouped(len(d.week)))
	d.tell(good, "", "the same in %s", list(d.outputs))
	d.line(plain, "")
	d.line(bold, "%-8s %-8s %8s %10s %8s %12s %12s", "airport", "carrier", "flights", "cancelled", "on time", "mean delay", "worst delay")
	busiest := slices.SortedFunc(maps.Keys(rows), func(a, b key) int { return int(rows[b].Flights - rows[a].Flights) })
	for _, k := range busiest[:min(8, len(busiest))] {
		r := rows[k]
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

// list names the outputs.
func list(outputs []output) string {
	names := make([]string, len(outputs))
	for i, o := range outputs {
		names[i] = o.String()
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// explore says what can be done with what the demo leaves.
func (d *demo) explore() {
	job, store := d.servers.names.Job, filepath.Join(d.dir, "sluice-data")
	d.line(plain, "")
	d.line(bold, "To look around:")
	d.line(plain, "  go run ./cmd/sluice log %s --store %s", job, store)
	d.line(plain, "  go run ./cmd/sluice state list %s --store %s", job, store)
	d.line(plain, `  go run ./cmd/sluice state read %s delays '{"Airport":"JFK","Carrier":"B6"}' --store %s`, job, store)
	d.line(plain, "  go run ./cmd/sluice state export %s delays --format csv --to - --store %s", job, store)
	d.line(plain, "  ls %s", filepath.Join(d.dir, "out"))
	d.line(plain, "  (cd %s && %s=%s bin/v1 run)   # the older build: refused, as it would drop OnTime", d.dir, flight.Variable, job)
	for _, line := range d.servers.explore(d.dir) {
		d.line(plain, "  %s", line)
	}
}

// The demo's folder holds these. A second run makes them anew, and touches
// nothing else.
var contents = []string{"bin", "in", "kafka", "out", "sluice-data", "job.log"}

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
