// Package upgradetest makes jobs with several branches for tests, by the epoch log's
// own calls, with outboxes that can be read.
package upgradetest

import (
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Job is the name of the job.
const Job = "spend"

// Fataler is what a test and a script have in common.
type Fataler interface {
	Fatalf(format string, args ...any)
}

// World is a job that reads one record an epoch from the partition 0 of orders. The
// epoch of position p puts {N: p, Cents: 10·p} out to the stream log, and {Cents: p}
// under the key "k" and p modulo 3 to the table totals.
type World struct {
	t      Fataler
	job    *epoch.Job
	owners map[string]*epoch.Owner
	live   string
}

// New begins a job in a store, with its branch main.
func New(t Fataler, e *env.Env, st store.Store) *World {
	job, err := epoch.OpenJob(ctx(), e, st, Job, "")
	w := &World{t: t, job: job, owners: map[string]*epoch.Owner{}, live: epoch.MainBranch}
	w.must("open", err)
	w.take(epoch.MainBranch, "main")
	return w
}

// Job is the job, as a process of its own has it.
func (w *World) Job() *epoch.Job { return w.job }

// ctx is a call's context: a script has none.
func ctx() context.Context { return context.Background() }

func (w *World) must(what string, err error) {
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func identity(exe string) epoch.Identity {
	return epoch.Identity{Build: epoch.Build{Executable: exe}, Version: epoch.Version{}, Writer: epoch.ThisProcess()}
}

func (w *World) take(branch, exe string) {
	o, err := w.job.Take(ctx(), branch, epoch.FirstTask, identity(exe))
	w.must("take "+branch, err)
	w.owners[branch] = o
}

// Live commits epochs to the live branch.
func (w *World) Live(epochs int) {
	o := w.owners[w.live]
	for range epochs {
		head, _ := o.Head()
		m := epoch.Manifest{Kind: epoch.Data, Now: head.Now + 1, Sinks: map[string]epoch.SinkState{}}
		w.read(&m, head.Position+1)
		for _, name := range []string{"log", "totals"} {
			s, known := head.Sinks[name]
			if !known {
				s.Record = "made"
			}
			s.Confirmed = head.Position
			m.Sinks[name] = s
		}
		w.freeze(o, &m, head.Position, head.Position+1, 0)
		_, err := o.Commit(ctx(), m)
		w.must("commit", err)
	}
}

func (w *World) read(m *epoch.Manifest, next epoch.Position) {
	m.Runs = append(m.Runs, epoch.Run{Source: "orders", Partition: "0", Next: int64(next)})
	m.Sources = map[string]epoch.SourceState{"orders": {Partitions: map[string]epoch.Offset{"0": {Next: int64(next)}}}}
}

type logRow struct {
	N     int64
	Cents int64
}

type totalRow struct{ Cents int64 }

// freeze writes the outboxes of positions; wrong is added to the cents of even ones.
func (w *World) freeze(o *epoch.Owner, m *epoch.Manifest, after, to epoch.Position, wrong int64) {
	rows, key := schemaOf[logRow](w), must(schema.KeyOf[string]("key"))
	totals := schemaOf[totalRow](w)
	var stream, table outbox.Rows
	last := map[string]int64{}
	for p := int64(after) + 1; p <= int64(to); p++ {
		off := int64(0)
		if p%2 == 0 {
			off = wrong
		}
		stream.Begin(uint64(p), 0, connector.Append, 0)
		stream.Row(true)
		stream.Buf = must(rows.Append(stream.Buf, &logRow{p, 10*p + off}))
		stream.Wire(false)
		stream.End()
		last[fmt.Sprint("k", p%3)] = p + off
	}
	for _, name := range []string{"k0", "k1", "k2"} {
		cents, has := last[name]
		if !has {
			continue
		}
		encoded := key.Append(nil, name)
		slot := uint16(xxhash.Sum64(encoded) >> 48)
		table.Begin(uint64(slot), 0, connector.Put, slot)
		table.Buf = append(table.Buf, encoded...)
		table.Row(true)
		table.Buf = must(totals.Append(table.Buf, &totalRow{cents}))
		table.Wire(false)
		table.End()
	}
	w.write(o, m, outbox.Form{Sink: "log", Contract: 1, Row: rows.Schema()}, &stream)
	w.write(o, m, outbox.Form{Sink: "totals", Contract: 1, Key: key.Schema(), Row: totals.Schema(), Compare: must(schema.Comparer(key.Schema()))}, &table)
}

func schemaOf[T any](w *World) *schema.Type[T] {
	t, err := schema.Of[T]("row")
	w.must("schema", err)
	return t
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w *World) write(o *epoch.Owner, m *epoch.Manifest, f outbox.Form, rows *outbox.Rows) {
	objects, err := outbox.Write(ctx(), w.job.Store(), Job, f, []outbox.Batch{{Rows: rows}}, func() (string, error) {
		return o.DataName(o.NextEpoch(), f.Sink)
	})
	w.must("write "+f.Sink, err)
	s := m.Sinks[f.Sink]
	s.Outbox = objects
	m.Sinks[f.Sink] = s
}

// Record begins a branch of another build, without its base, and returns its name. It
// starts at the live branch's newest epoch if nothing else is said.
func (w *World) Record(name string, kind epoch.BranchKind, from *epoch.Point) string {
	begun, err := w.job.BeginBranch(ctx(), epoch.Beginning{Name: name, Kind: kind, From: from}, identity(name))
	w.must("begin "+name, err)
	return begun.File.Branch
}

// Begin begins a branch as Record does, with its base.
func (w *World) Begin(name string, kind epoch.BranchKind, from *epoch.Point) string {
	me := identity(name)
	begun, err := w.job.BeginBranch(ctx(), epoch.Beginning{Name: name, Kind: kind, From: from}, me)
	w.must("begin "+name, err)
	branch := begun.File.Branch
	o, err := w.job.BeginBase(ctx(), branch, epoch.FirstTask, me)
	w.must("begin the base", err)
	_, err = o.PutBase(ctx(), epoch.BaseOf(begun.From[epoch.FirstTask], begun.File.Build, begun.File.Branch, nil))
	w.must("put the base", err)
	w.must("unpin", w.job.UnpinBranch(ctx(), branch))
	w.owners[branch] = o
	return branch
}

// Cover has a branch cover what is ahead of it, at most so many positions in a step.
// wrong is added to the cents of its even positions.
func (w *World) Cover(branch string, steps, most int, wrong int64) {
	o, feed := w.owners[branch], w.job.Follow(branch, epoch.FirstTask)
	for range steps {
		head, _ := o.Head()
		next, err := feed.Next(ctx(), head, most)
		w.must("follow", err)
		if next.Step != epoch.Cover {
			return
		}
		m := epoch.Following(head, next.Covered)
		w.read(&m, m.Position)
		w.freeze(o, &m, head.Position, m.Position, wrong)
		_, err = o.Commit(ctx(), m)
		w.must("commit to "+branch, err)
	}
}

// Beat gives a heartbeat of a branch's owner.
func (w *World) Beat(branch string, h epoch.Heartbeat) {
	w.must("beat", w.owners[branch].Beat(ctx(), h))
}

// Cut makes a branch live: it seals the live one, covers its end and takes its place.
func (w *World) Cut(branch string, kind epoch.BranchKind) {
	_, err := w.job.SealBranch(ctx(), w.live, epoch.ThisProcess(), "an upgrade")
	w.must("seal", err)
	w.Cover(branch, 1000, 1, 0)
	step, record, err := w.owners[branch].GoLive(ctx(), epoch.Cutting{Kind: kind, Sinks: []string{"log", "totals"}})
	w.must("cut over", err)
	if step != epoch.IsLive || record.Branch != branch {
		w.t.Fatalf("cut over to %s: step %d, %s is live", branch, step, record.Branch)
	}
	w.live = branch
}

// Clean cleans up, and keeps so many epochs of each log.
func (w *World) Clean(keep int) {
	_, err := clean.New(w.job, clean.Options{Keep: -1, KeepEpochs: keep}).All(ctx())
	w.must("clean up", err)
}
