package golden

import (
	"fmt"
	"math/big"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/schema"
)

// reading is a record of the jobs' input.
type reading struct {
	Meter string
	Room  room
	Value int64
	Bad   bool
}

func (r reading) meter() string { return r.Meter }
func (r reading) room() room    { return r.Room }
func (r reading) parity() int64 { return r.Value % 2 }

type room struct {
	Floor int16
	Name  string
}

// everything has a field of each type that a state can have.
type everything struct {
	Bool     bool
	Int8     int8
	Int16    int16
	Int32    int32
	Int64    int64
	Uint8    uint8
	Uint16   uint16
	Uint32   uint32
	Uint64   uint64
	Float32  float32
	Float64  float64
	Text     string
	Mode     mode
	Bytes    []byte
	Fixed    [4]byte
	List     []room
	Pair     [2]int64
	Map      map[string]int64
	Numbers  map[int64]string
	Pointer  *string
	Time     time.Time
	Instant  schema.Instant
	Duration time.Duration
	Decimal  *big.Rat `avro:"Decimal,precision=20,scale=3"`
	Renamed  int64    `avro:"renamed,alias=former,default=5"`
}

type mode string

func (mode) Symbols() []string { return []string{"off", "on"} }

func (e *everything) add(r reading) {
	n := r.Value
	text := fmt.Sprint(n)
	*e = everything{
		Bool: n%2 == 0, Int8: int8(n), Int16: int16(n), Int32: int32(n), Int64: e.Int64 + n, Uint8: uint8(n), Uint16: uint16(n),
		Uint32: uint32(n), Uint64: uint64(n) << 60, Float32: float32(n) / 2, Float64: float64(n) / 4, Text: text, Mode: "on",
		Bytes: []byte(text), Fixed: [4]byte{1, 2, 3, byte(n)}, List: append(e.List, r.Room), Pair: [2]int64{n, -n},
		Map: map[string]int64{text: n, "all": e.Int64 + n}, Numbers: map[int64]string{n: text, -n: "-" + text}, Pointer: &text,
		Time: time.Unix(n, 1000).UTC(), Instant: schema.Instant(n), Duration: time.Duration(n) * time.Second,
		Decimal: big.NewRat(n, 8), Renamed: n,
	}
}

type total struct{ Readings, Sum int64 }

func (t *total) add(r reading) { t.Readings++; t.Sum += r.Value }

type row struct {
	Readings int64
	Note     *string
}

var (
	latest = sluice.NewState[string, everything]("latest")
	totals = sluice.NewState[room, total]("totals")
	byRoom = sluice.NewMapState[string, room, total]("by_room")
	values = sluice.NewListState[string, int64]("values")
	parity = sluice.NewState[int64, total]("parity")
)

// steps are what all versions of the job have in common.
func steps(job *sluice.Job) *sluice.Stream[reading] {
	readings := job.From("readings", file.JSONLines[reading]("in/golden.jsonl")).TryMap(func(r reading) (reading, error) {
		if r.Bad {
			return r, fmt.Errorf("a bad reading of %d", r.Value)
		}
		return r, nil
	})
	job.DeadLetter("dead", file.Append[sluice.DeadLetter]("out/dead"))
	byMeter := readings.KeyBy(reading.meter)
	byMeter.Fold(latest, (*everything).add)
	byMeter.Process(func(p *sluice.Setup[string, reading]) func(*sluice.Context[string, reading], reading) {
		m, l := p.Map(byRoom), p.List(values)
		return func(c *sluice.Context[string, reading], r reading) {
			m.Update(r.Room).add(r)
			l.Append(r.Value)
			c.Emit(r)
		}
	}).To("readings", file.Append[reading]("out/readings", file.AsCSV()))
	return readings
}

// version1 is the job at first. A build of it may call the function that gives the room
// otherwise, as one does in which it was renamed.
func version1(room func(reading) room) *sluice.Job {
	job := sluice.NewJob("golden")
	steps(job).KeyBy(room).Fold(totals, (*total).add).To("totals", file.Upsert("out/totals", totalRow))
	return job
}

func totalRow(_ room, t total) row { return row{Readings: t.Readings} }

func roomOf(r reading) room { return r.Room }

type mean struct {
	Readings, Sum int64
	Mean          float64
}

func (m *mean) add(r reading) {
	m.Readings++
	m.Sum += r.Value
	m.Mean = float64(m.Sum) / float64(m.Readings)
}

func totalToMean(t total) (mean, error) {
	return mean{t.Readings, t.Sum, float64(t.Sum) / float64(t.Readings)}, nil
}

// version2 has migrated a state, has a new one with a sink, and has dropped a sink.
func version2() *sluice.Job {
	job := sluice.NewJob("golden")
	readings := steps(job)
	readings.KeyBy(reading.room).Fold(sluice.NewState[room, mean]("totals").Migrate(sluice.Migrate(totalToMean)), (*mean).add)
	readings.KeyBy(reading.parity).Fold(parity, (*total).add).To("parity", file.Upsert("out/parity", asTotal))
	return job
}

func asTotal(_ int64, t total) total { return t }
