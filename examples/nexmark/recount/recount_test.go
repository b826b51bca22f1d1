package recount

import (
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/schema"
)

const second = 1_000_000

// at is a moment in seconds since 1970.
func at(seconds float64) schema.Instant { return schema.Instant(seconds * second) }

// bid is an event; its price doesn't matter.
func bid(seconds float64, auction, bidder int64) generator.Event {
	return offer(seconds, auction, bidder, 100)
}

func offer(seconds float64, auction, bidder, price int64) generator.Event {
	return generator.Event{Bid: &generator.Bid{Auction: auction, Bidder: bidder, Price: price, DateTime: at(seconds)}}
}

// numbered yields events by their places.
func numbered(events ...generator.Event) iter.Seq2[int64, generator.Event] {
	return func(yield func(int64, generator.Event) bool) {
		for n, e := range events {
			if !yield(int64(n), e) {
				return
			}
		}
	}
}

// others are events that no query here asks for.
var others = []generator.Event{
	{Person: &generator.Person{ID: 1, DateTime: 5 * second}},
	{Auction: &generator.Auction{ID: 1, DateTime: 5 * second}},
}

func same[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%v\nexpected\n%v", what, got, want)
	}
}

// TestHotItems has bids at 1, 3 (twice), 9 and 12 seconds, in windows of 10 by 5.
func TestHotItems(t *testing.T) {
	events := append([]generator.Event{
		bid(12, 7, 1), bid(3, 7, 1), bid(3, 8, 2), bid(1, 8, 3), bid(9, 7, 1),
	}, others...)
	same(t, "hot items", HotItems(numbered(events...), 10*time.Second, 5*time.Second, nil), []HotItem{
		{at(-5), at(5), 8, 2},  // 8 at 1 and 3, 7 at 3
		{at(0), at(10), 7, 2},  // 7 at 3 and 9,
		{at(0), at(10), 8, 2},  // and 8 at 1 and 3
		{at(5), at(15), 7, 2},  // 7 at 9 and 12
		{at(10), at(20), 7, 1}, // 7 at 12
	})
	// Event 0, at 12, is late for the window from 5 on alone.
	late := func(n int64, start schema.Instant) bool { return n == 0 && start == at(5) }
	same(t, "hot items without a late one", HotItems(numbered(events...), 10*time.Second, 5*time.Second, late), []HotItem{
		{at(-5), at(5), 8, 2},
		{at(0), at(10), 7, 2},
		{at(0), at(10), 8, 2},
		{at(5), at(15), 7, 1},
		{at(10), at(20), 7, 1},
	})
	// All are late for the window from 0 on: it has no answer.
	late = func(_ int64, start schema.Instant) bool { return start == at(0) }
	same(t, "hot items without a window", HotItems(numbered(events...), 10*time.Second, 10*time.Second, late), []HotItem{
		{at(10), at(20), 7, 1},
	})
}

// TestEdgesOfWindows has bids at the edges: a window holds its start, and not its end.
func TestEdgesOfWindows(t *testing.T) {
	size, slide := 10*time.Second, 4*time.Second // which doesn't divide the size
	same(t, "a bid at a start", HotItems(numbered(bid(8, 1, 1)), size, slide, nil), []HotItem{
		{at(0), at(10), 1, 1}, {at(4), at(14), 1, 1}, {at(8), at(18), 1, 1},
	})
	same(t, "a bid at an end", HotItems(numbered(bid(10, 1, 1)), size, slide, nil), []HotItem{
		{at(4), at(14), 1, 1}, {at(8), at(18), 1, 1},
	})
	same(t, "a bid before 1970", HotItems(numbered(bid(-0.5, 1, 1)), size, slide, nil), []HotItem{
		{at(-8), at(2), 1, 1}, {at(-4), at(6), 1, 1},
	})
	same(t, "a bid between windows", HotItems(numbered(bid(5, 1, 1), bid(12, 2, 1)), 2*time.Second, 10*time.Second, nil), nil)
	same(t, "a bid in one of them", HotItems(numbered(bid(5, 1, 1), bid(11.999999, 2, 1)), 2*time.Second, 10*time.Second, nil), []HotItem{
		{at(10), at(12), 2, 1},
	})
}

// TestHighestBids has two windows, one with a tie.
func TestHighestBids(t *testing.T) {
	events := append([]generator.Event{
		offer(12, 1, 1, 50), offer(9.999999, 3, 3, 900), offer(2, 2, 2, 900), offer(4, 1, 2, 899), offer(10, 4, 4, 60), offer(2, 2, 2, 900),
	}, others...)
	highest := func(start float64, e generator.Event) HighestBid {
		return HighestBid{at(start), at(start + 10), *e.Bid}
	}
	same(t, "highest bids", HighestBids(numbered(events...), 10*time.Second, nil), []HighestBid{
		highest(0, events[2]), highest(0, events[5]), highest(0, events[1]), highest(10, events[4]),
	})
	late := func(n int64, start schema.Instant) bool {
		if want := at(float64(n / 4 * 10)); n > 0 && n != 5 && start != want {
			t.Errorf("asked about event %d in the window from %d, expected %d", n, start, want)
		}
		return n == 4 || n == 2
	}
	same(t, "highest bids without late ones", HighestBids(numbered(events...), 10*time.Second, late), []HighestBid{
		highest(0, events[5]), highest(0, events[1]), highest(10, events[0]),
	})
}

// TestUserSessions has bids of two people, one with a pause of exactly the gap, and one
// with a bid that joins two sessions and comes last.
func TestUserSessions(t *testing.T) {
	events := append([]generator.Event{
		bid(100, 1, 1), bid(109.999999, 1, 1), bid(119.999999, 1, 1), // the third one begins anew
		bid(100, 1, 2), bid(115, 1, 2), bid(107, 2, 2),
	}, others...)
	same(t, "sessions", UserSessions(numbered(events...), 10*time.Second, nil), []UserBids{
		{at(100), at(119.999999), 1, 2},
		{at(100), at(125), 2, 3},
		{at(119.999999), at(129.999999), 1, 1},
	})
	late := func(n int64, start schema.Instant) bool {
		if n == 5 && start != at(107) {
			t.Errorf("asked about event 5 at %d", start)
		}
		return n == 5
	}
	same(t, "sessions without a late bid", UserSessions(numbered(events...), 10*time.Second, late), []UserBids{
		{at(100), at(119.999999), 1, 2},
		{at(100), at(110), 2, 1},
		{at(115), at(125), 2, 1},
		{at(119.999999), at(129.999999), 1, 1},
	})
}

// TestUserWindows has bids whose own times don't matter.
func TestUserWindows(t *testing.T) {
	events := append([]generator.Event{
		bid(0, 1, 2), bid(1000, 1, 1), bid(50, 2, 1), bid(3, 3, 1), bid(4, 3, 1),
	}, others...)
	processed := []float64{70, 70, 79.999999, 80, 69.999999, 71, 72}
	windows := UserWindows(numbered(events...), 10*time.Second, func(n int64) schema.Instant { return at(processed[n]) })
	same(t, "windows", windows, []UserBids{
		{at(60), at(70), 1, 1},
		{at(70), at(80), 1, 2},
		{at(70), at(80), 2, 1},
		{at(80), at(90), 1, 1},
	})
}

// TestSpans expects durations that no window can have to be refused.
func TestSpans(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second, time.Nanosecond, time.Second + time.Nanosecond} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is taken", d)
				}
			}()
			HighestBids(numbered(), d, nil)
		}()
	}
}
