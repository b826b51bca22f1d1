package connectortest

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

func (s sourceSuite[T]) describe(t *testing.T) {
	o := s.open(t)
	d := o.Source.Describe()
	if d.Connector == "" || d.Contract < 1 {
		t.Fatalf("no kind or no contract in %+v", d)
	}
	if again := o.Source.Describe(); !reflect.DeepEqual(d, again) {
		t.Fatalf("described as %+v, then as %+v", d, again)
	}
	if other := s.open(t).Source.Describe(); !reflect.DeepEqual(d.Parameters, other.Parameters) {
		t.Fatalf("parameters %+v, then %+v", d.Parameters, other.Parameters)
	}
}

func (s sourceSuite[T]) partitions(t *testing.T) {
	o := s.open(t)
	for range 2 {
		names, err := o.reader.Partitions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		if !slices.Equal(names, o.names) {
			t.Fatalf("partitions %q, expected %q", names, o.names)
		}
		o.reopen(t)
	}
}

func (s sourceSuite[T]) unknownPartition(t *testing.T) {
	o := s.open(t)
	if p, err := o.reader.Partition(t.Context(), "no-such-partition", connector.Offset{}); err == nil {
		p.Close()
		t.Fatal("a partition that doesn't exist was opened")
	}
}

func (s sourceSuite[T]) allRecords(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		o.compare(t, name, o.takeAll(t, name, 1000).values, o.Want[name])
	}
}

func (s sourceSuite[T]) limits(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		whole := o.takeAll(t, name, 1000)
		for _, limit := range []int{1, 2, 3} {
			cut := o.takeAll(t, name, limit)
			o.compare(t, name, cut.values, whole.values)
			if !slices.Equal(cut.offsets, whole.offsets) {
				t.Fatalf("offsets %v in batches of %d, otherwise %v", cut.offsets, limit, whole.offsets)
			}
		}
		p := o.partition(t, name, connector.Offset{})
		var got []T
		for len(got) < len(whole.values) {
			b := &connector.Batch{Limit: 1000, LimitBytes: 1}
			if err := p.Next(t.Context(), b, -1); err != nil {
				t.Fatalf("with a limit of one byte: %v", err)
			}
			if len(b.Records) > 1 {
				t.Fatalf("%d records in a batch of at most one byte", len(b.Records))
			}
			for i := range b.Records {
				var v T
				if err := o.decode(b, i, &v); err != nil {
					t.Fatal(err)
				}
				got = append(got, v)
			}
		}
		o.compare(t, name, got, whole.values)
	}
}

func (s sourceSuite[T]) resume(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		whole := o.takeAll(t, name, 1)
		for _, to := range whole.tos {
			o.reopen(t)
			done := behind(whole.offsets, to.Next)
			rest := o.take(t, o.partition(t, name, to), len(whole.values)-done, 1000, -1)
			o.compare(t, name, rest.values, whole.values[done:])
			if !slices.Equal(rest.offsets, whole.offsets[done:]) {
				t.Fatalf("offsets %v from %+v on, before %v", rest.offsets, to, whole.offsets[done:])
			}
		}
	}
}

// behind is the number of offsets below next.
func behind(offsets []int64, next int64) int {
	n, _ := slices.BinarySearch(offsets, next)
	return n
}

// cuts are the offsets at which a replay may be told to stop.
func (r *read[T]) cuts() []int64 {
	cuts := slices.Clone(r.offsets)
	for _, to := range r.tos {
		cuts = append(cuts, to.Next)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

func (s sourceSuite[T]) until(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		whole := o.takeAll(t, name, 1)
		for _, until := range whole.cuts() {
			for _, limit := range []int{1, 1000} {
				part := o.take(t, o.partition(t, name, connector.Offset{}), -1, limit, until)
				o.compare(t, name, part.values, whole.values[:behind(whole.offsets, until)])
			}
		}
	}
}

func (s sourceSuite[T]) onFromUntil(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		whole := o.takeAll(t, name, 1)
		p := o.partition(t, name, connector.Offset{})
		var got []T
		for _, until := range whole.cuts() {
			got = append(got, o.take(t, p, -1, 1000, until).values...)
		}
		o.compare(t, name, got, whole.values)
	}
}

func (s sourceSuite[T]) batchesApart(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		p := o.partition(t, name, connector.Offset{})
		var batches []*connector.Batch
		for n := 0; n < len(o.Want[name]); {
			b := &connector.Batch{Limit: 1, LimitBytes: 1 << 20}
			if err := p.Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			batches = append(batches, b)
			n += len(b.Records)
		}
		var got []T
		for _, b := range batches {
			for i := range b.Records {
				var v T
				if err := o.decode(b, i, &v); err != nil {
					t.Fatalf("decoding a batch once later ones have been read: %v", err)
				}
				got = append(got, v)
			}
		}
		o.compare(t, name, got, o.Want[name])
	}
}

func (s sourceSuite[T]) ownMemory(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		p := o.partition(t, name, connector.Offset{})
		var got []T
		b := &connector.Batch{}
		for len(got) < len(o.Want[name]) {
			*b = connector.Batch{Records: b.Records[:0], Buffer: b.Buffer[:0], Limit: 2, LimitBytes: 1 << 20}
			if err := p.Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				var v T
				if err := o.decode(b, i, &v); err != nil {
					t.Fatal(err)
				}
				got = append(got, v)
			}
			for i := range b.Records {
				fill(b.Records[i].Key)
				fill(b.Records[i].Value)
			}
			fill(b.Buffer[:cap(b.Buffer)])
		}
		o.compare(t, name, got, o.Want[name])
	}
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

func (s sourceSuite[T]) decodersApart(t *testing.T) {
	o := s.open(t)
	decoders := []func(*connector.Batch, int, *T) error{o.Source.NewDecoder(), o.Source.NewDecoder()}
	got := map[string][]T{}
	parts := map[string]connector.Partition{}
	for round := 0; ; round++ {
		open := 0
		for _, name := range o.names {
			if parts[name] == nil {
				parts[name] = o.partition(t, name, connector.Offset{})
			}
			if len(got[name]) == len(o.Want[name]) {
				continue
			}
			open++
			b := &connector.Batch{Limit: 1, LimitBytes: 1 << 20}
			if err := parts[name].Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				var v T
				if err := decoders[(round+open)%2](b, i, &v); err != nil {
					t.Fatal(err)
				}
				got[name] = append(got[name], v)
			}
		}
		if open == 0 {
			break
		}
	}
	for _, name := range o.names {
		o.compare(t, name, got[name], o.Want[name])
	}
}

func (s sourceSuite[T]) end(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		p := o.partition(t, name, connector.Offset{})
		r := o.take(t, p, len(o.Want[name]), 1000, -1)
		if end, next := p.End(), r.tos[len(r.tos)-1].Next; end < next {
			t.Fatalf("partition %s ends at %d, %d was read", name, end, next)
		}
		if !o.reader.Bounded() {
			continue
		}
		for range 2 {
			if err := p.Next(t.Context(), &connector.Batch{Limit: 10, LimitBytes: 1 << 20}, -1); !errors.Is(err, io.EOF) {
				t.Fatalf("behind the last record of a bounded partition: %v, expected io.EOF", err)
			}
		}
	}
}

func (s sourceSuite[T]) cancelled(t *testing.T) {
	o := s.open(t)
	for _, name := range o.names {
		p := o.partition(t, name, connector.Offset{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Next(ctx, &connector.Batch{Limit: 10, LimitBytes: 1 << 20}, -1); !errors.Is(err, context.Canceled) {
			t.Fatalf("Next with a cancelled context: %v", err)
		}
		o.compare(t, name, o.take(t, p, len(o.Want[name]), 2, -1).values, o.Want[name])
		if o.reader.Bounded() {
			continue
		}
		ctx, cancel = context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Next(ctx, &connector.Batch{Limit: 10, LimitBytes: 1 << 20}, -1) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("Next, waiting, with its context cancelled: %v", err)
		}
	}
}

func (s sourceSuite[T]) grows(t *testing.T) {
	o := s.open(t)
	if o.Append == nil {
		if !o.reader.Bounded() {
			t.Fatal("an unbounded source needs a fixture that can append")
		}
		t.Skip("growing is not tried: the source is bounded, and the fixture has no Append")
	}
	for _, name := range o.names {
		p := o.partition(t, name, connector.Offset{})
		want := o.Want[name]
		o.compare(t, name, o.take(t, p, len(want), 1000, -1).values, want)
		o.Append(t, name, want[0], want[1])
		first := o.take(t, p, 2, 1, -1)
		o.compare(t, name, first.values, want[:2])
		o.Append(t, name, want[2])
		o.reopen(t)
		last := o.partition(t, name, first.tos[len(first.tos)-1])
		o.compare(t, name, o.take(t, last, 1, 1000, -1).values, want[2:3])
	}
}

func (s sourceSuite[T]) replaced(t *testing.T) {
	o := s.open(t)
	if o.Replace == nil {
		t.Skip("a replaced partition is not tried: the fixture has no Replace")
	}
	s.refused(t, o, o.Replace)
}

func (s sourceSuite[T]) shortened(t *testing.T) {
	o := s.open(t)
	if o.Shorten == nil {
		t.Skip("a shortened partition is not tried: the fixture has no Shorten")
	}
	s.refused(t, o, o.Shorten)
}

// refused changes a partition that has been read, and expects that it can't be
// read on.
func (s sourceSuite[T]) refused(t *testing.T, o *opened[T], change func(t *testing.T, partition string)) {
	name := o.names[0]
	r := o.takeAll(t, name, 1000)
	change(t, name)
	o.reopen(t)
	p, err := o.reader.Partition(t.Context(), name, r.tos[len(r.tos)-1])
	if err != nil {
		return
	}
	defer p.Close()
	b := &connector.Batch{Limit: 10, LimitBytes: 1 << 20}
	if err := p.Next(t.Context(), b, -1); err == nil || errors.Is(err, io.EOF) {
		t.Fatalf("a partition that is not what it was is read on: %d records to %+v, %v", len(b.Records), b.To, err)
	}
}
