package engine

import (
	"cmp"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// TimerEntry is what is stored of a key's timer: when it is due, and its place among the
// operator's timers of the key that are due at that instant.
type TimerEntry struct {
	At    schema.Instant `avro:"at"`
	Order int32          `avro:"order"`
}

// TimerSpec describes a timer of an operator: one for each key, which is a state of its
// own.
type TimerSpec[K comparable] struct {
	// Table is the state.
	Table *TableSpec[K, TimerEntry]
	// Clock tells that it goes by the epochs' clock, and not by the watermark.
	Clock bool
}

// NeedClock notes that the passing of the clock does something in the graph.
func (g *Graph) NeedClock() { g.ticks = true }

// Timer is a timer, at the key in hand of one shard.
type Timer[K comparable] struct {
	group *timers[K]
	table *Table[K, TimerEntry]
	place int // among those of the group
	fire  func()
	due   dues
}

// timers are the timers of an operator in one shard which go by the same time: they
// are fired in one order.
type timers[K comparable] struct {
	in       *Instance
	key      *KeyContext[K]
	operator string
	clock    bool
	all      []*Timer[K]

	ready  []due      // what is due by now
	found  []dueTimer // of these, those that stand
	order  slotOrder  // of these
	firing []dueTimer // of the slot in hand
	fired  int        // which of these fires
	at     int64      // of the one that fires
	slot   int        // of that; -1: none does
	a, b   []byte     // keys that are compared
}

// dueTimer is a timer of a key that is due.
type dueTimer struct {
	at     int64
	hash   uint64
	number uint32 // of its entry
	place  int32  // of its timer in the group
}

// OpenTimer returns a timer of an operator in one shard. fire is called when it is due,
// with its key in hand.
func OpenTimer[K comparable](in *Instance, stage *Stage[K], spec TimerSpec[K], fire func()) *Timer[K] {
	kind := "timers of event time"
	if spec.Clock {
		kind = "timers of the clock"
	}
	id := timersOf{stage, spec.Table.Operator}
	g := sharedPart(in, id, kind, func() *timers[K] {
		g := &timers[K]{in: in, key: stage.keyContext(in), operator: spec.Table.Operator, clock: spec.Clock, slot: -1}
		in.timed = append(in.timed, g)
		return g
	})
	t := &Timer[K]{group: g, table: spec.Table.table(in), place: len(g.all), fire: fire, due: newDues()}
	g.all = append(g.all, t)
	t.table.whenLoaded = t.loaded
	return t
}

// timersOf names the timers of an operator.
type timersOf struct {
	stage    any
	operator string
}

func (t *Timer[K]) loaded() {
	for n := range t.table.made {
		if e := t.table.at(n); e.present {
			t.due.add(int64(e.value.At), n)
		}
	}
}

// At tells when the timer of the key in hand is due, if it is set.
func (t *Timer[K]) At() (at schema.Instant, ok bool) {
	if e := t.table.get(t.group.key.Hash, t.group.key.Key); e != nil {
		return e.At, true
	}
	return 0, false
}

// Set sets the timer of the key in hand; one that is set already is replaced.
func (t *Timer[K]) Set(at schema.Instant) {
	g := t.group
	n, found := t.table.find(g.key.Hash, g.key.Key)
	if found && t.stands(due{int64(at), n}) {
		return
	}
	entry := TimerEntry{At: at}
	for _, other := range g.all {
		if other == t {
			continue
		}
		if e := other.table.get(g.key.Hash, g.key.Key); e != nil && e.At == at {
			entry.Order = max(entry.Order, e.Order+1)
		}
	}
	n, e := t.table.enterFound(n, found, g.key.Hash, g.key.Key)
	e.value = entry
	t.table.put(e)
	if now := g.now(); g.slot >= 0 && int64(at) > g.at && int64(at) <= now {
		g.insert(t.dueNow(e, n))
		return
	} else if now != connector.NoTime && int64(at) <= now {
		g.in.overdue = true
	}
	t.due.add(int64(at), n)
}

// Delete takes the timer of the key in hand back.
func (t *Timer[K]) Delete() {
	g := t.group
	if t.table.get(g.key.Hash, g.key.Key) != nil {
		n, e := t.table.enterRow(g.key.Hash, g.key.Key)
		t.table.remove(e)
		t.table.forgo(e, n)
	}
}

func (t *Timer[K]) dueNow(e *entry[K, TimerEntry], n uint32) dueTimer {
	return dueTimer{int64(e.value.At), e.hash, n, int32(t.place)}
}

func (g *timers[K]) now() int64 {
	if g.clock {
		return g.in.clock
	}
	return g.in.mark
}

func (g *timers[K]) nextTick() int64 {
	next := int64(never)
	if !g.clock {
		return next
	}
	for _, t := range g.all {
		next = min(next, t.due.soonest(t.stands))
	}
	return next
}

// stands tells whether what is due has been neither replaced nor deleted.
func (t *Timer[K]) stands(d due) bool {
	e := t.table.at(d.number)
	return e.present && int64(e.value.At) == d.at
}

// pass fires what is due: by slot, in a slot by time, at one instant by key, and of a
// key in the order in which they were set.
func (g *timers[K]) pass(in *Instance) {
	now := g.now()
	if now == connector.NoTime {
		return
	}
	found := g.found[:0]
	for _, t := range g.all {
		g.ready = t.due.take(now, g.ready[:0])
		for i, d := range g.ready {
			if i%ahead == 0 {
				t.table.fetchDue(g.ready[i:min(i+ahead, len(g.ready))])
			}
			if t.stands(d) {
				found = append(found, t.dueNow(t.table.at(d.number), d.number))
			}
		}
	}
	g.found = found
	g.order.begin()
	for _, d := range found {
		g.order.add(d.hash)
	}
	defer func() { g.slot, g.firing = -1, g.firing[:0] }()
	for rest := g.order.sorted(); len(rest) > 0; {
		same := firstSlot(rest)
		rest = rest[len(same):]
		g.firing, g.slot = g.firing[:0], int(same[0].slot)
		for _, p := range same {
			g.firing = append(g.firing, found[p.at])
		}
		if len(same) > 1 {
			slices.SortFunc(g.firing, g.compare)
			g.firing = slices.Compact(g.firing) // one that was set to this time twice is planned twice
		}
		in.fireAt(g.slot, 0)
		for i := 0; i < len(g.firing); i++ {
			g.fired = i
			if g.fire(g.firing[i]); in.failed != nil {
				return
			}
		}
	}
}

// compare is the order in which timers of a slot are fired.
func (g *timers[K]) compare(a, b dueTimer) int {
	if a.at != b.at {
		return cmp.Compare(a.at, b.at)
	}
	x, y := g.all[a.place].table.at(a.number), g.all[b.place].table.at(b.number)
	if x.row != y.row {
		spec := g.all[0].table.spec
		g.a, g.b = spec.appendKey(g.a[:0], &x.row), spec.appendKey(g.b[:0], &y.row)
		return spec.compareKeys(g.a, g.b)
	}
	return cmp.Or(cmp.Compare(x.value.Order, y.value.Order), cmp.Compare(a.place, b.place))
}

// insert has a timer be fired that one which fires has set.
func (g *timers[K]) insert(d dueTimer) {
	rest := g.firing[g.fired+1:]
	i, _ := slices.BinarySearchFunc(rest, d, g.compare)
	g.firing = slices.Insert(g.firing, g.fired+1+i, d)
}

func (g *timers[K]) fire(d dueTimer) {
	t := g.all[d.place]
	e := t.table.at(d.number)
	if !e.present || e.hash != d.hash || int64(e.value.At) != d.at {
		return // another one that fired has replaced or deleted it
	}
	g.key.Key, g.key.Hash = e.row, e.hash
	g.at, g.in.time, g.in.operator = d.at, d.at, g.operator
	t.table.change(e, d.number)
	t.table.remove(e)
	t.table.forgo(e, d.number)
	t.fire()
}
