package engine

// turns are a few things in the order in which it is their turn: a heap, the first at
// the top. It is not container/heap's, which calls by interface and allocates for each
// of them.
type turns []due

func (d *turns) add(at int64, number uint32) {
	h := append(*d, due{at, number})
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= at {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = due{at, number}
	*d = h
}

// next takes out the first, if it is due by now.
func (d *turns) next(now int64) (first due, ok bool) {
	h := *d
	if len(h) == 0 || h[0].at > now {
		return due{}, false
	}
	first = h[0]
	last := h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if last.at <= h[child].at {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = last
	}
	*d = h
	return first, true
}
