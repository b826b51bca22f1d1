package torture

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What the job windows reads and writes, as its files have it.
type (
	tick struct {
		ID   int64
		Key  string
		At   time.Time
		None bool
	}
	lateTick   struct{ ID int64 }
	filledSpan struct {
		Key        string
		Start, End time.Time
		IDs        []int64
	}
)

// keySpan is a key's window, in microseconds since 1970, and filled what windows hold: the
// numbers of their ticks.
type (
	keySpan struct {
		key        string
		start, end int64
	}
	filled map[keySpan][]int64
)

func (f filled) add(x tick, start, end int64) {
	at := keySpan{x.Key, start, end}
	f[at] = append(f[at], x.ID)
}

// tickSecond is a second of the windows, and tickLateness how far the watermark stays behind.
const (
	tickSecond   = 1_000_000
	tickLateness = 2 * tickSecond
)

// ticksRead are all ticks in the order in which they were read, and where others than the
// first build have gone on.
type ticksRead struct {
	ticks  []tick
	builds []tickBuild
}

// tickBuild is a build whose tumbling windows have a size; some ticks were read before.
type tickBuild struct {
	size   int64
	before int
}

// inOrder reads the input in the order that the manifests have recorded.
func (h *ticking) inOrder(t *testing.T) (read ticksRead) {
	t.Helper()
	parts := readPartitions(t, filepath.Join(h.folder, "in"))
	version := ""
	for _, m := range h.journal.manifests {
		if m.Version != version {
			version = m.Version
			read.builds = append(read.builds, tickBuild{h.sizes[version], len(read.ticks)})
		}
		for _, r := range m.Runs {
			parts[r.Partition].until(t, r.Next, func(line []byte) {
				var x tick
				if err := json.Unmarshal(line, &x); err != nil {
					t.Fatal(err)
				}
				read.ticks = append(read.ticks, x)
			})
		}
	}
	for name, p := range parts {
		if p.next != int64(len(p.data)) {
			t.Errorf("%s was read to %d of %d bytes", name, p.next, len(p.data))
		}
	}
	return read
}

// verify works out what windows and timers come to, of all that was not late, and holds
// the sinks against it.
func (h *ticking) verify(t *testing.T) {
	t.Helper()
	read := h.inOrder(t)
	for name, batch := range map[string]func(ticksRead) filled{"tumbling": tumbled, "hopping": hopped, "sessions": inSessions, "buckets": inBuckets} {
		late := h.late(t, name)
		kept := ticksRead{builds: slices.Clone(read.builds)}
		newest := int64(ticksBegin)
		for n, x := range read.ticks {
			for i, b := range read.builds {
				if b.before == n {
					kept.builds[i].before = len(kept.ticks)
				}
			}
			switch at := x.At.UnixMicro(); {
			case !late[x.ID] && x.None:
				t.Errorf("sink late_%s lacks tick %d, which has no time", name, x.ID)
			case !late[x.ID]:
				kept.ticks = append(kept.ticks, x)
				newest = max(newest, at)
			case !x.None && at > newest-tickLateness:
				t.Errorf("sink late_%s has tick %d of %v, and none of before was so far ahead", name, x.ID, x.At)
			}
			delete(late, x.ID)
		}
		for id := range late {
			t.Errorf("sink late_%s has tick %d, which is no input", name, id)
		}
		want := batch(kept)
		maps.DeleteFunc(want, func(at keySpan, _ []int64) bool { return at.key == lastKey }) // they stay open
		t.Logf("sink %s: %d ticks in %d windows, and %d late", name, len(kept.ticks), len(want), len(read.ticks)-len(kept.ticks))
		if n := len(read.ticks) - len(kept.ticks); n == 0 || n > len(read.ticks)/2 {
			t.Errorf("of %d ticks %d are late for %s, expected some, and half of them at most", len(read.ticks), n, name)
		}
		h.hold(t, name, want)
	}
}

// late are the ticks that came too late for an operator, or had no time, each once.
func (h *ticking) late(t *testing.T, operator string) map[int64]bool {
	t.Helper()
	late := map[int64]bool{}
	eachLine(t, filepath.Join(h.folder, "out", "late_"+operator), func(line []byte) {
		id := decode[lateTick](t, line).ID
		if late[id] {
			t.Errorf("sink late_%s has tick %d twice", operator, id)
		}
		late[id] = true
	})
	return late
}

// hold holds a sink against what it must have: each window once, with its ticks.
func (h *ticking) hold(t *testing.T, sink string, want filled) {
	t.Helper()
	faults := 0
	fault := func(format string, args ...any) {
		t.Helper()
		if faults++; faults <= maxFaults {
			t.Errorf("sink "+sink+": "+format, args...)
		}
	}
	eachLine(t, filepath.Join(h.folder, "out", sink), func(line []byte) {
		row := decode[filledSpan](t, line)
		at := keySpan{row.Key, row.Start.UnixMicro(), row.End.UnixMicro()}
		ids, ok := want[at]
		slices.Sort(ids)
		switch got := slices.Sorted(slices.Values(row.IDs)); {
		case !ok:
			fault("%s from %v to %v has %v, and was there before, or should not be", row.Key, row.Start, row.End, got)
		case !slices.Equal(got, ids):
			fault("%s from %v to %v has %v, expected %v", row.Key, row.Start, row.End, got, ids)
		}
		delete(want, at)
	})
	for at, ids := range want {
		fault("%s from %v to %v is missing, expected %v", at.key, time.UnixMicro(at.start).UTC(), time.UnixMicro(at.end).UTC(), ids)
	}
	if faults > maxFaults {
		t.Errorf("sink %s: %d faults in all", sink, faults)
	}
}

// tumbled has the windows of each build begin where both it and the one before it begin
// one, behind all that had come by then.
func tumbled(read ticksRead) filled {
	const never = 1 << 62
	type stretch struct{ size, from, until int64 }
	var parts []stretch
	seen, next := int64(-never), 0
	follow := func(n int) {
		for ; next < len(read.builds) && read.builds[next].before == n; next++ {
			size := read.builds[next].size
			if seen == -never {
				parts = []stretch{{size, -never, never}}
				continue
			}
			last := &parts[len(parts)-1]
			at := (max(seen, last.from)/size + 1) * size
			for at%last.size != 0 {
				at += size
			}
			last.until = at
			parts = append(parts, stretch{size, at, never})
		}
	}
	for n, x := range read.ticks {
		follow(n)
		seen = max(seen, x.At.UnixMicro())
	}
	follow(len(read.ticks))
	out := filled{}
	for _, x := range read.ticks {
		for _, p := range parts {
			if start := x.At.UnixMicro() / p.size * p.size; p.from <= start && start < p.until {
				out.add(x, start, start+p.size)
			}
		}
	}
	return out
}

func hopped(read ticksRead) filled {
	const size, slide = 8 * tickSecond, 2 * tickSecond
	out := filled{}
	for _, x := range read.ticks {
		at := x.At.UnixMicro()
		for start := at / slide * slide; start > at-size; start -= slide {
			out.add(x, start, start+size)
		}
	}
	return out
}

func inSessions(read ticksRead) filled {
	const gap = 3 * tickSecond
	slices.SortFunc(read.ticks, func(a, b tick) int { return a.At.Compare(b.At) })
	open := map[string]filledSession{}
	out := filled{}
	close := func(s filledSession) { out[keySpan{s.key, s.start, s.end}] = s.ids }
	for _, x := range read.ticks {
		at := x.At.UnixMicro()
		s, ok := open[x.Key]
		if ok && at >= s.end {
			close(s)
		}
		if !ok || at >= s.end {
			s = filledSession{keySpan: keySpan{x.Key, at, 0}}
		}
		s.end, s.ids = at+gap, append(s.ids, x.ID)
		open[x.Key] = s
	}
	for _, s := range open {
		close(s)
	}
	return out
}

type filledSession struct {
	keySpan
	ids []int64
}

func inBuckets(read ticksRead) filled {
	const bucket = 2 * tickSecond
	out := filled{}
	for _, x := range read.ticks {
		start := x.At.UnixMicro() / bucket * bucket
		out.add(x, start, start+bucket)
	}
	return out
}
