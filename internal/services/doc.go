// Package services starts real servers for tests, benchmarks and demos: an
// Apache Kafka broker (one node, KRaft) and a PostgreSQL server. Each lives in a
// folder and listens on free ports of the loopback address; it can be stopped,
// killed, paused and started again with what it holds.
//
// A test has [Kafka] and [Postgres], which skip it, aloud, on a machine that
// lacks the server; with SLUICE_REAL=1 they fail it instead. Tests of one binary
// share a server through [SharedKafka] and [SharedPostgres], and keep apart by
// the names that [Unique] makes. Programs have [StartKafka] and [StartPostgres],
// and people scripts/kafka and scripts/postgres.
//
// No server outlives the process that started it, not even one that is killed:
// a small shell waits for the end of a pipe that only this process holds, and
// then ends the server. Servers that [KafkaOptions.Detached] asks for are the
// exception.
package services
