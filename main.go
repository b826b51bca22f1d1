package sluice

import (
	"context"
	"encoding/json/jsontext"
	"os"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/cli"
	"github.com/sluicestream/sluice/internal/runner"
)

// Main gives a job the command line of its own binary, and ends the process
// with the exit code that the command line documents. It is all that a job's
// main function has to call:
//
//	func main() { sluice.Main(job()) }
//
// The commands are run, upgrade, rollback, plan, import, stop, status and describe; each tells its flags
// with --help.
// They are a thin layer over [Job.Run], which a program that has a command line
// already calls itself.
//
// The command run tells the garbage collector to let the heap grow to five times
// what is live (GOGC=400) and to stay within 90% of the memory that the process
// may have by its cgroup or by the machine: at Go's defaults a quarter of a
// job's CPU goes into the collector. The variables GOGC and GOMEMLIMIT and the
// flag --gc-percent overrule that. Job.Run leaves the collector as it is.
func Main(job *Job) {
	os.Exit(cli.RunJob(cli.Job{
		Name: job.name, Check: job.Check, Version: job.version, Ways: job.graph.Ways, CheckSinks: job.checkSinks, CheckSources: job.checkSources, Run: job.runSettings, Follow: job.followSettings, Deliver: job.deliverSettings, Import: job.importSettings,
	}, os.Args[1:]))
}

// runSettings runs the job as its command line was told to.
func (job *Job) runSettings(ctx context.Context, s cli.Settings) error {
	return job.Run(ctx, optionsOf(s))
}

// followSettings follows as its command line was told to.
func (job *Job) followSettings(ctx context.Context, s cli.Settings, f cli.FollowSettings) error {
	following := runner.Following{
		Kind: f.Kind, Name: string(f.Kind), Auto: f.Auto, CutOver: f.CutOver, Soak: f.Soak, Again: f.Again, Over: f.Over, Create: f.Create,
		FromText: f.From, OwnClock: f.OwnClock, Backfill: f.Backfill, Rehearse: f.Rehearse, AwaitGroup: f.WaitGroup, AwaitGroupFor: f.WaitGroupFor,
		DropDeliveries: f.DropDeliveries, Guard: f.Guard, Compare: f.Compare,
		Told: func(p runner.FollowProgress) { f.Told(followProgress(p)) },
	}
	if f.Import != nil {
		in, err := job.runnerImport(env.Real().Files, importOf(*f.Import))
		if err != nil {
			return err
		}
		following.Import = in
	}
	if f.Check != nil {
		following.Check = func(ctx context.Context, p runner.FollowProgress) error { return f.Check(ctx, followProgress(p)) }
	}
	return job.run(ctx, optionsOf(s), &following)
}

func followProgress(p runner.FollowProgress) cli.FollowProgress {
	return cli.FollowProgress{
		Stage: string(p.Stage), Branch: p.Branch, Followed: p.Followed, Position: uint64(p.Position), Lag: uint64(p.Lag),
		Results: p.Results, Compared: p.Compared, Objections: p.Objections,
	}
}

// optionsOf are what a command line was told, as the job takes it.
func optionsOf(s cli.Settings) Options {
	return Options{
		Store: s.Store, Epoch: s.Epoch, Shards: s.Shards, Workers: s.Workers,
		Grace: s.Grace, Drop: s.Drop, SetAside: s.SetAside, Gap: s.Gap, Rewrite: s.Rewrite, Replace: s.Replace, Log: s.Log,
		TransactionPrefix: s.TransactionPrefix, Lease: s.Lease, ResumeAfter: s.ResumeAfter, AbandonAfter: s.AbandonAfter, FollowAfterCut: s.FollowAfterCut, WaitSuperseded: s.OnSuperseded == "wait", Resume: s.Resume, Standby: s.Standby, Fresh: s.Fresh, FreshFrom: s.FreshFrom, RepeatOutputs: s.RepeatOutputs, TakeOver: s.TakeOver, Keep: s.Keep, KeepEpochs: s.KeepEpochs, Savepoints: s.Savepoints,
		MemoryLimit: s.MemoryLimit, Volatile: s.Volatile, Listener: s.Listener, Asked: s.Asked,
		Committed: func(c Committed) {
			told := cli.Committed{Epoch: c.Epoch, Position: c.Position, Records: c.Records, DeadLetters: c.DeadLetters}
			for _, p := range c.Partitions {
				told.Partitions = append(told.Partitions, cli.Partition(p))
			}
			s.Committed(told)
		},
	}
}

func importOf(s cli.ImportSettings) Import {
	im := Import{Offsets: s.Offsets, Groups: s.Groups, From: s.From, BeginRest: s.BeginRest, IgnoreUnknown: s.IgnoreUnknown, Defaults: s.Defaults, Read: s.Read}
	for _, f := range s.Files {
		im.Files = append(im.Files, ImportFile(f))
	}
	return im
}

// importSettings imports what its command line was told to.
func (job *Job) importSettings(ctx context.Context, s cli.ImportSettings) (cli.Imported, error) {
	im := importOf(s)
	done, err := job.Import(ctx, Options{
		Store: s.Store, Log: s.Log, TransactionPrefix: s.TransactionPrefix, Volatile: s.Volatile, MemoryLimit: s.MemoryLimit,
	}, im)
	var out cli.Imported
	for _, state := range done.States {
		out.States = append(out.States, cli.ImportedState(state))
	}
	for _, d := range done.Defaults {
		out.Defaults = append(out.Defaults, cli.ImportedDefault{State: d.State, Column: d.Column, Value: jsontext.Value(d.Value), Implied: d.Implied})
	}
	for _, p := range done.Offsets {
		out.Offsets = append(out.Offsets, cli.ImportedOffset{Source: p.Source, Partition: p.Partition, Next: p.Next})
	}
	return out, err
}

// deliverSettings delivers what its command line was told to.
func (job *Job) deliverSettings(ctx context.Context, s cli.Settings) (all []cli.Rest, err error) {
	found, err := job.Deliver(ctx, Options{Store: s.Store, Lease: s.Lease, Log: s.Log})
	for _, r := range found {
		all = append(all, cli.Rest(r))
	}
	return all, err
}
