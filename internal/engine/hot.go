package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

const (
	// sampleEvery is the distance between two records of a piece whose keys are
	// counted: an odd number, so that no pattern in the input hides behind it.
	sampleEvery = 67
	// hotCounters is how many keys a shard counts. A key with a share above one
	// in as many is among them.
	hotCounters = 32
	// hotWindow is after how many samples the counts are halved, so that the
	// past fades.
	hotWindow = 1 << 14
	// fewSamples is how many samples say nothing about a key's share yet.
	fewSamples = 256
	// hotKeyBytes is how much of a key is told.
	hotKeyBytes = 80
)

// HotKey is a key that many of an operator's records have had of late. Those that are
// folded before they are sent don't count: they make no shard do more than others.
type HotKey struct {
	// Operator is the name of the first operator behind the KeyBy.
	Operator string
	Key      string
	// Share is the key's part of the sampled records, 0 to 1; at most a bit less
	// than it really is.
	Share float64
}

// hotKeys counts the keys of sampled records in one shard: the space-saving
// algorithm of Metwally, Agrawal and El Abbadi, 2005.
type hotKeys[K comparable] struct {
	mu       sync.Mutex // taken once for each piece
	skip     int        // records up to the next sample
	samples  int64
	hashes   [hotCounters]uint64
	counts   [hotCounters]int64
	before   [hotCounters]int64 // of the count: another key's, whose counter this was
	keys     [hotCounters]K
	counters int
}

// sample counts some of a piece's keys.
func sample[K comparable, T any](h *hotKeys[K], items []item[K, T]) {
	if h.skip >= len(items) {
		h.skip -= len(items)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.skip
	for ; i < len(items); i += sampleEvery {
		h.count(items[i].hash, items[i].key)
	}
	h.skip = i - len(items)
}

// count counts a key; one that has no counter takes over the smallest.
func (h *hotKeys[K]) count(hash uint64, key K) {
	if h.samples++; h.samples == hotWindow {
		h.samples /= 2
		for i := range h.counts {
			h.counts[i] /= 2
			h.before[i] /= 2
		}
	}
	least := 0
	for i := range h.counters {
		if h.hashes[i] == hash {
			h.counts[i]++
			return
		}
		if h.counts[i] < h.counts[least] {
			least = i
		}
	}
	if h.counters < hotCounters {
		least = h.counters
		h.counters++
	}
	h.hashes[least], h.keys[least], h.before[least] = hash, key, h.counts[least]
	h.counts[least]++
}

// counted is a key with its count.
type counted struct {
	key   string
	count int64
}

func (h *hotKeys[K]) list() (keys []counted, samples int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.counters {
		if h.counts[i] == h.before[i] {
			continue
		}
		keys = append(keys, counted{cut(fmt.Sprint(h.keys[i]), hotKeyBytes), h.counts[i] - h.before[i]})
	}
	return keys, h.samples
}

// cut shortens a text to n bytes, at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// HotKeys tells the keys that records have most often, up to n for each KeyBy
// that has a state behind it.
func (r *Run) HotKeys(n int) []HotKey {
	var out []HotKey
	for _, s := range r.stages {
		operator := r.graph.operatorOf(s.spec.id)
		if operator == "" {
			continue
		}
		var all []counted
		var samples int64
		for _, sh := range s.shards {
			if sh.in.hot == nil {
				continue
			}
			keys, of := sh.in.hot()
			all, samples = append(all, keys...), samples+of
		}
		if samples < fewSamples {
			continue
		}
		slices.SortFunc(all, func(a, b counted) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
		})
		for _, k := range all[:min(n, len(all))] {
			out = append(out, HotKey{operator, k.key, float64(k.count) / float64(samples)})
		}
	}
	return out
}

// operatorOf is the name of the first operator with a state in a stage.
func (g *Graph) operatorOf(stage int) string {
	for _, s := range g.states {
		if s.Stage == stage {
			return s.Operator
		}
	}
	return ""
}
