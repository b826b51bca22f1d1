package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// spending is the job of these examples.
func spending(d desk) *sluice.Job {
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	return job
}

// A job's metrics go into a registry of the program's own while it runs.
func ExampleOptions_metrics() {
	d := newDesk()
	defer d.clear()
	registry := prometheus.NewRegistry()
	spending(d).Run(context.Background(), sluice.Options{
		Store: store.NewMemory(), Metrics: registry, Log: slog.New(slog.DiscardHandler),
		Committed: func(sluice.Committed) {
			families, _ := registry.Gather()
			for _, f := range families {
				if name := f.GetName(); name == "sluice_records_total" || name == "sluice_output_rows_total" {
					fmt.Println(name, f.GetMetric()[0].GetCounter().GetValue())
				}
			}
		},
	})
	// Output:
	// sluice_output_rows_total 2
	// sluice_records_total 4
}

// Whether a job is alive, and ready, is answered over HTTP.
func ExampleOptions_listener() {
	d := newDesk()
	defer d.clear()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	spending(d).Run(context.Background(), sluice.Options{
		Store: store.NewMemory(), Listener: l, Log: slog.New(slog.DiscardHandler),
		Committed: func(sluice.Committed) {
			answer, err := http.Get("http://" + l.Addr().String() + "/healthz")
			if err != nil {
				fmt.Println(err)
				return
			}
			defer answer.Body.Close()
			io.Copy(io.Discard, answer.Body)
			fmt.Println(answer.Status)
		},
	})
	// Output: 200 OK
}

// A second process with the same store stands by. With TakeOver it takes the job
// over at once, and the first one ends.
func ExampleOptions_takeOver() {
	d := newDesk()
	defer d.clear()
	o := sluice.Options{Store: store.NewMemory(), Lease: 300 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[Order](d.path("orders.jsonl"), file.Follow())).
		KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	first, running := make(chan error), make(chan struct{})
	told := o
	told.Committed = func(sluice.Committed) { close(running) }
	go func() { first <- job.Run(context.Background(), told) }()
	<-running
	o.TakeOver = true
	if err := spending(d).Run(context.Background(), o); err != nil {
		fmt.Println(err)
	}
	var fenced *sluice.FencedError
	fmt.Println("the first was fenced:", errors.As(<-first, &fenced))
	// Output: the first was fenced: true
}

// A state that can't fit in memory is refused before it is loaded.
func ExampleOptions_memoryLimit() {
	d := newDesk()
	defer d.clear()
	o := sluice.Options{Store: store.NewMemory(), Log: slog.New(slog.DiscardHandler)}
	spending(d).Run(context.Background(), o)
	o.MemoryLimit = 1 << 20 // the engine alone takes more
	err := spending(d).Run(context.Background(), o)
	var large *sluice.TooLargeError
	fmt.Println(errors.As(err, &large), large.ExitCode())
	// Output: true 17
}
