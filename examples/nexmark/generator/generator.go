package generator

import "iter"

// Generator makes the events of a Config. It holds nothing that changes: any number
// of goroutines may use it.
type Generator struct {
	c        Config
	channels []channel
}

// New returns the generator of a Config. The error says what of it can't be.
func New(c Config) (*Generator, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Generator{c, makeChannels(c.Seed)}, nil
}

// Event returns the event that comes as number n, which is not negative and below
// Rate × 100,000,000,000.
func (g *Generator) Event(n int64) Event {
	place := g.c.place(n)
	r := randomOf(g.c.Seed, uint64(place))
	switch in := place % round; {
	case in < people:
		return Event{Person: g.person(&r, place)}
	case in < people+auctions:
		return Event{Auction: g.auction(&r, place)}
	default:
		return Event{Bid: g.bid(&r, place)}
	}
}

// Events yields the events with the numbers from one to below another, by number.
func (g *Generator) Events(from, to int64) iter.Seq2[int64, Event] {
	return func(yield func(int64, Event) bool) {
		for n := from; n < to; n++ {
			if !yield(n, g.Event(n)) {
				return
			}
		}
	}
}
