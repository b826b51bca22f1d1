package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/sluicestream/sluice/examples/flights/flight"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/kafka/embedded"
)

// servers are where the job reads and writes, besides its folder.
type servers struct {
	names    flight.Names
	brokers  string // addresses, with commas between
	cluster  *kafka.Cluster
	embedded *embedded.Broker // nil: the user's own cluster
	postgres string           // the database's URL; empty: there is none
}

// reach starts a broker in this process, unless the user has a cluster. What a run
// makes on the user's servers has names of its own.
func reach(o options) (*servers, error) {
	s := &servers{names: flight.NamesOf("flights"), brokers: o.kafka, postgres: o.postgres}
	if o.kafka != "" || o.postgres != "" {
		s.names = flight.NamesOf(fmt.Sprintf("flights-%06x", rand.N(1<<24)))
	}
	if o.kafka != "" {
		s.cluster = kafka.Connect(kafka.FromEnvironment("SLUICE_KAFKA"), kafka.Brokers(strings.Split(o.kafka, ",")...))
		return s, nil
	}
	var err error
	if s.embedded, err = embedded.Start(embedded.Options{Folder: filepath.Join(o.dir, "kafka")}); err != nil {
		return nil, err
	}
	s.brokers = s.embedded.Addr()
	s.cluster = kafka.Connect(kafka.Brokers(s.brokers))
	return s, nil
}

func (s *servers) close() error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.Close()
}

// environment is what tells the job.
func (s *servers) environment() []string {
	return []string{flight.Variable + "=" + s.names.Job, "SLUICE_KAFKA=" + s.brokers, "SLUICE_POSTGRES=" + s.postgres}
}

// where says where the servers are.
func (s *servers) where() string {
	where := "at " + s.brokers
	if s.embedded != nil {
		where = "embedded in this process, " + where
	}
	if s.postgres != "" {
		where += "; PostgreSQL as SLUICE_POSTGRES says"
	}
	return where
}

// makes is what a run makes on servers of the user's, where it stays.
func (s *servers) makes() (made []string) {
	if s.embedded == nil {
		made = append(made, fmt.Sprintf("topics %[1]s, %[2]s, %[1]s.sluice, %[3]s.sluice; group %[1]s", s.names.Flights, s.names.Delays, feedName(s.names)))
	}
	if s.postgres != "" {
		made = append(made, fmt.Sprintf("table %s; a row in table sluice_delivery", s.names.Table))
	}
	return made
}

// explore are commands to look around on the servers.
func (s *servers) explore(dir string) (lines []string) {
	if s.embedded != nil {
		lines = append(lines, fmt.Sprintf("go run ./cmd/sluice dev --folder %s   # the broker again, with the topics", filepath.Join(dir, "kafka")))
	} else {
		lines = append(lines, fmt.Sprintf("kafka-consumer-groups.sh --bootstrap-server %s --describe --group %s", s.brokers, s.names.Job))
	}
	if s.postgres != "" {
		lines = append(lines, fmt.Sprintf(`psql "$SLUICE_POSTGRES" -c 'select * from %s order by flights desc'`, s.names.Table))
	}
	return lines
}
