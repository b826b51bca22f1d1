package generator

import "github.com/sluicestream/sluice/schema"

// Event is a person, an auction or a bid: exactly one of its fields is set.
type Event struct {
	Person  *Person
	Auction *Auction
	Bid     *Bid
}

// DateTime is when the event happened.
func (e Event) DateTime() schema.Instant {
	switch {
	case e.Person != nil:
		return e.Person.DateTime
	case e.Auction != nil:
		return e.Auction.DateTime
	default:
		return e.Bid.DateTime
	}
}

// Person is somebody who registers, to sell and to bid.
type Person struct {
	// ID is 1000 for the first person, and grows by one.
	ID         int64
	Name       string
	Email      string
	CreditCard string
	City       string
	State      string
	DateTime   schema.Instant
	// Extra pads the event, see [Config.PersonBytes].
	Extra string
}

// Auction is an item that is offered.
type Auction struct {
	// ID is 1000 for the first auction, and grows by one.
	ID          int64
	ItemName    string
	Description string
	// InitialBid and Reserve are prices in cents.
	InitialBid int64
	Reserve    int64
	DateTime   schema.Instant
	// Expires is when the auction ends.
	Expires schema.Instant
	// Seller is the ID of a person, who may register a little later.
	Seller int64
	// Category is 10 to 14.
	Category int64
	// Extra pads the event, see [Config.AuctionBytes].
	Extra string
}

// Bid is an offer of a price.
type Bid struct {
	// Auction is the ID of an auction, which may open a little later.
	Auction int64
	// Bidder is the ID of a person, who may register a little later.
	Bidder int64
	// Price is in cents, 100 to 100,000,000.
	Price int64
	// Channel and URL are where the bid came from.
	Channel  string
	URL      string
	DateTime schema.Instant
	// Extra pads the event, see [Config.BidBytes].
	Extra string
}
