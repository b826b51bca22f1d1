package brokers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
)

// joins has a consumer join the job's group, and returns what makes it leave.
func (s *shop) joins() (leave func()) {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.ConsumerGroup(s.name), kgo.ConsumeTopics(s.topic("orders")), kgo.DisableAutoCommit(),
		kgo.ClientID("intruder"))
	must(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	polling := make(chan struct{})
	go func() {
		defer close(polling)
		for ctx.Err() == nil {
			c.PollFetches(ctx)
		}
	}()
	left := false
	leave = func() {
		if !left {
			left = true
			cancel()
			<-polling
			c.Close()
		}
	}
	s.t.Cleanup(leave)
	s.eventually("the consumer is in the group", func() bool {
		described, err := s.admin.DescribeGroups(s.t.Context(), s.name)
		return err == nil && len(described[s.name].Members) == 1
	})
	return leave
}

// TestSecondConsumer has somebody consume in the job's group.
func TestSecondConsumer(t *testing.T) {
	t.Parallel()
	disagreement(t, "at the start", func(t *testing.T, s *shop) {
		leave := s.joins()
		s.feed(100)
		s.keeps(func() { s.refuses(s.run("pay"), away, "group "+s.name+" is in use", "intruder") })
		leave()
		s.eventually("the group is empty", func() bool {
			described, err := s.admin.DescribeGroups(s.t.Context(), s.name)
			return err == nil && len(described[s.name].Members) == 0
		})
		s.settle()
		s.verify()
	})
	for _, sinks := range []string{"one", "all"} {
		t.Run("while it runs, "+sinks+" of the sinks", func(t *testing.T) {
			t.Parallel()
			s := newShop(t, broker(t).Addr(), nil).withEnv("PAY_SINKS=" + sinks)
			p := s.run("pay")
			s.advance(p, 100)
			s.eventually("all is delivered", func() bool { return s.lag() == 0 })
			leave := s.joins()
			s.feed(100)
			if sinks == "all" { // a transaction may tell the offsets nevertheless, and the owner may not
				s.eventually("it is told", func() bool { return p.over() || strings.Contains(p.said(), "has members of its own") })
			}
			s.eventually("the job goes on", func() bool { return p.over() || len(s.read("receipts")) == s.fed })
			leave()
			s.feed(10)
			s.eventually("the group is told again", func() bool { return p.over() || s.lag() == 0 })
			s.drain(p, "pay")
			if got := len(s.read("receipts")); got != s.fed {
				t.Errorf("%d receipts of %d orders", got, s.fed)
			}
		})
	}
}

// TestOffsetsNeverRunAhead watches the group's offsets while the job is killed and
// started again and a sink lags behind: nothing is told as read that is not in
// every topic and table.
func TestOffsetsNeverRunAhead(t *testing.T) {
	t.Parallel()
	kills := 3
	if torture() {
		kills = 40
	}
	for _, sinks := range []string{"one", "all"} {
		t.Run(sinks+" of the sinks", func(t *testing.T) {
			t.Parallel()
			s := newShop(t, broker(t).Addr(), database(t)).withEnv("PAY_SINKS=" + sinks)
			looks := 0
			for range kills {
				p := s.run("pay")
				s.advance(p, 200)
				held := s.holdTable()
				for range 5 {
					s.feed(40)
					s.notAhead(sinks)
					looks++
					s.moment(100 * time.Millisecond)
				}
				if s.rng.IntN(2) == 0 {
					p.kill()
					s.notAhead(sinks)
				}
				held()
				for range 5 {
					s.notAhead(sinks)
					looks++
				}
				p.kill()
				s.notAhead(sinks)
			}
			p := s.run("pay")
			p.must(t, "opened", 1)
			s.eventually("the group has no lag", func() bool { s.notAhead(sinks); return p.over() || s.lag() == 0 })
			s.drain(p, "pay")
			s.decided()
			m := modelOf(t, s.read("orders"))
			m.checkReceipts(t, s.read("receipts"))
			if sinks == "all" {
				s.verify()
			}
			t.Logf("%d looks, and more at the end", looks)
		})
	}
}

// holdTable locks the table audit, so that its sink lags behind.
func (s *shop) holdTable() (release func()) {
	s.t.Helper()
	return s.hold(fmt.Sprintf("lock table %s_audit in exclusive mode", s.name))
}

// hold keeps a transaction open that has done something, until it is released.
func (s *shop) hold(statement string) (release func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	mark := services.Unique("hold")
	held := s.db.ClientCommand(ctx, "-X", "-q", "-c", fmt.Sprintf("begin; %s; set application_name = '%s'; select pg_sleep(60)", statement, mark))
	must(s.t, held.Start())
	end := sync.OnceFunc(func() {
		cancel()
		_ = held.Wait()
	})
	s.t.Cleanup(end)
	s.eventually("it is held", func() bool {
		return s.query(fmt.Sprintf("select count(*) from pg_stat_activity where application_name = '%s'", mark))[0] == "1"
	})
	return func() {
		end()
		s.query(fmt.Sprintf("select pg_terminate_backend(pid) from pg_stat_activity where application_name = '%s'", mark))
	}
}

// notAhead compares the group's offsets with what the sinks hold. The offsets are
// asked for first, so that a sink can only hold more. What it doesn't show yet may
// be confirmed all the same: then it does once no transaction is open.
func (s *shop) notAhead(sinks string) {
	s.t.Helper()
	told, err := s.admin.FetchOffsets(s.t.Context(), s.name)
	if err != nil {
		return // a broker that has just no answer tells nothing
	}
	if len(s.ahead(told, sinks)) == 0 {
		return
	}
	s.decided()
	for _, fault := range s.ahead(told, sinks) {
		s.t.Error(fault)
	}
}

// ahead are the first few orders that a group was told of and a sink lacks.
func (s *shop) ahead(told kadm.OffsetResponses, sinks string) (faults []string) {
	s.t.Helper()
	// An order's id is its receipt's.
	held := []map[string]bool{{}}
	for _, r := range s.read("receipts") {
		held[0][decode[receipt](s.t, r.Value).ID] = true
	}
	if sinks == "all" {
		audit := map[string]bool{}
		for _, id := range s.query(fmt.Sprintf("select id from %s_audit", s.name)) {
			audit[id] = true
		}
		held = append(held, audit)
	}
	const most = 5
	for _, r := range s.read("orders") {
		at, ok := told.Lookup(r.Topic, r.Partition)
		if !ok || r.Offset >= at.At {
			continue
		}
		id := decode[order](s.t, r.Value).ID
		for i, has := range held {
			if !has[id] && len(faults) < most {
				faults = append(faults, fmt.Sprintf("the group was told offset %d of partition %d, and sink %d doesn't have %s of offset %d", at.At, r.Partition, i, id, r.Offset))
			}
		}
	}
	return faults
}
