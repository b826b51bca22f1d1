// Package account has the state of the job spend.
package account

import (
	"github.com/sluicestream/sluice/internal/torture/testjobs/spend/orders"
)

// Totals is what a user has spent.
type Totals struct {
	Orders int32
	Cents  int64
	Weight float32
	Note   string
	Status orders.Status
	Code   string
}

// Add adds an order.
func (s *Totals) Add(o orders.Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Weight += float32(o.Weight)
	s.Note = o.Note
	s.Status = orders.StatusOf(int64(s.Orders))
	s.Code = o.Code
}
