// Command v2 is the job's second version: it also counts the flights that left
// on time, and no flight counts with more than two hours in the mean. It goes on from
// what v1 has kept.
package main

import (
	"os"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/examples/flights/flight"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// Delays is the state of a carrier at an airport.
type Delays struct {
	Flights   int64
	Cancelled int64
	OnTime    int64 // new in this version: what v1 has kept reads as 0
	Minutes   int64 // the delays of those that left, added up, each with at most maxDelay
	Worst     int64 // in minutes; 0 while none has left late
}

// maxDelay is how many minutes of a flight's delay count in the mean.
const maxDelay = 120

// Add counts a flight.
func (d *Delays) Add(f flight.Flight) {
	d.Flights++
	if f.Cancelled() {
		d.Cancelled++
		return
	}
	if f.Delay < 15 {
		d.OnTime++
	}
	d.Minutes += min(f.Delay, maxDelay)
	d.Worst = max(d.Worst, f.Delay)
}

// Row is what the output says of a carrier at an airport.
type Row struct {
	Flights, Cancelled int64
	OnTime             int64   // since this version began to follow
	MeanDelay          float64 // in minutes, of those that left
	WorstDelay         int64
}

func row(_ flight.Key, d Delays) Row {
	r := Row{Flights: d.Flights, Cancelled: d.Cancelled, OnTime: d.OnTime, WorstDelay: d.Worst}
	if left := d.Flights - d.Cancelled; left > 0 {
		r.MeanDelay = float64(d.Minutes) / float64(left)
	}
	return r
}

var delays = sluice.NewState[flight.Key, Delays]("delays")

func job() *sluice.Job {
	names := flight.NamesFromEnvironment()
	job := sluice.NewJob(names.Job)
	table := job.From("departures", kafka.Topic(names.Flights, codec.JSON[flight.Flight]())).
		KeyBy(flight.Flight.Key).
		Fold(delays, (*Delays).Add)
	table.To("topic", kafka.Upsert(names.Delays, row, codec.JSON[flight.Key](), codec.JSON[Row](), flight.Compacted()))
	table.To("folder", file.Upsert("out", row))
	if os.Getenv("SLUICE_POSTGRES") != "" {
		table.To("table", postgres.Upsert(names.Table, row, postgres.CreateTable()))
	}
	return job
}

func main() { sluice.Main(job()) }
