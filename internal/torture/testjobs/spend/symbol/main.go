// Command symbol is the job spend with one more symbol in an enum.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/spend/orders"
)

// Spend is what a user has spent.
type Spend struct {
	Orders int32
	Cents  int64
	Weight float32
	Note   string
	Status Status
	Code   string
}

// Add adds an order.
func (s *Spend) Add(o orders.Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Weight += float32(o.Weight)
	s.Note = o.Note
	s.Status = statusOf(int64(s.Orders))
	s.Code = o.Code
}

func row(s Spend) orders.Row {
	return orders.Row{Orders: int64(s.Orders), Cents: s.Cents, Weight: float64(s.Weight), Note: s.Note, Status: string(s.Status), Code: s.Code}
}

// Status has the symbol gold, which is new.
type Status string

// Symbols lists them.
func (Status) Symbols() []string { return []string{"new", "regular", "gold"} }

func statusOf(n int64) Status {
	if n > 4 {
		return "gold"
	}
	return Status(orders.StatusOf(n))
}

func main() {
	orders.Main(sluice.NewState[string, Spend]("spend"), orders.UserOf, (*Spend).Add, row)
}
