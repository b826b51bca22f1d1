// Command pay is a job from Kafka to Kafka, and to PostgreSQL where there is one:
// what users have paid, order by order and in all.
package main

import (
	"os"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// Order is a record of the topic NAME-orders. Close ends the user's account.
type Order struct {
	ID, User string
	Cents    int64
	Close    bool
}

// UserOf is the key.
func UserOf(o Order) string { return o.User }

// Account is what a user has paid since the account was opened.
type Account struct {
	Orders, Cents int64
	Last          string
}

// Take takes an order, and tells whether the account stays.
func (a *Account) Take(o Order) bool {
	a.Orders++
	a.Cents += o.Cents
	a.Last = o.ID
	return !o.Close
}

// Paid counts all orders of a user, whatever becomes of the account.
type Paid struct{ Orders, Cents int64 }

// Receipt is put out for each order.
type Receipt struct {
	User  string `pg:"user_id"`
	ID    string
	Nth   int64 // of the user's orders
	Cents int64 // of all of them
}

func keepReceipts(p *sluice.Setup[string, Receipt]) func(*sluice.Context[string, Receipt], Order) {
	paid := p.State(sluice.NewState[string, Paid]("paid"))
	return func(c *sluice.Context[string, Receipt], o Order) {
		v := paid.Update()
		v.Orders++
		v.Cents += o.Cents
		c.Emit(Receipt{User: o.User, ID: o.ID, Nth: v.Orders, Cents: v.Cents})
	}
}

// The sinks that PAY_SINKS chooses: all unless it says otherwise.
const (
	oneSink       = "one"      // the receipts' topic
	databaseSinks = "database" // the tables
)

// job is the job of the name PAY_NAME, which begins the names of its topics and
// tables. PAY_TIMEOUT is how long its transactions may take, PAY_SINKS which sinks
// it has. PAY_GROUP=none has it tell no group its offsets, PAY_DEAD=1 gives it the
// topic NAME-dead for dead letters.
func job() *sluice.Job {
	name := os.Getenv("PAY_NAME")
	var opts []kafka.SinkOption
	if timeout, err := time.ParseDuration(os.Getenv("PAY_TIMEOUT")); err == nil {
		opts = append(opts, kafka.TransactionTimeout(timeout))
	}
	var reading []kafka.SourceOption
	if os.Getenv("PAY_GROUP") == "none" {
		reading = append(reading, kafka.NoGroup())
	}
	job := sluice.NewJob(name)
	if os.Getenv("PAY_DEAD") != "" {
		job.DeadLetter("dead", kafka.Append(name+"-dead", codec.JSON[sluice.DeadLetter](), opts...))
	}
	users := job.From("orders", kafka.Topic(name+"-orders", codec.JSON[Order](), reading...)).KeyBy(UserOf)

	sinks := os.Getenv("PAY_SINKS")
	receipts := users.Process(keepReceipts)
	if sinks != databaseSinks {
		receipts.To("receipts", kafka.Append(name+"-receipts", codec.JSON[Receipt](), opts...).
			Key(func(r Receipt) []byte { return []byte(r.User) }))
	}
	if sinks == oneSink {
		return job
	}
	accounts := users.FoldKeep(sluice.NewState[string, Account]("accounts"), (*Account).Take)
	row := func(_ string, a Account) Account { return a }
	if sinks != databaseSinks {
		accounts.To("accounts", kafka.Upsert(name+"-accounts", row, codec.String(), codec.JSON[Account](), opts...))
	}
	if os.Getenv("SLUICE_POSTGRES") != "" {
		receipts.To("audit", postgres.Insert[Receipt](name+"_audit"))
		accounts.To("table", postgres.Upsert(name+"_accounts", row, postgres.Key("user_id")))
	}
	return job
}

func main() { sluice.Main(job()) }
