package sluice

import (
	"context"
	"os"

	"github.com/sluicestream/sluice/internal/cli"
)

// Main gives a job the command line of its own binary, and ends the process
// with the exit code that the command line documents. It is all that a job's
// main function has to call:
//
//	func main() { sluice.Main(job()) }
//
// The commands are run, plan, import, stop, status and describe; each tells its flags
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
		Name: job.name, Check: job.Check, Version: job.version, Ways: job.graph.Ways, CheckSinks: job.checkSinks, Run: job.runSettings, Import: job.importSettings,
	}, os.Args[1:]))
}

// runSettings runs the job as its command line was told to.
func (job *Job) runSettings(ctx context.Context, s cli.Settings) error {
	return job.Run(ctx, Options{
		Store: s.Store, Epoch: s.Epoch, Shards: s.Shards, Workers: s.Workers,
		Grace: s.Grace, Drop: s.Drop, SetAside: s.SetAside, Gap: s.Gap, Replace: s.Replace, Log: s.Log,
		TransactionPrefix: s.TransactionPrefix, Lease: s.Lease, TakeOver: s.TakeOver, Keep: s.Keep, KeepEpochs: s.KeepEpochs, Savepoints: s.Savepoints,
		MemoryLimit: s.MemoryLimit, Volatile: s.Volatile, Listener: s.Listener, Asked: s.Asked,
		Committed: func(c Committed) {
			told := cli.Committed{Epoch: c.Epoch, Position: c.Position, Records: c.Records, DeadLetters: c.DeadLetters}
			for _, p := range c.Partitions {
				told.Partitions = append(told.Partitions, cli.Partition(p))
			}
			s.Committed(told)
		},
	})
}

// importSettings imports what its command line was told to.
func (job *Job) importSettings(ctx context.Context, s cli.ImportSettings) (cli.Imported, error) {
	im := Import{Offsets: s.Offsets, Groups: s.Groups, BeginRest: s.BeginRest, IgnoreUnknown: s.IgnoreUnknown, Read: s.Read}
	for _, f := range s.Files {
		im.Files = append(im.Files, ImportFile(f))
	}
	done, err := job.Import(ctx, Options{Store: s.Store, Log: s.Log, TransactionPrefix: s.TransactionPrefix, Volatile: s.Volatile}, im)
	var out cli.Imported
	for _, state := range done.States {
		out.States = append(out.States, cli.ImportedState(state))
	}
	for _, d := range done.Defaults {
		out.Defaults = append(out.Defaults, cli.ImportedDefault(d))
	}
	for _, p := range done.Offsets {
		out.Offsets = append(out.Offsets, cli.ImportedOffset{Source: p.Source, Partition: p.Partition, Next: p.Next})
	}
	return out, err
}
