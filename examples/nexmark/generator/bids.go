package generator

import (
	"math/bits"
	"strconv"
)

// channel is where bids come from.
type channel struct{ name, url string }

// coldChannels is how many channels there are besides the hot ones, which get half of
// the bids.
const coldChannels = 10_000

// makeChannels lists the hot channels, then the others.
func makeChannels(seed uint64) []channel {
	var all []channel
	for _, name := range []string{"Google", "Facebook", "Baidu", "Apple"} {
		r := channelRandom(seed, len(all))
		all = append(all, channel{name, string(makeURL(&r))})
	}
	for i := range coldChannels {
		r := channelRandom(seed, len(all))
		url := makeURL(&r)
		if r.below(10) > 0 {
			url = append(url, "&channel_id="...)
			url = strconv.AppendUint(url, uint64(bits.Reverse32(uint32(i))>>1), 10)
		}
		all = append(all, channel{"channel-" + strconv.Itoa(i), string(url)})
	}
	return all
}

// channelRandom is apart from every event's, whose numbers are not negative.
func channelRandom(seed uint64, channel int) random { return randomOf(seed, uint64(-1-channel)) }

// makeURL names a page in three folders, which queries tell apart.
func makeURL(r *random) []byte {
	b := []byte("https://www.nexmark.com/")
	for range 3 {
		b = append(r.word(b, 6), '/')
	}
	return append(b, "item.htm?query=1"...)
}

func (g *Generator) chooseChannel(r *random) *channel {
	hotChannels := int64(len(g.channels) - coldChannels)
	if r.below(2) > 0 {
		return &g.channels[r.below(hotChannels)]
	}
	return &g.channels[hotChannels+r.below(coldChannels)]
}

func (g *Generator) bid(r *random, place int64) *Bid {
	b := &Bid{
		Auction:  firstID + g.bidOn(r, place),
		Bidder:   firstID + g.bidder(r, place),
		Price:    r.price(),
		DateTime: g.c.time(place),
	}
	from := g.chooseChannel(r)
	b.Channel, b.URL = from.name, from.url
	b.Extra = r.extra(4*8+len(b.Channel)+len(b.URL), g.c.BidBytes)
	return b
}

func (g *Generator) bidOn(r *random, place int64) int64 {
	newest := newestAuction(place)
	if hot(r, g.c.HotAuctions) {
		return chooseHot(newest)
	}
	return g.c.chooseAuction(r, newest)
}

// bidder is who bids; the hot bidder is another one than the hot seller.
func (g *Generator) bidder(r *random, place int64) int64 {
	newest := newestPerson(place)
	if hot(r, g.c.HotBidders) {
		return chooseHot(newest) + 1
	}
	return g.c.choosePerson(r, newest)
}
