package engine

import (
	"context"
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Graph is a job's operators, as they are put together.
type Graph struct {
	sources  []*sourceSpec
	stages   []*stageSpec
	states   []*StateSpec
	sinks    []*SinkSpec
	times    []*EventTime
	windowed []*windowedSpec
	ticks    bool // something is done when the clock has come to a moment
	dead     *Node[DeadLetter]
}

// sourceSpec is a source without its type.
type sourceSpec struct {
	name     string
	node     any // *Node of the records' type
	describe func() connector.Description
	open     func(ctx context.Context, o connector.Opening) (connector.Reader, error)
	// feeder returns what decodes record i of a batch in in, and passes it on.
	feeder func(in *Instance) func(b *connector.Batch, i int) error
}

// stageSpec is a keyed stage without its type.
type stageSpec struct {
	id       int
	key      *schema.Schema
	function string       // name of the function that gives the key
	meaning  int          // of the key
	times    []*EventTime // where the records have got their times
	// start makes a shard's instance and returns, for each lane that the stage's pieces
	// come by, what applies those of one batch.
	start func(in *Instance) (lanes []func(pieces []pieceOf))

	lanes   int   // as start returns
	origins []int // stages that records come from, 0 for the workers; sorted
	depth   uint8 // level of what the stage puts out
}

// pieceOf is a *piece of the stage's types.
type pieceOf any

// StateSpec describes a state of a job.
type StateSpec struct {
	// Name is the author's name for it.
	Name string
	// Kind is "value", "map", "list", "sorted", "window" or "timer".
	Kind string
	// Limit is that of a sorted state.
	Limit state.Limit
	// Operator is the stateful operator that owns it.
	Operator string
	// Operation is what the operator does: fold, process.
	Operation string
	// Function is the name of the function that changes it, if it has one.
	Function string
	// Parameters are the operator's settings that change results, by name.
	Parameters map[string]string
	// Times are the event times that the operator goes by.
	Times []*EventTime
	// Meaning is the author's meaning version; 0 if none was given.
	Meaning int
	// Stage is the number of the keyed stage it lives in.
	Stage int
	// Form is the states' schemas.
	Form state.Form
	// Intake makes entries of rows that come from elsewhere.
	Intake Intake
	// KeyMeaning is the author's meaning version of the key. It is there, and so is
	// Carrier, once the graph has been built.
	KeyMeaning int
	// Carrier tells how the state comes from what is stored.
	Carrier carry.Carrier

	newCarrier func(carry.Target) (carry.Carrier, error)

	index     int
	entrySize int // bytes in memory of an entry and its place in the index
}

// SinkSpec describes a sink of a job.
type SinkSpec struct {
	// Name is the author's name for it.
	Name string
	// Sink delivers what was frozen.
	Sink connector.Sink
	// State is the name of a table's state, empty for a stream's sink.
	State string
	// Key is the schema of a table's keys, nil for a stream's sink.
	Key *schema.Schema
	// Row is the schema of the rows.
	Row *schema.Schema
	// Function is the name of the function that makes the rows, if it has one.
	Function string

	index int
}

// NewGraph returns an empty graph.
func NewGraph() *Graph { return &Graph{dead: new(Node[DeadLetter])} }

// States describes the states in the order in which they were added.
func (g *Graph) States() []*StateSpec { return g.states }

// Ways tells, for each state by its name, how it comes from what is stored, once
// the graph has been built; see [carry.Carrier].
func (g *Graph) Ways(stored func(name string) *carry.Stored) map[string]*carry.Way {
	ways := map[string]*carry.Way{}
	for _, s := range g.states {
		ways[s.Name] = s.Carrier.Find(stored)
	}
	return ways
}

// Sinks returns the sinks in the order in which they were added.
func (g *Graph) Sinks() []*SinkSpec { return g.sinks }

// DeadLetters is the node at which records that can't be processed arrive, if
// anything consumes it.
func (g *Graph) DeadLetters() *Node[DeadLetter] { return g.dead }

// SourceInfo describes a source.
type SourceInfo struct {
	Name        string
	Description connector.Description
}

// Sources describes the sources in the order in which they were added.
func (g *Graph) Sources() []SourceInfo {
	out := make([]SourceInfo, len(g.sources))
	for i, s := range g.sources {
		out[i] = SourceInfo{s.name, s.describe()}
	}
	return out
}

// StageInfo describes a keyed stage.
type StageInfo struct {
	ID       int
	Key      *schema.Schema
	Function string
}

// Stages describes the keyed stages in the order in which they were added.
func (g *Graph) Stages() []StageInfo {
	out := make([]StageInfo, len(g.stages))
	for i, s := range g.stages {
		out[i] = StageInfo{s.id, s.key, s.function}
	}
	return out
}

// AddSource adds a source; its records arrive at the returned node.
func AddSource[T any](g *Graph, name string, src connector.Source[T]) *Node[T] {
	node := new(Node[T])
	g.sources = append(g.sources, sourceOf(node, name, src))
	return node
}

// ReplaceSource gives the source of the given name another connector for
// records of the same type.
func ReplaceSource[T any](g *Graph, name string, src connector.Source[T]) error {
	for i, s := range g.sources {
		if s.name != name {
			continue
		}
		node, ok := s.node.(*Node[T])
		if !ok {
			var zero T
			return fmt.Errorf("source %q does not give records of type %T", name, zero)
		}
		g.sources[i] = sourceOf(node, name, src)
		return nil
	}
	return fmt.Errorf("the job has no source %q", name)
}

func sourceOf[T any](node *Node[T], name string, src connector.Source[T]) *sourceSpec {
	return &sourceSpec{
		name:     name,
		node:     node,
		describe: src.Describe,
		open:     src.Open,
		feeder: func(in *Instance) func(b *connector.Batch, i int) error {
			decode, push := src.NewDecoder(), node.instantiate(in)
			v := new(T)
			return func(b *connector.Batch, i int) error {
				var zero T
				*v = zero
				if err := decode(b, i, v); err != nil {
					return err
				}
				push(v)
				return nil
			}
		},
	}
}

// AddStreamSink sends what arrives at node to a sink.
func AddStreamSink[T any](g *Graph, node *Node[T], name string, sink connector.StreamSink[T]) error {
	rows, err := sink.Rows()
	if err != nil {
		return err
	}
	spec := &SinkSpec{Name: name, Sink: sink, Row: rows.Schema, Function: rows.Function, index: len(g.sinks)}
	g.sinks = append(g.sinks, spec)
	node.Consume(func(in *Instance) func(*T) {
		return newStreamWriter(in, spec, rows).take
	})
	return nil
}

// ReplaceSink gives the sink of the given name another connector for its frozen
// rows.
func (g *Graph) ReplaceSink(name string, sink connector.Sink) error {
	for _, s := range g.sinks {
		if s.Name == name {
			s.Sink = sink
			return nil
		}
	}
	return fmt.Errorf("the job has no sink %q", name)
}
