package main

import (
	"errors"
	"path/filepath"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka/embedded"
)

// servers are what a run has started. They end with it; their data lie in the run's
// folder.
type servers struct {
	kafka    *services.Broker
	embedded *embedded.Broker
	postgres *services.Database
	flat     map[string]float64 // by a broker's address, the rate at which lag stays flat
}

// onKafka is the run as its processes see it, with the real broker.
func (b *bench) onKafka() (*bench, error) {
	if b.servers.kafka == nil {
		broker, err := services.StartKafka(services.KafkaOptions{Folder: filepath.Join(b.setting.Dir, "kafka"), Heap: "1g"})
		if err != nil {
			return nil, err
		}
		b.servers.kafka = broker
	}
	if err := b.servers.kafka.Start(); err != nil {
		return nil, err
	}
	return b.at(b.servers.kafka.Addr()), nil
}

// onEmbedded is the same with the broker inside of this process.
func (b *bench) onEmbedded() (*bench, error) {
	if b.servers.embedded == nil {
		broker, err := embedded.Start(embedded.Options{Folder: filepath.Join(b.setting.Dir, "kafka-embedded")})
		if err != nil {
			return nil, err
		}
		b.servers.embedded = broker
	}
	return b.at(b.servers.embedded.Addr()), nil
}

func (b *bench) at(kafka string) *bench {
	other := *b
	other.setting.Kafka = kafka
	return &other
}

// onPostgres is the run with the database.
func (b *bench) onPostgres() (*bench, error) {
	if b.servers.postgres == nil {
		database, err := services.StartPostgres(services.PostgresOptions{Folder: filepath.Join(b.setting.Dir, "postgres")})
		if err != nil {
			return nil, err
		}
		b.servers.postgres = database
	}
	if err := b.servers.postgres.Start(); err != nil {
		return nil, err
	}
	other := *b
	other.setting.Postgres = b.servers.postgres.URL("")
	return &other, nil
}

// rest stops the servers until they are needed.
func (s *servers) rest() (err error) {
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Stop())
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	return err
}

// close ends them all.
func (s *servers) close() error {
	err := s.rest()
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close())
	}
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.Close())
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Close())
	}
	return err
}
