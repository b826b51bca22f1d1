package main

import (
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// Tick is a line of the input. Each has a number of its own.
type Tick struct {
	ID   int64
	Key  string
	At   sluice.Instant
	None bool // it has no time
}

// Time is the tick's, if it has one.
func (t Tick) Time() (sluice.Instant, bool) { return t.At, !t.None }

// KeyOf is the key of the windows.
func KeyOf(t Tick) string { return t.Key }

// Bag is what a window is folded to: the numbers of all that it has got, so that nothing
// is there twice unseen.
type Bag struct{ IDs []int64 }

// Add puts a tick in.
func (b *Bag) Add(t Tick) { b.IDs = append(b.IDs, t.ID) }

// Merge puts another bag's ticks in.
func (b *Bag) Merge(other *Bag) { b.IDs = append(b.IDs, other.IDs...) }

// Filled is a row: what a window has got, or a bucket when its timer was due.
type Filled struct {
	Key        string
	Start, End sluice.Instant
	IDs        []int64
}

// Late is a tick that came too late for an operator, or has no time.
type Late struct{ ID int64 }

// Bucket is the key of the timers: a key's ticks of two seconds.
type Bucket struct {
	Key   string
	Start sluice.Instant
}

const (
	second    = sluice.Instant(time.Second / time.Microsecond)
	bucket    = 2 * second
	waitsFor  = 3 * second // behind a bucket's end, until its timer is due
	lateness  = 2 * time.Second
	pollEvery = 5 * time.Millisecond
)

// BucketOf is the bucket of a tick.
func BucketOf(t Tick) Bucket { return Bucket{t.Key, t.At - t.At%bucket} }

// windows is the job, whose tumbling windows have a size, and wait behind their ends for as
// long. It follows its input, or ends with it.
func windows(folder string, size time.Duration, follow bool, seen func(Tick) bool) *sluice.Job {
	var options []file.Option
	if follow {
		options = []file.Option{file.Follow(), file.Poll(pollEvery)}
	}
	out := func(name string) string { return filepath.Join(folder, "out", name) }
	job := sluice.NewJob("windows")
	ticks := job.From("ticks", file.JSONLines[Tick](filepath.Join(folder, "in", "*.jsonl"), options...)).
		Filter(seen).EventTime(Tick.Time, lateness)
	keyed := ticks.KeyBy(KeyOf)
	fold := func(name string, w *sluice.Windowed[string, Tick], merged bool) {
		w.Late().Map(lateOf).To("late_"+name, file.Append[Late](out("late_"+name)))
		state := sluice.NewState[sluice.In[string], Bag](name)
		var table *sluice.WindowTable[string, Bag]
		if merged {
			table = w.FoldMerge(state, (*Bag).Add, (*Bag).Merge)
		} else {
			table = w.Fold(state, (*Bag).Add)
		}
		table.Results().Map(filledOf).To(name, rows(out(name)))
	}
	fold("tumbling", keyed.Window(sluice.Tumbling(size), sluice.AllowedLateness(size)), false)
	fold("hopping", keyed.Window(sluice.Hopping(8*time.Second, 2*time.Second)), true)
	fold("sessions", keyed.Window(sluice.Session(3*time.Second)), true)

	waited := ticks.KeyBy(BucketOf).Process(gather)
	waited.To("buckets", rows(out("buckets")))
	waited.Output(tooLate).To("late_buckets", file.Append[Late](out("late_buckets")))
	return job
}

func rows(folder string) connector.StreamSink[Filled] { return file.Append[Filled](folder) }

func lateOf(t Tick) Late { return Late{t.ID} }

func filledOf(r sluice.Result[string, Bag]) Filled {
	return Filled{r.Key, r.Window.Start, r.Window.End, r.Value.IDs}
}

var (
	waiting = sluice.NewState[Bucket, Bag]("waiting")
	tooLate = sluice.NewOutput[Late]("too_late")
)

// gather keeps a bucket's ticks until its timer is due, and puts them out then. What
// comes behind that is late.
func gather(p *sluice.Setup[Bucket, Filled]) func(*sluice.Context[Bucket, Filled], Tick) {
	bag, late := p.State(waiting), p.Output(tooLate)
	due := p.OnTimer("due", func(c *sluice.Context[Bucket, Filled]) {
		full, _ := bag.Read()
		c.Emit(Filled{c.Key().Key, c.Key().Start, c.Key().Start + bucket, full.IDs})
		bag.Delete()
	})
	return func(c *sluice.Context[Bucket, Filled], t Tick) {
		at := c.Key().Start + bucket + waitsFor
		if t.None || c.Watermark() >= at {
			late.Emit(Late{t.ID})
			return
		}
		bag.Update().Add(t)
		due.Set(at)
	}
}
