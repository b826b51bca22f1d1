package generator

import (
	"math"
	"math/bits"
)

// random is a sequence of numbers that is made of two: it is splitmix64.
type random struct{ state uint64 }

// step is 2^64 divided by the golden ratio, an odd number.
const step = 0x9e3779b97f4a7c15

// randomOf begins the sequence of a seed and a number.
func randomOf(seed, number uint64) random {
	return random{mixed(mixed(seed+step) + number)}
}

// mixed is a permutation of all numbers in which each bit depends on all.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *random) next() uint64 {
	r.state += step
	return mixed(r.state)
}

// below is a number from 0 to n-1.
func (r *random) below(n int64) int64 {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int64(high)
}

// decades has in row i, for a digit d of 4 bits, 10 to the 6·d/16^(i+1). Only roots
// and products were taken, which are the same on every machine; math.Pow isn't.
var decades = makeDecades()

const (
	digits    = 8
	digitBits = 4
)

func makeDecades() (all [digits][1 << digitBits]float64) {
	root := 1e6
	for i := range all {
		for d := range all[i] {
			all[i][d] = 1
		}
		for bit := digitBits - 1; bit >= 0; bit-- {
			root = math.Sqrt(root)
			for d := range all[i] {
				if d>>bit&1 == 1 {
					all[i][d] *= root
				}
			}
		}
	}
	return all
}

// price is one in cents, 100 to 100,000,000: the decades are equally likely.
func (r *random) price() int64 {
	price, x := 100.0, r.next()
	for i := range decades {
		price *= decades[i][x>>(64-digitBits)]
		x <<= digitBits
	}
	return int64(math.Round(price))
}

// text appends letters and single spaces between words, 3 to below utmost of both.
func (r *random) text(b []byte, utmost int64) []byte {
	const least = 3
	length := least + r.below(utmost-least)
	for i := range length {
		const space = 13 // one in so many
		if i > 0 && i < length-1 && b[len(b)-1] != ' ' && r.below(space) == 0 {
			b = append(b, ' ')
			continue
		}
		b = r.letter(b)
	}
	return b
}

// word appends letters, 3 to below utmost.
func (r *random) word(b []byte, utmost int64) []byte {
	const least = 3
	for range least + r.below(utmost-least) {
		b = r.letter(b)
	}
	return b
}

func (r *random) letter(b []byte) []byte { return append(b, byte('a'+r.below(26))) }

// extra pads what has a size to another one, on the average: by a fifth more or less.
func (r *random) extra(size int, wanted int64) string {
	missing := wanted - int64(size)
	if missing <= 0 {
		return ""
	}
	b := make([]byte, 0, missing+missing/5)
	for range missing - missing/5 + r.below(2*(missing/5)+1) {
		b = r.letter(b)
	}
	return string(b)
}
