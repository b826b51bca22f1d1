// Command safe is a job with a secret for each system that it speaks with: by the
// environment, and by options of the program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// Order is a record of the topic NAME-orders, Sum a row of what comes of them.
type Order struct {
	User  string
	Cents int64
}

// Sum is what a user has paid.
type Sum struct{ Cents int64 }

// UserOf is the key.
func UserOf(o Order) string { return o.User }

// Add adds an order.
func (s *Sum) Add(o Order) { s.Cents += o.Cents }

func rowOf(user string, s Sum) Order { return Order{user, s.Cents} }

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	name := os.Getenv("SAFE_NAME")
	fromURL, err := registry.New(registry.Patience(0)) // SLUICE_REGISTRY
	if err != nil {
		fail(err)
	}
	byToken, err := registry.New(registry.URLs(os.Getenv("SAFE_REGISTRY")), registry.Bearer(os.Getenv("SAFE_TOKEN")), registry.Patience(0))
	if err != nil {
		fail(err)
	}
	other := kafka.Connect(kafka.Brokers(os.Getenv("SAFE_KAFKA")), kafka.OAuthBearer(func(context.Context) (string, error) { return os.Getenv("SAFE_JWS"), nil }))
	job := sluice.NewJob(name)
	sums := job.From("orders", kafka.Topic(name+"-orders", codec.Avro[Order](codec.Registered(fromURL)))).
		KeyBy(UserOf).
		Fold(sluice.NewState[string, Sum]("sums"), (*Sum).Add)
	sums.To("totals", kafka.Upsert(name+"-totals", rowOf, codec.String(), codec.Avro[Order](codec.Registered(byToken)), kafka.On(other), kafka.CreateTopic(1, 1, nil)))
	sums.To("table", postgres.Upsert(name, func(_ string, s Sum) Sum { return s }, postgres.Key("user"), postgres.CreateTable()))
	job.DeadLetter("dead", kafka.Append(name+"-dead", codec.JSON[sluice.DeadLetter](), kafka.CreateTopic(1, 1, nil)))
	sluice.Main(job)
}
