package window

// A Finder finds the windows of a succession, record by record: it remembers the
// tumbling window or the day that it found last. It is for one goroutine.
type Finder struct {
	parts []finding
	found []Span
}

type finding struct {
	stretch
	last Span // whose times are in no other window of the part
}

// Finder is a way to find windows for many records. It doesn't see what becomes of
// the succession later.
func (s Succession) Finder() Finder {
	f := Finder{parts: make([]finding, len(s.parts))}
	for i := range s.parts {
		f.parts[i].stretch = s.stretch(i)
	}
	return f
}

// One is the window of t; ok is false where t is in none or in several, and where
// Append refuses.
func (f *Finder) One(t int64) (window Span, ok bool) {
	if len(f.parts) == 1 && f.parts[0].last.Holds(t) {
		return f.parts[0].last, true
	}
	if f.found, ok = f.Append(f.found[:0], t); !ok || len(f.found) != 1 {
		return Span{}, false
	}
	return f.found[0], true
}

// Append is as that of the succession.
func (f *Finder) Append(dst []Span, t int64) (windows []Span, ok bool) {
	n := len(dst)
	for i := range f.parts {
		part := &f.parts[i]
		if part.last.Holds(t) {
			dst = append(dst, part.last)
			continue
		}
		before := len(dst)
		if dst, ok = part.append(dst, t); !ok {
			return dst[:n], false
		}
		if len(dst) > before && part.Definition.divides() {
			part.last = dst[before]
		}
	}
	return dst, true
}
