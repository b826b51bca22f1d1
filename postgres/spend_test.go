package postgres

import (
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// spend is the state, and the row, of most tests.
type spend struct {
	Orders int64
	Note   *string
}

// spendSink keeps a table of spends by user.
func spendSink(p *place, more ...Option) connector.TableSink[string, spend] {
	return Upsert("spend", func(_ string, s spend) spend { return s }, p.options(append([]Option{Key("user_id"), CreateTable()}, more...)...)...)
}

func textKey(t testing.TB) *schema.Key[string] {
	t.Helper()
	k, err := schema.KeyOf[string]("key")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// spends freezes changes: positive orders are put, others deleted.
func spends(t testing.TB, position connector.Position, users string, orders ...int64) *connector.Delivery {
	t.Helper()
	row, err := Upsert("spend", func(_ string, s spend) spend { return s }, Key("user_id")).TableRows()
	if err != nil {
		t.Fatal(err)
	}
	k, appendRow := textKey(t), row.NewAppend()
	var rows []connector.Row
	for i, n := range orders {
		user := users[i : i+1]
		r := connector.Row{Op: connector.Delete, Key: k.Append(nil, user)}
		if n > 0 {
			r.Op = connector.Put
			if r.Row, err = appendRow(nil, user, &spend{Orders: n}); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, r)
	}
	return delivery(position, k.Schema(), row.Schema, rows...)
}

// says expects an error of one line that says something, and holds no secret.
func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, expected one that says %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error %q doesn't say %q", err, text)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), secret) {
		t.Errorf("the error %q has several lines, or holds a password", err)
	}
}

// secret is a password that may stand nowhere.
const secret = "s3cr3t"
