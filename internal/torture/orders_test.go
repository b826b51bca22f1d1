package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the job steps reads and writes.
type (
	stepsOrder struct {
		User  string
		Cents int64
	}
	stepsReceipt struct {
		User     string
		Nth, Sum int64
	}
	stepsAccount struct{ Orders, Cents int64 }
)

// stepsInputs is the number of its input files. A user's orders are in one.
const stepsInputs = 3

// feedSteps appends a number of orders to each input file.
func feedSteps(t *testing.T, folder string, from, to int) {
	t.Helper()
	for part := range stepsInputs {
		var text strings.Builder
		for i := from; i < to; i++ {
			line, _ := json.Marshal(stepsOrder{fmt.Sprintf("user-%d-%d", part, i*i%7), int64(i*37%1000 + part)})
			text.Write(append(line, '\n'))
		}
		appendTo(t, filepath.Join(folder, "in", fmt.Sprintf("%d.jsonl", part)), text.String())
	}
}

// verifySteps works the outputs out from the input, and compares: each receipt
// once and in its order, each row a value that the account had, in their order,
// none twice, and the last one the last.
func verifySteps(t *testing.T, folder string) {
	t.Helper()
	receipts, accounts := map[string][]stepsReceipt{}, map[string][]stepsAccount{}
	for part := range stepsInputs {
		data, err := os.ReadFile(filepath.Join(folder, "in", fmt.Sprintf("%d.jsonl", part)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			o := decode[stepsOrder](t, []byte(line))
			a := stepsAccount{}
			if had := accounts[o.User]; len(had) > 0 {
				a = had[len(had)-1]
			}
			a = stepsAccount{a.Orders + 1, a.Cents + o.Cents}
			accounts[o.User] = append(accounts[o.User], a)
			receipts[o.User] = append(receipts[o.User], stepsReceipt{o.User, a.Orders, a.Cents})
		}
	}
	sameStream(t, filepath.Join(folder, "out", "receipts"), receipts, func(r stepsReceipt) string { return r.User })
	sameAccounts(t, filepath.Join(folder, "out", "accounts"), accounts)
}

// sameAccounts compares a table's sink with the values that each key had, of
// which a row may leave some out.
func sameAccounts(t *testing.T, folder string, want map[string][]stepsAccount) {
	t.Helper()
	last := map[string]stepsAccount{}
	eachLine(t, folder, func(line []byte) {
		l := decode[struct {
			Op, Key string
			Row     stepsAccount
		}](t, line)
		values := want[l.Key]
		switch n := l.Row.Orders; {
		case l.Op != "put":
			t.Errorf("sink accounts: %s of %s, expected puts alone", l.Op, l.Key)
		case n <= last[l.Key].Orders:
			t.Errorf("sink accounts: %s has %d orders behind a row of %d", l.Key, n, last[l.Key].Orders)
		case n > int64(len(values)) || values[n-1] != l.Row:
			t.Errorf("sink accounts: %s has %+v, which it never was", l.Key, l.Row)
		}
		last[l.Key] = l.Row
	})
	for key, values := range want {
		if last[key] != values[len(values)-1] {
			t.Errorf("sink accounts: %s ends with %+v, expected %+v", key, last[key], values[len(values)-1])
		}
	}
}
