package kafka_test

import (
	"fmt"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/kafka"
)

// payment is a stream's record in the examples, balance a table's row.
type (
	payment struct {
		User  string
		Cents int64
		At    time.Time
	}
	balance struct {
		User  string
		Cents int64
	}
)

// printSink prints what a job's version holds of a sink.
func printSink(s connector.Sink) {
	d := s.Describe()
	fmt.Printf("%s, topic %s\n", d.Connector, d.Target)
	for _, p := range d.Parameters {
		fmt.Printf("%s: %s\n", p.Name, p.Value)
	}
}

// A stream's records go to a topic as JSON, by the user that they are of, each with
// its own time.
func ExampleAppend() {
	payments := kafka.Append("payments", codec.JSON[payment](), kafka.CreateTopic(12, 3, nil)).
		KeyAs(func(p payment) string { return p.User }, codec.String()).
		Time(func(p payment) time.Time { return p.At })
	printSink(payments)
	// Output:
	// kafka, topic payments
	// mode: append
	// key: string
	// value: json
	// time: function
}

// A table's rows go to a compacted topic; a key that is gone becomes a tombstone.
func ExampleUpsert() {
	row := func(user string, cents int64) balance { return balance{user, cents} }
	balances := kafka.Upsert("balances", row, codec.String(), codec.JSON[balance](),
		kafka.CreateTopic(12, 3, map[string]string{"cleanup.policy": "compact"}))
	printSink(balances)
	// Output:
	// kafka, topic balances
	// mode: upsert
	// key: string
	// value: json
}

// Dead letters go to a topic of their own, each by the place of the record that it is
// of.
func ExampleAppend_deadLetters() {
	job := sluice.NewJob("payments")
	job.From("payments", kafka.Topic("payments", codec.JSON[payment]())).Discard()
	bad := kafka.Append("payments-bad", codec.JSON[sluice.DeadLetter](), kafka.CreateTopic(1, 3, map[string]string{"max.message.bytes": "1600000"})).
		Key(func(d sluice.DeadLetter) []byte { return fmt.Appendf(nil, "%s/%d", d.Partition, d.Offset) })
	job.DeadLetter("bad", bad)
	printSink(bad)
	fmt.Println(job.Check())
	// Output:
	// kafka, topic payments-bad
	// mode: append
	// key: function
	// value: json
	// <nil>
}

// Headers go with the records.
func ExampleAppendSink_Headers() {
	payments := kafka.Append("payments", codec.JSON[payment]()).
		Headers(func(p payment) []connector.Header {
			return []connector.Header{{Key: "user", Value: []byte(p.User)}}
		})
	printSink(payments)
	// Output:
	// kafka, topic payments
	// mode: append
	// key: none
	// value: json
	// headers: function
}

// Large payments have a partition of their own, the last.
func ExampleAppendSink_PartitionBy() {
	payments := kafka.Append("payments", codec.JSON[payment]()).
		PartitionBy(func(p payment, partitions int) int {
			if p.Cents >= 1_000_000 {
				return partitions - 1
			}
			return int(p.Cents) % (partitions - 1)
		})
	printSink(payments)
	// Output:
	// kafka, topic payments
	// mode: append
	// key: none
	// value: json
	// partition: function
}
