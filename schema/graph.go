package schema

import "math"

// heads are the records of a graph that stand in themselves: where a walk from
// the root meets a record that it is still in.
type heads map[*Schema]bool

// find adds the heads of the graph below s.
func (h heads) find(s *Schema) { h.walk(s, map[*Schema]bool{}) }

// walk visits every record once; open tells which the walk is still in.
func (h heads) walk(s *Schema, open map[*Schema]bool) {
	if s.element != nil {
		h.walk(s.element, open)
	}
	for _, b := range s.branches {
		h.walk(b, open)
	}
	if s.kind != KindRecord {
		return
	}
	if still, met := open[s]; met {
		h[s] = h[s] || still
		return
	}
	open[s] = true
	for i := range s.fields {
		h.walk(s.fields[i].Type, open)
	}
	open[s] = false
}

// maxWeight bounds how many types a parsed schema holds when every reference is
// followed: a few types that each hold the one before twice are a great many.
const maxWeight = 1 << 16

// weights are how many types each record holds when every reference is
// followed, but for those to a record around it.
type weights map[*Schema]int

func (w weights) of(s *Schema) int {
	if n, met := w[s]; met {
		return n
	}
	if s.kind == KindRecord {
		w[s] = 1
	}
	n := 1
	if s.element != nil {
		n += w.of(s.element)
	}
	for _, b := range s.branches {
		n = min(n+w.of(b), math.MaxInt32)
	}
	for i := range s.fields {
		n = min(n+w.of(s.fields[i].Type), math.MaxInt32)
	}
	if s.kind == KindRecord {
		w[s] = n
	}
	return n
}
