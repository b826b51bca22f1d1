// Package flight has the events that the job's two versions read.
package flight

import "time"

// Flight is one flight out of New York, as it leaves the gate or is cancelled.
type Flight struct {
	Airport  string    `json:"origin"`
	Carrier  string    `json:"carrier"`
	Departed time.Time `json:"departed"`      // zero if it was cancelled
	Delay    int64     `json:"dep_delay_min"` // minutes; below 0 if it left early
}

// Key is a carrier at an airport.
type Key struct{ Airport, Carrier string }

// Key is where a flight is counted.
func (f Flight) Key() Key { return Key{f.Airport, f.Carrier} }

// Cancelled tells whether the flight never left.
func (f Flight) Cancelled() bool { return f.Departed.IsZero() }
