// Command v2 is the job's second version: it also counts the flights that left
// on time. It goes on from what v1 has kept.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/examples/flights/flight"
	"github.com/sluicestream/sluice/file"
)

// Delays is the state of a carrier at an airport.
type Delays struct {
	Flights   int64
	Cancelled int64
	OnTime    int64 // new in this version: what v1 has kept reads as 0
	Minutes   int64 // the delays of those that left, added up
	Worst     int64 // in minutes; 0 while none has left late
}

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
	d.Minutes += f.Delay
	d.Worst = max(d.Worst, f.Delay)
}

// Row is what the output says of a carrier at an airport.
type Row struct {
	Flights, Cancelled int64
	OnTime             int64   // since this version took over
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
	job := sluice.NewJob("flights")
	job.From("departures", file.JSONLines[flight.Flight]("in/*.jsonl", file.Follow())).
		KeyBy(flight.Flight.Key).
		Fold(delays, (*Delays).Add).
		To("delays_by_carrier", file.Upsert("out", row))
	return job
}

func main() { sluice.Main(job()) }
