package sluice

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// Committed is an epoch that was committed.
type Committed struct {
	// Epoch is its number, Position that of its outputs.
	Epoch, Position uint64
	// Records and DeadLetters count what it read, and what of it could not be
	// processed.
	Records, DeadLetters int64
	// Pause is the longest time for which a part of the state took no record
	// because the epoch ended.
	Pause time.Duration
	// Partitions tell how far each partition has been read.
	Partitions []PartitionProgress
}

// PartitionProgress is how far a partition has been read.
type PartitionProgress struct {
	// Source and Partition name it.
	Source, Partition string
	// Next is the offset to be read next, End that behind the last record.
	Next, End int64
}

// PendingError says that a job has stopped with deliveries pending. Nothing is
// lost: the next run delivers them first.
type PendingError struct {
	// Job is the job's name.
	Job string
	// Pending is the number of deliveries that are owed, by sink.
	Pending map[string]int
}

// Error implements error.
func (e *PendingError) Error() string {
	var owed []string
	for _, sink := range slices.Sorted(maps.Keys(e.Pending)) {
		owed = append(owed, fmt.Sprintf("%d to sink %s", e.Pending[sink], sink))
	}
	return fmt.Sprintf("%s: stopped, deliveries pending: %s. Nothing is lost; run the job again, which makes them first.", e.Job, strings.Join(owed, ", "))
}

// ExitCode is the exit code of the command line.
func (e *PendingError) ExitCode() int { return 10 }

// Run runs the job until its input has ended, or ctx has. In either case the
// open epoch is closed, committed and delivered, and the error is nil. Once ctx
// has ended, deliveries have Options.Grace; what is pending then is told by a
// *[PendingError]. Any other error says what stopped the job; what was committed
// stays, and a run that follows goes on from there.
func (job *Job) Run(ctx context.Context, o Options) error {
	switch {
	case o.Fresh:
		return job.run(ctx, o, &runner.Following{Kind: epoch.Fresh, Name: string(epoch.Fresh), FromText: o.FreshFrom, RepeatOutputs: o.RepeatOutputs})
	case o.Standby:
		return job.run(ctx, o, &runner.Following{Kind: epoch.Failover, Name: string(epoch.Failover), Standby: true, Again: true})
	}
	return job.run(ctx, o, nil)
}

func (job *Job) run(ctx context.Context, o Options, f *runner.Following) error {
	if o.Listener != nil {
		defer o.Listener.Close()
	}
	if err := job.Check(); err != nil {
		return err
	}
	ro, err := job.runnerOptions(o)
	if err != nil {
		return err
	}
	ro.Follow = f
	end, err := job.serve(ctx, o, ro)
	if err != nil {
		return err
	}
	defer end()
	result, err := runner.Run(ctx, ro)
	if err == nil && len(result.Pending) > 0 {
		return &PendingError{Job: job.name, Pending: result.Pending}
	}
	return err
}

// Replay processes epochs of the live branch once more, in the recorded order of
// reading and with the recorded clocks, and tells where what comes of them
// differs, byte for byte, from what was written: nowhere, if the functions are
// pure. It changes nothing. after is the epoch whose state it starts from.
func (job *Job) Replay(ctx context.Context, o Options, after uint64) (Replayed, error) {
	if err := job.Check(); err != nil {
		return Replayed{}, err
	}
	ro, err := job.runnerOptions(o)
	if err != nil {
		return Replayed{}, err
	}
	out, err := runner.Replay(ctx, ro, runner.ReplayRange{After: epoch.Epoch(after)})
	return Replayed(out), err
}

// Replayed is what a replay has found.
type Replayed struct {
	// Epochs and Records count what was replayed.
	Epochs, Records int64
	// Differences has one text for each object that came out otherwise.
	Differences []string
}

// ReplaceSource gives the source of the given name another connector for
// records of the same type: a test feeds the job in this way.
func (job *Job) ReplaceSource[T any](name string, source connector.Source[T]) error {
	return engine.ReplaceSource(job.graph, name, source)
}

// ReplaceSink gives the sink of the given name another connector for its frozen
// rows: a test takes the job's outputs in this way.
func (job *Job) ReplaceSink(name string, sink connector.Sink) error {
	return job.graph.ReplaceSink(name, sink)
}

// SinkInfo is a sink of a job.
type SinkInfo struct {
	// Name is the author's name for it.
	Name string
	// Sink is its connector.
	Sink connector.Sink
}

// Sinks are the job's sinks, in the order in which they were added.
func (job *Job) Sinks() []SinkInfo {
	var out []SinkInfo
	for _, s := range job.graph.Sinks() {
		out = append(out, SinkInfo{s.Name, s.Sink})
	}
	return out
}

// DefaultStore is the folder that holds a job's state if nothing else is said.
const DefaultStore = "sluice-data"

// shortestLease is the least of Options.Lease.
const shortestLease = 100 * time.Millisecond

// mostShards bounds Options.Shards and Options.Workers.
const mostShards = 1024

func (job *Job) runnerOptions(o Options) (runner.Options, error) {
	if o.Shards > mostShards || o.Workers > mostShards {
		return runner.Options{}, fmt.Errorf("%s: %d shards and %d workers: at most %d of each; leave them out for one per core", job.name, o.Shards, o.Workers, mostShards)
	}
	if o.Env == nil {
		o.Env = env.Real()
	}
	if o.Store == nil {
		s, err := store.OpenFolder(o.Env, DefaultStore)
		if err != nil {
			return runner.Options{}, err
		}
		o.Store = s
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Lease > 0 && o.Lease < shortestLease {
		return runner.Options{}, fmt.Errorf("%s: a lease of %v leaves an owner no time to say that it lives; use %v or more, such as 10s", job.name, o.Lease, shortestLease)
	}
	savepoints, err := epoch.ParseSchedules(o.Savepoints)
	if err != nil {
		return runner.Options{}, fmt.Errorf("%s: savepoints: %w", job.name, err)
	}
	build, err := epoch.ThisExecutable()
	if err != nil {
		return runner.Options{}, err
	}
	return runner.Options{
		Env: o.Env, Log: o.Log.With("job", job.name), Store: o.Store, Job: job.name,
		Graph: job.graph, DeadLetters: job.dead, Version: job.version(), Build: build,
		Workers: orInt(o.Workers, runtime.GOMAXPROCS(0)), Shards: orInt(o.Shards, runtime.GOMAXPROCS(0)),
		EpochEvery: orDuration(o.Epoch, time.Second), EpochBytes: int64(orInt(int(o.EpochBytes), 256<<20)),
		BatchRecords: orInt(o.BatchRecords, 2048), BatchBytes: orInt(o.BatchBytes, 1<<20),
		Grace: orDuration(o.Grace, 20*time.Second), Drop: o.Drop, SetAside: o.SetAside, Gap: o.Gap, Rewrite: rewriteModes(o.Rewrite), Replace: o.Replace, TransactionPrefix: o.TransactionPrefix,
		Lease: orDuration(o.Lease, 10*time.Second), ResumeAfter: orDuration(o.ResumeAfter, time.Minute), ResumeNow: o.Resume,
		AbandonAfter: abandonAfter(o.AbandonAfter), FollowAfterCut: o.FollowAfterCut, WaitSuperseded: o.WaitSuperseded, TakeOver: o.TakeOver,
		Keep: orDuration(o.Keep, 10*time.Minute), KeepEpochs: keepEpochs(o.KeepEpochs), Savepoints: savepoints,
		Limit: memoryLimit(o.MemoryLimit), Board: vitals.New(o.Env.Clock), Asked: o.Asked, Volatile: o.Volatile,
		Committed: committedFunc(o.Committed),
	}, nil
}

func abandonAfter(d time.Duration) time.Duration {
	if d < 0 {
		return 0
	}
	return orDuration(d, 7*24*time.Hour)
}

func rewriteModes(bySink map[string]string) map[string]epoch.RewriteMode {
	modes := map[string]epoch.RewriteMode{}
	for sink, mode := range bySink {
		modes[sink] = epoch.RewriteMode(mode)
	}
	return modes
}

func keepEpochs(n int) int {
	if n < 0 {
		return n
	}
	return orInt(n, 100)
}

func memoryLimit(bytes int64) memory.Limit {
	if bytes > 0 {
		return memory.Limit{Bytes: bytes, Source: memory.FromFlag}
	}
	return memory.OfProcess()
}

func committedFunc(f func(Committed)) func(epoch.Manifest, []engine.PartitionLag, time.Duration) {
	if f == nil {
		return nil
	}
	return func(m epoch.Manifest, lag []engine.PartitionLag, pause time.Duration) {
		c := Committed{
			Epoch: uint64(m.Epoch), Position: uint64(m.Position),
			Records: m.Counts["records"], DeadLetters: m.Counts["dead_letters"], Pause: pause,
		}
		for _, l := range lag {
			c.Partitions = append(c.Partitions, PartitionProgress{l.Source, l.Partition, l.Next, l.End})
		}
		f(c)
	}
}

func orInt(v, otherwise int) int {
	if v > 0 {
		return v
	}
	return otherwise
}

func orDuration(v, otherwise time.Duration) time.Duration {
	if v > 0 {
		return v
	}
	return otherwise
}

// version describes what the job is: what two builds must have in common to be
// one version.
func (job *Job) version() epoch.Version {
	v := epoch.Version{
		Format: epoch.Format, Sources: map[string]epoch.Part{}, Operators: map[string]epoch.Part{},
		States: map[string]epoch.StateSchemas{}, Sinks: map[string]epoch.Part{}, Times: map[string]epoch.Part{}, Functions: map[string]string{},
	}
	for _, s := range job.graph.Sources() {
		v.Sources[s.Name] = partOf(s.Description, nil)
	}
	for _, t := range job.graph.EventTimes() {
		v.Times[t.Name] = timePart(t)
		note(v.Functions, epoch.TimeFunction(t.Name), t.Function)
	}
	keys := map[int]engine.StageInfo{}
	for _, s := range job.graph.Stages() {
		keys[s.ID] = s
	}
	for _, s := range job.graph.States() {
		schemas := epoch.StateSchemas{Operator: s.Operator, Meaning: s.Meaning, KeyMeaning: s.KeyMeaning, Key: s.Form.Key.String(), Value: s.Form.Value.String()}
		if s.Form.Element != nil {
			schemas.Element = s.Form.Element.String()
			schemas.Limit, schemas.Descending = s.Limit.Entries, s.Limit.Descending
		}
		if s.Kind != "value" {
			schemas.Kind = s.Kind
		}
		for _, m := range s.Carrier.Migrations() {
			schemas.Migrations = append(schemas.Migrations, m.String())
		}
		schemas.MigratesKeys = s.Carrier.MigratesKeys()
		v.States[s.Name] = schemas
		part := epoch.Part{Kind: s.Operation, Inputs: job.claims[s.Operator].from, Parameters: maps.Clone(v.Operators[s.Operator].Parameters), Times: v.Operators[s.Operator].Times}
		for name, value := range s.Parameters {
			if part.Parameters == nil {
				part.Parameters = map[string]string{}
			}
			part.Parameters[name] = value
		}
		for _, t := range s.Times {
			if !slices.Contains(part.Times, t.Name) {
				part.Times = append(part.Times, t.Name)
			}
		}
		v.Operators[s.Operator] = part
		note(v.Functions, s.Operator, s.Function)
		note(v.Functions, epoch.KeyFunction(s.Operator), keys[s.Stage].Function)
	}
	for _, s := range job.graph.Sinks() {
		part := partOf(s.Sink.Describe(), job.sinks[s.Name].from)
		part.Schemas = map[string]string{"row": s.Row.String()}
		if s.Key != nil {
			part.Schemas["key"] = s.Key.String()
		}
		v.Sinks[s.Name] = part
		note(v.Functions, epoch.RowFunction(s.Name), s.Function)
	}
	return v
}

func note(functions map[string]string, part, function string) {
	if function != "" {
		functions[part] = function
	}
}

func partOf(d connector.Description, from []string) epoch.Part {
	p := epoch.Part{Kind: d.Connector, Inputs: from, Parameters: map[string]string{}}
	for _, param := range d.Parameters {
		p.Parameters[param.Name] = param.Value
	}
	if d.Target != "" {
		p.Parameters["target"] = d.Target
	}
	return p
}
