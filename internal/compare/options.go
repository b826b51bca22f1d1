package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Options say how rows are compared.
type Options struct {
	// Columns has those that are not to be compared exactly, by name.
	Columns map[string]Column
	// Samples is how many of the rows that differ are told with their values, those
	// that come first. Defaults to 20; negative: none.
	Samples int
	// Memory bounds the bytes that are held to compare what is not in one order. What
	// needs more is not compared, and counted as such. Defaults to 64 MiB.
	Memory int64
}

// Column says how one column is compared.
type Column struct {
	// Ignore leaves the column out.
	Ignore bool
	// Absolute and Relative are by how much numbers may differ and be equal: at most
	// by Absolute, or by Relative times the larger of their sizes. Relative goes for
	// durations as well.
	Absolute, Relative float64
	// Time is by how much moments and durations may differ.
	Time time.Duration
	// Unordered compares arrays without their order.
	Unordered bool
}

func (c Column) tolerant() bool { return c.Absolute > 0 || c.Relative > 0 || c.Time > 0 }

// OptionError says that a column can't be compared as an option wants.
type OptionError struct {
	Job, Sink, Column string
	// Expected and Found say what the option needs and what there is.
	Expected, Found string
}

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: sink %s, column %s: expected %s, found %s. Give the column another tolerance, or leave it out.", e.Job, e.Sink, e.Column, e.Expected, e.Found)
}

const (
	defaultSamples = 20
	defaultMemory  = 64 << 20
	// maxSampleBytes bounds the text of one value in a sample.
	maxSampleBytes = 1 << 10
)

func (o Options) withDefaults() Options {
	if o.Samples == 0 {
		o.Samples = defaultSamples
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	return o
}

func (o Options) check(job, sink string) error {
	for _, name := range slices.Sorted(maps.Keys(o.Columns)) {
		c := o.Columns[name]
		for _, v := range []float64{c.Absolute, c.Relative, float64(c.Time)} {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				return &OptionError{job, sink, name, "a tolerance of 0 or more", fmt.Sprint(v)}
			}
		}
	}
	return nil
}
