package brokers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka/embedded"
)

var (
	broker   = services.SharedKafka(services.KafkaOptions{})
	database = services.SharedPostgres(services.PostgresOptions{})
)

// torture tells whether the long tests are to run.
func torture() bool { return os.Getenv("SLUICE_TORTURE") == "1" }

// TestKills runs one history of a job that is killed again and again while its
// input grows, woken from the dead, and while its servers are killed. Then its
// topics and tables are what the input says.
func TestKills(t *testing.T) {
	t.Parallel()
	own := services.Kafka(t, services.KafkaOptions{})
	survive(t, own.Addr(), own, 8)
}

// TestKillsOnTheEmbeddedBroker is the same with the broker of package embedded,
// which is closed and started again.
func TestKillsOnTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	own := &embeddedBroker{folder: t.TempDir(), addr: "127.0.0.1:0"}
	must(t, own.Start())
	t.Cleanup(func() { must(t, own.Kill()) })
	survive(t, own.addr, own, 5)
}

// server is what goes away under a job, and comes back as it was.
type server interface {
	Kill() error
	Start() error
}

// embeddedBroker is a broker in this process, which ends in order.
type embeddedBroker struct {
	folder, addr string
	broker       *embedded.Broker
}

func (b *embeddedBroker) Kill() error { return b.broker.Close() }

func (b *embeddedBroker) Start() (err error) {
	if b.broker, err = embedded.Start(embedded.Options{Folder: b.folder, Addr: b.addr}); err == nil {
		b.addr = b.broker.Addr()
	}
	return err
}

// survive is a history of so many kills; of at least 100 with SLUICE_TORTURE=1.
func survive(t *testing.T, addr string, own server, kills int) {
	piece := 200
	if torture() {
		kills, piece = 120, 2_000
	}
	db := services.Postgres(t, services.PostgresOptions{}) // which is killed as well
	began := time.Now()
	s := newShop(t, addr, db)
	s.feed(piece)
	for n := 1; n <= kills; n++ {
		switch {
		case n%5 == 0:
			s.wakeZombie(piece)
		case n%4 == 0:
			s.killServers(own, piece)
		default:
			s.killOnce(piece)
		}
	}
	p := s.run("pay")
	p.must(t, "opened", 1)
	s.feed(piece)
	s.drain(p, "pay")
	s.verify()
	t.Logf("%d kills, %d records, %v", kills, s.fed, time.Since(began).Round(time.Second))
}

// killOnce kills a process at some moment: of its start, or of its work.
func (s *shop) killOnce(piece int) {
	s.t.Helper()
	p := s.run("pay")
	if s.rng.IntN(3) > 0 {
		for range 1 + s.rng.IntN(4) {
			s.advance(p, piece/2)
		}
		s.feed(piece)
	}
	s.moment(400 * time.Millisecond)
	p.kill()
}

// advance feeds a running job, which commits something of it.
func (s *shop) advance(p *process, orders int) {
	s.t.Helper()
	had := p.count("committed")
	s.feed(orders)
	p.must(s.t, "committed", had+1)
}

// moment lets some time pass, up to a bound: when something is killed is drawn.
func (s *shop) moment(most time.Duration) {
	<-time.After(time.Duration(s.rng.Int64N(int64(most))))
}

// wakeZombie stops a process for longer than its transactions may take, lets
// another take over, and wakes it: it must end by itself, having changed nothing.
func (s *shop) wakeZombie(piece int) {
	s.t.Helper()
	first := s.run("pay")
	s.advance(first, piece)
	s.feed(piece)
	s.moment(200 * time.Millisecond)
	first.signal(syscall.SIGSTOP)
	second := s.run("pay", "--takeover")
	s.advance(second, piece)
	s.advance(second, piece)
	if s.rng.IntN(2) == 0 {
		s.moment(4 * time.Second) // the transaction that was open may time out
	}
	first.signal(syscall.SIGCONT)
	s.feed(piece)
	if code := first.wait(s.t); code != 11 {
		s.t.Fatalf("the process that was woken: exit code %d, want 11\n%s", code, tail(first.said()))
	}
	s.moment(200 * time.Millisecond)
	second.kill()
}

// killServers kills Kafka or PostgreSQL under a job, which waits for it.
func (s *shop) killServers(own server, piece int) {
	s.t.Helper()
	p := s.run("pay")
	s.advance(p, piece)
	if s.rng.IntN(2) == 0 {
		must(s.t, own.Kill())
		s.moment(2 * time.Second)
		must(s.t, own.Start())
	} else {
		must(s.t, s.db.Kill())
		s.moment(2 * time.Second)
		must(s.t, s.db.Start())
	}
	s.goesOn(p, piece)
	if p.over() {
		s.t.Fatalf("the job has ended with a server:\n%s", tail(p.said()))
	}
	s.moment(300 * time.Millisecond)
	p.kill()
}

// goesOn feeds a job, and waits until it has committed more, or ended; one that does
// neither tells where it stands.
func (s *shop) goesOn(p *process, piece int) {
	s.t.Helper()
	seen := p.records() // before it can have committed what comes now
	s.feed(piece)
	for end := time.Now().Add(patience); p.records() == seen && !p.over(); s.moment(40 * time.Millisecond) {
		if time.Now().After(end) {
			p.trace(s.t)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChain runs two jobs, of which the second reads what the first writes, with
// kills in both: the end is exact across the two.
func TestChain(t *testing.T) {
	t.Parallel()
	kills, piece := 3, 200
	if torture() {
		kills, piece = 40, 2_000
	}
	s := newShop(t, broker(t).Addr(), database(t))
	for range kills {
		pay, bill := s.run("pay"), s.run("bill")
		bill.must(t, "opened", 1)
		s.advance(pay, piece)
		s.advance(pay, piece)
		s.moment(300 * time.Millisecond)
		for _, p := range []*process{pay, bill} {
			if s.rng.IntN(2) == 0 {
				p.kill()
			}
		}
		pay.kill()
		bill.kill()
	}
	pay := s.run("pay")
	pay.must(t, "opened", 1)
	s.drain(pay, "pay")
	bill := s.run("bill")
	bill.must(t, "opened", 1)
	s.drain(bill, "bill")
	m := s.verify()
	s.verifyReceipts("copy", m)
	want := map[string]string{}
	for user, rs := range m.receipts {
		last := rs[len(rs)-1]
		want[user] = fmt.Sprintf("%d|%d|0", last.Nth, last.Cents)
	}
	same(t, "bills", s.table("bills", "receipts, cents, gaps"), want, func(a, b string) bool { return a == b })
}

// TestRollingRestart restarts the job as an orchestrator does: a new copy stands
// by, the old one is told to stop, and killed if it hasn't.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	restarts, piece := 3, 100
	if torture() {
		restarts = 20
	}
	s := newShop(t, broker(t).Addr(), nil)
	old := s.run("pay")
	old.must(t, "opened", 1)
	for range restarts {
		s.feed(piece)
		next := s.run("pay")
		next.must(t, standsBy, 1)
		s.feed(piece)
		old.signal(syscall.SIGTERM)
		if code := old.wait(t); code != 0 && code != 10 {
			t.Fatalf("the old copy: exit code %d\n%s", code, tail(old.said()))
		}
		next.must(t, "opened", 1)
		old = next
	}
	s.feed(piece)
	s.drain(old, "pay")
	s.verify()
}

// standsBy is what a process says that stands by.
const standsBy = "standing by: another process runs the job; this one goes on when that is gone"

// TestToolsSeeIt looks at a job with Kafka's own tools: the group has no lag once
// the job has caught up, whether the sinks' transactions tell that or the owner.
func TestToolsSeeIt(t *testing.T) {
	t.Parallel()
	for _, sinks := range []string{"one", "all"} {
		t.Run(sinks+" of the sinks", func(t *testing.T) {
			s := newShop(t, broker(t).Addr(), nil)
			s.env = append(s.env, "PAY_SINKS="+sinks)
			s.feed(500)
			p := s.run("pay")
			p.must(t, "committed", 1)
			s.feed(500)
			s.eventually("the group has no lag", func() bool { return s.lag() == 0 })
			p.signal(syscall.SIGTERM)
			if code := p.wait(t); code != 0 {
				t.Fatalf("exit code %d\n%s", code, tail(p.said()))
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := broker(t).Tool(ctx, services.GroupsTool, "--describe", "--group", s.name)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for line := range strings.Lines(out) {
				if f := strings.Fields(line); len(f) > 5 && f[1] == s.topic("orders") {
					if rows++; f[3] != f[4] || f[5] != "0" {
						t.Errorf("the tool tells a lag: %s", line)
					}
				}
			}
			if rows != partitions {
				t.Errorf("the tool tells of %d partitions, want %d:\n%s", rows, partitions, out)
			}
			if got := len(s.read("receipts")); got != 1000 {
				t.Errorf("a consumer sees %d receipts, want 1000", got)
			}
		})
	}
}

// lag is that of the job's group, or -1 while it has not told every partition's.
func (s *shop) lag() int64 {
	lags, err := s.admin.Lag(s.t.Context(), s.name)
	if err != nil {
		return -1
	}
	l := lags[s.name]
	if l.Error() != nil || len(l.Lag[s.topic("orders")]) != partitions {
		return -1
	}
	for _, part := range l.Lag[s.topic("orders")] {
		if part.Commit.At < 0 {
			return -1
		}
	}
	return l.Lag.Total()
}
