package generator

import (
	"encoding/json/v2"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

func made(t testing.TB, c Config) *Generator {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestKinds expects the benchmark's proportions in each 50 events, people and auctions
// with ids that follow each other, and times at the rate.
func TestKinds(t *testing.T) {
	g := made(t, Config{})
	person, auction := int64(1000), int64(1000)
	for n, e := range g.Events(0, 1000) {
		if want := schema.Instant(1_436_918_400_000_000 + n*100); e.DateTime() != want {
			t.Fatalf("event %d is at %d, expected %d", n, e.DateTime(), want)
		}
		set := 0
		for _, there := range []bool{e.Person != nil, e.Auction != nil, e.Bid != nil} {
			if there {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("event %d is %d things: %+v", n, set, e)
		}
		switch in := n % 50; {
		case in == 0:
			if e.Person == nil || e.Person.ID != person {
				t.Fatalf("event %d is %+v, expected person %d", n, e, person)
			}
			person++
		case in <= 3:
			if e.Auction == nil || e.Auction.ID != auction {
				t.Fatalf("event %d is %+v, expected auction %d", n, e, auction)
			}
			auction++
		case e.Bid == nil:
			t.Fatalf("event %d is %+v, expected a bid", n, e)
		}
	}
}

// TestChoices counts on whom and on what bids and auctions fall, among events in the
// middle, and expects the shares of the benchmark.
func TestChoices(t *testing.T) {
	const first, events = 1_000_000, 200_000
	g := made(t, Config{Seed: 7})
	bids, auctions, hotAuction, hotBidder, hotSeller := 0, 0, 0, 0, 0
	var decades [6]int
	channels, categories := map[string]int{}, map[int64]int{}
	length := 0.0
	for n, e := range g.Events(first, first+events) {
		person, auction := 1000+n/50, 1000+n/50*3+2 // the newest ones when a bid is made
		known := func(what string, id, newest, back, hot int64) bool {
			if id == hot {
				return true
			}
			if id < newest-back || id > newest+10 {
				t.Fatalf("event %d names %s %d, expected %d or %d to %d", n, what, id, hot, newest-back, newest+10)
			}
			return false
		}
		switch {
		case e.Bid != nil:
			bids++
			if known("auction", e.Bid.Auction, auction, 100, auction/100*100) {
				hotAuction++
			}
			if known("bidder", e.Bid.Bidder, person, 999, person/100*100+1) {
				hotBidder++
			}
			decade := 0
			for p := e.Bid.Price; p >= 1000; p /= 10 {
				decade++
			}
			if e.Bid.Price < 100 || decade > 5 {
				t.Fatalf("event %d has price %d", n, e.Bid.Price)
			}
			decades[decade]++
			channels[e.Bid.Channel]++
			if !strings.HasPrefix(e.Bid.URL, "https://www.nexmark.com/") || strings.Count(e.Bid.URL, "/") != 6 {
				t.Fatalf("event %d has URL %q", n, e.Bid.URL)
			}
		case e.Auction != nil:
			auctions++
			a := e.Auction
			if known("seller", a.Seller, person, 999, person/100*100) {
				hotSeller++
			}
			if a.Reserve < a.InitialBid+100 || a.Expires <= a.DateTime {
				t.Fatalf("event %d is %+v", n, a)
			}
			categories[a.Category]++
			length += float64(a.Expires - a.DateTime)
		}
	}
	near := func(what string, got, want, off float64) {
		if got < want-off || got > want+off {
			t.Errorf("%s: %.4f, expected %.4f, %.4f more or less", what, got, want, off)
		}
	}
	share := func(count, of int) float64 { return float64(count) / float64(of) }
	// A hot one is also chosen by chance, once in 111 auctions, or in 1,010 people.
	near("bids on the hot auction", share(hotAuction, bids), 0.5, 0.01)
	near("bids by the hot bidder", share(hotBidder, bids), 0.75, 0.01)
	near("auctions by the hot seller", share(hotSeller, auctions), 0.75, 0.015)
	for d, count := range decades {
		near(fmt.Sprintf("prices of decade %d", d), share(count, bids), 1.0/6, 0.01)
	}
	for _, hot := range []string{"Google", "Facebook", "Baidu", "Apple"} {
		near("bids from "+hot, share(channels[hot], bids), 0.125, 0.01)
	}
	if len(channels) < 9_900 || len(channels) > 10_004 {
		t.Errorf("%d channels, expected nearly 10,004", len(channels))
	}
	if got := slices.Sorted(maps.Keys(categories)); !slices.Equal(got, []int64{10, 11, 12, 13, 14}) {
		t.Errorf("categories %v", got)
	}
	// 100 auctions open in 1,666 events, of 100 µs each.
	near("seconds that an auction is open", length/float64(auctions)/1e6, 0.1666, 0.005)
}

// TestRatioOfOne expects nobody and nothing hot where the ratios are 1.
func TestRatioOfOne(t *testing.T) {
	g := made(t, Config{HotAuctions: 1, HotBidders: 1, HotSellers: 1, InFlightAuctions: 5, ActivePeople: 5})
	for n, e := range g.Events(1_000_025, 1_003_000) {
		person, auction := 1000+n/50, 1000+n/50*3+2
		if b := e.Bid; b != nil && (b.Auction < auction-5 || b.Bidder < person-4) {
			t.Fatalf("event %d is %+v, the newest are auction %d and person %d", n, b, auction, person)
		}
		if a := e.Auction; a != nil && a.Seller < person-4 {
			t.Fatalf("event %d is %+v, the newest person is %d", n, a, person)
		}
	}
}

// TestPure expects the same event of a number in whatever order they are made, another
// one of another seed, and those that this package has always made: offsets that jobs
// have kept mean events.
func TestPure(t *testing.T) {
	forward := map[int64]Event{}
	g := made(t, Config{Seed: 3})
	for n, e := range g.Events(0, 500) {
		forward[n] = e
	}
	again, other := made(t, Config{Seed: 3}), made(t, Config{Seed: 4})
	for n := int64(499); n >= 0; n-- {
		if got := again.Event(n); !reflect.DeepEqual(got, forward[n]) {
			t.Fatalf("event %d is %+v, then %+v", n, forward[n], got)
		}
		if got := other.Event(n); reflect.DeepEqual(got, forward[n]) {
			t.Fatalf("event %d is the same for another seed: %+v", n, got)
		}
	}
	h := fnv.New64a()
	sizes := Config{Seed: 3, OutOfOrder: 100, PersonBytes: 200, AuctionBytes: 500, BidBytes: 200}
	for _, e := range made(t, sizes).Events(0, 10_000) {
		if err := json.MarshalWrite(h, e); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprintf("%016x", h.Sum64()), "edde1498eb89db80"; got != want {
		t.Fatalf("the first 10,000 events are others than ever: %s, expected %s", got, want)
	}
}

// TestPrices expects prices of known bits: the decade of the first ones, and the ends.
func TestPrices(t *testing.T) {
	for i, digit := range decades {
		if digit[0] != 1 {
			t.Fatalf("digit 0 of row %d multiplies by %v", i, digit[0])
		}
		if i > 0 {
			// The sixteenth power of a row's is the row's before it.
			power := 1.0
			for range 16 {
				power *= digit[5]
			}
			if want := decades[i-1][5]; power < want*(1-1e-12) || power > want*(1+1e-12) {
				t.Fatalf("row %d has %v for digit 5, whose 16th power is %v, expected %v", i, digit[5], power, want)
			}
		}
	}
	// 8/16 of six decades are three.
	if got := decades[0][8]; got != 1000 {
		t.Fatalf("half of the decades multiply by %v, expected 1000", got)
	}
}

// TestTimes expects times of a rate that doesn't divide a second, and how many events
// are due at a time: those whose time has come.
func TestTimes(t *testing.T) {
	c := Config{Start: 1_000_000_000, Rate: 3, Count: 100}.withDefaults()
	for n, want := range []schema.Instant{0, 333_333, 666_666, 1_000_000, 1_333_333} {
		if got := c.time(int64(n)); got != 1_000_000_000+want {
			t.Errorf("event %d is at %d, expected %d", n, got, 1_000_000_000+want)
		}
	}
	for now, want := range map[schema.Instant]int64{
		-5: 0, 999_999_999: 0, 1_000_000_000: 1, 1_000_333_332: 1, 1_000_333_333: 2, 1_000_999_999: 3, 1_001_000_000: 4,
		1_032_999_999: 99, 1_033_000_000: 100, 2_000_000_000: 100, 1 << 62: 100,
	} {
		if got := c.due(now); got != want {
			t.Errorf("at %d there are %d events, expected %d", now, got, want)
		}
	}
	// The last event there can be, at the highest rate.
	g := made(t, Config{Rate: maxRate})
	if got, want := g.Event(maxRate*maxSeconds-50+49).DateTime(), defaultStart+maxSeconds*microseconds-1; got != want {
		t.Errorf("the last event is at %d, expected %d", got, want)
	}
}

// TestOutOfOrder expects each group to hold the events that it would hold in order, in
// another order, the first group's by hand.
func TestOutOfOrder(t *testing.T) {
	plain, mixed := made(t, Config{}), made(t, Config{OutOfOrder: 10})
	// 953 leaves 3, so the places are multiples of 3 without their tens.
	for n, place := range []int64{0, 3, 6, 9, 2, 5, 8, 1, 4, 7} {
		for _, group := range []int64{0, 10, 120_340} {
			if got, want := mixed.Event(group+int64(n)), plain.Event(group+place); !reflect.DeepEqual(got, want) {
				t.Errorf("event %d is %+v, expected event %d of those in order: %+v", group+int64(n), got, group+place, want)
			}
		}
	}
	large := made(t, Config{OutOfOrder: 1000}).c
	for _, group := range []int64{0, 5000} {
		places := map[int64]bool{}
		for n := range int64(1000) {
			places[large.place(group+n)] = true
		}
		if low, high := slices.Min(slices.Collect(maps.Keys(places))), slices.Max(slices.Collect(maps.Keys(places))); len(places) != 1000 || low != group || high != group+999 {
			t.Errorf("the group from %d on has %d places, %d to %d", group, len(places), low, high)
		}
	}
}

// TestPadding expects sizes as they are asked for on the average, and events that are
// the same without their padding.
func TestPadding(t *testing.T) {
	plain := made(t, Config{})
	padded := made(t, Config{PersonBytes: 200, AuctionBytes: 500, BidBytes: 300})
	sizes, counts := map[string]int{}, map[string]int{}
	for n, e := range padded.Events(0, 20_000) {
		kind := ""
		switch {
		case e.Person != nil:
			p := e.Person
			kind = "person"
			sizes[kind] += 16 + len(p.Name) + len(p.Email) + len(p.CreditCard) + len(p.City) + len(p.State) + len(p.Extra)
			p.Extra = ""
		case e.Auction != nil:
			a := e.Auction
			kind = "auction"
			sizes[kind] += 56 + len(a.ItemName) + len(a.Description) + len(a.Extra)
			a.Extra = ""
		default:
			b := e.Bid
			kind = "bid"
			sizes[kind] += 32 + len(b.Channel) + len(b.URL) + len(b.Extra)
			b.Extra = ""
		}
		counts[kind]++
		if want := plain.Event(n); !reflect.DeepEqual(e, want) {
			t.Fatalf("event %d is %+v, without padding %+v", n, e, want)
		}
	}
	for kind, want := range map[string]float64{"person": 200, "auction": 500, "bid": 300} {
		if got := float64(sizes[kind]) / float64(counts[kind]); got < want*0.98 || got > want*1.02 {
			t.Errorf("%ss have %.1f bytes on the average, expected %.0f", kind, got, want)
		}
	}
}

// TestStored expects events to be read back from Avro as they were.
func TestStored(t *testing.T) {
	form, err := schema.Of[Event]("event")
	if err != nil {
		t.Fatal(err)
	}
	for n, e := range made(t, Config{BidBytes: 200}).Events(0, 100) {
		data, err := form.Append(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		var back Event
		if rest, err := form.Decode(data, &back); err != nil || len(rest) > 0 || !reflect.DeepEqual(back, e) {
			t.Fatalf("event %d, %+v, is read back as %+v, %d bytes over, %v", n, e, back, len(rest), err)
		}
	}
}

// TestFaults expects each Config that can't be to be refused by name.
func TestFaults(t *testing.T) {
	for want, c := range map[string]Config{
		"Start is ":                   {Start: 1 << 62},
		"Rate is -1":                  {Rate: -1},
		"Rate is 10000001":            {Rate: 10_000_001},
		"OutOfOrder is -5":            {OutOfOrder: -5},
		"can't be a multiple of 953":  {OutOfOrder: 1906},
		"HotAuctions is -1":           {HotAuctions: -1},
		"HotSellers is -1":            {HotSellers: -1},
		"HotBidders is -1":            {HotBidders: -1},
		"InFlightAuctions is -1":      {InFlightAuctions: -1},
		"ActivePeople is -1":          {ActivePeople: -1},
		"PersonBytes is -1":           {PersonBytes: -1},
		"AuctionBytes is -1":          {AuctionBytes: -1},
		"BidBytes is 1000001":         {BidBytes: 1_000_001},
		"Partitions is -1":            {Partitions: -1},
		"Count is -1":                 {Count: -1},
		"Count is 100000000001, it c": {Rate: 1, Count: 100_000_000_001},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", c, err, want)
		}
		if _, err := Source(c).Open(t.Context(), opening()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opening a source of %+v: %v, expected %q", c, err, want)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	g := made(b, Config{})
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		g.Event(n)
		n++
	}
}
