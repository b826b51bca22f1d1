package engine

import (
	"cmp"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// TableSpec is a state of a job with its types: what its tables, one for each
// shard, have in common.
type TableSpec[R comparable, S any] struct {
	*StateSpec
	// Changes is the node at which, at an epoch's end, what it changed arrives.
	Changes *Node[Change[R, S]]
	// Panes tells that its entries are panes that windows share, see [sharing].
	Panes bool

	value           *schema.Type[S]
	own             func(S) S // a copy that shares nothing
	appendKey       func(dst []byte, r *R) []byte
	appendElement   func(dst []byte, r *R) []byte // nil if the key is all
	decodeRow       func(e *state.Entry) (R, uint64, error)
	compareKeys     func(a, b []byte) int
	compareElements func(a, b []byte) int // of elements; nil if the key is all
	byElement       bool
	windowed        bool           // entries are done at some time, and their rows stay
	sessions        bool           // all entries of a key have one hash
	rowKey          *schema.Schema // of the rows, where it is another than the state's key
	sinks           []tableSink[R, S]
}

type tableSink[R comparable, S any] struct {
	sink int
	rows connector.TableRows[R, S]
}

// tableHandle is a table without its types, as a shard sees it.
type tableHandle interface {
	warm(hashes []uint64, times []int64)
	emitChanges(table int)
	forget(jobID string, e edits) (entries int64)
	begin(e *Epoch)
	endStep()
	encode(n int) (done bool, err error)
	rewrite(w *Rewriting)
	load(e *state.Entry) error
	loaded()
	reserve(entries int64)
	resolve(stored *schema.Schema) error
	number() int
	held() int64
}

// Pair is a key with an element of it, which is what identifies a row of a map
// or list state.
type Pair[K comparable, E comparable] struct {
	Key     K
	Element E
}

// AddState adds a state of one value per key to the stage of keyed.
func AddState[K comparable, S any](g *Graph, stage *Stage[K], spec StateSpec, value *schema.Type[S], carried carry.Spec[K, S]) (*TableSpec[K, S], error) {
	keys := stage.keys
	t := &TableSpec[K, S]{
		appendKey: func(dst []byte, r *K) []byte { return keys.Append(dst, *r) },
		decodeRow: func(e *state.Entry) (K, uint64, error) {
			k, _, err := keys.Decode(e.Key)
			return k, xxhash.Sum64(e.Key), err
		},
	}
	spec.Form = state.Form{Name: spec.Name, Key: keys.Schema(), Value: value.Schema()}
	if spec.Intake.New == nil {
		spec.Intake.New = ownEntries(keys, value)
	}
	spec.Intake.Merge = mergesValues(value, carried.Merge)
	return addTable(g, stage.id, spec, t, value, carried)
}

// AddElementState adds a state of many elements per key, each stored by itself.
func AddElementState[K, E comparable, V any](g *Graph, stage *Stage[K], spec StateSpec, elements *schema.Key[E], value *schema.Type[V], carried carry.Spec[Pair[K, E], V]) (*TableSpec[Pair[K, E], V], error) {
	keys := stage.keys
	t := &TableSpec[Pair[K, E], V]{
		appendKey:     func(dst []byte, r *Pair[K, E]) []byte { return keys.Append(dst, r.Key) },
		appendElement: func(dst []byte, r *Pair[K, E]) []byte { return elements.Append(dst, r.Element) },
		decodeRow: func(e *state.Entry) (r Pair[K, E], hash uint64, err error) {
			if r.Key, _, err = keys.Decode(e.Key); err != nil {
				return r, 0, err
			}
			r.Element, _, err = elements.Decode(e.Element)
			return r, elementHash(xxhash.Sum64(e.Key), e.Element), err
		},
	}
	return addElements(g, stage, spec, t, elements, value, carried)
}

// addElements adds a state whose rows are elements of keys.
func addElements[R, K, E comparable, V any](g *Graph, stage *Stage[K], spec StateSpec, t *TableSpec[R, V], elements *schema.Key[E], value *schema.Type[V], carried carry.Spec[R, V]) (*TableSpec[R, V], error) {
	spec.Form = state.Form{Name: spec.Name, Key: stage.keys.Schema(), Element: elements.Schema(), Value: value.Schema()}
	if spec.Intake.New == nil {
		spec.Intake.New = ownElements(stage.keys, elements, value)
	}
	spec.Intake.Merge = mergesValues(value, carried.Merge)
	t.byElement = true
	return addTable(g, stage.id, spec, t, value, carried)
}

// elementHash is the hash of a row of a map or list: the slot is the key's.
func elementHash(key uint64, element []byte) uint64 {
	const slotBits = uint64(0xffff) << 48
	return key&slotBits | (key*0x9e3779b97f4a7c15+xxhash.Sum64(element))&^slotBits
}

func addTable[R comparable, S any](g *Graph, stage int, spec StateSpec, t *TableSpec[R, S], value *schema.Type[S], carried carry.Spec[R, S]) (*TableSpec[R, S], error) {
	compare, err := schema.Comparer(spec.Form.Key)
	if err != nil {
		return nil, err
	}
	if spec.Form.Element != nil {
		if t.compareElements, err = schema.Comparer(spec.Form.Element); err != nil {
			return nil, err
		}
	}
	copyOf, _, err := schema.Copier[S]()
	if err != nil {
		return nil, err
	}
	spec.Stage, spec.index = stage, len(g.states)
	spec.entrySize = int(unsafe.Sizeof(entry[R, S]{})) + 12 // and a word and a half of the index
	codec := carry.Codec[R, S]{AppendKey: t.appendKey, AppendElement: t.appendElement, Value: value}
	spec.newCarrier = func(target carry.Target) (carry.Carrier, error) { return carry.New(target, codec, carried) }
	t.StateSpec, t.value, t.own, t.compareKeys, t.Changes = &spec, value, copyOf, compare, new(Node[Change[R, S]])
	g.states = append(g.states, t.StateSpec)
	return t, nil
}

// AddTableSink sends the rows of a state's entries to a sink.
func AddTableSink[K comparable, S any](g *Graph, t *TableSpec[K, S], name string, sink connector.TableSink[K, S]) error {
	rows, err := sink.TableRows()
	if err != nil {
		return err
	}
	spec := &SinkSpec{Name: name, Sink: sink, State: t.Name, Key: cmp.Or(t.rowKey, t.Form.Key), Row: rows.Schema, Function: rows.Function, index: len(g.sinks)}
	g.sinks = append(g.sinks, spec)
	t.sinks = append(t.sinks, tableSink[K, S]{spec.index, rows})
	return nil
}

// table returns the state's table in one shard.
func (t *TableSpec[R, S]) table(in *Instance) *Table[R, S] {
	return sharedPart(in, t, "table", func() *Table[R, S] { return newTable(in, t) })
}

// AddFold adds an operator that folds each record into its key's entry. fold
// tells whether the entry stays.
func AddFold[K comparable, S, T any](keyed Keyed[K, T], t *TableSpec[K, S], fold func(*S, T) bool) {
	keyed.Node.Consume(func(in *Instance) func(*T) {
		key, table := keyed.Stage.keyContext(in), t.table(in)
		return func(v *T) {
			in.operator = t.Operator
			e := table.update(key.Hash, key.Key)
			if fold(&e.value, *v) {
				table.put(e)
			} else {
				table.remove(e)
			}
		}
	})
}

// AddAlwaysFold is AddFold for a function after which the entry always stays.
func AddAlwaysFold[K comparable, S, T any](keyed Keyed[K, T], t *TableSpec[K, S], fold func(*S, T)) {
	keyed.Node.Consume(func(in *Instance) func(*T) {
		key, table := keyed.Stage.keyContext(in), t.table(in)
		return func(v *T) {
			in.operator = t.Operator
			e := table.update(key.Hash, key.Key)
			fold(&e.value, *v)
			table.put(e)
		}
	})
}

func (t *Table[R, S]) number() int { return t.spec.index }

func (t *Table[R, S]) reserve(entries int64) {
	if entries > 0 && entries < 1<<32 {
		t.grow(int(entries))
	}
}

// resolve makes the table read stored values of another schema than its own.
func (t *Table[R, S]) resolve(stored *schema.Schema) error {
	if stored.Equal(t.spec.value.Schema()) {
		return nil
	}
	r, err := t.spec.value.Reader(stored)
	if err != nil {
		return err
	}
	t.decode = r.Decode
	return nil
}

func (t *Table[R, S]) loaded() {
	t.count.Store(int64(t.used))
	if t.whenLoaded != nil {
		t.whenLoaded()
	}
	if t.observer == nil {
		return
	}
	for n := range t.made {
		if e := t.at(n); e.present {
			t.observer(e.row, e.hash, true)
		}
	}
}
