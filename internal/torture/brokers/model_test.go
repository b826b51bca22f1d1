package brokers

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// order, receipt and account are the records, as the model has them.
type order struct {
	ID, User string
	Cents    int64
	Close    bool
}

type receipt struct {
	User, ID   string
	Nth, Cents int64
}

type account struct {
	Orders, Cents int64
	Last          string
}

// model works out what must come of orders. All orders of a user are in one
// partition, so that their order is the log's.
type model struct {
	receipts map[string][]receipt
	accounts map[string]account
	history  map[string][]*account // each value that a user's account had; nil: none
}

// modelOf works it out from the topic as it stands there.
func modelOf(t *testing.T, records []*kgo.Record) *model {
	t.Helper()
	m := &model{map[string][]receipt{}, map[string]account{}, map[string][]*account{}}
	for _, r := range records {
		o := decode[order](t, r.Value)
		rs := m.receipts[o.User]
		next := receipt{User: o.User, ID: o.ID, Nth: 1, Cents: o.Cents}
		if len(rs) > 0 {
			next.Nth, next.Cents = rs[len(rs)-1].Nth+1, rs[len(rs)-1].Cents+o.Cents
		}
		m.receipts[o.User] = append(rs, next)
		a := m.accounts[o.User]
		a = account{a.Orders + 1, a.Cents + o.Cents, o.ID}
		m.accounts[o.User] = a
		if o.Close {
			delete(m.accounts, o.User)
			m.history[o.User] = append(m.history[o.User], nil)
			continue
		}
		m.history[o.User] = append(m.history[o.User], &a)
	}
	return m
}

func decode[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

// checkReceipts compares a topic of receipts with the model: each once, and in
// their order for each user.
func (m *model) checkReceipts(t *testing.T, records []*kgo.Record) {
	t.Helper()
	got := map[string][]receipt{}
	for _, r := range records {
		v := decode[receipt](t, r.Value)
		if string(r.Key) != v.User {
			t.Fatalf("a receipt of %s has the key %q", v.User, r.Key)
		}
		got[v.User] = append(got[v.User], v)
	}
	same(t, "receipts", got, m.receipts, slices.Equal)
}

// checkAccounts compares a topic of accounts with the model: what comes for a user
// are values that the account had, in their order, up to the last.
func (m *model) checkAccounts(t *testing.T, records []*kgo.Record) {
	t.Helper()
	at, last := map[string]int{}, map[string]*account{}
	for _, r := range records {
		user := string(r.Key)
		var v *account
		if r.Value != nil {
			a := decode[account](t, r.Value)
			v = &a
		}
		history := m.history[user]
		n := at[user]
		for n < len(history) && !equal(history[n], v) {
			n++
		}
		if n == len(history) {
			t.Fatalf("account %s: %s comes out of its order: value %d or later of %d was due", user, r.Value, at[user], len(history))
		}
		at[user], last[user] = n+1, v
	}
	got := map[string]account{}
	for user, v := range last {
		if v != nil {
			got[user] = *v
		}
	}
	same(t, "accounts", got, m.accounts, func(a, b account) bool { return a == b })
}

func equal(a, b *account) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// same compares two maps and tells the first few differences.
func same[V any](t *testing.T, what string, got, want map[string]V, equal func(a, b V) bool) {
	t.Helper()
	const most = 5
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= most {
			t.Errorf(what+": "+format, args...)
		}
	}
	for key, w := range want {
		if g, ok := got[key]; !ok {
			fault("nothing for %s, want %s", key, short(w))
		} else if !equal(g, w) {
			fault("%s has %s, want %s", key, short(g), short(w))
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			fault("%s has %s, want nothing", key, short(g))
		}
	}
	if faults > most {
		t.Errorf("%s: %d faults in all", what, faults)
	}
	t.Logf("%s: %d keys compared", what, len(want))
}

func short(v any) string {
	const most = 600
	text := fmt.Sprintf("%+v", v)
	if len(text) > most {
		return text[:most/2] + " … " + text[len(text)-most/2:]
	}
	return text
}
