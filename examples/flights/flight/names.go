package flight

import (
	"os"
	"strings"

	"github.com/sluicestream/sluice/kafka"
)

// Variable is the environment variable that names the job. It defaults to
// "flights".
const Variable = "FLIGHTS_JOB"

// Names are those of one run of the demo, so that two runs can share servers.
type Names struct {
	Job     string // also that of its group of consumers
	Flights string // the topic that it reads
	Delays  string // the topic that it writes to
	Table   string // the table that it writes to
}

// NamesOf are the names that go with the job's.
func NamesOf(job string) Names {
	return Names{job, job, job + "-delays", strings.ReplaceAll(job, "-", "_") + "_delays"}
}

// NamesFromEnvironment are the names that go with that of [Variable].
func NamesFromEnvironment() Names {
	if job := os.Getenv(Variable); job != "" {
		return NamesOf(job)
	}
	return NamesOf("flights")
}

// Partitions is how many partitions the topics have.
const Partitions = 3

// Compacted makes a topic that keeps the last row of each key.
func Compacted() kafka.SinkOption {
	return kafka.CreateTopic(Partitions, 0, map[string]string{"cleanup.policy": "compact"})
}
