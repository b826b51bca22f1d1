package torture

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// What the shop's job reads and writes, as its files have it.
type (
	order struct {
		ID, User, Shop string
		Cents          int64
		Close          bool
	}
	receipt struct {
		ID, User, Shop     string
		Nth, Cents, Recent int64
	}
	entry struct {
		Shop, ID           string
		Nth, Visits, Chain int64
	}
	promotion struct {
		User     string
		From, To int64
	}
	account struct {
		Orders, Cents int64
		Last          string
	}
	level struct{ Users, Cents int64 }
)

// model is the shop's job worked out with plain maps: what its sinks must hold
// after each epoch.
type model struct {
	accounts map[string]account
	visits   map[string]account
	recent   map[string][]int64
	tills    map[string]entry
	regulars map[[2]string]int64
	levels   map[int64]level

	// This epoch's keys, with what they had before it.
	touched map[string]state[account]

	// What the sinks must hold, by key.
	receipts     map[string][]receipt
	ledger       map[string][]entry
	promotions   map[string][]promotion
	accountsSeen map[string][]state[account]
	levelsSeen   map[int64][]state[level]
}

func newModel() *model {
	return &model{
		accounts: map[string]account{}, visits: map[string]account{}, recent: map[string][]int64{},
		tills: map[string]entry{}, regulars: map[[2]string]int64{}, levels: map[int64]level{},
		touched:  map[string]state[account]{},
		receipts: map[string][]receipt{}, ledger: map[string][]entry{}, promotions: map[string][]promotion{},
		accountsSeen: map[string][]state[account]{}, levelsSeen: map[int64][]state[level]{},
	}
}

// take takes the next order.
func (m *model) take(o order) {
	a, ok := m.accounts[o.User]
	if _, again := m.touched[o.User]; !again {
		m.touched[o.User] = state[account]{ok, a}
	}
	if o.Close {
		delete(m.accounts, o.User)
	} else {
		m.accounts[o.User] = account{a.Orders + 1, a.Cents + o.Cents, o.ID}
	}

	v := m.visits[o.User]
	v.Orders++
	v.Cents += o.Cents
	m.visits[o.User] = v
	recent := append(m.recent[o.User], o.Cents)
	recent = recent[max(0, len(recent)-3):]
	m.recent[o.User] = recent
	r := receipt{ID: o.ID, User: o.User, Shop: o.Shop, Nth: v.Orders, Cents: v.Cents}
	for _, cents := range recent {
		r.Recent += cents
	}
	m.receipts[o.User] = append(m.receipts[o.User], r)

	e := m.tills[o.Shop]
	m.regulars[[2]string{o.Shop, o.User}]++
	e = entry{o.Shop, o.ID, e.Nth + 1, m.regulars[[2]string{o.Shop, o.User}], e.Chain*31 + r.Nth*1_000_003 + r.Recent}
	m.tills[o.Shop] = e
	m.ledger[o.Shop] = append(m.ledger[o.Shop], e)
}

// endEpoch works out what the tables emit.
func (m *model) endEpoch() {
	levels := map[int64]level{} // before the epoch, of the levels that it touches
	move := func(a account, sign int64) {
		n := a.Orders / 5
		l := m.levels[n]
		if _, again := levels[n]; !again {
			levels[n] = l
		}
		m.levels[n] = level{l.Users + sign, l.Cents + sign*a.Cents}
	}
	for user, before := range m.touched {
		a, ok := m.accounts[user]
		after := state[account]{ok, a}
		p := promotion{user, -1, -1}
		if before.there {
			p.From = before.row.Orders / 5
			move(before.row, -1)
		}
		if after.there {
			p.To = after.row.Orders / 5
			move(after.row, 1)
		}
		if p.From != p.To {
			m.promotions[user] = append(m.promotions[user], p)
		}
		if before != after {
			m.accountsSeen[user] = append(m.accountsSeen[user], after)
		}
	}
	for n, before := range levels {
		after := m.levels[n]
		if before != after {
			m.levelsSeen[n] = append(m.levelsSeen[n], state[level]{after.Users > 0, after})
		}
	}
	clear(m.touched)
}

// partition is an input file as the verifier reads it.
type partition struct {
	data []byte
	next int64
}

func readPartitions(t *testing.T, folder string) map[string]*partition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no input in %s: %v", folder, err)
	}
	parts := map[string]*partition{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		parts[filepath.Base(path)] = &partition{data: data}
	}
	return parts
}

// until calls f with the lines up to an offset, which must be a line's end.
func (p *partition) until(t *testing.T, next int64, f func(line []byte)) {
	t.Helper()
	if next <= p.next || next > int64(len(p.data)) || p.data[next-1] != '\n' {
		t.Fatalf("a run ends at %d; the one before at %d, the file at %d, and a run ends behind a newline", next, p.next, len(p.data))
	}
	for line := range bytes.Lines(p.data[p.next:next]) {
		f(line)
	}
	p.next = next
}

// verifyShop recomputes the answer from the input in the order that the
// manifests have recorded, and compares all sinks with it.
func verifyShop(t *testing.T, folder string, manifests []manifest) {
	t.Helper()
	parts := readPartitions(t, filepath.Join(folder, "in"))
	m := newModel()
	position, now := uint64(0), int64(0)
	for _, e := range manifests {
		if e.Kind != "data" {
			continue
		}
		if position++; e.Position != position {
			t.Fatalf("epoch %d has position %d, expected %d", e.Epoch, e.Position, position)
		}
		if e.Now < now {
			t.Fatalf("epoch %d: its clock %d is behind the one before, %d", e.Epoch, e.Now, now)
		}
		now = e.Now
		records := int64(0)
		for _, r := range e.Runs {
			p := parts[r.Partition]
			if p == nil || r.Source != "orders" {
				t.Fatalf("epoch %d: a run of %s/%s, which is no input", e.Epoch, r.Source, r.Partition)
			}
			p.until(t, r.Next, func(line []byte) {
				var o order
				if err := json.Unmarshal(line, &o); err != nil {
					t.Fatal(err)
				}
				m.take(o)
				records++
			})
		}
		m.endEpoch()
		if records != e.Counts["records"] {
			t.Fatalf("epoch %d: its runs have %d records, it counts %d", e.Epoch, records, e.Counts["records"])
		}
		for name, p := range parts {
			if at := e.Sources["orders"].Partitions[name].Next; at != p.next {
				t.Fatalf("epoch %d: %s stands at %d, its runs end at %d", e.Epoch, name, at, p.next)
			}
		}
	}
	for name, p := range parts {
		if p.next != int64(len(p.data)) {
			t.Errorf("%s was read to %d of %d bytes", name, p.next, len(p.data))
		}
	}
	out := func(name string) string { return filepath.Join(folder, "out", name) }
	sameStream(t, out("receipts"), m.receipts, func(r receipt) string { return r.User })
	sameStream(t, out("ledger"), m.ledger, func(e entry) string { return e.Shop })
	sameStream(t, out("promotions"), m.promotions, func(p promotion) string { return p.User })
	sameTable(t, out("accounts"), m.accountsSeen)
	sameTable(t, out("levels"), m.levelsSeen)
}
