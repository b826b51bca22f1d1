package brokers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The exit codes of docs/operations.md.
const (
	sinkDisagrees = 15
	badInput      = 16
	away          = 1 // what may pass
)

// refuses expects that a process ends by itself, with a code, and with one line
// that says certain things.
func (s *shop) refuses(p *process, code int, says ...string) {
	s.t.Helper()
	if got := p.wait(s.t); got != code {
		s.t.Fatalf("exit code %d, want %d\n%s", got, code, tail(p.said()))
	}
	text := p.last().Error
	for _, want := range says {
		if !strings.Contains(text, want) {
			s.t.Errorf("it doesn't say %q: %s", want, text)
		}
	}
	if strings.Contains(text, "\n") {
		s.t.Errorf("it says more than a line: %q", text)
	}
	s.t.Log(text)
}

// last is the last event.
func (p *process) last() (e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, found := range p.events {
		if found.Event != "" {
			e = found
		}
	}
	return e
}

// contents is all that stands in the topics and tables, in some order that is the
// same each time.
func (s *shop) contents() string {
	s.t.Helper()
	s.decided()
	var text strings.Builder
	for _, topic := range []string{"receipts", "accounts"} {
		for _, r := range s.read(topic) {
			fmt.Fprintf(&text, "%s/%d@%d: %s=%s\n", topic, r.Partition, r.Offset, r.Key, r.Value)
		}
	}
	if s.db != nil {
		for _, table := range []string{"audit", "accounts"} {
			fmt.Fprintln(&text, table, s.query(fmt.Sprintf("select * from %s_%s order by 1, 2, 3, 4", s.name, table)))
		}
	}
	return text.String()
}

// keeps sees that something changes nothing in the topics and tables.
func (s *shop) keeps(what func()) {
	s.t.Helper()
	before := s.contents()
	what()
	if after := s.contents(); after != before {
		s.t.Errorf("the topics and tables changed:\n%s\nbefore:\n%s", tail(after), tail(before))
	}
}

// settle runs the job over what there is, and stops it.
func (s *shop) settle() {
	s.t.Helper()
	p := s.run("pay")
	p.must(s.t, "opened", 1)
	s.drain(p, "pay")
}

// withEnv are the same job's, with further settings.
func (s *shop) withEnv(settings ...string) *shop {
	other := *s
	other.env = append(append([]string{}, s.env...), settings...)
	return &other
}

// disagreement is a test of a job that has come to an end once.
func disagreement(t *testing.T, name string, test func(t *testing.T, s *shop), env ...string) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := newShop(t, broker(t).Addr(), database(t)).withEnv(env...)
		s.feed(200)
		s.settle()
		test(t, s)
	})
}

// only chooses one kind of sinks: each of the two has to find out by itself.
var only = map[string][]string{
	"topics": {"SLUICE_POSTGRES="},
	"tables": {"PAY_SINKS=database"},
}

// TestTwoJobsOfOneName starts a job on an empty store while its topics and tables
// are another's: one of the same name, or the same before its store was lost.
func TestTwoJobsOfOneName(t *testing.T) {
	t.Parallel()
	for kind, env := range only {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, broker(t).Addr(), database(t)).withEnv(env...)
			first := s.run("pay")
			s.advance(first, 200)
			s.eventually("the first job is told of", func() bool { return s.lag() == 0 })
			other := s.withEnv()
			other.store = filepath.Join(t.TempDir(), "store")
			// The group tells that there are two, and without one the sink does.
			other.refuses(other.run("pay"), badInput, "group "+s.name, "two jobs of one name")
			other = other.withEnv("PAY_GROUP=none")
			other.refuses(other.run("pay"), sinkDisagrees, "two jobs")
			other.refuses(other.run("pay"), sinkDisagrees, "two jobs") // also at the next start
			s.feed(100)
			s.drain(first, "pay")
			other.refuses(other.run("pay"), sinkDisagrees, "two jobs")
			s.settle()
			s.verifyOnly(kind)
		})
	}
}

// TestTwoNewJobsOfOneName starts two at once, each on an empty store: one of them
// at the most writes.
func TestTwoNewJobsOfOneName(t *testing.T) {
	t.Parallel()
	for kind, env := range only {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for range rounds() {
				s := newShop(t, broker(t).Addr(), database(t)).withEnv(env...)
				s.feed(200)
				other := s.withEnv("PAY_GROUP=none")
				other.store = filepath.Join(t.TempDir(), "store")
				jobs := []*process{s.run("pay"), other.run("pay")}
				s.eventually("one of two gives up", func() bool { return jobs[0].over() || jobs[1].over() })
				shops := []*shop{s, other}
				for i, p := range jobs {
					if !p.over() {
						shops[i].drain(p, "pay")
					} else if code := p.wait(t); code != sinkDisagrees && code != badInput {
						t.Fatalf("exit code %d\n%s", code, tail(p.said()))
					}
				}
				s.verifyOnly(kind)
			}
		})
	}
}

// rounds is how often what is a matter of luck is tried.
func rounds() int {
	if torture() {
		return 20
	}
	return 2
}

// verifyOnly is verify for a job with one kind of sinks.
func (s *shop) verifyOnly(kind string) {
	s.t.Helper()
	m := modelOf(s.t, s.read("orders"))
	if kind == "topics" {
		m.checkReceipts(s.t, s.read("receipts"))
		m.checkAccounts(s.t, s.read("accounts"))
		return
	}
	s.verifyReceipts("audit", m)
}

// TestOlderStore has a store, or a database, go back to an older copy: what stands
// in the other is ahead.
func TestOlderStore(t *testing.T) {
	t.Parallel()
	for kind, env := range only {
		disagreement(t, "an older store, "+kind, func(t *testing.T, s *shop) {
			copied := filepath.Join(t.TempDir(), "copy")
			must(t, os.CopyFS(copied, os.DirFS(s.store)))
			for range 3 {
				s.feed(100)
				s.settle()
			}
			s.store = copied
			s.keeps(func() {
				s.refuses(s.run("pay"), sinkDisagrees, "the log goes up to position")
				s.refuses(s.run("pay"), sinkDisagrees)
			})
		}, env...)
	}
	disagreement(t, "an older store that has grown beyond its sinks", func(t *testing.T, s *shop) {
		copied := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(copied, os.DirFS(s.store)))
		for range 3 {
			s.feed(100)
			s.settle()
		}
		s.store = copied
		s.keeps(func() {
			release := s.hold(fmt.Sprintf("select 1 from sluice_delivery where job = '%s' for update", s.name))
			p := s.run("pay")
			for range 6 { // the positions that the sinks have are this log's as well by now
				s.advance(p, 50)
			}
			release()
			s.refuses(p, sinkDisagrees, "in the log it is manifest")
			s.refuses(s.run("pay"), sinkDisagrees, "in the log it is manifest")
		})
	}, only["tables"]...)
	disagreement(t, "an older database", func(t *testing.T, s *shop) {
		where := fmt.Sprintf(" where job = '%s'", s.name)
		s.query(fmt.Sprintf(`create table %[1]s_old_audit as select * from %[1]s_audit;
			create table %[1]s_old_accounts as select * from %[1]s_accounts;
			create table %[1]s_old_records as select * from sluice_delivery`+where, s.name))
		s.feed(200)
		s.settle()
		s.query(fmt.Sprintf(`delete from %[1]s_audit; insert into %[1]s_audit select * from %[1]s_old_audit;
			delete from %[1]s_accounts; insert into %[1]s_accounts select * from %[1]s_old_accounts;
			delete from sluice_delivery`+where+`; insert into sluice_delivery select * from %[1]s_old_records`, s.name))
		s.feed(100)
		s.keeps(func() { s.refuses(s.run("pay"), sinkDisagrees, "the log says that position") })
	}, only["tables"]...)
}

// progress is the job's newest record of a sink, as it stands in the progress
// topic, with its key.
func (s *shop) progress(sink string) (key []byte, value map[string]any) {
	s.t.Helper()
	for _, r := range s.readAll(s.name + ".sluice") {
		var k struct{ Sink string }
		must(s.t, json.Unmarshal(r.Key, &k))
		if k.Sink == sink {
			key, value = r.Key, nil
			if r.Value != nil {
				must(s.t, json.Unmarshal(r.Value, &value))
			}
		}
	}
	if key == nil {
		s.t.Fatalf("sink %s has no progress", sink)
	}
	return key, value
}

// setProgress writes a record by hand; nil is a tombstone.
func (s *shop) setProgress(key []byte, value map[string]any) {
	s.t.Helper()
	r := &kgo.Record{Topic: s.name + ".sluice", Key: key}
	if value != nil {
		var err error
		r.Value, err = json.Marshal(value)
		must(s.t, err)
	}
	must(s.t, s.client.ProduceSync(s.t.Context(), r).FirstErr())
}

// TestRecordsByHand edits sinks' records while the job is stopped.
func TestRecordsByHand(t *testing.T) {
	t.Parallel()
	for _, edit := range []struct {
		name   string
		change func(value map[string]any) map[string]any
		sql    string
		says   string
	}{
		{"ahead", func(v map[string]any) map[string]any { v["position"] = v["position"].(float64) + 1000; return v }, "update sluice_delivery set position = position + 1000", "the log goes up to position"},
		{"behind", func(v map[string]any) map[string]any { v["position"] = v["position"].(float64) - 1; return v }, "update sluice_delivery set position = position - 1", "was delivered"},
		{"another's", func(v map[string]any) map[string]any { v["id"] = "somebody"; return v }, "update sluice_delivery set id = 'somebody'", "the sink's delivery record is somebody"},
		{"gone", func(map[string]any) map[string]any { return nil }, "delete from sluice_delivery", "the sink has no delivery record"},
		{"damaged", func(v map[string]any) map[string]any { v["format"] = 77; return v }, "update sluice_delivery set format = 77", "format 77"},
	} {
		disagreement(t, edit.name, func(t *testing.T, s *shop) {
			s.feed(100) // without anything to deliver nobody looks
			key, value := s.progress("receipts")
			s.setProgress(key, edit.change(maps.Clone(value)))
			s.topicsKeep(func() { s.refuses(s.run("pay"), sinkDisagrees, "sink receipts", edit.says) })
			s.setProgress(key, value)
			s.settle() // what was put right goes on

			where := fmt.Sprintf(" where job = '%s' and sink = 'audit'", s.name)
			s.query("create table " + s.name + "_kept as select * from sluice_delivery" + where)
			s.query(edit.sql + where)
			s.feed(100)
			s.refuses(s.run("pay"), sinkDisagrees, "sink audit", edit.says)
			s.query("delete from sluice_delivery" + where + "; insert into sluice_delivery select * from " + s.name + "_kept")
			s.settle()
			s.verify()
		})
	}
}

// topicsKeep sees that what a topic's sink refuses changes nothing there.
func (s *shop) topicsKeep(what func()) {
	s.t.Helper()
	s.decided()
	before := len(s.read("receipts"))
	what()
	s.decided()
	if after := len(s.read("receipts")); after != before {
		s.t.Errorf("%d receipts stand there, %d did before", after, before)
	}
}

func (s *shop) deleteTopic(name string) {
	s.t.Helper()
	_, err := s.admin.DeleteTopic(s.t.Context(), name)
	must(s.t, err)
	s.eventually("topic "+name+" is gone", func() bool {
		found, err := s.admin.ListTopics(s.t.Context(), name)
		return err == nil && !found.Has(name)
	})
}

// TestProgressTopicDeleted deletes what tells what was delivered: nothing is
// delivered any more.
func TestProgressTopicDeleted(t *testing.T) {
	t.Parallel()
	disagreement(t, "while stopped", func(t *testing.T, s *shop) {
		s.deleteTopic(s.name + ".sluice")
		s.feed(100)
		s.topicsKeep(func() { s.refuses(s.run("pay"), sinkDisagrees, s.name+".sluice", "isn't there") })
		s.topicsKeep(func() { s.refuses(s.run("pay"), sinkDisagrees, s.name+".sluice", "isn't there") })
	})
	disagreement(t, "while running", func(t *testing.T, s *shop) {
		p := s.run("pay")
		s.advance(p, 100)
		s.eventually("all is delivered", func() bool { return len(s.read("receipts")) == s.fed })
		s.deleteTopic(s.name + ".sluice")
		s.topicsKeep(func() {
			s.feed(100)
			s.refuses(p, sinkDisagrees)
			s.refuses(s.run("pay"), sinkDisagrees, s.name+".sluice", "isn't there")
		})
	})
}

// TestInputMadeAnew deletes the input's topic and makes another of its name.
func TestInputMadeAnew(t *testing.T) {
	t.Parallel()
	anew := func(s *shop) {
		s.deleteTopic(s.topic("orders"))
		s.createTopic("orders")
		client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka)) // one that doesn't know the old
		must(s.t, err)
		s.t.Cleanup(client.Close)
		s.client = client
		s.feed(500)
	}
	disagreement(t, "while stopped", func(t *testing.T, s *shop) {
		s.keeps(func() {
			anew(s)
			s.refuses(s.run("pay"), badInput, s.topic("orders"), "has been deleted and made anew")
		})
	})
	disagreement(t, "while running", func(t *testing.T, s *shop) {
		p := s.run("pay")
		p.must(t, "opened", 1)
		s.keeps(func() {
			anew(s)
			s.refuses(p, badInput, s.topic("orders")) // it may look when there is neither
			s.refuses(s.run("pay"), badInput, s.topic("orders"), "has been deleted and made anew")
		})
	})
}

// TestRecordsDeleted removes records of the input while the job is stopped: those
// that it has read are no loss, the others are told.
func TestRecordsDeleted(t *testing.T) {
	t.Parallel()
	disagreement(t, "that were read", func(t *testing.T, s *shop) {
		s.deleteRecords(0)
		s.feed(100)
		s.settle()
		if got := len(s.read("receipts")); got != s.fed {
			t.Errorf("%d receipts of %d orders", got, s.fed)
		}
		after := map[string]int{}
		for _, r := range s.read("receipts") {
			v := decode[receipt](t, r.Value)
			if after[v.User]++; int64(after[v.User]) != v.Nth {
				t.Fatalf("receipt %+v comes as number %d", v, after[v.User])
			}
		}
	})
	disagreement(t, "that were not read", func(t *testing.T, s *shop) {
		s.feed(400)
		s.deleteRecords(1)
		s.keeps(func() {
			s.refuses(s.run("pay"), badInput, "was removed before it was read", "nothing was skipped")
			s.refuses(s.run("pay"), badInput, "was removed before it was read")
		})
	})
}

// deleteRecords removes all orders but the newest few of each partition.
func (s *shop) deleteRecords(keep int64) {
	s.t.Helper()
	ends, err := s.admin.ListEndOffsets(s.t.Context(), s.topic("orders"))
	must(s.t, err)
	to := kadm.Offsets{}
	ends.Each(func(o kadm.ListedOffset) { to.AddOffset(o.Topic, o.Partition, o.Offset-keep, -1) })
	answers, err := s.admin.DeleteRecords(s.t.Context(), to)
	must(s.t, err)
	must(s.t, answers.Error())
}

// TestPartitionAdded adds a partition to the input while the job runs.
func TestPartitionAdded(t *testing.T) {
	t.Parallel()
	s := newShop(t, broker(t).Addr(), nil)
	p := s.run("pay")
	s.advance(p, 200)
	answers, err := s.admin.UpdatePartitions(t.Context(), partitions+1, s.topic("orders"))
	must(t, err)
	must(t, answers.Error())
	s.eventually("the partition is there", func() bool { return s.known("orders") == partitions+1 })
	// Users of its own, so that each user's orders keep their order.
	var records []*kgo.Record
	for i := range 100 {
		s.fed++
		value, err := json.Marshal(order{fmt.Sprint("order-", s.fed), fmt.Sprint("late-", i%10), 5, false})
		must(t, err)
		records = append(records, &kgo.Record{Topic: s.topic("orders"), Partition: partitions, Key: fmt.Append(nil, "late-", i%10), Value: value})
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	t.Cleanup(client.Close)
	must(t, client.ProduceSync(t.Context(), records...).FirstErr())
	s.eventually("the new partition is read", func() bool { return p.over() || p.records() == int64(s.fed) })
	s.drain(p, "pay")
	s.verify()
}
