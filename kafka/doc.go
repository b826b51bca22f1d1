// Package kafka reads topics of Kafka and writes to them, each delivery in one
// transaction.
package kafka
