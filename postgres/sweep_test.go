package postgres

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/cutproxy"
)

// sweep is a table that is reached through a proxy, position by position.
type sweep struct {
	t     *testing.T
	sink  connector.Sink
	make  func(position connector.Position) *connector.Delivery
	knife *cutproxy.Knife
	at    connector.Position
	cuts  map[connector.Position]string // where the delivery of a position was cut
}

// newSweep has a sink, which sink makes with further options, reached through a
// proxy.
func newSweep(t *testing.T, p *place, sink func(opts ...Option) connector.Sink, delivery func(connector.Position) *connector.Delivery) *sweep {
	knife := &cutproxy.Knife{}
	proxy := cutproxy.Start(t, cutproxy.Options{Protocol: cutproxy.Postgres, Fate: knife.Fate})
	dial := func(s *settings) {
		s.dial = func(connector.Opening) pgconn.DialFunc { return proxy.Dial }
	}
	return &sweep{t: t, sink: sink(p.options(dial)...), make: delivery, knife: knife, cuts: map[connector.Position]string{}}
}

// cut delivers the next position with a cut. After that the same target or a new
// one brings it through, and the other finds it done.
func (s *sweep) cut(target connector.Target, at cutproxy.Place, fresh bool) {
	s.t.Helper()
	s.at++
	s.knife.Arm(at)
	_, _, err := target.Deliver(s.t.Context(), s.make(s.at))
	m := s.knife.Disarm()
	if m == nil {
		s.t.Fatalf("position %d: %v does not come again: %v", s.at, at, err)
	}
	s.cuts[s.at] = fmt.Sprintf("%v, byte %d", m, at.After)
	other, err := s.sink.Open(s.t.Context(), opening(), ownKey())
	if err != nil {
		s.t.Fatal(err)
	}
	defer other.Close()
	first, second := target, other
	if fresh {
		first, second = other, target
	}
	deliverHard(s.t, first, s.make(s.at))
	for try := range 2 { // a connection that was cut behind the delivery is found out now
		verdict, found, err := second.Deliver(s.t.Context(), s.make(s.at))
		if err != nil && try == 0 {
			continue
		}
		if err != nil || verdict != connector.Skip {
			s.t.Fatalf("cut at %s: delivered again: verdict %v, record %+v, %v", s.cuts[s.at], verdict, found, err)
		}
		return
	}
}

// run sweeps: each byte of the messages of a delivery with SLUICE_TORTURE=1, else
// their edges.
func (s *sweep) run() {
	s.t.Helper()
	target := openTarget(s.t, s.sink)
	for range 2 {
		s.at++
		s.knife.Note()
		mustDeliver(s.t, target, s.make(s.at), connector.Apply)
	}
	messages := s.knife.Noted()
	places := cutproxy.Edges(messages)
	if os.Getenv("SLUICE_TORTURE") == "1" {
		places = cutproxy.Everywhere(messages)
	}
	var size [2]int64
	for _, m := range messages {
		size[m.Way] += m.Size()
	}
	s.t.Logf("%d cuts in %d messages, %d bytes to the server and %d from it", len(places), len(messages), size[cutproxy.ToServer], size[cutproxy.ToClient])
	for i, at := range places {
		s.cut(target, at, i%2 == 1)
		if s.t.Failed() {
			return
		}
		s.at++
		deliverHard(s.t, target, s.make(s.at))
	}
}

// expectEach compares what psql sees with a row for each position.
func (s *sweep) expectEach(p *place, sql string, row func(connector.Position) string) {
	s.t.Helper()
	var want []string
	for n := range s.at {
		want = append(want, row(n+1))
	}
	got := p.lines(sql)
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			s.t.Fatalf("%d rows, expected %d; row %d: got %q, want %q; that position was cut at %s", len(got), len(want), i,
				got[min(i, len(got)):min(i+2, len(got))], want[min(i, len(want)):min(i+2, len(want))], s.cuts[connector.Position(i+1)])
		}
	}
}

// TestCutsOfAnInsert cuts the connection under a delivery: whatever is lost on the
// way, trying again makes it one delivery, and each row stands there once.
func TestCutsOfAnInsert(t *testing.T) {
	p := newPlace(t)
	p.exec("create table @.swept (n bigint, note text)")
	type row struct {
		N    int64
		Note string
	}
	typed, err := Insert[row]("swept", p.options()...).Rows()
	if err != nil {
		t.Fatal(err)
	}
	s := newSweep(t, p, func(opts ...Option) connector.Sink { return Insert[row]("swept", opts...) }, func(position connector.Position) *connector.Delivery {
		b, err := typed.NewAppend()(nil, &row{int64(position), "once"})
		if err != nil {
			t.Fatal(err)
		}
		return delivery(position, nil, typed.Schema, connector.Row{Op: connector.Append, Row: b})
	})
	s.run()
	s.expectEach(p, "select n, note from @.swept order by n", func(n connector.Position) string { return fmt.Sprintf("%d|once", n) })
	p.expect("select position, id from @.sluice_delivery", fmt.Sprintf("%d|id", s.at))
}

// TestCutsOfAnUpsert is the same for a table, whose rows count how often they were
// written.
func TestCutsOfAnUpsert(t *testing.T) {
	p := newPlace(t)
	p.exec(`create table @.spend (user_id text primary key, orders bigint, note text);
		create table @.writes (orders bigint);
		create function @.count_writes() returns trigger language plpgsql as 'begin insert into ` + p.schema + `.writes values (new.orders); return new; end';
		create trigger t after insert or update on @.spend for each row when (new.user_id = 'a') execute function @.count_writes()`)
	s := newSweep(t, p, func(opts ...Option) connector.Sink {
		return Upsert("spend", func(_ string, s spend) spend { return s }, append(opts, Key("user_id"))...)
	}, func(position connector.Position) *connector.Delivery {
		return spends(t, position, "ab", int64(position), 0)
	})
	s.run()
	s.expectEach(p, "select orders from @.writes order by orders", func(n connector.Position) string { return fmt.Sprint(uint64(n)) })
	p.expect("select user_id, orders from @.spend order by 1", fmt.Sprintf("a|%d", s.at))
	p.expect("select position, id from @.sluice_delivery", fmt.Sprintf("%d|id", s.at))
}
