// Command widened is the job spend with wider numbers in its state.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/spend/orders"
)

// Spend is what a user has spent.
type Spend struct {
	Orders int64
	Cents  int64
	Weight float64
	Note   string
	Status orders.Status
	Code   string
}

// Add adds an order.
func (s *Spend) Add(o orders.Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Weight += o.Weight
	s.Note = o.Note
	s.Status = orders.StatusOf(int64(s.Orders))
	s.Code = o.Code
}

func row(s Spend) orders.Row {
	return orders.Row{Orders: s.Orders, Cents: s.Cents, Weight: s.Weight, Note: s.Note, Status: string(s.Status), Code: s.Code}
}

func main() {
	orders.Main(sluice.NewState[string, Spend]("spend"), orders.UserOf, (*Spend).Add, row)
}
