// Command tide is a job in four versions, from Kafka to Kafka, and to PostgreSQL where
// there is one: what came by for each key, one row for each input and one for each key.
// A file of it runs the version that TIDE_VERSION says.
package main

import (
	"os"
	"strconv"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
)

// Input is a record of the topic NAME-inputs.
type Input struct {
	ID, Key string
	Amount  int64
}

// KeyOf is the key.
func KeyOf(i Input) string { return i.Key }

// Audit is put out for each input: how many there were of the key, what they come to,
// and how many of them the version that writes it has counted in a field of its own.
type Audit struct {
	Key            string
	ID             string
	Nth, Sum       int64
	Version, Since int64
}

// Total is what the table says of a key.
type Total struct{ Count, Sum, Version, Since int64 }

// First is the first version's state, as the others are that of theirs. Those begin to
// count in Since2, Since3 and Since4 where their state was taken over.
type First struct{ Count, Sum int64 }

// Second is the second version's.
type Second struct{ Count, Sum, Since2 int64 }

// Third is the third version's.
type Third struct{ Count, Sum, Since2, Since3 int64 }

// Fourth is the fourth version's, which comes after the second one.
type Fourth struct{ Count, Sum, Since2, Since4 int64 }

// Take counts an input.
func (v *First) Take(i Input) { v.Count++; v.Sum += i.Amount }

// Take counts an input.
func (v *Second) Take(i Input) { v.Count++; v.Sum += i.Amount; v.Since2++ }

// Take counts an input.
func (v *Third) Take(i Input) { v.Count++; v.Sum += i.Amount; v.Since3++ }

// Take counts an input.
func (v *Fourth) Take(i Input) { v.Count++; v.Sum += i.Amount; v.Since4++ }

// Total is the row.
func (v First) Total() Total { return Total{v.Count, v.Sum, 1, v.Count} }

// Total is the row.
func (v Second) Total() Total { return Total{v.Count, v.Sum, 2, v.Since2} }

// Total is the row.
func (v Third) Total() Total { return Total{v.Count, v.Sum, 3, v.Since3} }

// Total is the row.
func (v Fourth) Total() Total { return Total{v.Count, v.Sum, 4, v.Since4} }

// job is the version of the job NAME whose state is a T. take counts an input in it.
func job[T interface{ Total() Total }](name string, take func(*T, Input)) *sluice.Job {
	var opts []kafka.SinkOption
	if timeout, err := time.ParseDuration(os.Getenv("TIDE_TIMEOUT")); err == nil {
		opts = append(opts, kafka.TransactionTimeout(timeout))
	}
	job := sluice.NewJob(name)
	keyed := job.From("inputs", kafka.Topic(name+"-inputs", codec.JSON[Input]())).KeyBy(KeyOf)
	audit := keyed.Process(func(p *sluice.Setup[string, Audit]) func(*sluice.Context[string, Audit], Input) {
		counts := p.State(sluice.NewState[string, T]("audited"))
		return func(c *sluice.Context[string, Audit], i Input) {
			v := counts.Update()
			take(v, i)
			t := (*v).Total()
			c.Emit(Audit{i.Key, i.ID, t.Count, t.Sum, t.Version, t.Since})
		}
	})
	audit.To("audit", stops{kafka.Append(name+"-audit", codec.JSON[Audit](), append(opts, stopping())...).Key(func(a Audit) []byte { return []byte(a.Key) })})
	totals := keyed.Fold(sluice.NewState[string, T]("totals"), take)
	row := func(_ string, v T) Total { return v.Total() }
	totals.To("totals", kafka.Upsert(name+"-totals", row, codec.String(), codec.JSON[Total](), opts...))
	if os.Getenv("SLUICE_POSTGRES") != "" {
		audit.To("audit_table", postgres.Insert[Audit](name+"_audit"))
		totals.To("totals_table", postgres.Upsert(name+"_totals", row, postgres.Key("key")))
	}
	return job
}

func main() {
	name := os.Getenv("TIDE_NAME")
	switch version, _ := strconv.Atoi(os.Getenv("TIDE_VERSION")); version {
	case 2:
		sluice.Main(job(name, (*Second).Take))
	case 3:
		sluice.Main(job(name, (*Third).Take))
	case 4:
		sluice.Main(job(name, (*Fourth).Take))
	default:
		sluice.Main(job(name, (*First).Take))
	}
}
