// Package brokers tests jobs with Kafka and PostgreSQL against the real ones:
// processes are killed, stopped and started again while they work, and so are the
// servers, and in the end what stands there is what the input says.
package brokers
