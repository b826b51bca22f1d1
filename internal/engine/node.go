package engine

import (
	"github.com/sluicestream/sluice/schema"
)

// Node is a typed point of a job's graph. What arrives there goes to each
// consumer, in the order in which they were added. A consumer is a factory: it
// is called once for each worker or shard that the node is part of, and returns
// the function that takes the values there; nil if they need not come. So what
// runs per record is a chain of plain function calls, each knowing its types.
type Node[T any] struct {
	consumers []func(*Instance) func(*T)
}

// Consume adds a consumer.
func (n *Node[T]) Consume(c func(*Instance) func(*T)) { n.consumers = append(n.consumers, c) }

// Consumed tells whether anything takes the node's values.
func (n *Node[T]) Consumed() bool { return len(n.consumers) > 0 }

// NeedsCopies tells whether more than one consumer takes the node's values.
func (n *Node[T]) NeedsCopies() bool { return len(n.consumers) > 1 }

// instantiate returns the function that takes the node's values in in.
func (n *Node[T]) instantiate(in *Instance) func(*T) {
	outs := make([]func(*T), 0, len(n.consumers))
	for _, c := range n.consumers {
		if out := c(in); out != nil {
			outs = append(outs, out)
		}
	}
	switch len(outs) {
	case 0:
		return func(*T) {}
	case 1:
		return outs[0]
	}
	copyOf, shares, err := schema.Copier[T]()
	if err != nil || !shares { // a type that can't be copied was refused when the job was built
		return func(v *T) {
			for _, out := range outs {
				out(v)
			}
		}
	}
	// Each consumer owns what it gets: one may keep a slice of the value in
	// its state and append to it.
	own := make([]T, len(outs))
	return func(v *T) {
		own[0] = *v
		for i := 1; i < len(own); i++ {
			own[i] = copyOf(*v)
		}
		for i, out := range outs {
			out(&own[i])
		}
	}
}

// Through adds a consumer of from that calls step for each value, with the
// function that passes a value on to to.
func Through[T, U any](from *Node[T], to *Node[U], step func(in *Instance, next func(*U)) func(*T)) {
	from.Consume(func(in *Instance) func(*T) { return step(in, to.instantiate(in)) })
}

// Enter returns the function that takes values to a node in in.
func Enter[T any](in *Instance, n *Node[T]) func(*T) { return n.instantiate(in) }

// Instance is one copy of the part of a graph that runs in one goroutine: a
// worker, which decodes and does what comes before the first KeyBy, or a shard
// of a keyed stage.
type Instance struct {
	run   *Run
	build *Builder // set while the graph is only being looked at
	stage int      // 0: the workers
	shard int

	// The record in hand.
	batch      *batch
	time       int64 // of what is in hand, or [connector.NoTime]
	mark       int64 // the stage's watermark
	clock      int64 // the epoch's, in a shard
	recordTime int64 // what the source says of the record in hand
	base       Place
	level      uint8
	emitted    uint64
	failed     error  // what TryMap said; the rest of the record's way is void
	blame      string // the operator that failed

	// For errors: the key in hand, and the entry whose change is passed on.
	keyInHand func() string
	// hot lists the shard's hottest keys, and how many were sampled.
	hot      func() (keys []counted, samples int64)
	operator string // the keyed operator that runs, by the name of its first state
	emitting func() (state, row string)

	warmth byte // so that loads ahead of their use have a use

	merging    bool      // what was folded ahead is merged: what fails is no record's
	foldsAhead []folding // what folds records before they are sent
	folding    folding   // which of these does so at the moment; nil: none
	writers    []writer
	tables     []tableHandle
	clocks     []*runTimes  // of a worker
	timed      []timed      // of a shard
	overdue    bool         // something was planned for a time that has passed
	losses     []*losses    // of a shard
	firing     bool         // time has passed, and what was due is done
	firingPart int          // which of timed does that
	parts      map[part]any // what several consumers share: tables, writers
}

// part names what an instance has once, whoever asks for it.
type part struct {
	owner any // a pointer
	kind  string
}

// writer gathers what a record puts out until the batch is done.
type writer interface {
	// drop takes back what the record of this number has put out.
	drop(record uint64)
	// flush hands the batch's part on.
	flush(b *batch)
}

// folding folds records before they are sent.
type folding interface {
	// settle folds what has not been folded yet.
	settle()
	// blamed tells of the record that is being folded.
	blamed() (operator, key string, place Place)
}

// settle folds what is left of a batch to be folded before it is sent. Nothing of it can
// be taken back any more.
func (in *Instance) settle() {
	for _, f := range in.foldsAhead {
		f.settle()
	}
}

// next is the place of what the record in hand puts out next.
func (in *Instance) next() Place {
	n := in.emitted
	in.emitted++
	return in.base.child(in.level, n)
}

// Fail notes that the record in hand can't be processed by the operator.
func (in *Instance) Fail(operator string, err error) {
	if in.failed == nil {
		in.failed, in.blame = err, operator
	}
}

// At notes which keyed operator runs next, for errors.
func (in *Instance) At(operator string) { in.operator = operator }

// Now is the epoch's frozen clock, in microseconds since 1970 UTC.
func (in *Instance) Now() int64 { return in.batch.now }

// sharedPart returns the instance's part of the given owner and kind, made by make if
// it is the first to ask.
func sharedPart[P any](in *Instance, owner any, kind string, make func() P) P {
	id := part{owner, kind}
	if p, ok := in.parts[id]; ok {
		return p.(P)
	}
	p := make()
	in.parts[id] = p
	return p
}

func (in *Instance) flush(b *batch) {
	for _, c := range in.clocks { // who gets the batch reads them
		c.flush(b)
	}
	for _, w := range in.writers {
		w.flush(b)
	}
}

func (in *Instance) dropRecord(record uint64) {
	for _, c := range in.clocks {
		c.drop(record)
	}
	for _, w := range in.writers {
		w.drop(record)
	}
}
