package connectortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

// broker is a source in memory: topics of numbers, a group that is told, and
// beginnings that are looked up.
type broker struct {
	flaw string

	mu      sync.Mutex
	parts   map[string]*fakePart
	group   map[string]int64
	changed chan struct{} // closed and replaced at each change
}

type fakePart struct {
	identity string
	values   []int64
}

// fakeSource reads a broker; late: from the ends on, where the job hasn't begun.
type fakeSource struct {
	*broker
	late bool
}

func (fakeSource) Describe() connector.Description {
	return connector.Description{Connector: "fake", Contract: 1}
}

func (s fakeSource) Open(_ context.Context, o connector.Opening) (connector.Reader, error) {
	return fakeReader{s, s.late && (!o.Begun || s.flaw == "begun")}, nil
}

func (fakeSource) NewDecoder() func(b *connector.Batch, i int, v *int64) error {
	return func(b *connector.Batch, i int, v *int64) error {
		_, err := fmt.Sscan(string(b.Records[i].Value), v)
		return err
	}
}

type fakeReader struct {
	fakeSource
	atEnd bool
}

func (fakeReader) Bounded() bool   { return false }
func (fakeReader) Close() error    { return nil }
func (fakeReader) Cluster() string { return "the fake system" }
func (fakeReader) Group() string   { return "people" }

func (r fakeReader) CommitOffsets(_ context.Context, offsets map[string]connector.Offset) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.group = map[string]int64{}
	for part, at := range offsets {
		r.group[part] = at.Next
	}
	return nil
}

func (r fakeReader) Partitions(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.parts)), nil
}

func (r fakeReader) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := r.parts[name]
	if part == nil {
		return nil, errors.New("there is no such partition")
	}
	end := int64(len(part.values))
	told, tells := r.group[name]
	switch {
	case from != connector.Offset{} && (from.Identity != part.identity || from.Next > end):
		return nil, errors.New("the partition isn't what it was")
	case r.flaw == "group" && tells:
		from.Next = told
	case from != connector.Offset{} && !(r.flaw == "found beginning" && r.atEnd):
	case r.atEnd:
		from.Next = end
	}
	from.Identity = part.identity
	return &fakePartition{r.broker, name, from, from.Next}, nil
}

type fakePartition struct {
	*broker
	name string
	from connector.Offset
	next int64
}

func (p *fakePartition) From() connector.Offset { return p.from }
func (p *fakePartition) Close() error           { return nil }

func (p *fakePartition) End() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.parts[p.name].values))
}

func (p *fakePartition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if until >= 0 && p.next >= until {
			return io.EOF
		}
		p.mu.Lock()
		changed, part := p.changed, p.parts[p.name]
		p.mu.Unlock()
		size := 0
		b.Records = b.Records[:0]
		for ; p.next < int64(len(part.values)) && (until < 0 || p.next < until) && len(b.Records) < b.Limit; p.next++ {
			value := fmt.Append(nil, part.values[p.next])
			if size += len(value); size > b.LimitBytes && len(b.Records) > 0 {
				break
			}
			b.Records = append(b.Records, connector.Record{Offset: p.next, Time: connector.NoTime, Value: value})
		}
		b.Partition, b.To = p.name, connector.Offset{Next: p.next, Identity: part.identity}
		if len(b.Records) > 0 {
			return nil
		}
		if p.flaw != "" {
			return errors.New("nothing comes") // so that the case fails soon
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// change changes a partition, and wakes who waits.
func (b *broker) change(name string, do func(p fakePart) fakePart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := do(*b.parts[name])
	b.parts[name] = &p
	close(b.changed)
	b.changed = make(chan struct{})
}

func TestFakeSource(t *testing.T) {
	TestSource(t, func(*testing.T) SourceFixture[int64] {
		b := &broker{flaw: flaw(), changed: make(chan struct{}), parts: map[string]*fakePart{
			"a": {"first a", []int64{10, 11, 12, 13}}, "b": {"first b", []int64{20, 21, 22}},
		}}
		return SourceFixture[int64]{
			Source: fakeSource{b, false},
			Late:   fakeSource{b, true},
			Want:   map[string][]int64{"a": {10, 11, 12, 13}, "b": {20, 21, 22}},
			Append: func(_ *testing.T, part string, values ...int64) {
				b.change(part, func(p fakePart) fakePart { return fakePart{p.identity, slices.Concat(p.values, values)} })
			},
			Replace: func(_ *testing.T, part string) {
				b.change(part, func(p fakePart) fakePart { return fakePart{"another", p.values} })
			},
			Shorten: func(_ *testing.T, part string) {
				b.change(part, func(p fakePart) fakePart { return fakePart{p.identity, p.values[:1]} })
			},
			Committed: func(*testing.T) map[string]int64 {
				b.mu.Lock()
				defer b.mu.Unlock()
				return b.group
			},
		}
	})
}
