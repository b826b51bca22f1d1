package sluice

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/cli"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
)

// checkSinks asks those of the job's sinks that can tell whether this build could
// open them, all at once: each may have to wait for a server.
func (job *Job) checkSinks(ctx context.Context, o cli.SinkChecks) []cli.SinkCheck {
	var asked []cli.SinkCheck
	var checkers []connector.Checker
	for _, s := range job.graph.Sinks() {
		if c, ok := s.Sink.(connector.Checker); ok {
			asked, checkers = append(asked, cli.SinkCheck{Sink: s.Name}), append(checkers, c)
		}
	}
	var asking sync.WaitGroup
	for i, c := range checkers {
		asking.Go(func() {
			err := c.Check(ctx, connector.Opening{
				Env: o.Env, Log: slog.New(slog.DiscardHandler), Job: job.name, JobID: o.JobID, Name: asked[i].Sink, TransactionPrefix: o.TransactionPrefix,
			})
			if errors.Is(err, connector.ErrNotAsked) {
				asked[i].Unasked = err
			} else {
				asked[i].Refused = err
			}
		})
	}
	asking.Wait()
	return asked
}

// checkSources asks the job's sources whether they still have what lies behind offsets.
func (job *Job) checkSources(ctx context.Context, o cli.SourceChecks) (all []cli.SourceCheck) {
	at := map[string]map[string]connector.Offset{}
	for name, source := range o.At {
		at[name] = deliver.Offsets(source)
	}
	opening := engine.Options{Env: o.Env, Log: slog.New(slog.DiscardHandler), Job: job.name, JobID: o.JobID, TransactionPrefix: o.TransactionPrefix}
	for _, fault := range job.graph.Reach(ctx, opening, at) {
		if lost, ok := errors.AsType[connector.LostError](fault); ok {
			needed, first := lost.Lost()
			all = append(all, cli.SourceCheck{Source: fault.Source, Partition: fault.Partition, Needed: needed, First: first})
		} else if errors.Is(fault, connector.ErrUnavailable) {
			all = append(all, cli.SourceCheck{Source: fault.Source, Unasked: fault})
		}
	}
	return all
}
