package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// Given is where a person has a job's sources begin.
type Given struct {
	// Offsets are by name: SOURCE:PARTITION, or for a partition of a topic as
	// TOPIC:NUMBER, or the partition's alone where no other source has one of that
	// name.
	Offsets map[string]int64
	// Groups are groups of consumers whose offsets count where the above has none.
	Groups []string
	// At begins partitions that have no offset yet with the first record of that time or
	// later; zero: it doesn't.
	At time.Time
	// Earliest begins each partition with the first record that it has.
	Earliest bool
	// Rest says that all other partitions begin where they would if the job were
	// new. Otherwise they are an error.
	Rest bool
}

// Locate opens the sources, and tells where each of their partitions begins. An
// offset that a partition doesn't have is an error, and so is one for a partition
// that there isn't.
func (g *Graph) Locate(ctx context.Context, o Options, given Given) (map[string]map[string]connector.Offset, error) {
	l := &locator{given: given, wayOut: "give it with --offsets, or let the rest begin where a new job would with --begin-rest"}
	defer l.close()
	for _, spec := range g.sources {
		reader, err := spec.open(ctx, o.opening(spec.name, given.Earliest))
		if err != nil {
			return nil, &SourceError{Source: spec.name, Cause: err}
		}
		s := &locatedSource{name: spec.name, reader: reader, given: map[string]int64{}}
		l.sources = append(l.sources, s)
		if s.partitions, err = reader.Partitions(ctx); err != nil {
			return nil, &SourceError{Source: spec.name, Cause: err}
		}
	}
	if err := l.assign(ctx); err != nil {
		return nil, err
	}
	out := map[string]map[string]connector.Offset{}
	for _, s := range l.sources {
		out[s.name] = map[string]connector.Offset{}
		for _, partition := range s.partitions {
			at, err := s.locate(ctx, partition)
			if err != nil {
				return nil, &SourceError{s.name, partition, err}
			}
			out[s.name][partition] = at
		}
	}
	return out, nil
}

// Reach finds out from which offsets, by source and partition, reading can't go on: what
// comes next may be gone. Sources that the graph lacks are left out.
func (g *Graph) Reach(ctx context.Context, o Options, at map[string]map[string]connector.Offset) (faults []*SourceError) {
	for _, spec := range g.sources {
		faults = append(faults, spec.reach(ctx, o, at[spec.name])...)
	}
	return faults
}

func (s *sourceSpec) reach(ctx context.Context, o Options, at map[string]connector.Offset) (faults []*SourceError) {
	if len(at) == 0 {
		return nil
	}
	fault := func(partition string, err error) {
		if err != nil {
			faults = append(faults, &SourceError{s.name, partition, err})
		}
	}
	reader, err := s.open(ctx, o.opening(s.name, true))
	if err != nil {
		fault("", err)
		return faults
	}
	defer func() { fault("", reader.Close()) }()
	if _, err := reader.Partitions(ctx); err != nil { // which finds what there is
		fault("", err)
		return faults
	}
	for _, partition := range slices.Sorted(maps.Keys(at)) {
		p, err := reader.Partition(ctx, partition, at[partition])
		if err == nil {
			err = p.Close()
		}
		fault(partition, err)
	}
	return faults
}

// locator finds places in sources.
type locator struct {
	given   Given
	wayOut  string // for people, where a partition has no offset
	sources []*locatedSource
}

type locatedSource struct {
	name       string
	reader     connector.Reader
	partitions []string
	given      map[string]int64
}

func (l *locator) close() {
	for _, s := range l.sources {
		s.reader.Close()
	}
}

// assign gives each partition its offset.
func (l *locator) assign(ctx context.Context) error {
	var strangers []string
	for name, next := range l.given.Offsets {
		s, partition, err := l.find(name)
		switch {
		case err != nil:
			return err
		case s == nil:
			strangers = append(strangers, name)
			continue
		}
		if _, twice := s.given[partition]; twice {
			return fmt.Errorf("source %s, partition %s: two offsets are given for it; leave one out", s.name, partition)
		}
		if next < 0 {
			return fmt.Errorf("source %s, partition %s: offset %d is given: expected 0 or more", s.name, partition, next)
		}
		s.given[partition] = next
	}
	if len(strangers) > 0 {
		slices.Sort(strangers)
		return fmt.Errorf("no source has a partition %s; the partitions are %s: name those", firstOf(strangers), firstOf(l.all()))
	}
	if err := l.groups(ctx); err != nil {
		return err
	}
	if err := l.times(ctx); err != nil {
		return err
	}
	if l.given.Rest || l.given.Earliest {
		return nil
	}
	var missing []string
	for _, s := range l.sources {
		for _, partition := range s.partitions {
			if _, ok := s.given[partition]; !ok {
				missing = append(missing, s.name+":"+partition)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found := "none"
	if groups := l.given.Groups; len(groups) > 0 {
		found = "none, also in group " + strings.Join(groups, " and group ")
	}
	return fmt.Errorf("no offset is given for %s: expected one for each partition, found %s; %s", firstOf(missing), found, l.wayOut)
}

// all are the names of all partitions.
func (l *locator) all() (names []string) {
	for _, s := range l.sources {
		for _, partition := range s.partitions {
			names = append(names, s.name+":"+partition)
		}
	}
	return names
}

// mostNames bounds how many partitions an error lists.
const mostNames = 10

func firstOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), mostNames)], ", ")
	if more := len(names) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// find finds the partition of a name; nil if there is none.
func (l *locator) find(name string) (found *locatedSource, partition string, err error) {
	for exactly := range 3 { // the more exact ways to name one go first
		var also string
		for _, s := range l.sources {
			for _, p := range s.partitions {
				if !named(name, s.name, p, exactly) {
					continue
				}
				if found != nil {
					also = s.name
					continue
				}
				found, partition = s, p
			}
		}
		if also != "" {
			return nil, "", fmt.Errorf("partition %s is one of source %s and of source %s; name it as SOURCE:PARTITION", name, found.name, also)
		}
		if found != nil {
			return found, partition, nil
		}
	}
	return nil, "", nil
}

func named(name, source, partition string, exactly int) bool {
	switch exactly {
	case 0:
		return name == source+":"+partition
	case 1:
		return name == partition
	}
	cut := strings.LastIndexByte(partition, '/')
	return cut > 0 && name == partition[:cut]+":"+partition[cut+1:]
}

// groups takes the offsets of groups for partitions that have none yet.
func (l *locator) groups(ctx context.Context) error {
	for _, group := range l.given.Groups {
		known := false
		for _, s := range l.sources {
			r, ok := s.reader.(connector.CommittedReader)
			if !ok {
				continue
			}
			known = true
			offsets, err := r.CommittedOffsets(ctx, group)
			if err != nil {
				return &SourceError{Source: s.name, Cause: err}
			}
			for _, partition := range s.partitions {
				at, committed := offsets[partition]
				if _, has := s.given[partition]; committed && !has {
					s.given[partition] = at.Next
				}
			}
		}
		if !known {
			return fmt.Errorf("group %s: no source of the job has groups of consumers; give the offsets one by one", group)
		}
	}
	return nil
}

// times takes the offsets of a moment for partitions that have none yet.
func (l *locator) times(ctx context.Context) error {
	if l.given.At.IsZero() {
		return nil
	}
	for _, s := range l.sources {
		r, ok := s.reader.(connector.TimedReader)
		if !ok {
			return fmt.Errorf("source %s: its records can't be found by their time %s: expected a system that keeps it, such as Kafka; give the offsets instead", s.name, l.given.At.Format(time.RFC3339Nano))
		}
		offsets, err := r.OffsetsAt(ctx, l.given.At)
		if err != nil {
			return &SourceError{Source: s.name, Cause: err}
		}
		for _, partition := range s.partitions {
			at, found := offsets[partition]
			if _, has := s.given[partition]; found && !has {
				s.given[partition] = at.Next
			}
		}
	}
	return nil
}

// locate opens a partition where it is to begin, which finds out whether it can, and
// what else tells that place from others.
func (s *locatedSource) locate(ctx context.Context, name string) (at connector.Offset, err error) {
	next, given := s.given[name]
	from := connector.Offset{}
	if given {
		from = connector.Offset{Next: next, LeaderEpoch: -1} // or 0 would be the beginning that the author has set
	}
	p, err := s.reader.Partition(ctx, name, from)
	if err != nil {
		return at, err
	}
	defer func() {
		if cerr := p.Close(); err == nil {
			err = cerr
		}
	}()
	if f, ok := p.(connector.FoundPartition); ok {
		return f.From(), nil
	}
	if !given {
		return from, nil
	}
	var b connector.Batch
	switch err := p.Next(ctx, &b, next); {
	case errors.Is(err, io.EOF):
		return b.To, nil
	case err != nil:
		return at, err
	}
	return at, fmt.Errorf("the source reads on from offset %d although it was to end there; name another offset", next)
}
