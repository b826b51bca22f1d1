// Command moved is the job spend with the type of its state renamed, and in another package.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/spend/moved/account"
	"github.com/sluicestream/sluice/internal/torture/testjobs/spend/orders"
)

func row(s account.Totals) orders.Row {
	return orders.Row{Orders: int64(s.Orders), Cents: s.Cents, Weight: float64(s.Weight), Note: s.Note, Status: string(s.Status), Code: s.Code}
}

func main() {
	orders.Main(sluice.NewState[string, account.Totals]("spend"), orders.UserOf, (*account.Totals).Add, row)
}
