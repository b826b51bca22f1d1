package memory

import "runtime/metrics"

// InUse is the memory of this process as its limit counts it: what Go has from
// the system and has not given back, which is what GOMEMLIMIT bounds. The
// cgroup's own number would hold the page cache as well, which the kernel takes
// back at need; pages of the executable aren't in it, nor is memory of libraries
// in C, of which Sluice has none.
func InUse() int64 { return measure().mapped }

// use is what a process uses of its memory.
type use struct {
	// mapped is what [InUse] tells. The collector lets garbage fill it up to its
	// target, so it says little of how much is needed.
	mapped int64
	// needed is what a collection can't free: what the last one left alive, and
	// what isn't heap. Near the limit collections follow each other closely, so
	// it is up to date where that counts.
	needed int64
}

func measure() use {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0 // a Go that counts otherwise
		}
		return int64(samples[i].Value.Uint64())
	}
	mapped := value(0) - value(1)
	heap := value(3) + value(4) + value(5)
	return use{mapped: mapped, needed: value(2) + max(mapped-heap, 0)}
}
