package engine

import (
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
)

// watermarks follows how far the times of a graph's records have come. Each shard has
// one of its own, and so has who writes them down: all see the same batches in the same
// order, and come to the same.
type watermarks struct {
	specs []*EventTime
	start map[string]epoch.EventTime
	marks []int64      // by event time; they never go back
	parts [][]progress // by event time and partition
	names []partName   // by partition
	known []bool       // by partition: it holds the watermark back
	idle  [][]bool     // by event time and partition; nil: none is
}

// partName is a partition's name, and its source's.
type partName struct{ source, partition string }

// progress is how far the times of a partition have come.
type progress struct {
	mark, seen int64
	running    int64 // the latest time of a run that has not ended
}

var noProgress = progress{connector.NoTime, connector.NoTime, connector.NoTime}

// beginning is where the partitions stand when an epoch, or a step of one, begins.
type beginning struct {
	names []partName // by partition; who has a shorter list has the same beginning
	known []bool
	idle  [][]bool
	to    map[string]epoch.Moment // to where watermarks move, whatever the partitions say
}

func newWatermarks(specs []*EventTime, start map[string]epoch.EventTime) *watermarks {
	w := &watermarks{specs: specs, start: start, marks: make([]int64, len(specs)), parts: make([][]progress, len(specs))}
	for i, s := range specs {
		w.marks[i] = connector.NoTime
		if at, ok := start[s.Name]; ok {
			w.marks[i] = int64(at.Watermark)
		}
	}
	return w
}

// begin is told where the partitions stand, before anything of an epoch is read.
func (w *watermarks) begin(b *beginning) {
	for id := len(w.names); id < len(b.names); id++ {
		w.grow(id, b.names[id])
	}
	w.known, w.idle = b.known, b.idle
	for i, s := range w.specs {
		w.move(i)
		if to, ok := b.to[s.Name]; ok {
			w.marks[i] = max(w.marks[i], int64(to))
		}
	}
}

// grow makes room for a partition, which begins where the last epoch of another run has
// left it.
func (w *watermarks) grow(id int, name partName) {
	for len(w.names) <= id {
		w.names = append(w.names, partName{})
		for i := range w.parts {
			w.parts[i] = append(w.parts[i], noProgress)
		}
	}
	w.names[id] = name
	for i := range w.specs {
		w.parts[i][id] = w.stored(i, name)
	}
}

// end takes a batch in, and tells whether a watermark has moved: they do at the ends
// of runs.
func (w *watermarks) end(b *batch) (moved bool) {
	if b.part >= len(w.names) {
		w.grow(b.part, partName{b.sourceName, b.partition})
	}
	for i, s := range w.specs {
		p := &w.parts[i][b.part]
		p.running = max(p.running, b.seen[i])
		if !b.runEnds {
			continue
		}
		latest := p.running
		p.running = connector.NoTime
		p.seen = max(p.seen, latest)
		before := p.mark
		switch {
		case s.Next != nil:
			p.mark = max(p.mark, s.Next(RunTimes{Latest: latest, Seen: p.seen, Watermark: before, Now: b.now}))
		case p.seen != connector.NoTime:
			p.mark = max(p.mark, p.seen-s.Lateness)
		}
		if p.mark > before && before <= w.marks[i] && w.move(i) {
			moved = true
		}
	}
	return moved
}

// move moves a watermark to the least of its partitions'.
func (w *watermarks) move(i int) bool {
	to, moves := w.next(i, &beginning{names: w.names, known: w.known, idle: w.idle})
	if moves {
		w.marks[i] = to
	}
	return moves
}

// next is where a watermark goes if partitions stand so, and whether that is ahead.
func (w *watermarks) next(i int, b *beginning) (to int64, moves bool) {
	least, any := int64(1<<63-1), false
	for id, known := range b.known {
		if known && w.specs[i].comesOf(b.names[id].source) && (b.idle == nil || !b.idle[i][id]) {
			least, any = min(least, w.progress(i, id, b.names[id]).mark), true
		}
	}
	return least, any && least > w.marks[i]
}

// progress is how far a partition has come: as it began, if it has not been told of yet.
func (w *watermarks) progress(i, id int, name partName) progress {
	if id < len(w.parts[i]) {
		return w.parts[i][id]
	}
	return w.stored(i, name)
}

// stored is how far the last epoch of another run has left a partition.
func (w *watermarks) stored(i int, name partName) progress {
	at, ok := w.start[w.specs[i].Name].Partitions[name.source][name.partition]
	if !ok {
		return noProgress
	}
	return progress{int64(at.Watermark), int64(at.Seen), connector.NoTime}
}

// wouldMove tells whether a watermark moves when an epoch begins with partitions that
// stand so.
func (w *watermarks) wouldMove(b *beginning) bool {
	for i := range w.specs {
		if _, moves := w.next(i, b); moves {
			return true
		}
	}
	return false
}

// least is the watermark of records that have got their times in several places.
func (w *watermarks) least(of []*EventTime) int64 {
	if len(of) == 0 {
		return connector.NoTime
	}
	least := w.marks[of[0].index]
	for _, s := range of[1:] {
		least = min(least, w.marks[s.index])
	}
	return least
}

// stands is what a manifest keeps of it.
func (w *watermarks) stands() map[string]epoch.EventTime {
	if len(w.specs) == 0 {
		return nil
	}
	out := make(map[string]epoch.EventTime, len(w.specs))
	for i, s := range w.specs {
		at := epoch.EventTime{Watermark: epoch.Moment(w.marks[i])}
		for id, name := range w.names {
			p := w.parts[i][id]
			if p == noProgress || name == (partName{}) {
				continue
			}
			if at.Partitions == nil { // as a manifest is read that has none
				at.Partitions = map[string]map[string]epoch.PartitionTime{}
			}
			if at.Partitions[name.source] == nil {
				at.Partitions[name.source] = map[string]epoch.PartitionTime{}
			}
			at.Partitions[name.source][name.partition] = epoch.PartitionTime{Watermark: epoch.Moment(p.mark), Seen: epoch.Moment(p.seen)}
		}
		out[s.Name] = at
	}
	return out
}
