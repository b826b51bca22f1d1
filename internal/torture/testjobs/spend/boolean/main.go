// Command boolean is the job spend with one more field in its state.
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
	VIP    bool
}

// Add adds an order.
func (s *Spend) Add(o orders.Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Weight += float32(o.Weight)
	s.Note = o.Note
	s.Status = orders.StatusOf(int64(s.Orders))
	s.Code = o.Code
	s.VIP = s.VIP || o.Cents >= 900
}

func row(s Spend) orders.Row {
	return orders.Row{Orders: int64(s.Orders), Cents: s.Cents, Weight: float64(s.Weight), Note: s.Note, Status: string(s.Status), Code: s.Code, VIP: s.VIP}
}

func main() {
	orders.Main(sluice.NewState[string, Spend]("spend"), orders.UserOf, (*Spend).Add, row)
}
