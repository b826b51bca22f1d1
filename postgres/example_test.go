package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/postgres"
	"github.com/sluicestream/sluice/store"
)

// Order is a line of the input.
type Order struct {
	User  string
	Cents int64
}

func (o Order) UserID() string { return o.User }

// Spend is the state of a user.
type Spend struct{ Orders, Cents int64 }

func (s *Spend) Add(o Order) { s.Orders++; s.Cents += o.Cents }

// SpendRow is a row of the table spend_by_user.
type SpendRow struct {
	UserID string `pg:",key"`
	Orders int64
	Total  int64 `pg:"total_cents"`
}

func spendRow(user string, s Spend) SpendRow { return SpendRow{user, s.Orders, s.Cents} }

// A job keeps a table of PostgreSQL up to date. The database is the one that the
// environment variable SLUICE_POSTGRES names.
func Example() {
	orders := exampleFile(`{"User":"ann","Cents":500}
{"User":"bob","Cents":100}
{"User":"ann","Cents":250}
`)
	defer os.RemoveAll(filepath.Dir(orders))

	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[Order](orders)).
		KeyBy(Order.UserID).
		Fold(sluice.NewState[string, Spend]("spend"), (*Spend).Add).
		To("spend_by_user", postgres.Upsert("spend_by_user", spendRow, postgres.CreateTable()))

	quiet := slog.New(slog.DiscardHandler)
	if err := job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Log: quiet}); err != nil {
		fmt.Println(err)
	}
	printTable("select user_id, orders, total_cents from spend_by_user order by user_id")
	// Prints:
	// ann 2 750
	// bob 1 100
}

func exampleFile(content string) string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "orders.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		panic(err)
	}
	return path
}

func printTable(sql string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, os.Getenv("SLUICE_POSTGRES"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	results, err := c.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range results[0].Rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Print(" ")
			}
			fmt.Printf("%s", cell)
		}
		fmt.Println()
	}
}

// TestExample runs the example where there is a server, and checks what it
// prints.
func TestExample(t *testing.T) {
	address := postgres.ServerForExample()
	if address == "" {
		t.Skip("the example is not run: there is no PostgreSQL server for it")
	}
	t.Setenv("SLUICE_POSTGRES", address)
	stdout := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	Example()
	os.Stdout = stdout
	w.Close()
	got, err := io.ReadAll(r)
	if want := "ann 2 750\nbob 1 100\n"; err != nil || string(got) != want {
		t.Errorf("the example prints\n%s(%v), expected\n%s", got, err, want)
	}
}
