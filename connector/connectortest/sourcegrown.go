package connectortest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

func (s sourceSuite[T]) begun(t *testing.T) {
	o := s.open(t)
	o.Opening.Begun = true
	sources := []connector.Source[T]{o.Source}
	if o.Late != nil {
		sources = append(sources, o.Late)
	}
	for _, o.Source = range sources {
		o.reopen(t)
		for _, name := range o.names {
			o.compare(t, name, o.takeAll(t, name, 1000).values, o.Want[name])
		}
	}
}

func (s sourceSuite[T]) foundBeginning(t *testing.T) {
	o := s.open(t)
	tried := false
	for _, name := range o.names {
		from, ok := o.beginning(t, name)
		if !ok {
			continue
		}
		tried = true
		whole := o.takeAll(t, name, 1000)
		for _, o.Opening.Begun = range []bool{false, true} {
			o.reopen(t)
			again := o.take(t, o.kept(t, name, from), len(o.Want[name]), 1000, -1)
			o.compare(t, name, again.values, o.Want[name])
			if !slices.Equal(again.offsets, whole.offsets) {
				t.Fatalf("offsets %v from the beginning that was found, before %v", again.offsets, whole.offsets)
			}
		}
		o.Opening.Begun = false
		o.reopen(t)
	}
	if o.Late == nil || o.Append == nil {
		if !tried {
			t.Skip("a beginning that is looked up is not tried: the partitions are no FoundPartitions, and the fixture lacks Late or Append")
		}
		return
	}
	o.Source = o.Late
	for _, name := range o.names {
		o.reopen(t)
		from, ok := o.beginning(t, name)
		if !ok {
			t.Fatalf("partition %s begins at its end, and is no FoundPartition: a restart would begin at a later one", name)
		}
		value := o.Want[name][0]
		o.Append(t, name, value) // before a record has been read
		for _, o.Opening.Begun = range []bool{true, false} {
			o.reopen(t)
			o.compare(t, name+", which began at its end", o.take(t, o.kept(t, name, from), 1, 1000, -1).values, []T{value})
		}
	}
}

// beginning is where a new job begins to read a partition, if that is looked up.
func (o *opened[T]) beginning(t *testing.T, name string) (from connector.Offset, ok bool) {
	t.Helper()
	found, ok := o.partition(t, name, connector.Offset{}).(connector.FoundPartition)
	if !ok {
		return connector.Offset{}, false
	}
	if from = found.From(); from == (connector.Offset{}) {
		t.Fatalf("partition %s begins at the zero Offset, which would be looked up again: fill in Identity", name)
	}
	return from, true
}

// kept opens a partition at the beginning that was found for it.
func (o *opened[T]) kept(t *testing.T, name string, from connector.Offset) connector.Partition {
	t.Helper()
	p := o.partition(t, name, from)
	if found, ok := p.(connector.FoundPartition); ok && found.From() != from {
		t.Fatalf("partition %s was opened at %+v, and begins at %+v", name, from, found.From())
	}
	return p
}

func (s sourceSuite[T]) group(t *testing.T) {
	o := s.open(t)
	reader, ok := o.reader.(connector.GroupReader)
	if !ok {
		t.Skip("a group is not tried: the reader is no GroupReader")
	}
	cluster, name := reader.Cluster(), reader.Group()
	o.reopen(t)
	reader = o.reader.(connector.GroupReader)
	if cluster == "" || name == "" || reader.Cluster() != cluster || reader.Group() != name {
		t.Fatalf("group %q in %q, then %q in %q", name, cluster, reader.Group(), reader.Cluster())
	}
	first, last, done := map[string]connector.Offset{}, map[string]connector.Offset{}, map[string]int{}
	for _, part := range o.names {
		whole := o.takeAll(t, part, 1)
		first[part], last[part] = whole.tos[0], whole.tos[len(whole.tos)-1]
		done[part] = behind(whole.offsets, first[part].Next)
	}
	for _, offsets := range []map[string]connector.Offset{first, last} {
		if err := reader.CommitOffsets(t.Context(), offsets); err != nil {
			t.Fatalf("telling the group %v: %v", offsets, err)
		}
		if o.Committed == nil {
			continue
		}
		want := map[string]int64{}
		for part, at := range offsets {
			want[part] = at.Next
		}
		if got := o.Committed(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("the group is at %v, expected %v", got, want)
		}
	}
	o.reopen(t)
	for _, part := range o.names {
		o.compare(t, part, o.takeAll(t, part, 1000).values, o.Want[part])
		want := o.Want[part][done[part]:]
		rest := o.take(t, o.partition(t, part, first[part]), len(want), 1000, -1)
		o.compare(t, part+" from an offset that the group is beyond", rest.values, want)
	}
	if o.Committed == nil {
		t.Skip("what people see of the group is not tried: the fixture has no Committed")
	}
}
