// Command bill is a job from what the job pay writes to Kafka to PostgreSQL.
package main

import (
	"os"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// Receipt is a record of the topic NAME-receipts.
type Receipt struct {
	User       string `pg:"user_id"`
	ID         string
	Nth, Cents int64
}

// UserOf is the key.
func UserOf(r Receipt) string { return r.User }

// Bill is what has been seen of a user. The receipts come in their order, each
// once, or Gaps counts.
type Bill struct{ Receipts, Cents, Gaps int64 }

// Add adds a receipt.
func (b *Bill) Add(r Receipt) {
	if b.Receipts++; b.Receipts != r.Nth {
		b.Gaps++
	}
	b.Cents = r.Cents
}

func job() *sluice.Job {
	name := os.Getenv("PAY_NAME")
	job := sluice.NewJob(name + "_bill")
	receipts := job.From("receipts", kafka.Topic(name+"-receipts", codec.JSON[Receipt]()))
	receipts.To("copy", postgres.Insert[Receipt](name+"_copy"))
	receipts.KeyBy(UserOf).
		Fold(sluice.NewState[string, Bill]("bills"), (*Bill).Add).
		To("bills", postgres.Upsert(name+"_bills", func(_ string, b Bill) Bill { return b }, postgres.Key("user_id")))
	return job
}

func main() { sluice.Main(job()) }
