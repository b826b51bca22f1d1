package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	sameAccounts(t, filepath.Join(folder, "out", "accounts"), accounts, rewritings(t, folder))
	ledger := filepath.Join(folder, "out", "ledger")
	if _, err := os.Stat(ledger); err == nil { // which the fourth version fills, each row once
		sameAccounts(t, ledger, accounts, 1)
	}
}

// rewritings is how often the table's sink may have been written anew by now: by the
// second version once, and at each time that was gone back to.
func rewritings(t *testing.T, folder string) int {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(folder, "store", "steps", "live", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, path := range records {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ Kind string }
		if err := json.Unmarshal(data, &record); err != nil {
			t.Fatal(err)
		}
		if record.Kind == "rollback" {
			n++
		}
	}
	return n
}

// sameAccounts compares a table's sink with the values that each key had, of
// which a row may leave some out. Once the second version has run, which writes all
// rows anew at most so many times, each key's last row is its.
func sameAccounts(t *testing.T, folder string, want map[string][]stepsAccount, most int) {
	t.Helper()
	last, ranked, again := map[string]stepsAccount{}, map[string]bool{}, map[string]int{}
	eachLine(t, folder, func(line []byte) {
		l := decode[struct {
			Op, Key string
			Row     struct {
				Orders, Cents int64
				Largest       *int64 // the second version's
			}
		}](t, line)
		row := stepsAccount{l.Row.Orders, l.Row.Cents}
		values := want[l.Key]
		switch n := row.Orders; {
		case l.Op != "put":
			t.Errorf("sink accounts: %s of %s, expected puts alone", l.Op, l.Key)
		case n == last[l.Key].Orders && l.Row.Largest != nil && again[l.Key] < most:
			again[l.Key]++
		case n <= last[l.Key].Orders:
			t.Errorf("sink accounts: %s has %d orders behind a row of %d", l.Key, n, last[l.Key].Orders)
		case n > int64(len(values)) || values[n-1] != row:
			t.Errorf("sink accounts: %s has %+v, which it never was", l.Key, l.Row)
		case l.Row.Largest == nil && ranked[l.Key]:
			t.Errorf("sink accounts: %s has a row of the first version behind one of the second", l.Key)
		}
		last[l.Key], ranked[l.Key] = row, l.Row.Largest != nil
	})
	for key, values := range want {
		if last[key] != values[len(values)-1] {
			t.Errorf("sink accounts: %s ends with %+v, expected %+v", key, last[key], values[len(values)-1])
		}
		if second := slices.Contains(slices.Collect(maps.Values(ranked)), true); second && !ranked[key] {
			t.Errorf("sink accounts: the last row of %s is the first version's", key)
		}
	}
}
