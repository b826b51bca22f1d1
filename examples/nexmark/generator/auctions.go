package generator

import "github.com/sluicestream/sluice/schema"

const (
	firstCategory = 10
	categories    = 5
)

func (g *Generator) auction(r *random, place int64) *Auction {
	a := &Auction{
		ID:          firstID + newestAuction(place),
		Seller:      firstID + g.seller(r, place),
		Category:    firstCategory + r.below(categories),
		InitialBid:  r.price(),
		DateTime:    g.c.time(place),
		ItemName:    string(r.text(make([]byte, 0, 20), 20)),
		Description: string(r.text(make([]byte, 0, 100), 100)),
	}
	a.Reserve = a.InitialBid + r.price()
	a.Expires = a.DateTime + g.length(r, place)
	a.Extra = r.extra(7*8+len(a.ItemName)+len(a.Description), g.c.AuctionBytes)
	return a
}

func (g *Generator) seller(r *random, place int64) int64 {
	newest := newestPerson(place)
	if hot(r, g.c.HotSellers) {
		return chooseHot(newest)
	}
	return g.c.choosePerson(r, newest)
}

// length is for how long an auction is open: on the average as long as it takes until
// as many have opened as are to be in flight.
func (g *Generator) length(r *random, place int64) schema.Instant {
	average := g.c.time(place+g.c.InFlightAuctions*round/auctions) - g.c.time(place)
	return 1 + schema.Instant(r.below(max(2*int64(average), 1)))
}
