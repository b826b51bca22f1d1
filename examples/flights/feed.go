package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/examples/flights/flight"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// feedEpoch is how often lines go to the topic.
const feedEpoch = 100 * time.Millisecond

func feedName(n flight.Names) string { return n.Job + "-feed" }

// feed is a job of its own, in the demo's process: it carries the lines of the
// files to the topic of flights, as they are. A carrier's flights at an airport
// have one key, so they stay in their order.
func feed(dir string, s *servers) *sluice.Job {
	job := sluice.NewJob(feedName(s.names))
	job.From("lines", file.Lines(filepath.Join(dir, "in", "*.jsonl"), codec.String(), file.Follow(), file.Poll(feedEpoch/2))).
		To("topic", kafka.Append(s.names.Flights, codec.String(), kafka.On(s.cluster), kafka.CreateTopic(flight.Partitions, 0, nil)).
			Key(keyOf))
	return job
}

// keyOf is the key of a line's flight, such as "JFK B6".
func keyOf(line string) []byte {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		panic(fmt.Sprintf("%v: %s", err, line)) // the line is the demo's own
	}
	return []byte(e.Origin + " " + e.Carrier)
}

// runFeed runs the job until ctx ends, and tells begun once the topic is there. Its
// state may go with the process: so does the writer.
func runFeed(ctx context.Context, dir string, s *servers, log *slog.Logger, begun func()) error {
	err := feed(dir, s).Run(ctx, sluice.Options{
		Store: store.NewMemory(), Volatile: true, Epoch: feedEpoch, Log: log,
		Committed: func(sluice.Committed) { begun() },
	})
	if err != nil {
		return fmt.Errorf("carrying the flights to the topic: %w", err)
	}
	return nil
}
