package connectortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// system is a system in memory that fake sinks write to. Its flaw, if any, is the
// name of the case that has to find it.
type system struct {
	flaw string

	mu      sync.Mutex
	records map[connector.RecordKey]held
	log     map[string][]fakeChange // by target
	groups  map[string]map[string]int64
	damaged bool
	lost    bool
	refused string // the name of rows that are
}

type held struct {
	connector.SinkRecord
	target string
}

type fakeChange struct {
	key string
	row *NewerRow
}

func newSystem() *system {
	return &system{flaw: flaw(), records: map[connector.RecordKey]held{}, log: map[string][]fakeChange{}, groups: map[string]map[string]int64{}}
}

// fakeSink is one of the two halves of a sink that a fake has; mortal is the
// process that it crashes with, if any.
type fakeSink struct {
	*system
	target string
	mortal *mortal
	limit  *atomic.Int64
}

type (
	fakeStream struct{ fakeSink }
	fakeTable  struct{ fakeSink }
)

func (s fakeSink) Describe() connector.Description {
	return connector.Description{Connector: "fake", Contract: 1, Target: s.target}
}

func (s fakeSink) PartLimits() (rows, bytes int64) {
	if s.flaw == "part limits" {
		return s.limit.Add(1), 0
	}
	return 50, 0
}

func (fakeStream) Rows() (connector.Rows[Row], error) {
	t, err := schema.Of[Row]("row")
	return connector.Rows[Row]{Schema: t.Schema(), NewAppend: func() func([]byte, *Row) ([]byte, error) { return t.Append }}, err
}

func (s fakeTable) TableRows() (connector.TableRows[string, Row], error) {
	t, err := schema.Of[Row]("row")
	return connector.TableRows[string, Row]{
		Schema: t.Schema(),
		NewAppend: func() func([]byte, string, *Row) ([]byte, error) {
			return func(dst []byte, _ string, r *Row) ([]byte, error) { return t.Append(dst, r) }
		},
		NewWire: func() func([]byte, string, *Row) ([]byte, error) {
			last := ""
			return func(dst []byte, k string, r *Row) ([]byte, error) {
				if r != nil {
					last = r.Name
					return append(append(append(dst, k...), '='), last...), nil
				}
				if s.flaw == "wire of a delete" {
					k += last
				}
				return append(append(dst, k...), " is gone"...), nil
			}
		},
	}, err
}

// Open is where a process with a crash is told apart.
func (s fakeSink) Open(_ context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	if s.lost && o.Begun {
		if s.flaw != "lost records" {
			return nil, fmt.Errorf("%w: it is gone", connector.ErrRecord)
		}
		s.records[key] = held{record("first", stage{1, 0}), s.target} // as if it were there
	}
	return &fakeTarget{fakeSink: s, key: key}, s.mortal.step(func() {})
}

type fakeTarget struct {
	fakeSink
	key    connector.RecordKey
	cached *connector.SinkRecord // of the flaw that believes what it remembers
}

func (t *fakeTarget) Cluster() string { return "the fake system" }

func (t *fakeTarget) Close() error { return nil }

// found is the record that stands there; the system is locked.
func (t *fakeTarget) found() (*connector.SinkRecord, error) {
	if t.damaged {
		if t.flaw == "damaged record" {
			return nil, errors.New("the record is no JSON")
		}
		return nil, fmt.Errorf("%w: it is no JSON", connector.ErrRecord)
	}
	if h, ok := t.records[t.key]; ok {
		return &h.SinkRecord, nil
	}
	return nil, nil
}

func (t *fakeTarget) Record(context.Context) (*connector.SinkRecord, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.found()
}

func (t *fakeTarget) Make(_ context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, err := t.found()
	if err != nil || found != nil {
		if found == nil {
			found = &connector.SinkRecord{}
		}
		return *found, err
	}
	for key, h := range t.records {
		switch {
		case key.JobID == t.key.JobID:
		case h.target == t.target && t.flaw == "another's target":
			return first, errors.New("the target is taken")
		case h.target == t.target:
			return first, fmt.Errorf("%w: the target is another job's", connector.ErrRecord)
		case h.Job == first.Job && key.Sink == t.key.Sink && t.flaw != "another job's name":
			return first, fmt.Errorf("%w: another job of this name has written elsewhere", connector.ErrRecord)
		}
	}
	return first, t.mortal.step(func() { t.records[t.key] = held{first, t.target} })
}

func (t *fakeTarget) Ready(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flaw == "ready" { // it shuts the owner out, as the start of a producer does
		delete(t.records, t.key)
	}
	return nil
}

func (t *fakeTarget) Empty(context.Context) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.log[t.target]) == 0, nil
}

func (t *fakeTarget) Replace(_ context.Context, old string, first connector.SinkRecord) (connector.SinkRecord, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, err := t.found()
	if err != nil || found == nil {
		return connector.SinkRecord{}, err
	}
	if found.ID != old && t.flaw != "replace" {
		return *found, nil
	}
	return first, t.mortal.step(func() {
		delete(t.log, t.target)
		t.records[t.key] = held{first, t.target}
	})
}

func (t *fakeTarget) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	verdict, found, err := t.deliver(ctx, d)
	if err != nil && (t.flaw == "tries once" || t.flaw == "broken call") {
		return t.deliver(ctx, d)
	}
	return verdict, found, err
}

func (t *fakeTarget) deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	found, err := t.found()
	if err != nil {
		return connector.Disagree, nil, err
	}
	if t.flaw == "two owners" && t.cached != nil {
		found = t.cached
	}
	verdict := d.Decide(found)
	if verdict != connector.Apply {
		if t.flaw == "group offsets" && verdict == connector.Skip {
			t.tell(d.Offsets)
		}
		return verdict, found, nil
	}
	rows, err := t.take(d)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return connector.Disagree, found, err
	}
	write := func() { t.log[t.target] = append(t.log[t.target], rows...) }
	move := func() {
		t.tell(d.Offsets)
		t.records[t.key], t.cached = held{d.Record, t.target}, &d.Record
	}
	steps := []func(){func() { write(); move() }}
	if t.flaw == "crash in deliver" {
		steps = []func(){write, move}
	}
	for _, step := range steps {
		if err := t.mortal.step(step); err != nil {
			return connector.Disagree, found, err
		}
	}
	return connector.Apply, found, nil
}

// take takes the rows as the newest build has them.
func (t *fakeTarget) take(d *connector.Delivery) (all []fakeChange, err error) {
	if d.Schema == nil {
		return nil, nil
	}
	newest, err := schema.Of[NewerRow]("row")
	if err != nil {
		return nil, err
	}
	reader, err := newest.Reader(d.Schema)
	if err != nil {
		return nil, err
	}
	key, err := schema.KeyOf[string]("key")
	if err != nil {
		return nil, err
	}
	for r, err := range d.Rows {
		if err != nil {
			return nil, err
		}
		var c fakeChange
		if r.Op != connector.Append {
			c.key, _, err = key.Decode(r.Key)
		}
		if err == nil && r.Op != connector.Delete {
			c.row = new(NewerRow)
			_, err = reader.Decode(r.Row, c.row)
		}
		if err != nil {
			return nil, err
		}
		if c.row != nil && t.refused != "" && c.row.Name == t.refused {
			if t.flaw == "refused row" {
				return nil, errors.New("a row is refused")
			}
			return nil, fmt.Errorf("row of key %q: %w", c.key, connector.ErrRejected)
		}
		if c.row != nil && t.flaw == "a newer build's rows" {
			c.row.Extra = ""
		}
		all = append(all, c)
	}
	return all, nil
}

func (t *fakeTarget) tell(offsets []connector.GroupOffsets) {
	for _, g := range offsets {
		t.groups[g.Group] = map[string]int64{}
		for part, at := range g.Offsets {
			t.groups[g.Group][part] = at.Next
		}
	}
}

// mortal is a process of which a step fails; nil has none that does.
type mortal struct {
	call, calls int
	how         Crash
	lives       bool // only the one step fails
}

func (m *mortal) step(do func()) error {
	if m == nil {
		do()
		return nil
	}
	m.calls++
	fails := m.calls == m.call || m.calls > m.call && !m.lives
	if !fails || m.calls == m.call && m.how == After {
		do()
	}
	if fails {
		return errCrashed
	}
	return nil
}

func (s *system) sink(target string) fakeSink { return fakeSink{s, target, nil, new(atomic.Int64)} }

func (s *system) read(target string) []fakeChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log[target]
}

// abilities are everything that a fixture can have.
func (s *system) abilities(sink func(fakeSink) connector.Sink) (Faults, System) {
	start := func(m *mortal) (connector.Sink, func() bool) {
		f := s.sink("out")
		f.mortal = m
		return sink(f), func() bool { return m.calls >= m.call }
	}
	faults := Faults{
		Exclusive: true,
		CrashSink: func(_ *testing.T, call int, how Crash) (connector.Sink, func() bool) {
			return start(&mortal{call: call, how: how})
		},
		Break: func(_ *testing.T, call int, how Crash) (connector.Sink, connector.Opening, func() bool) {
			brittle, broken := start(&mortal{call: call, how: how, lives: true})
			return brittle, connector.Opening{}, broken
		},
	}
	return faults, System{
		Elsewhere: func(*testing.T) connector.Sink { return sink(s.sink("elsewhere")) },
		Damage:    func(*testing.T) { s.damaged = true },
		Refuse: func(_ *testing.T, name string) (allow func()) {
			s.refused = name
			return func() { s.refused = "" }
		},
		Lose: func(*testing.T) {
			s.lost = true
			clear(s.records)
		},
		Groups: &Groups{
			Offsets: func(next int64) []connector.GroupOffsets {
				return []connector.GroupOffsets{{Group: "people", Offsets: map[string]connector.Offset{"a": {Next: next}, "b": {Next: next}}}}
			},
			Read: func(_ *testing.T, group string) map[string]int64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return maps.Clone(s.groups[group])
			},
		},
	}
}

func TestFakeSink(t *testing.T) {
	TestSink(t, SinkSetup{
		Stream: func(*testing.T) StreamFixture {
			s := newSystem()
			newer := func(*testing.T) (all []NewerRow) {
				for _, c := range s.read("out") {
					all = append(all, *c.row)
				}
				return all
			}
			f := StreamFixture{Sink: fakeStream{s.sink("out")}, ReadNewer: newer, Read: func(t *testing.T) (all []Row) {
				for _, r := range newer(t) {
					all = append(all, r.Row)
				}
				return all
			}}
			f.Faults, f.System = s.abilities(func(f fakeSink) connector.Sink { return fakeStream{f} })
			return f
		},
		Table: func(*testing.T) TableFixture {
			s := newSystem()
			newer := func(*testing.T) map[string]NewerRow {
				all := map[string]NewerRow{}
				for _, c := range s.read("out") {
					delete(all, c.key)
					if c.row != nil {
						all[c.key] = *c.row
					}
				}
				return all
			}
			f := TableFixture{Sink: fakeTable{s.sink("out")}, ReadNewer: newer, Read: func(t *testing.T) map[string]Row {
				all := map[string]Row{}
				for key, r := range newer(t) {
					all[key] = r.Row
				}
				return all
			}, Log: func(*testing.T) (all []Change) {
				for _, c := range s.read("out") {
					change := Change{Key: c.key}
					if c.row != nil {
						change.Row = &c.row.Row
					}
					all = append(all, change)
				}
				return all
			}}
			f.Faults, f.System = s.abilities(func(f fakeSink) connector.Sink { return fakeTable{f} })
			return f
		},
	})
}
