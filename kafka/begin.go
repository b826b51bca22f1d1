package kafka

import (
	"fmt"
	"maps"
	"time"
)

// Beginning is where a new job begins to read. It isn't part of the job's version:
// once a job has begun, it goes on from its own checkpoints.
type Beginning struct {
	kind      beginningKind
	at        time.Time
	offsets   map[string]map[int32]int64
	group     string
	otherwise *Beginning
}

type beginningKind int

const (
	atEarliest beginningKind = iota
	atLatest
	atTime
	atOffsets
	atGroup
)

// Begin sets where a new job begins to read the partitions that there are when it
// first starts. Those that come later are read from their beginning, however the
// job began. Defaults to [Earliest].
func Begin(where Beginning) SourceOption {
	return sourceOption(func(s *sourceSettings) { s.begin = where })
}

// Earliest begins with the oldest record that there is.
func Earliest() Beginning { return Beginning{kind: atEarliest} }

// Latest begins with what is written after the job first started.
func Latest() Beginning { return Beginning{kind: atLatest} }

// At begins each partition with the first record whose time stamp is t or later,
// which Kafka keeps by the millisecond; where there is none, with what is written
// after the job first started.
func At(t time.Time) Beginning { return Beginning{kind: atTime, at: t} }

// Offsets begins each partition at the offset that is given for it, by topic and
// number. An offset that the partition doesn't have is an error, and so is a
// partition without one, unless [Beginning.Otherwise] tells where that begins.
func Offsets(offsets map[string]map[int32]int64) Beginning {
	copied := make(map[string]map[int32]int64, len(offsets))
	for topic, parts := range offsets {
		copied[topic] = maps.Clone(parts)
	}
	return Beginning{kind: atOffsets, offsets: copied}
}

// FromGroup begins where a group of consumers has read to, by the offsets that it
// committed: so a job takes over from a Spark or Flink job or from a plain
// consumer, which must have been stopped. A group that has members now is an
// error, and so is a partition for which it has no offset, unless
// [Beginning.Otherwise] tells where that begins.
func FromGroup(name string) Beginning { return Beginning{kind: atGroup, group: name} }

// Otherwise tells where the partitions begin for which there is no offset.
func (b Beginning) Otherwise(where Beginning) Beginning {
	b.otherwise = &where
	return b
}

// check tells what makes no sense.
func (b Beginning) check() error {
	switch {
	case b.otherwise != nil && b.kind != atOffsets && b.kind != atGroup:
		return fmt.Errorf("only kafka.Offsets and kafka.FromGroup can leave a partition out: Otherwise has nothing to say behind another beginning")
	case b.kind == atGroup && b.group == "":
		return fmt.Errorf("kafka.FromGroup needs the name of a group")
	case b.otherwise != nil:
		return b.otherwise.check()
	}
	for topic, parts := range b.offsets {
		for number, offset := range parts {
			if offset < 0 || number < 0 {
				return fmt.Errorf("kafka.Offsets: offset %d for partition %s: expected numbers of 0 or more", offset, place{topic, number})
			}
		}
	}
	return nil
}
