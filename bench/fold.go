package main

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/store"
)

// purchase is a record that has been decoded.
type purchase struct {
	ID    int64
	User  string
	Cents int64
	Items int32
	At    int64
}

func (p purchase) paid() bool { return p.Cents > 0 }

func (p purchase) payment() payment { return payment{p.User, p.Cents} }

// payment is what the job keeps of a purchase.
type payment struct {
	User  string
	Cents int64
}

func (p payment) user() string { return p.User }

// spend is the state of the jobs that are measured.
type spend struct{ Orders, Cents int64 }

func (s *spend) add(p payment) {
	s.Orders++
	s.Cents += p.Cents
}

// purchases are 2^22 records whose keys each have bytes of their own.
const purchases = 1 << 22

func makePurchases(distribution string) ([]purchase, error) {
	draw, err := drawer(distribution, allKeys)
	if err != nil {
		return nil, err
	}
	r, out := newRandom(0), make([]purchase, purchases)
	for i := range out {
		k := draw(r)
		if i < allKeys {
			k = i // each key at least once
		}
		out[i] = purchase{ID: int64(i), User: userName(k), Cents: int64(r.IntN(10_000)) - 500, Items: int32(r.IntN(9)), At: int64(i)}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// rounds are the numbers of times that the records are gone through: what the
// longer run takes more than the shorter is what its further records take,
// without the start, the one epoch's end and the growing of the maps.
func rounds(s setting) (short, long int) {
	if s.Quick {
		return 1, 3
	}
	return 1, 9
}

func foldJob(t task) (sample, error) {
	return perRecord(t, func(records []purchase, times int) error {
		source := numbers[purchase]{count: int64(times * len(records)), partitions: 4, decoder: func() func(*connector.Batch, int, *purchase) error {
			return func(b *connector.Batch, i int, v *purchase) error {
				*v = records[b.Records[i].Offset&(purchases-1)]
				return nil
			}
		}}
		job := sluice.NewJob("fold")
		job.From("purchases", source).
			Filter(purchase.paid).
			Map(purchase.payment).
			KeyBy(payment.user).
			Fold(sluice.NewState[string, spend]("spend"), (*spend).add)
		return job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Epoch: time.Hour, Log: quiet()})
	})
}

// quiet is a logger for jobs that have nothing to say here.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// foldFloor has a goroutine for each core that goes through its share of the
// records and keeps a map of its own.
func foldFloor(t task) (sample, error) {
	return perRecord(t, func(records []purchase, times int) error {
		var running sync.WaitGroup
		cores := runtime.GOMAXPROCS(0)
		for core := range cores {
			share := records[core*len(records)/cores : (core+1)*len(records)/cores]
			running.Go(func() { foldByHand(share, times) })
		}
		running.Wait()
		return nil
	})
}

func foldByHand(records []purchase, times int) map[string]*spend {
	m := map[string]*spend{}
	for range times {
		for i := range records {
			if !records[i].paid() {
				continue
			}
			p := records[i].payment()
			s := m[p.User]
			if s == nil {
				s = new(spend)
				m[p.User] = s
			}
			s.add(p)
		}
	}
	return m
}

// perRecord runs f for few and for many records, and returns what one takes.
func perRecord(t task, f func(records []purchase, times int) error) (sample, error) {
	records, err := makePurchases(t.Variant)
	if err != nil {
		return nil, err
	}
	short, long := rounds(t.setting)
	var took [2]time.Duration
	var allocated [2]uint64
	for i, times := range []int{short, long} {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpu()
		if err := f(records, times); err != nil {
			return nil, err
		}
		took[i] = cpu() - began
		runtime.ReadMemStats(&after)
		allocated[i] = after.Mallocs - before.Mallocs
	}
	n := float64((long - short) * len(records))
	return sample{
		cpuSeconds:    (took[1] - took[0]).Seconds() / n,
		"allocations": float64(int64(allocated[1]-allocated[0])) / n,
	}, nil
}

func measureFold(b *bench) ([]Result, error) {
	times := 3
	if b.setting.Quick {
		times = 1
	}
	s, floor, err := b.compare("fold", "fold.floor", "uniform", cpuSeconds, times)
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "engine.fold", Value: s[cpuSeconds] * 1e9, Unit: "ns",
		What: "CPU per record through Filter, Map, KeyBy, Fold on 1M keys (uniform), records decoded beforehand; floor: a loop over the same records and one map per core",
		Why:  "a record crosses from the goroutine that decoded it to the shard that owns its key, which the floor's maps, one per core and never put together, don't need",
	}.against(floor[cpuSeconds] * 1e9).atMost(1.5)
	r.Reached = r.Reached && s["allocations"] < 0.001
	r.Target += ", 0 allocations"
	r.note("%.4f allocations per record, which are those of the batches of 2,048", max(0, s["allocations"]))
	z, zFloor, err := b.compare("fold", "fold.floor", "zipf", cpuSeconds, times)
	if err != nil {
		return nil, err
	}
	r.note("keys by Zipf: %.0f ns, floor %.0f ns, ratio %.2f", z[cpuSeconds]*1e9, zFloor[cpuSeconds]*1e9, z[cpuSeconds]/zFloor[cpuSeconds])
	return []Result{r}, nil
}
