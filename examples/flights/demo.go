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
	built   chan error // gets how building v2 has ended
	running *process
	started []*process // all of them
	base    uint64     // position at which v2's branch begins
	branch  string     // that branch
	watched watch      // what a reader of the folder saw
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
		for _, p := range d.started {
			<-p.ended
		}
	}()
	if err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	return d.check(ctx)
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
	s.tell(bold, "build", "the job's first version, into %s", filepath.Join(o.dir, "bin"))
	if err := build(ctx, o.dir, "v1"); err != nil {
		return nil, err
	}
	w, err := newWriter(filepath.Join(o.dir, "in"), week)
	if err != nil {
		return nil, err
	}
	w.most.Store(int64(len(week) * beforeUpgrade / 100))
	servers, err := reach(o)
	if err != nil {
		w.close()
		return nil, err
	}
	return &demo{
		options: o, story: s, week: week, writer: w, servers: servers, outputs: outputsOf(o.dir, servers), failed: make(chan error, 3), built: make(chan error, 1),
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
	beside(func() error { return d.watched.look(ctx, filepath.Join(d.dir, "out")) })
	running.Go(func() { d.built <- build(ctx, d.dir, "v2") })
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

// The marks of the story, in flights of a hundred: how many are counted when the job is
// killed, when v2 begins to follow, and when v1 is to come back; and how many are written
// at most before v2 follows, before it is live, and before v1 is again, so that enough is
// left however slow the machine is.
const (
	killAt, upgradeAt, backAt            = 15, 33, 75
	beforeUpgrade, beforeCut, beforeBack = 40, 70, 92
)

// play is the story.
func (d *demo) play(ctx context.Context) error {
	part := func(percent int) int { return len(d.week) * percent / 100 }
	if err := d.run(ctx, "counts what leaves, per carrier and airport"); err != nil {
		return err
	}
	if err := d.await(ctx, part(killAt), nil); err != nil {
		return err
	}
	if err := d.crash(ctx); err != nil {
		return err
	}
	if err := d.run(ctx, "again: goes on from the last epoch"); err != nil {
		return err
	}
	if err := d.await(ctx, part(upgradeAt), nil); err != nil {
		return err
	}
	if err := d.upgrade(ctx); err != nil {
		return err
	}
	d.writer.most.Store(int64(part(beforeBack)))
	if err := d.await(ctx, part(backAt), func(rows map[key]row) bool { return by("v2", rows) > 0 }); err != nil {
		return err
	}
	if err := d.rollback(ctx); err != nil {
		return err
	}
	d.writer.most.Store(int64(len(d.week)))
	// A rollback writes all rows anew, those of keys too that no flight has come for since.
	if err := d.await(ctx, len(d.week), func(rows map[key]row) bool { return by("v2", rows) == 0 }); err != nil {
		return err
	}
	return d.stop(ctx)
}

// run starts the first version.
func (d *demo) run(ctx context.Context, why string) error {
	return d.start(ctx, "v1", why, "run")
}

// upgrade has the second version follow, beside the first, and take its place.
func (d *demo) upgrade(ctx context.Context) error {
	if err := <-d.built; err != nil {
		return err
	}
	d.writer.most.Store(int64(len(d.week) * beforeCut / 100))
	before := d.running
	soak := d.lasts / 8
	err := d.start(ctx, "v2", fmt.Sprintf("follows what v1 does, and takes over when it has kept up for %v", soak.Round(time.Second/10)),
		"upgrade", "--auto", "--soak", soak.String(), "--json")
	if err != nil {
		return err
	}
	d.tell(faint, "", "new in it: how many left on time, and a delay counts with two hours at most in the mean")
	live, err := d.follow(ctx, before)
	if err != nil {
		return err
	}
	begun, told, err := d.running.tells.of(begins)
	if err != nil || !told {
		return errors.Join(err, errors.New("v2 is live, and has not told where its branch begins"))
	}
	d.base, d.branch = begun.Position, live.Branch
	d.tell(good, "cut over", "v2 is live; while it followed: %s", live.Compared[0].text())
	for _, line := range live.Compared[0].samples(3) {
		d.tell(faint, "", "changed: %s", line)
	}
	return d.succeeded(ctx, before)
}

// rollback has the first version come back.
func (d *demo) rollback(ctx context.Context) error {
	before := d.running
	args := []string{"rollback", "--auto", "--json"}
	if d.servers.postgres != "" {
		args = append(args, "--drop", "table.on_time")
	}
	if err := d.start(ctx, "v1", "back from where it ended: works through what v2 has read since", args...); err != nil {
		return err
	}
	if _, err := d.follow(ctx, before); err != nil {
		return err
	}
	d.tell(good, "rollback", "v1 is live again; it writes all rows anew, as v2's may be other ones")
	return d.succeeded(ctx, before)
}

// succeeded waits for the end of the process whose place another one has taken.
func (d *demo) succeeded(ctx context.Context, before *process) error {
	if err := before.replaced(ctx); err != nil {
		return err
	}
	d.tell(faint, "", "%s, process %d, has seen that and ended: exit code %d, superseded", before.name, before.pid(), superseded)
	return nil
}

// follow waits until the newest process is live in the place of the one before, and
// tells of the way there.
func (d *demo) follow(ctx context.Context, before *process) (live happened, err error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	gone := before.ended
	for {
		live, told, err := d.running.tells.of(isLive)
		if err != nil || told {
			return live, err
		}
		select {
		case <-ctx.Done():
			return live, context.Cause(ctx)
		case err := <-d.failed:
			return live, err
		case <-d.running.ended:
			return live, d.running.unexpected()
		case <-gone: // by the cut, or for another reason
			if err := before.replaced(ctx); err != nil {
				return live, err
			}
			gone = nil
		case <-tell.C:
			if h, told, _ := d.running.tells.of(follows); told && len(h.Compared) > 0 {
				d.tell(faint, "", "%s, %d epochs behind: %s", h.Stage, h.Lag, h.Compared[0].text())
			}
		case <-look.C:
		}
	}
}

// start starts a command of a version, which is then the one that runs.
func (d *demo) start(ctx context.Context, name, why string, args ...string) error {
	p, err := start(ctx, d.options, d.servers.environment(), name, args...)
	if err != nil {
		return err
	}
	d.running, d.started = p, append(d.started, p)
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
func (d *demo) stop(ctx context.Context) error {
	if err := d.running.stop(); err != nil {
		return err
	}
	d.tell(bold, "stop", "%s, by SIGTERM", d.running.name)
	return nil
}

// tellEvery is how often the story tells how it goes on.
const tellEvery = 2 * time.Second

// await waits until the job's output has so many flights, and rows are as they are to
// be, if anything is said of them; and tells of the way there.
func (d *demo) await(ctx context.Context, flights int, rowsAre func(rows map[key]row) bool) error {
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	for {
		rows, err := d.outputs[0].read(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if counted(rows) >= flights && (rowsAre == nil || rowsAre(rows)) {
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
func (d *demo) check(ctx context.Context) error {
	files := newFolder(d.dir)
	if _, err := files.read(ctx); err != nil {
		return err
	}
	base, err := files.countsAt(d.base)
	if err != nil {
		return err
	}
	want := newRecount(d.week, base)
	rows, err := readAll(ctx, d.outputs)
	if err != nil {
		return err
	}
	if err := compare("the job's output", rows, "the recount", want.table("v1")); err != nil {
		return err
	}
	shares, err := want.audit(files.all)
	if err != nil {
		return err
	}
	if err := d.tellShares(shares); err != nil {
		return err
	}
	d.tell(good, "", "each of %s rows that were put out on the way, and all in the end, equal an independent recount", grouped(len(files.all)))
	d.tell(good, "", "the same in %s", list(d.outputs))
	d.tellGaps(files.all)
	d.line(plain, "")
	d.line(bold, "%-8s %-8s %8s %10s %12s %12s", "airport", "carrier", "flights", "cancelled", "mean delay", "worst delay")
	busiest := slices.SortedFunc(maps.Keys(rows), func(a, b key) int { return cmp.Or(cmp.Compare(rows[b].Flights, rows[a].Flights), compareKeys(a, b)) })
	for _, k := range busiest[:min(8, len(busiest))] {
		r := rows[k]
		d.line(plain, "%-8s %-8s %8d %10d %8.1f min %8d min", k.Airport, k.Carrier, r.Flights, r.Cancelled, r.MeanDelay, r.WorstDelay)
	}
	d.explore()
	return nil
}

// tellShares tells which version accounted for how many flights: v1, v2, and v1 again.
func (d *demo) tellShares(shares []share) error {
	var texts, versions []string
	total := 0
	for _, s := range shares {
		texts, versions = append(texts, fmt.Sprintf("%s %s", s.version, grouped(s.flights))), append(versions, s.version)
		total += s.flights
	}
	if !slices.Equal(versions, []string{"v1", "v2", "v1"}) || total != len(d.week) {
		return fmt.Errorf("expected %d flights, put out by v1, v2 and v1, found %d by %s", len(d.week), total, strings.Join(versions, ", "))
	}
	d.tell(good, "check", "all %s flights counted, each once: %s", grouped(total), strings.Join(texts, ", then "))
	return nil
}

// tellGaps tells how long a reader of the folder waited for the next output when the
// versions changed.
func (d *demo) tellGaps(rows []delivered) {
	var changes []string
	for i := 1; i < len(rows); i++ {
		if rows[i].row.version() != rows[i-1].row.version() {
			changes = append(changes, rows[i].file)
		}
	}
	longest, usual := d.watched.gaps(changes)
	d.tell(good, "", "longest time between two outputs: %.2f s around the cut, %.2f s around the rollback; usual: %.2f s",
		longest[0].Seconds(), longest[1].Seconds(), usual.Seconds())
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
	d.line(plain, "  go run ./cmd/sluice log %s --graph --store %s", job, store)
	d.line(plain, "  go run ./cmd/sluice diff %s %s --store %s", job, d.branch, store)
	d.line(plain, "  ls %s", filepath.Join(d.dir, "out"))
	d.line(plain, "  (cd %s && %s=%s bin/v2 run)   # refused: v1 has replaced it", d.dir, flight.Variable, job)
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
