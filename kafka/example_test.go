package kafka_test

import (
	"fmt"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/kafka"
)

type Order struct {
	User  string
	Cents int64
}

func (o Order) UserID() string { return o.User }

type Spend struct{ Cents int64 }

func (s *Spend) Add(o Order) { s.Cents += o.Cents }

// A job reads a topic of the cluster that the environment names (SLUICE_KAFKA).
func ExampleTopic() {
	spend := sluice.NewState[string, Spend]("spend")
	job := sluice.NewJob("spend")
	job.From("orders", kafka.Topic("orders", codec.JSON[Order]())).KeyBy(Order.UserID).Fold(spend, (*Spend).Add)
	fmt.Println(kafka.Topic("orders", codec.JSON[Order](codec.Strict())).Describe())
	// Output: {kafka 1 orders [{topics orders} {codec json} {codec.strict true}]}
}

// Whole messages have the key, the headers and the time besides the value.
func ExampleMessages() {
	type byKey = kafka.Message[Order]
	perKey := sluice.NewState[string, Spend]("per_key")
	job := sluice.NewJob("keys")
	job.From("orders", kafka.Messages(kafka.Topic("orders", codec.JSON[Order]()))).
		Filter(func(m byKey) bool { return !m.Tombstone }).
		KeyBy(func(m byKey) string { return string(m.Key) }).
		Fold(perKey, func(s *Spend, m byKey) { s.Add(m.Value) })
}

// A new job takes over where a group of consumers has read to, and reads partitions
// that the group never saw from yesterday on.
func ExampleFromGroup() {
	yesterday := time.Date(2026, 1, 30, 0, 0, 0, 0, time.UTC)
	begin := kafka.Begin(kafka.FromGroup("spark-orders").Otherwise(kafka.At(yesterday)))
	fmt.Println(kafka.Topic("orders", codec.JSON[Order](), begin).Describe().Connector)
	// Output: kafka
}

// A second cluster is described in the program, its secrets in the environment.
func ExampleConnect() {
	archive := kafka.Connect(kafka.Brokers("archive-1:9093", "archive-2:9093"), kafka.TLS(nil), kafka.ScramSHA512("sluice", "secret"))
	fmt.Println(archive)
	// Output: kafka archive-1:9093,archive-2:9093, TLS, SCRAM-SHA-512 as sluice
}
