package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// allKeys is the number of keys of the figures that don't say otherwise.
const allKeys = 1_000_000

// seed makes the data the same in every run.
const seed = 20260301

// newRandom returns random numbers that depend on n alone.
func newRandom(n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }

// zipf draws numbers from 0 to n-1, number k with a probability that falls as
// 1/(k+1).
type zipf struct{ sums []float64 }

func newZipf(n int) *zipf {
	z := &zipf{make([]float64, n)}
	sum := 0.0
	for k := range z.sums {
		sum += 1 / float64(k+1)
		z.sums[k] = sum
	}
	return z
}

func (z *zipf) draw(r *rand.Rand) int {
	k, _ := slices.BinarySearch(z.sums, r.Float64()*z.sums[len(z.sums)-1])
	return min(k, len(z.sums)-1)
}

// drawer returns a function that draws one of n keys, evenly or by Zipf's law.
func drawer(distribution string, n int) (func(*rand.Rand) int, error) {
	switch distribution {
	case "uniform":
		return func(r *rand.Rand) int { return r.IntN(n) }, nil
	case "zipf":
		return newZipf(n).draw, nil
	}
	return nil, fmt.Errorf("no distribution is called %q", distribution)
}

// userName is a key's text, in memory of its own.
func userName(k int) string { return fmt.Sprintf("user-%07d", k) }
