package changes

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// event is a record of the job's input.
type event struct {
	User, Shop string
	Number     int32
	Cents      int64
	Note       string
}

func (e event) user() string { return e.User }
func (e event) shop() string { return e.Shop }

// Sum is the state that most changes are made to: its fields come in pieces, so
// that one of them can be another.
type Sum struct {
	Core
	Sizes
	Last
	Standing
	Tags
	Shops
	Maybe
}

func (s *Sum) add(e event) {
	each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
}

// each adds an event to each piece.
func each(e event, pieces ...interface{ add(event) }) {
	for _, p := range pieces {
		p.add(e)
	}
}

type Core struct{ Orders, Cents int64 }

func (p *Core) add(e event) { p.Orders++; p.Cents += e.Cents }

type Sizes struct {
	Small int32
	Part  float32
}

func (p *Sizes) add(event) { p.Small++; p.Part += 0.5 }

type Last struct{ Note string }

func (p *Last) add(e event) { p.Note = e.Note }

type level string

func (level) Symbols() []string { return []string{"low", "high"} }

type Standing struct{ Level level }

func (p *Standing) add(e event) {
	p.Level = "low"
	if e.Cents > 5 {
		p.Level = "high"
	}
}

type Tag struct {
	Name  string
	Cents int64
}

type Tags struct{ Tags []Tag }

func (p *Tags) add(e event) { p.Tags = append(p.Tags, Tag{e.Note, e.Cents}) }

type Part struct{ Cents int64 }

type Shops struct{ Shops map[string]Part }

func (p *Shops) add(e event) {
	if p.Shops == nil {
		p.Shops = map[string]Part{}
	}
	p.Shops[e.Shop] = Part{p.Shops[e.Shop].Cents + e.Cents}
}

type Maybe struct{ Maybe *int64 }

func (p *Maybe) add(e event) { p.Maybe = &e.Cents }

// count is what the small states hold.
type count struct{ N int64 }

func (c *count) add(event)        { c.N++ }
func (c *count) addCents(e event) { c.N += e.Cents }

// row is a row of the sink.
type row struct {
	Orders int64
	Last   *string
}

func rowOf(_ string, c count) row { return row{Orders: c.N} }

// parts are what a job is made of, so that one of them can be another.
type parts struct {
	events func(job *sluice.Job) *sluice.Stream[event]
	sum    func(k *sluice.Keyed[string, event])
	orders func(k *sluice.Keyed[string, event]) // with a sink
	cents  func(k *sluice.Keyed[string, event])
	shops  func(s *sluice.Stream[event])
	visits func(k *sluice.Keyed[string, event])
	more   func(job *sluice.Job, s *sluice.Stream[event])
	byUser func(s *sluice.Stream[event]) *sluice.Keyed[string, event]
}

// job is the job with some of its parts changed.
func job(change func(p *parts)) *sluice.Job {
	p := parts{
		events: func(job *sluice.Job) *sluice.Stream[event] {
			return job.From("events", file.JSONLines[event]("in/*.jsonl"))
		},
		byUser: func(s *sluice.Stream[event]) *sluice.Keyed[string, event] { return s.KeyBy(event.user) },
		sum:    folded(sluice.NewState[string, Sum]("sum"), (*Sum).add),
		orders: func(k *sluice.Keyed[string, event]) {
			k.Fold(sluice.NewState[string, count]("orders"), (*count).add).To("orders", file.Upsert("out/orders", rowOf))
		},
		cents: folded(sluice.NewState[string, count]("cents"), (*count).addCents),
		shops: func(s *sluice.Stream[event]) {
			s.KeyBy(event.shop).Fold(sluice.NewState[string, count]("shops"), (*count).add)
		},
		visits: visiting(sluice.NewMapState[string, string, count]("by_shop"), sluice.NewListState[string, Part]("visits")),
		more:   func(*sluice.Job, *sluice.Stream[event]) {},
	}
	change(&p)
	job := sluice.NewJob("changes")
	events := p.events(job)
	keyed := p.byUser(events)
	for _, state := range []func(*sluice.Keyed[string, event]){p.sum, p.orders, p.cents, p.visits} {
		if state != nil {
			state(keyed)
		}
	}
	if p.shops != nil {
		p.shops(events)
	}
	p.more(job, events)
	return job
}

func folded[S any](state sluice.State[string, S], add func(*S, event)) func(*sluice.Keyed[string, event]) {
	return func(k *sluice.Keyed[string, event]) { k.Fold(state, add) }
}

// visiting keeps a map and a list.
func visiting(byShop sluice.MapState[string, string, count], visits sluice.ListState[string, Part]) func(*sluice.Keyed[string, event]) {
	return func(k *sluice.Keyed[string, event]) {
		k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
			m, l := p.Map(byShop), p.List(visits)
			return func(_ *sluice.Context[string, string], e event) {
				m.Update(e.Shop).N++
				l.Append(Part{e.Cents})
			}
		}).Discard()
	}
}
