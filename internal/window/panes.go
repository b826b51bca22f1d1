package window

// Panes are the longest pieces of time between which no window begins or ends. A
// record goes into one pane instead of into all its windows, and a window is made
// of its panes when it ends. Tumbling and calendar windows are their own panes.
// Those of hopping windows end where windows begin, and where windows end: two to
// a slide, or one if the size is a multiple of it, whatever the numbers are. Of
// sliding windows each time is a pane.

// Pane is the piece of time that holds t and is in the same windows throughout; ok
// is false where Append refuses, and for session and custom windows, which have none.
//
// In a [Succession] two definitions can have panes of one span that hold other
// records: what is kept by pane is kept by definition as well.
func (d *Definition) Pane(t int64) (pane Span, ok bool) {
	switch {
	case d.divides():
		return d.One(t)
	case d.Kind == SlidingKind:
		_, ok := d.One(t)
		return Span{t, t + 1}, ok
	case !d.isFixed():
		return Span{}, false
	}
	_, start, ok := d.startsOf(t)
	if !ok {
		return Span{}, false
	}
	ended := start + d.Size%d.Slide
	if t < ended {
		return Span{start, ended}, true
	}
	return Span{ended, start + d.Slide}, true
}

// Panes appends the panes that have times of a window, in their order: those that
// it is made of, and of a window that was cut the panes that it was cut in as well.
// ok is false where Pane says so, of what is longer than a window, and for sliding
// windows, which have too many.
func (d *Definition) Panes(dst []Span, window Span) (panes []Span, ok bool) {
	if d.isFixed() && window.End-window.Start > d.Size || d.Kind == SlidingKind {
		return dst, false
	}
	n := len(dst)
	for at := window.Start; at < window.End; {
		pane, ok := d.Pane(at)
		if !ok {
			return dst[:n], false
		}
		dst = append(dst, pane)
		at = pane.End
	}
	return dst, true
}

// WindowsOf appends the windows that a pane is in, in the order of their starts: of
// sliding ones the one that it ends.
func (d *Definition) WindowsOf(dst []Span, pane Span) (windows []Span, ok bool) {
	return d.Append(dst, pane.Start)
}

// NextWindow is the first of the windows of t that end after an instant: of those that
// Append gives for it. There is none once they have all ended, and where Pane says so.
func (d *Definition) NextWindow(t, after int64) (window Span, ok bool) {
	if !d.isFixed() {
		window, ok = d.One(t)
		return window, ok && window.End > after
	}
	first, last, ok := d.startsOf(t)
	if !ok {
		return Span{}, false
	}
	start := first
	if after >= first+d.Size {
		if after >= last+d.Size {
			return Span{}, false
		}
		start += ((after-first-d.Size)/d.Slide + 1) * d.Slide
	}
	return Span{start, start + d.Size}, true
}

// LastEnd is where the last window ends that t can be in: of sliding ones that of the
// latest time within the size.
func (d *Definition) LastEnd(t int64) (end int64, ok bool) {
	if d.Kind == SlidingKind {
		return min(t, Forever-d.Size) + d.Size, true
	}
	if d.isFixed() {
		_, last, ok := d.startsOf(t)
		return last + d.Size, ok
	}
	window, ok := d.One(t)
	return window.End, ok
}
