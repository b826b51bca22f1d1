package generator

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Config says which events there are, and how a source gives them out. The zero
// Config is that of the benchmark.
type Config struct {
	// Seed tells series of events of otherwise equal Configs apart.
	Seed uint64
	// Start is the time of event 0. Defaults to 2015-07-15 00:00 UTC.
	Start schema.Instant
	// Rate is how many events there are in a second of event time, evenly; 10,000,000
	// at the most. Defaults to 10,000.
	Rate int64
	// OutOfOrder is how many events make a group, 1,000,000,000 at the most: groups
	// follow each other, and a group's events come in a fixed disorder, with the times
	// that they would have in order. So an event is out of order by less than
	// OutOfOrder / Rate seconds. A multiple of 953 can't be had. Defaults to 1: in
	// order.
	OutOfOrder int64
	// HotAuctions is one over the share of bids that are not on the hot auction, the
	// newest one with an ID that ends in 00. 1: there is none. Defaults to 2.
	HotAuctions int64
	// HotSellers is the same for auctions by the hot seller, the newest person with an
	// ID that ends in 00. Defaults to 4.
	HotSellers int64
	// HotBidders is the same for bids by the hot bidder, whose ID is one more than the
	// hot seller's. Defaults to 4.
	HotBidders int64
	// InFlightAuctions is among how many of the newest auctions bids that are not on the
	// hot one choose, and how many open while one is open, on the average. Defaults to
	// 100.
	InFlightAuctions int64
	// ActivePeople is among how many of the newest people those who bid and sell are
	// chosen, apart from the hot ones. Defaults to 1,000.
	ActivePeople int64
	// PersonBytes, AuctionBytes and BidBytes are the sizes that events are padded to, on
	// the average, 1,000,000 at the most: strings by their length, anything else 8 bytes.
	// An event that is as large by itself gets no padding. The benchmark's sizes are 200,
	// 500 and 100. Default to 0.
	PersonBytes, AuctionBytes, BidBytes int64

	// Partitions is how many partitions the source has, named "0", "1" and so on. Event n
	// is in partition n mod Partitions, at offset n. If it is even or a multiple of 5,
	// there may be partitions without people. Defaults to 1.
	Partitions int64
	// Count is how many events there are. Defaults to 0: the source is unbounded.
	Count int64
	// Live holds an event back until the clock has reached the time at which it would
	// come in order. Otherwise all events are there already.
	Live bool
}

const (
	// defaultStart is 2015-07-15 00:00 UTC, as in Beam.
	defaultStart schema.Instant = 1_436_918_400_000_000
	// disorder is what a number in its group is multiplied by, a prime.
	disorder = 953
	// maxSeconds bounds event time, from Start on, so that no number overflows: some
	// 3,000 years.
	maxSeconds = 100_000_000_000
	maxRate    = 10_000_000
	maxGroup   = 1_000_000_000
	maxBytes   = 1_000_000
	// maxRatio bounds what are numbers of people and auctions as well.
	maxRatio      = 1_000_000_000
	maxPartitions = 1_000_000
	microseconds  = 1_000_000 // in a second
)

// withDefaults is the Config with its defaults filled in.
func (c Config) withDefaults() Config {
	c.Start = cmp.Or(c.Start, defaultStart)
	c.Rate = cmp.Or(c.Rate, 10_000)
	c.OutOfOrder = cmp.Or(c.OutOfOrder, 1)
	c.HotAuctions = cmp.Or(c.HotAuctions, 2)
	c.HotSellers = cmp.Or(c.HotSellers, 4)
	c.HotBidders = cmp.Or(c.HotBidders, 4)
	c.InFlightAuctions = cmp.Or(c.InFlightAuctions, 100)
	c.ActivePeople = cmp.Or(c.ActivePeople, 1_000)
	c.Partitions = cmp.Or(c.Partitions, 1)
	return c
}

// check tells what of a Config with its defaults can't be.
func (c *Config) check() error {
	for _, field := range []struct {
		name          string
		value         int64
		least, utmost int64
	}{
		{"Start", int64(c.Start), -maxSeconds * microseconds, maxSeconds * microseconds},
		{"Rate", c.Rate, 1, maxRate},
		{"OutOfOrder", c.OutOfOrder, 1, maxGroup},
		{"HotAuctions", c.HotAuctions, 1, maxRatio},
		{"HotSellers", c.HotSellers, 1, maxRatio},
		{"HotBidders", c.HotBidders, 1, maxRatio},
		{"InFlightAuctions", c.InFlightAuctions, 1, maxRatio},
		{"ActivePeople", c.ActivePeople, 1, maxRatio},
		{"PersonBytes", c.PersonBytes, 0, maxBytes},
		{"AuctionBytes", c.AuctionBytes, 0, maxBytes},
		{"BidBytes", c.BidBytes, 0, maxBytes},
		{"Partitions", c.Partitions, 1, maxPartitions},
		{"Count", c.Count, 0, c.Rate * maxSeconds},
	} {
		if field.value < field.least || field.value > field.utmost {
			return fmt.Errorf("the generator's %s is %d, it can be %d to %d", field.name, field.value, field.least, field.utmost)
		}
	}
	if c.OutOfOrder%disorder == 0 {
		return fmt.Errorf("the generator's OutOfOrder is %d, it can't be a multiple of %d", c.OutOfOrder, disorder)
	}
	return nil
}

// end is behind the last event's number.
func (c *Config) end() int64 { return cmp.Or(c.Count, c.Rate*maxSeconds) }

// parameters are what decides which event a partition has at an offset.
func (c *Config) parameters() (all []connector.Parameter) {
	all = append(all, connector.Parameter{Name: "seed", Value: strconv.FormatUint(c.Seed, 10)})
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"start", int64(c.Start)},
		{"rate", c.Rate},
		{"out of order", c.OutOfOrder},
		{"hot auctions", c.HotAuctions},
		{"hot sellers", c.HotSellers},
		{"hot bidders", c.HotBidders},
		{"in-flight auctions", c.InFlightAuctions},
		{"active people", c.ActivePeople},
		{"person bytes", c.PersonBytes},
		{"auction bytes", c.AuctionBytes},
		{"bid bytes", c.BidBytes},
		{"partitions", c.Partitions},
	} {
		all = append(all, connector.Parameter{Name: field.name, Value: strconv.FormatInt(field.value, 10)})
	}
	return all
}
