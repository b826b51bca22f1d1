// Command otherkey is the job spend keyed by a number.
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
	Status orders.Status
	Code   string
}

// Add adds an order.
func (s *Spend) Add(o orders.Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Weight += float32(o.Weight)
	s.Note = o.Note
	s.Status = orders.StatusOf(int64(s.Orders))
	s.Code = o.Code
}

func row(s Spend) orders.Row {
	return orders.Row{Orders: int64(s.Orders), Cents: s.Cents, Weight: float64(s.Weight), Note: s.Note, Status: string(s.Status), Code: s.Code}
}

func numberOf(o orders.Order) int64 { return o.Number }

func main() {
	orders.Main(sluice.NewState[int64, Spend]("spend"), numberOf, (*Spend).Add, row)
}
