package brokers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/internal/torture/topics"
)

// partitions of each topic.
const partitions = 4

// timeout is how long the jobs' transactions may take.
const timeout = 3 * time.Second

// shop is a job with what it reads and writes.
type shop struct {
	t       *testing.T
	rng     *rand.Rand
	name    string // of the job
	store   string
	kafka   string             // the cluster's address, for the job
	db      *services.Database // nil: there is none
	env     []string
	cluster *topics.Cluster // as the test itself sees it
	client  *kgo.Client
	admin   *kadm.Client
	users   int
	fed     int
}

// seed is that of SLUICE_TORTURE_SEED, or a new one, which is printed.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("SLUICE_TORTURE_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TORTURE_SEED=%d", s)
	return s
}

// newShop makes the topics of a new job.
func newShop(t *testing.T, kafka string, db *services.Database) *shop {
	t.Helper()
	s := &shop{t: t, rng: rand.New(rand.NewPCG(seed(t), 1)), name: services.Unique("pay"), store: filepath.Join(t.TempDir(), "store"), kafka: kafka, db: db, users: 200}
	s.cluster = topics.Open(t, kafka)
	s.client, s.admin = s.cluster.Client, s.cluster.Admin
	for _, topic := range []string{"orders", "receipts", "accounts"} {
		s.createTopic(topic)
	}
	pg := ""
	if db != nil {
		pg = db.URL("")
		s.createTables()
	}
	s.env = []string{"PAY_NAME=" + s.name, "PAY_TIMEOUT=" + timeout.String(), "SLUICE_KAFKA=" + kafka, "SLUICE_POSTGRES=" + pg}
	return s
}

// createTables makes the tables of the shop's name.
func (s *shop) createTables() {
	s.t.Helper()
	s.query(fmt.Sprintf(`create table %[1]s_audit (user_id text, id text, nth bigint, cents bigint);
		create table %[1]s_copy (user_id text, id text, nth bigint, cents bigint);
		create table %[1]s_accounts (user_id text primary key, orders bigint, cents bigint, last text);
		create table %[1]s_bills (user_id text primary key, receipts bigint, cents bigint, gaps bigint)`, s.name))
}

func (s *shop) topic(name string) string { return s.name + "-" + name }

func (s *shop) createTopic(name string) {
	s.t.Helper()
	s.cluster.Create(s.t, s.topic(name), partitions)
}

// known is the number of partitions that the broker knows a topic to have.
func (s *shop) known(name string) int { return s.cluster.Partitions(s.t, s.topic(name)) }

// eventually waits until something holds.
func (s *shop) eventually(what string, holds func() bool) {
	s.t.Helper()
	topics.Eventually(s.t, what, holds)
}

// feed writes orders. They are there when it returns.
func (s *shop) feed(n int) {
	s.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		s.fed++
		user := s.rng.IntN(s.users)
		if s.rng.IntN(4) == 0 {
			user = s.rng.IntN(10)
		}
		o := order{fmt.Sprint("order-", s.fed), fmt.Sprint("user-", user), s.rng.Int64N(10_000), s.rng.IntN(50) == 0}
		value, err := json.Marshal(o)
		if err != nil {
			s.t.Fatal(err)
		}
		records[i] = &kgo.Record{Topic: s.topic("orders"), Key: []byte(o.User), Value: value}
	}
	if err := s.client.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatalf("writing orders: %v", err)
	}
}

// storeOf is the folder of a job's store.
func (s *shop) storeOf(job string) string {
	if job != "pay" {
		return s.store + "-" + job
	}
	return s.store
}

// run starts the job. What does not matter is drawn.
func (s *shop) run(job string, args ...string) *process {
	s.t.Helper()
	all := []string{
		"run", "--json", "--store", s.storeOf(job), "--listen", "", "--lease", "1s",
		"--epoch", (time.Duration(20+s.rng.IntN(100)) * time.Millisecond).String(),
		"--shards", fmt.Sprint(1 + s.rng.IntN(3)),
	}
	return launch(s.t, s.env, job, append(all, args...)...)
}

// drain has a running job read all that there is, and stop. It leaves no transaction
// to time out.
func (s *shop) drain(p *process, job string) {
	s.t.Helper()
	stop := launch(s.t, s.env, job, "stop", "--drain", "--store", s.storeOf(job))
	if code := stop.wait(s.t); code != 0 {
		s.t.Fatalf("stop --drain: exit code %d\n%s", code, tail(stop.said()))
	}
	if code := p.wait(s.t); code != 0 {
		s.t.Fatalf("the drained job: exit code %d\n%s", code, tail(p.said()))
	}
	stopped := time.Now()
	s.decided()
	if took := time.Since(stopped); took > timeout {
		s.t.Errorf("a transaction was open for %v although the job had stopped", took)
	}
}

// read reads all that a topic holds for a consumer that reads committed.
func (s *shop) read(name string) []*kgo.Record { return s.readAll(s.topic(name)) }

// readAll is read for a topic by its whole name.
func (s *shop) readAll(topic string) []*kgo.Record {
	s.t.Helper()
	return s.cluster.Read(s.t, topic)
}

// query asks the database, and returns the rows, their columns apart by "|".
func (s *shop) query(sql string) []string {
	s.t.Helper()
	out, err := s.db.Run(s.t.Context(), "", sql)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	if out = strings.TrimSpace(out); out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// verify compares all that has come of the orders with what must.
func (s *shop) verify() *model {
	s.t.Helper()
	s.decided()
	orders := s.read("orders")
	if len(orders) != s.fed {
		s.t.Fatalf("%d orders stand in the topic, %d were written", len(orders), s.fed)
	}
	m := modelOf(s.t, orders)
	m.checkReceipts(s.t, s.read("receipts"))
	m.checkAccounts(s.t, s.read("accounts"))
	if s.db != nil {
		s.verifyReceipts("audit", m)
		want := map[string]string{}
		for user, a := range m.accounts {
			want[user] = fmt.Sprintf("%d|%d|%s", a.Orders, a.Cents, a.Last)
		}
		same(s.t, "table", s.table("accounts", "orders, cents, last"), want, func(a, b string) bool { return a == b })
	}
	return m
}

// verifyReceipts compares a table of receipts with the model: each stands there
// once.
func (s *shop) verifyReceipts(table string, m *model) {
	s.t.Helper()
	got, want := map[string]int{}, map[string]int{}
	for _, row := range s.query(fmt.Sprintf("select user_id, id, nth, cents from %s_%s", s.name, table)) {
		got[row]++
	}
	for _, rs := range m.receipts {
		for _, r := range rs {
			want[fmt.Sprintf("%s|%s|%d|%d", r.User, r.ID, r.Nth, r.Cents)]++
		}
	}
	same(s.t, table, got, want, func(a, b int) bool { return a == b })
}

// table reads a table whose key is the user.
func (s *shop) table(name, columns string) map[string]string {
	s.t.Helper()
	rows := map[string]string{}
	for _, row := range s.query(fmt.Sprintf("select user_id, %s from %s_%s", columns, s.name, name)) {
		user, rest, _ := strings.Cut(row, "|")
		rows[user] = rest
	}
	return rows
}

// decided waits until no transaction is open in the job's topics.
func (s *shop) decided() {
	s.t.Helper()
	s.cluster.Decided(s.t, s.topic("receipts"), s.topic("accounts"))
}
