package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// Order is what the examples read.
type Order struct {
	ID    int64
	User  string
	Cents int64
	Items []string
}

// Paid tells whether the order cost anything.
func (o Order) Paid() bool { return o.Cents > 0 }

// UserID is who ordered.
func (o Order) UserID() string { return o.User }

// Spend is what the examples keep for each user.
type Spend struct {
	Orders int64
	Cents  int64
}

// Add counts an order in.
func (s *Spend) Add(o Order) { s.Orders++; s.Cents += o.Cents }

var spend = sluice.NewState[string, Spend]("spend")

// spendRow is the row that is put out for a user.
func spendRow(_ string, s Spend) Spend { return s }

const someOrders = `{"ID":1,"User":"ann","Cents":1200,"Items":["tea","cup"]}
{"ID":2,"User":"bob","Cents":300,"Items":["tea"]}
{"ID":3,"User":"ann","Cents":0}
{"ID":4,"User":"ann","Cents":50,"Items":["cup"]}
`

// desk is a folder with some orders to work on.
type desk struct{ dir string }

func newDesk() desk {
	dir, err := os.MkdirTemp("", "sluice-example")
	if err != nil {
		panic(err)
	}
	d := desk{dir}
	if err := os.WriteFile(d.path("orders.jsonl"), []byte(someOrders), 0o644); err != nil {
		panic(err)
	}
	return d
}

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d desk) orders(job *sluice.Job) *sluice.Stream[Order] {
	return job.From("orders", file.JSONLines[Order](d.path("orders.jsonl")))
}

// run runs the job to the end of its input, with all state in the desk's folder.
func (d desk) run(job *sluice.Job) { d.runWith(job, func(*sluice.Options) {}) }

func (d desk) runWith(job *sluice.Job, change func(*sluice.Options)) {
	s, err := store.OpenFolder(env.Real(), d.path("sluice-data"))
	if err != nil {
		panic(err)
	}
	o := sluice.Options{Store: s, Volatile: true, Shards: 2, Log: slog.New(slog.DiscardHandler)}
	change(&o)
	err = job.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
	}
}

// lines are what a sink has put out, the rows of each delivery of a table in the
// keys' order.
func (d desk) lines(sink string) []string {
	var lines []string
	files, _ := filepath.Glob(d.path(sink) + "/0*")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		part := strings.Split(strings.TrimSpace(string(data)), "\n")
		if strings.HasPrefix(part[0], `{"op"`) {
			slices.Sort(part)
		}
		lines = append(lines, part...)
	}
	return lines
}

// print prints what a sink has put out.
func (d desk) print(sink string) { fmt.Println(strings.Join(d.lines(sink), "\n")) }

func (d desk) clear() { os.RemoveAll(d.dir) }

// A job that keeps what each user has spent, and goes on from there when more
// orders have come.
func Example() {
	d := newDesk()
	defer d.clear()
	job := func() *sluice.Job {
		job := sluice.NewJob("spend")
		d.orders(job).
			Filter(Order.Paid).
			KeyBy(Order.UserID).
			Fold(spend, (*Spend).Add).
			To("spend_by_user", file.Upsert(d.path("spend"), spendRow))
		return job
	}
	d.run(job())
	d.print("spend")

	f, _ := os.OpenFile(d.path("orders.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprintln(f, `{"ID":5,"User":"bob","Cents":700}`)
	f.Close()
	d.run(job())
	fmt.Println("and one order later:")
	d.print("spend")
	// Output:
	// {"op":"put","key":"ann","row":{"Orders":2,"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
	// and one order later:
	// {"op":"put","key":"ann","row":{"Orders":2,"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
	// {"op":"put","key":"bob","row":{"Orders":2,"Cents":1000}}
}

func ExampleStream_Map() {
	d := newDesk()
	defer d.clear()
	type Receipt struct{ User, Text string }
	job := sluice.NewJob("receipts")
	d.orders(job).
		Filter(Order.Paid).
		Map(func(o Order) Receipt { return Receipt{o.User, fmt.Sprintf("%d.%02d", o.Cents/100, o.Cents%100)} }).
		To("receipts", file.Append[Receipt](d.path("receipts")))
	d.run(job)
	d.print("receipts")
	// Output:
	// {"User":"ann","Text":"12.00"}
	// {"User":"bob","Text":"3.00"}
	// {"User":"ann","Text":"0.50"}
}

func ExampleStream_FlatMap() {
	d := newDesk()
	defer d.clear()
	type Item struct{ User, Item string }
	job := sluice.NewJob("items")
	d.orders(job).
		FlatMap(func(o Order) iter.Seq[Item] {
			return func(yield func(Item) bool) {
				for _, item := range o.Items {
					if !yield(Item{o.User, item}) {
						return
					}
				}
			}
		}).
		To("items", file.Append[Item](d.path("items")))
	d.run(job)
	d.print("items")
	// Output:
	// {"User":"ann","Item":"tea"}
	// {"User":"ann","Item":"cup"}
	// {"User":"bob","Item":"tea"}
	// {"User":"ann","Item":"cup"}
}

func hasItems(o Order) (Order, error) {
	if len(o.Items) == 0 {
		return o, errors.New("an order of nothing")
	}
	return o, nil
}

// An error of TryMap, like a record that can't be decoded, stops the job, or
// sends the record to the sink of DeadLetter.
func ExampleJob_DeadLetter() {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("checked")
	d.orders(job).
		TryMap(hasItems).
		KeyBy(Order.UserID).
		Fold(spend, (*Spend).Add).
		To("spend_by_user", file.Upsert(d.path("spend"), spendRow))
	job.DeadLetter("refused", file.Append[sluice.DeadLetter](d.path("refused")))
	d.run(job)
	d.print("spend")
	d.print("refused")
	// Output:
	// {"op":"put","key":"ann","row":{"Orders":2,"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
	// {"Source":"orders","Partition":"orders.jsonl","Offset":107,"Operator":"TryMap sluice_test.hasItems","Key":"","Error":"an order of nothing","RecordKey":"","Bytes":"eyJJRCI6MywiVXNlciI6ImFubiIsIkNlbnRzIjowfQ=="}
}

func ExampleStream_Merge() {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("merged")
	orders := d.orders(job)
	small := orders.Filter(func(o Order) bool { return o.Cents < 100 })
	large := orders.Filter(func(o Order) bool { return o.Cents >= 1000 })
	small.Merge(large).
		KeyBy(Order.UserID).
		Fold(spend, (*Spend).Add).
		To("extremes", file.Upsert(d.path("extremes"), spendRow))
	d.run(job)
	d.print("extremes")
	// Output:
	// {"op":"put","key":"ann","row":{"Orders":3,"Cents":1250}}
}

// An entry goes when the fold says so, here and in the sink.
func ExampleKeyed_FoldKeep() {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("open")
	open := sluice.NewState[string, Spend]("open")
	d.orders(job).
		KeyBy(Order.UserID).
		FoldKeep(open, func(s *Spend, o Order) bool {
			s.Add(o)
			return s.Cents < 1000
		}).
		To("open", file.Upsert(d.path("open"), spendRow))
	d.run(job)
	d.print("open")
	// Output:
	// {"op":"put","key":"ann","row":{"Orders":2,"Cents":50}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
}

func ExampleKeyed_MapValues() {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("sums")
	sums := sluice.NewState[string, int64]("sums")
	type Sum struct{ Cents int64 }
	d.orders(job).
		KeyBy(Order.UserID).
		MapValues(func(o Order) int64 { return o.Cents }).
		Fold(sums, func(sum *int64, cents int64) { *sum += cents }).
		To("sums", file.Upsert(d.path("sums"), func(_ string, sum int64) Sum { return Sum{sum} }))
	d.run(job)
	d.print("sums")
	// Output:
	// {"op":"put","key":"ann","row":{"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Cents":300}}
}

// The records of one key are in order; Values takes them further without the
// key.
func ExampleKeyed_Values() {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("values")
	type ID struct{ ID int64 }
	d.orders(job).KeyBy(Order.UserID).Values().
		Map(func(o Order) ID { return ID{o.ID} }).
		To("ids", file.Append[ID](d.path("ids")))
	d.run(job)
	d.print("ids")
	// Output:
	// {"ID":1}
	// {"ID":2}
	// {"ID":3}
	// {"ID":4}
}

// A process with a state of each kind and a second output: the first order of
// an item by a user goes to the stream, repeated ones to the output.
func ExampleKeyed_Process() {
	d := newDesk()
	defer d.clear()
	type Bought struct {
		User, Item string
		Times      int64
	}
	var (
		total    = sluice.NewState[string, int64]("total")
		perItem  = sluice.NewMapState[string, string, int64]("per_item")
		lastIDs  = sluice.NewListState[string, int64]("last_ids")
		repeated = sluice.NewOutput[Bought]("repeated")
	)
	job := sluice.NewJob("bought")
	bought := d.orders(job).KeyBy(Order.UserID).
		Process(func(p *sluice.Setup[string, Bought]) func(*sluice.Context[string, Bought], Order) {
			total, items, last, again := p.State(total), p.Map(perItem), p.List(lastIDs), p.Output(repeated)
			return func(c *sluice.Context[string, Bought], o Order) {
				*total.Update() += o.Cents
				last.Append(o.ID)
				if last.Len() > 2 {
					last.RemoveFirst(1)
				}
				for _, item := range o.Items {
					n := items.Update(item)
					*n++
					b := Bought{c.Key(), item, *n}
					if *n > 1 {
						again.Emit(b)
					} else {
						c.Emit(b)
					}
				}
			}
		})
	bought.To("first", file.Append[Bought](d.path("first")))
	bought.Output(repeated).To("again", file.Append[Bought](d.path("again")))
	type Total struct{ Cents int64 }
	bought.Table(total).To("totals", file.Upsert(d.path("totals"), func(_ string, cents int64) Total { return Total{cents} }))
	d.run(job)
	d.print("first")
	fmt.Println("again:")
	d.print("again")
	fmt.Println("totals:")
	d.print("totals")
	// Output:
	// {"User":"ann","Item":"tea","Times":1}
	// {"User":"ann","Item":"cup","Times":1}
	// {"User":"bob","Item":"tea","Times":1}
	// again:
	// {"User":"ann","Item":"cup","Times":2}
	// totals:
	// {"op":"put","key":"ann","row":{"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Cents":300}}
}

// A table's changes are a stream: what each epoch has made of a key.
func ExampleTable_Changes() {
	d := newDesk()
	defer d.clear()
	type Rise struct {
		User     string
		From, To int64
	}
	job := sluice.NewJob("rises")
	d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).Changes().
		Map(func(c sluice.Change[string, Spend]) Rise { return Rise{c.Key, c.Old.Cents, c.New.Cents} }).
		KeyBy(func(r Rise) bool { return r.To >= 1000 }).
		Fold(sluice.NewState[bool, int64]("rich"), func(n *int64, _ Rise) { *n++ }).
		To("rich", file.Upsert(d.path("rich"), func(_ bool, n int64) Rise { return Rise{To: n} }))
	d.run(job)
	d.print("rich")
	// Output:
	// {"op":"put","key":false,"row":{"User":"","From":0,"To":1}}
	// {"op":"put","key":true,"row":{"User":"","From":0,"To":1}}
}

// Regroup keys the rows of a table by something in them, and keeps the groups
// up to date as rows come, change and go.
func ExampleTable_Regroup() {
	d := newDesk()
	defer d.clear()
	type Group struct{ Users, Cents int64 }
	byOrders := sluice.NewState[int64, Group]("by_orders")
	job := sluice.NewJob("groups")
	d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).
		Regroup(byOrders, func(_ string, s Spend) int64 { return s.Orders },
			func(g *Group, s Spend) { g.Users++; g.Cents += s.Cents },
			func(g *Group, s Spend) bool { g.Users--; g.Cents -= s.Cents; return g.Users > 0 }).
		To("groups", file.Upsert(d.path("groups"), func(_ int64, g Group) Group { return g }))
	d.run(job)
	d.print("groups")
	// Output:
	// {"op":"put","key":1,"row":{"Users":1,"Cents":300}}
	// {"op":"put","key":3,"row":{"Users":1,"Cents":1250}}
}

// A newer build whose state has one more field goes on from where the older one
// stopped: stored values get the field's zero.
func ExampleNewState() {
	d := newDesk()
	defer d.clear()
	type SpendV2 struct {
		Orders int64
		Cents  int64
		VIP    bool
	}
	older := sluice.NewJob("spend")
	d.orders(older).KeyBy(Order.UserID).Fold(spend, (*Spend).Add)
	d.run(older)

	f, _ := os.OpenFile(d.path("orders.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprintln(f, `{"ID":5,"User":"bob","Cents":700}`)
	f.Close()
	newer := sluice.NewJob("spend")
	d.orders(newer).KeyBy(Order.UserID).
		Fold(sluice.NewState[string, SpendV2]("spend"), func(s *SpendV2, o Order) {
			s.Orders++
			s.Cents += o.Cents
			s.VIP = s.Cents >= 1000
		}).
		To("vips", file.Upsert(d.path("vips"), func(_ string, s SpendV2) SpendV2 { return s }))
	d.run(newer)
	d.print("vips")
	// Output:
	// {"op":"put","key":"bob","row":{"Orders":2,"Cents":1000,"VIP":true}}
}
