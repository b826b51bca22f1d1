package brokers

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
)

// poison are records that are wrong in some way, or look so.
var poison = []struct {
	name string
	make func(r *kgo.Record)
	bad  string // what is said of it; empty: nothing, it is an order
}{
	{"undecodable bytes", func(r *kgo.Record) { r.Value = []byte{0xff, 0x00, '{'} }, "orders"},
	{"half an object", func(r *kgo.Record) { r.Value = r.Value[:len(r.Value)/2] }, "orders"},
	{"an empty value", func(r *kgo.Record) { r.Value = []byte{} }, "orders"},
	{"a null value", func(r *kgo.Record) { r.Value = nil }, "orders"},
	{"a null key", func(r *kgo.Record) { r.Key = nil }, ""},
	{"an empty key", func(r *kgo.Record) { r.Key = []byte{} }, ""},
	{"a timestamp of -1", func(r *kgo.Record) { r.Timestamp = time.UnixMilli(-1) }, ""},
}

// feedPoison writes an order that something is done to, to the first partition.
func (s *shop) feedPoison(change func(r *kgo.Record)) {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(s.t, err)
	defer c.Close()
	s.fed++
	value, err := json.Marshal(order{fmt.Sprint("order-", s.fed), "poisoner", 7, false})
	must(s.t, err)
	r := &kgo.Record{Topic: s.topic("orders"), Partition: 0, Key: []byte("poisoner"), Value: value}
	change(r)
	must(s.t, c.ProduceSync(s.t.Context(), r).FirstErr())
}

// TestPoison has the job meet records that can't be decoded, and some that can.
// Without a sink for them the job stops at each, says which it is, and has done
// nothing with what stands behind it.
func TestPoison(t *testing.T) {
	t.Parallel()
	for _, p := range poison {
		disagreement(t, p.name, func(t *testing.T, s *shop) {
			s.feedPoison(p.make)
			if p.bad == "" {
				s.settle()
				s.verify()
				return
			}
			place := fmt.Sprintf("partition %s/0, offset %d", s.topic("orders"), s.end(0)-1)
			s.keeps(func() {
				s.refuses(s.run("pay"), badInput, p.bad, place)
				s.refuses(s.run("pay"), badInput, p.bad, place)
			})
		})
	}
}

// end is the offset behind a partition's last order.
func (s *shop) end(partition int32) int64 {
	s.t.Helper()
	ends, err := s.admin.ListEndOffsets(s.t.Context(), s.topic("orders"))
	must(s.t, err)
	o, ok := ends.Lookup(s.topic("orders"), partition)
	if !ok {
		s.t.Fatalf("partition %d has no end", partition)
	}
	return o.Offset
}

// letter is a record of the dead letters' topic.
type letter struct {
	Source, Partition string
	Offset            int64
	Error             string
	Bytes             []byte
}

// TestPoisonWithDeadLetters has a job take all of them, with a kill in the middle:
// each that is bad becomes a dead letter, once, and all others go through.
func TestPoisonWithDeadLetters(t *testing.T) {
	t.Parallel()
	s := newShop(t, broker(t).Addr(), database(t)).withEnv("PAY_DEAD=1")
	s.createTopic("dead")
	bad := map[int64][]byte{} // by offset
	poisonAll := func() {
		for _, p := range poison {
			s.feed(20)
			var value []byte
			s.feedPoison(func(r *kgo.Record) { p.make(r); value = r.Value })
			if p.bad != "" {
				bad[s.end(0)-1] = value
			}
		}
	}
	poisonAll()
	first := s.run("pay")
	first.must(t, "committed", 1)
	poisonAll()
	s.moment(300 * time.Millisecond)
	first.kill()
	second := s.run("pay")
	second.must(t, "opened", 1)
	poisonAll()
	s.drain(second, "pay")

	letters := map[int64]bool{}
	for _, r := range s.read("dead") {
		l := decode[letter](t, r.Value)
		value, ok := bad[l.Offset]
		if !ok || letters[l.Offset] || l.Source != "orders" || l.Partition != s.topic("orders")+"/0" || string(l.Bytes) != string(value) || l.Error == "" {
			t.Errorf("dead letter %+v, want %q", l, value)
		}
		letters[l.Offset] = true
	}
	if len(letters) != len(bad) {
		t.Errorf("%d dead letters, want %d", len(letters), len(bad))
	}
	var good []*kgo.Record
	for _, r := range s.read("orders") {
		if _, isBad := bad[r.Offset]; !isBad || r.Partition != 0 {
			good = append(good, r)
		}
	}
	if len(good)+len(bad) != s.fed {
		t.Fatalf("%d orders and %d that are none, of %d", len(good), len(bad), s.fed)
	}
	m := modelOf(t, good)
	m.checkReceipts(t, s.read("receipts"))
	m.checkAccounts(t, s.read("accounts"))
	s.verifyReceipts("audit", m)
}

// TestBrokerAway stops the broker under a job that has work, for a minute with
// SLUICE_TORTURE=1, else for 10 s: the job waits, says so in a few lines, takes no
// more memory, and goes on.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	away := 10 * time.Second
	if torture() {
		away = time.Minute
	}
	own := services.Kafka(t, services.KafkaOptions{})
	s := newShop(t, own.Addr(), database(t))
	p := s.run("pay")
	for range 10 { // it has the memory that it needs
		s.advance(p, 200)
	}
	lines := strings.Count(p.said(), "\n")
	must(t, own.Kill())
	s.eventually("it says that it waits", func() bool { return p.over() || strings.Contains(p.said(), "the source waits for it") })
	before := rss(t, p)
	<-time.After(away) // the absence has a length
	if p.over() {
		t.Fatalf("the job has ended:\n%s", tail(p.said()))
	}
	after := rss(t, p)
	said := strings.Count(p.said(), "\n") - lines
	t.Logf("%v away: %d lines; %d KiB before, %d KiB after", away, said, before>>10, after>>10)
	// The source, two sinks and the group tell it, at once and then ever more rarely.
	if most := 4 * 4; said > most {
		t.Errorf("%d lines in the log:\n%s", said, tail(p.said()))
	}
	if after > before+16<<20 {
		t.Errorf("waiting takes memory: %d bytes before, %d after", before, after)
	}
	must(t, own.Start())
	s.feed(200)
	s.eventually("it goes on", func() bool { return p.over() || len(s.read("receipts")) == s.fed })
	s.drain(p, "pay")
	s.verify()
}

// rss is the memory that a process holds, in bytes.
func rss(t *testing.T, p *process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("the memory of a process is not known here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			must(t, err)
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
