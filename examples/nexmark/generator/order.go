package generator

import "github.com/sluicestream/sluice/schema"

// Of so many events in a row the first ones are people, then come auctions, then
// bids.
const (
	people   = 1
	auctions = 3
	round    = 50
)

const (
	// firstID is that of the first person, and of the first auction.
	firstID = 1000
	// batch is in how many people or auctions there is one hot one.
	batch = 100
	// lead is how many people and auctions are known before they have come: it is as if
	// their events had been overtaken.
	lead = 10
)

// place is where in the order of times the event is that comes as number n.
func (c *Config) place(n int64) int64 {
	in := n % c.OutOfOrder
	return n - in + in*disorder%c.OutOfOrder
}

// time is that of the event at a place.
func (c *Config) time(place int64) schema.Instant {
	seconds, rest := place/c.Rate, place%c.Rate
	return c.Start + schema.Instant(seconds*microseconds+rest*microseconds/c.Rate)
}

// due is how many events the clock has reached: those below that number.
func (c *Config) due(now schema.Instant) int64 {
	if now < c.Start {
		return 0
	}
	passed := int64(min(now, c.Start+maxSeconds*microseconds-1)-c.Start) + 1
	seconds, rest := passed/microseconds, passed%microseconds
	return min(seconds*c.Rate+(rest*c.Rate+microseconds-1)/microseconds, c.end())
}

// newestPerson counts the people up to a place, the first one as 0.
func newestPerson(place int64) int64 { return place / round * people }

// newestAuction counts the auctions up to a place, the first one as 0; -1: none yet.
func newestAuction(place int64) int64 {
	return place/round*auctions + min(place%round-people, auctions-1)
}

// hot tells whether a choice with a ratio falls on the hot one.
func hot(r *random, ratio int64) bool { return r.below(ratio) > 0 }

// chooseHot is the hot one when the newest is at hand.
func chooseHot(newest int64) int64 { return newest - newest%batch }

// choosePerson is one of the active people, or of those to come.
func (c *Config) choosePerson(r *random, newest int64) int64 {
	active := min(newest+1, c.ActivePeople)
	return newest + 1 - active + r.below(active+lead)
}

// chooseAuction is one of the auctions in flight, or of those to come.
func (c *Config) chooseAuction(r *random, newest int64) int64 {
	oldest := max(newest-c.InFlightAuctions, 0)
	return oldest + r.below(newest-oldest+1+lead)
}
