package connectortest

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

// SourceFixture is a source set up for one case.
type SourceFixture[T any] struct {
	// Source is the source; Opening is what it is opened with.
	Source  connector.Source[T]
	Opening connector.Opening
	// Want are the values that each partition holds, at least three each. There
	// should be more than one partition.
	Want map[string][]T
	// Append adds values to a partition, of the kind that Want has, durably.
	// Nil: the source can't grow while it is open; its reader must be bounded.
	Append func(t *testing.T, partition string, values ...T)
	// Replace puts another partition of the same name in a partition's place,
	// that is at least as long. Nil: can't happen to this source.
	Replace func(t *testing.T, partition string)
	// Shorten takes the end of a partition away, at least one record. Nil:
	// can't happen to this source.
	Shorten func(t *testing.T, partition string)
	// Late is a source of the same partitions whose author has a new job begin at
	// their ends. Nil: this source has no such setting.
	Late connector.Source[T]
	// Committed returns what the reader's group has been told, by partition, as
	// people see it. Nil: it can't be seen, or the reader is no [connector.GroupReader].
	Committed func(t *testing.T) map[string]int64
	// Equal compares two values. Nil: reflect.DeepEqual.
	Equal func(a, b T) bool
}

// TestSource tests a source. The function setup is called for each case.
func TestSource[T any](t *testing.T, setup func(t *testing.T) SourceFixture[T]) {
	runAll(t, sourceSuite[T]{setup}.cases())
}

func (s sourceSuite[T]) cases() []testCase {
	return []testCase{
		{"describe", "a description is part of the job's version: one that changes by itself makes every restart an upgrade", s.describe},
		{"partitions", "a manifest names partitions; names that change or repeat lose or double records", s.partitions},
		{"unknown partition", "a manifest's partition that is gone must be told, not read as empty", s.unknownPartition},
		{"all records", "each record is counted exactly once, in its partition's order", s.allRecords},
		{"limits", "batches are cut by number and by bytes; where they are cut must not change what is read", s.limits},
		{"resume", "recovery goes on from any offset that a manifest holds", s.resume},
		{"begun", "a partition that is new to a job that has begun is read from its first record: all that it holds came since", s.begun},
		{"found beginning", "where reading begins is looked up once and kept: a restart before the first record begins there as well", s.foundBeginning},
		{"until", "a replay reads exactly what the recorded run had, not a record more", s.until},
		{"on from until", "a replay reads run after run from one open partition", s.onFromUntil},
		{"batches are apart", "several batches of a partition are being decoded while the next is read", s.batchesApart},
		{"decoded values own their memory", "a batch's memory is used again while decoded values live on in states", s.ownMemory},
		{"decoders are apart", "each decoding worker has a decoder of its own, and gets batches of all partitions", s.decodersApart},
		{"end", "a bounded job ends when its partitions do, and a lag is told against the end", s.end},
		{"cancelled", "a stop must not wait for records that may never come, nor lose any", s.cancelled},
		{"grows", "records that come while the partition is open are read, once", s.grows},
		{"replaced", "an offset in another partition of the same name means nothing: going on would skip or repeat in silence", s.replaced},
		{"shortened", "an offset behind the end means that records were lost", s.shortened},
		{"group", "a group's offsets are for people: a job reads on from those of its manifest", s.group},
	}
}

type sourceSuite[T any] struct {
	setup func(t *testing.T) SourceFixture[T]
}

// opened is a fixture with its source opened.
type opened[T any] struct {
	SourceFixture[T]
	reader connector.Reader
	decode func(b *connector.Batch, i int, v *T) error
	names  []string
}

func (s sourceSuite[T]) open(t *testing.T) *opened[T] {
	t.Helper()
	o := &opened[T]{SourceFixture: s.setup(t)}
	if o.Equal == nil {
		o.Equal = func(a, b T) bool { return reflect.DeepEqual(a, b) }
	}
	for name, values := range o.Want {
		if len(values) < 3 {
			t.Fatalf("the fixture's partition %s has %d values, the suite needs 3", name, len(values))
		}
		o.names = append(o.names, name)
	}
	slices.Sort(o.names)
	o.reopen(t)
	return o
}

// reopen opens the source anew, as a restart does.
func (o *opened[T]) reopen(t *testing.T) {
	t.Helper()
	if o.reader != nil {
		if err := o.reader.Close(); err != nil {
			t.Fatalf("closing the reader: %v", err)
		}
	}
	reader, err := o.Source.Open(t.Context(), o.Opening)
	if err != nil {
		t.Fatalf("opening the source: %v", err)
	}
	o.reader, o.decode = reader, o.Source.NewDecoder()
	t.Cleanup(func() { reader.Close() })
}

func (o *opened[T]) partition(t *testing.T, name string, from connector.Offset) connector.Partition {
	t.Helper()
	p, err := o.reader.Partition(t.Context(), name, from)
	if err != nil {
		t.Fatalf("opening partition %s at %+v: %v", name, from, err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// read is what was read of a partition.
type read[T any] struct {
	values  []T
	offsets []int64            // of the records
	tos     []connector.Offset // behind the batches
}

// take reads n records, or to the end if n is negative, in batches of limit.
func (o *opened[T]) take(t *testing.T, p connector.Partition, n, limit int, until int64) read[T] {
	t.Helper()
	var r read[T]
	last := int64(-1)
	for n < 0 || len(r.values) < n {
		b := &connector.Batch{Limit: limit, LimitBytes: 1 << 20}
		if n >= 0 {
			b.Limit = min(limit, n-len(r.values))
		}
		err := p.Next(t.Context(), b, until)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("reading: %v", err)
		}
		if len(b.Records) > b.Limit {
			t.Fatalf("a batch has %d records, its limit is %d", len(b.Records), b.Limit)
		}
		for i := range b.Records {
			if at := b.Records[i].Offset; at <= last {
				t.Fatalf("record at offset %d comes behind that at %d", at, last)
			}
			last = b.Records[i].Offset
			var v T
			if err := o.decode(b, i, &v); err != nil {
				t.Fatalf("decoding the record at offset %d: %v", last, err)
			}
			r.values, r.offsets = append(r.values, v), append(r.offsets, last)
		}
		if b.To.Next <= last {
			t.Fatalf("the batch says that %d comes next, its last record is at %d", b.To.Next, last)
		}
		if until >= 0 && b.To.Next > until {
			t.Fatalf("the batch says that %d comes next, it was to stop at %d", b.To.Next, until)
		}
		r.tos = append(r.tos, b.To)
	}
	return r
}

// takeAll reads every record that a partition of the fixture holds.
func (o *opened[T]) takeAll(t *testing.T, name string, limit int) read[T] {
	t.Helper()
	return o.take(t, o.partition(t, name, connector.Offset{}), len(o.Want[name]), limit, -1)
}

func (o *opened[T]) compare(t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.EqualFunc(got, want, o.Equal) {
		t.Fatalf("%s: read %d values, expected %d:\n%+v\nexpected\n%+v", what, len(got), len(want), got, want)
	}
}
