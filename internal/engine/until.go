package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// Until are offsets up to which partitions are read, by source and partition.
type Until map[string]map[string]int64

// ReadUntil is what came of asking a run to read no further than to some offsets.
type ReadUntil struct {
	// Until are the offsets, if the run does; it ends once it has come there.
	Until Until
	// Refused says why it does not, and goes on as before.
	Refused error
}

// ReadUntil asks the run, which reads by itself, to read up to offsets and nothing behind
// them: those that are given by the partitions' names, as in [Given], or with none where
// the partitions end now. What came of it is told once.
func (r *Run) ReadUntil(given map[string]int64) <-chan ReadUntil {
	told := make(chan ReadUntil, 1)
	select {
	case r.untils <- untilAsked{given, told}:
	default:
		told <- ReadUntil{Refused: fmt.Errorf("it was asked to stop at other offsets in the same moment; ask again")}
	}
	return told
}

type untilAsked struct {
	given map[string]int64
	told  chan<- ReadUntil
}

// readUntil has the sources be read up to what was asked for, if they were not read
// beyond it already.
func (s *sequencer) readUntil(asked untilAsked) error {
	in := s.run.input
	if s.until != nil {
		asked.told <- ReadUntil{Refused: fmt.Errorf("it reads up to other offsets already, and stops then; run it again for more")}
		return nil
	}
	until := Until{}
	if len(asked.given) > 0 {
		if err := in.assign(asked.given, until); err != nil {
			asked.told <- ReadUntil{Refused: err}
			return nil
		}
	}
	if err := s.interrupt(); err != nil {
		return err
	}
	ctx, cancel := s.run.whileReading(s.ctx)
	defer cancel()
	var err error
	if len(asked.given) == 0 {
		err = s.ends(ctx, until)
	}
	if err == nil {
		asked.told <- ReadUntil{Until: until}
		err = s.readOnUntil(ctx, until)
	}
	if ctx.Err() != nil {
		return nil // it is told to stop, and reads nothing any more
	}
	return err
}

// assign finds the partitions of names that are given, each of which has to be there and
// to have been read no further.
func (in *input) assign(given map[string]int64, until Until) error {
	l := &locator{given: Given{Offsets: given}, wayOut: "give one for it too, such as the one to which it has been read"}
	read := map[string]map[string]*openPartition{}
	for _, s := range in.sources {
		s.mu.Lock()
		read[s.spec.name] = maps.Clone(s.parts)
		s.mu.Unlock()
		l.sources = append(l.sources, &locatedSource{
			name: s.spec.name, partitions: slices.Sorted(maps.Keys(read[s.spec.name])), given: map[string]int64{},
		})
	}
	if err := l.assign(in.ctx); err != nil {
		return err
	}
	for i, s := range l.sources {
		until[s.name] = s.given
		for name, to := range s.given {
			p := read[s.name][name]
			if at := p.read.Load(); at > to {
				return fmt.Errorf("source %s, partition %s: offset %d is asked for, and it has been read to %d already: expected an offset from there on", s.name, name, to, at)
			}
			if end := p.part.End(); in.sources[i].bounded && to > end {
				return fmt.Errorf("source %s, partition %s: offset %d is asked for, and it ends at %d: expected an offset up to there", s.name, name, to, end)
			}
		}
	}
	return nil
}

// interrupt ends the reading, and gives up what was read and has no number yet.
func (s *sequencer) interrupt() error {
	in := s.run.input
	in.stop()
	for {
		select {
		case a := <-in.arrivals:
			switch {
			case a.err != nil:
				return a.err
			case a.found:
				s.found(a.part)
			}
		default:
			return nil
		}
	}
}

// ends are where all partitions end now, those included that have just come up.
func (s *sequencer) ends(ctx context.Context, until Until) error {
	for _, src := range s.run.input.sources {
		if src.bounded {
			continue
		}
		found, err := s.run.input.discover(ctx, src)
		if err != nil {
			return err
		}
		for _, p := range found {
			s.found(p)
		}
	}
	ends, err := s.run.Ends(ctx)
	if err != nil {
		return err
	}
	for _, e := range ends {
		if until[e.Source] == nil {
			until[e.Source] = map[string]int64{}
		}
		until[e.Source][e.Partition] = e.End
	}
	return nil
}

// readOnUntil reads the partitions that are open anew, from where they stand up to
// offsets: what has none is read no further.
func (s *sequencer) readOnUntil(ctx context.Context, until Until) error {
	s.until, s.ended, s.left = until, 0, 0
	in := s.run.input
	if !in.again(s.ctx) {
		return errEnded
	}
	for _, src := range in.sources {
		for name, p := range src.parts {
			to, ok := until[src.spec.name][name]
			if !ok || p.read.Load() >= to {
				continue
			}
			if err := in.reopen(ctx, p, s.offsets[src.spec.name][name]); err != nil {
				return err
			}
			p.until = to
			s.left++
		}
	}
	for _, src := range in.sources {
		for _, p := range src.parts {
			if p.until >= 0 {
				in.reading.Go(func() { in.read(p) })
			}
		}
	}
	return nil
}

// reopen opens a partition again where it has been sequenced to, since its reader is
// ahead of that.
func (in *input) reopen(ctx context.Context, p *openPartition, at connector.Offset) error {
	if at == (connector.Offset{}) {
		at = p.from
	}
	part, err := p.source.reader.Partition(ctx, p.name, at)
	if err == nil {
		in.mu.Lock()
		if !in.closed { // otherwise the old one is closed already
			p.source.mu.Lock()
			p.part, part = part, p.part
			p.source.mu.Unlock()
		}
		in.mu.Unlock()
		err = part.Close()
	}
	if err != nil {
		return &SourceError{p.source.spec.name, p.name, err}
	}
	return nil
}
