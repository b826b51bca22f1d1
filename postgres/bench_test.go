package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// benchRow is a row of common types.
type benchRow struct {
	Name   string
	Orders int64
	Amount float64
	At     time.Time
	VIP    bool
}

// benchRows is how many rows a delivery of the benchmark has. It is some hundred
// times an epoch's, so that what each delivery costs besides doesn't count.
const benchRows = 1_000_000

// BenchmarkUpsert delivers a table of 1,000,000 rows anew, and does the same
// copying and merging by hand, from bytes that are ready: what remains is what
// turning frozen rows into columns costs. It prints both rates and their ratio.
func BenchmarkUpsert(b *testing.B) {
	p := newPlace(b)
	s := Upsert("bench", func(_ string, r benchRow) benchRow { return r }, p.options(Key("k"), CreateTable(), StatementTimeout(10*time.Minute))...)
	rows, err := s.TableRows()
	if err != nil {
		b.Fatal(err)
	}
	k, appendRow := textKey(b), rows.NewAppend()
	frozen := make([]connector.Row, benchRows)
	byHand := bytes.NewBuffer([]byte(head))
	for i := range frozen {
		key := fmt.Sprintf("user %07d", i)
		r := benchRow{fmt.Sprintf("name %d", i%977), int64(i), float64(i) / 7, time.Unix(int64(i), 0), i%2 == 0}
		row, err := appendRow(nil, key, &r)
		if err != nil {
			b.Fatal(err)
		}
		frozen[i] = connector.Row{Op: connector.Put, Key: k.Append(nil, key), Row: row}
		writeByHand(byHand, key, &r)
	}
	byHand.WriteString(tail)
	target := openTarget(b, s)
	mustDeliver(b, target, delivery(1, k.Schema(), rows.Schema, frozen...), connector.Apply)

	var sink, hand time.Duration
	position := connector.Position(1)
	for b.Loop() {
		position++
		before := time.Now()
		mustDeliver(b, target, delivery(position, k.Schema(), rows.Schema, frozen...), connector.Apply)
		sink += time.Since(before)
		p.tidy()
		before = time.Now()
		p.mergeByHand(byHand.Bytes())
		hand += time.Since(before)
		p.tidy()
	}
	perSecond := func(d time.Duration) float64 { return float64(benchRows) * float64(b.N) / d.Seconds() }
	b.ReportMetric(perSecond(sink), "rows/s")
	b.ReportMetric(perSecond(hand), "by-hand-rows/s")
	b.ReportMetric(hand.Seconds()/sink.Seconds(), "ratio")
}

func writeByHand(b *bytes.Buffer, key string, r *benchRow) {
	field := func(bytes ...byte) {
		binary.Write(b, binary.BigEndian, uint32(len(bytes)))
		b.Write(bytes)
	}
	binary.Write(b, binary.BigEndian, uint16(6))
	field([]byte(key)...)
	field([]byte(r.Name)...)
	field(binary.BigEndian.AppendUint64(nil, uint64(r.Orders))...)
	field(binary.BigEndian.AppendUint64(nil, math.Float64bits(r.Amount))...)
	field(binary.BigEndian.AppendUint64(nil, uint64(r.At.UnixMicro()-946_684_800_000_000))...)
	if r.VIP {
		field(1)
	} else {
		field(0)
	}
}

// tidy brings the table back to what it was before a merge.
func (p *place) tidy() {
	for _, sql := range []string{"vacuum full @.bench", "analyze @.bench", "checkpoint"} {
		p.exec(sql)
	}
}

// mergeByHand does what somebody would write for this table alone.
func (p *place) mergeByHand(rows []byte) {
	p.exec("begin; create temporary table hand (k text, name text, orders bigint, amount double precision, at timestamptz, vip boolean) on commit drop")
	if _, err := p.conn.PgConn().CopyFrom(context.Background(), bytes.NewReader(rows), "copy hand from stdin with (format binary)"); err != nil {
		p.t.Fatal(err)
	}
	p.exec(`insert into @.bench (k, name, orders, amount, at, vip) select k, name, orders, amount, at, vip from hand
		on conflict (k) do update set name = excluded.name, orders = excluded.orders, amount = excluded.amount, at = excluded.at, vip = excluded.vip`)
	p.exec("commit")
}

// BenchmarkCheck measures what it costs to make a row and look whether its
// columns can take it.
func BenchmarkCheck(b *testing.B) {
	rows, err := Upsert("t", func(_ string, r benchRow) benchRow { return r }, Key("k")).TableRows()
	if err != nil {
		b.Fatal(err)
	}
	appendRow := rows.NewAppend()
	r := benchRow{"some name", 5, 1.5, time.Unix(1, 0), true}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = appendRow(dst[:0], "user 0000001", &r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColumns measures how fast frozen rows become columns.
func BenchmarkColumns(b *testing.B) {
	rows, err := Upsert("t", func(_ string, r benchRow) benchRow { return r }, Key("k")).TableRows()
	if err != nil {
		b.Fatal(err)
	}
	row, err := rows.NewAppend()(nil, "k", &benchRow{"some name", 5, 1.5, time.Unix(1, 0), true})
	if err != nil {
		b.Fatal(err)
	}
	var plan rowPlan
	for _, f := range rows.Schema.Fields() {
		e, err := newEncoder(f.Type, defaultType(f.Type))
		if err != nil {
			b.Fatal(err)
		}
		plan = append(plan, cell{column: f.Name, encode: e.encode})
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = plan.append(dst[:0], row); err != nil {
			b.Fatal(err)
		}
	}
}
