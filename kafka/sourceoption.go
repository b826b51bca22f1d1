package kafka

import (
	"fmt"
)

const (
	// defaultFetchBytes is what is fetched of a partition at once, as brokers have
	// it: enough to keep a connection busy, little enough for hundreds of
	// partitions.
	defaultFetchBytes = 1 << 20
	// largestFetchBytes keeps a response below what the client takes.
	largestFetchBytes = 64 << 20
)

type sourceSettings struct {
	cluster    *Cluster
	begin      Beginning
	group      string
	noGroup    bool
	fetchBytes int
}

func newSourceSettings(opts []SourceOption) sourceSettings {
	s := sourceSettings{fetchBytes: defaultFetchBytes}
	for _, o := range opts {
		o.toSource(&s)
	}
	if s.cluster == nil {
		s.cluster = Connect()
	}
	return s
}

// Group names the group of consumers under which the cluster is told how far the
// job has read, so that tools show its lag. Sluice never reads on from there.
// Defaults to the job's name.
func Group(name string) SourceOption {
	return sourceOption(func(s *sourceSettings) { s.group = name })
}

// NoGroup tells the cluster nothing about how far the job has read.
func NoGroup() SourceOption { return sourceOption(func(s *sourceSettings) { s.noGroup = true }) }

// FetchBytes sets how many bytes of a partition are fetched at once, as the broker
// keeps them. The source holds at most three times as much of a partition, and one
// fetch unpacked. A larger batch of a producer is fetched nevertheless. Defaults to
// 1 MiB; at most 64 MiB.
func FetchBytes(n int) SourceOption {
	return sourceOption(func(s *sourceSettings) { s.fetchBytes = n })
}

// check lists the settings that make no sense.
func (s *sourceSettings) check() error {
	if s.fetchBytes <= 0 || s.fetchBytes > largestFetchBytes {
		return fmt.Errorf("kafka.FetchBytes(%d): expected 1 to %d bytes", s.fetchBytes, largestFetchBytes)
	}
	if s.noGroup && s.group != "" {
		return fmt.Errorf("kafka.Group(%q) and kafka.NoGroup: expected one of the two", s.group)
	}
	return s.begin.check()
}
