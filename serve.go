package sluice

import (
	"context"
	"fmt"

	"github.com/sluicestream/sluice/internal/operate"
	"github.com/sluicestream/sluice/internal/runner"
)

// serve shows how the job is, as the options ask for it, until it is told to end.
func (job *Job) serve(ctx context.Context, o Options, ro runner.Options) (end func(), err error) {
	ended := func() {}
	if o.Metrics != nil {
		metrics := operate.NewCollector(job.name, ro.Board)
		if err := o.Metrics.Register(metrics); err != nil {
			return nil, fmt.Errorf("%s: its metrics can't be registered: %w; give each job a name or a registry of its own", job.name, err)
		}
		ended = func() { o.Metrics.Unregister(metrics) }
	}
	if o.Listener == nil {
		return ended, nil
	}
	service := operate.Service{
		Job: job.name, Board: ro.Board, Metrics: operate.NewRegistry(job.name, ro.Board), Clock: ro.Env.Clock, Log: ro.Log,
	}
	ro.Log.Info("serving metrics, health and profiles", "address", o.Listener.Addr().String())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := service.Serve(ctx, o.Listener); err != nil {
			ro.Log.Warn("metrics and health are served no longer; the job goes on", "error", err)
		}
	}()
	return func() {
		cancel()
		<-served
		ended()
	}, nil
}
