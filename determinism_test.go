package sluice_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// The job under test has all that could make a result depend on anything but
// the inputs: folds that depend on order and on the rounding of floats, states
// that hold maps and slices and are put out and keyed anew, two KeyBys in a row,
// a table's changes keyed again, streams that meet, elements in maps and lists.

type reading struct {
	Device string
	Room   string
	Value  float64
	Tags   []string
}

type trail struct {
	Sum  float64
	Last []string // of the tags, in the order in which they came
	Seen map[string]int64
}

func (s *trail) add(r reading) {
	s.Sum += r.Value
	s.Last = append(s.Last, r.Tags...)
	if n := len(s.Last); n > 4 {
		s.Last = s.Last[n-4:]
	}
	if s.Seen == nil {
		s.Seen = map[string]int64{}
	}
	s.Seen[r.Room]++
}

type alarm struct {
	Device string
	Room   string
	Level  float64
	Tags   []string
}

type roomTotal struct {
	Devices int64
	Sum     float64
}

type tagCount struct {
	Order float64 // depends on the order of what came
	N     int64
}

var (
	trails   = sluice.NewState[string, trail]("trail")
	rooms    = sluice.NewState[string, roomTotal]("rooms")
	levels   = sluice.NewState[string, trail]("levels")
	perRoom  = sluice.NewMapState[string, string, tagCount]("per_room")
	history  = sluice.NewListState[string, float64]("history")
	byTag    = sluice.NewState[string, tagCount]("by_tag")
	quietOut = sluice.NewOutput[alarm]("quiet")
)

func deterministicJob(dir string) *sluice.Job {
	job := sluice.NewJob("determinism")
	readings := job.From("readings", file.JSONLines[reading]("unused.jsonl"))
	others := job.From("others", file.JSONLines[reading]("unused.jsonl"))
	all := readings.Merge(others)

	keyed := all.KeyBy(func(r reading) string { return r.Device })
	keyed.Fold(trails, (*trail).add).
		To("trails", file.Upsert(dir+"/trails", func(_ string, s trail) trail { return s })).
		Regroup(rooms, func(_ string, s trail) string { return fmt.Sprint(len(s.Seen)) },
			func(t *roomTotal, s trail) { t.Devices++; t.Sum += s.Sum },
			func(t *roomTotal, s trail) bool { t.Devices--; t.Sum -= s.Sum; return t.Devices > 0 }).
		To("rooms", file.Upsert(dir+"/rooms", func(_ string, s roomTotal) roomTotal { return s }))

	alarms := keyed.Process(func(p *sluice.Setup[string, alarm]) func(*sluice.Context[string, alarm], reading) {
		state, seen, last := p.State(levels), p.Map(perRoom), p.List(history)
		quiet := p.Output(quietOut)
		return func(c *sluice.Context[string, alarm], r reading) {
			s := state.Update()
			s.add(r)
			t := seen.Update(r.Room)
			t.N++
			t.Order = t.Order*0.5 + r.Value
			last.Append(r.Value)
			if last.Len() > 3 {
				last.RemoveFirst(last.Len() - 3)
			}
			level := 0.0
			for _, v := range last.All() {
				level = level/3 + v
			}
			for room, t := range seen.All() {
				level += t.Order / float64(len(room)+1)
			}
			if seen.Len() > 4 {
				seen.Delete(r.Room)
			}
			a := alarm{Device: c.Key(), Room: r.Room, Level: level, Tags: s.Last}
			if level < 0 {
				quiet.Emit(a)
				return
			}
			c.Emit(a)
			c.Emit(alarm{Device: c.Key(), Room: "second", Level: -level, Tags: s.Last})
		}
	})
	alarms.To("alarms", file.Append[alarm](dir+"/alarms"))
	alarms.Output(quietOut).To("quiet", file.Append[alarm](dir+"/quiet"))

	// Behind a second and a third KeyBy, with what came straight from the source.
	tags := alarms.FlatMap(func(a alarm) iter.Seq[alarm] {
		return func(yield func(alarm) bool) {
			for i := range a.Tags {
				if !yield(alarm{Device: a.Device, Room: a.Tags[i], Level: a.Level + float64(i), Tags: a.Tags[:i]}) {
					return
				}
			}
		}
	})
	direct := all.Map(func(r reading) alarm { return alarm{Device: r.Device, Room: r.Room, Level: r.Value, Tags: r.Tags} })
	byTagTable := tags.Merge(direct).KeyBy(func(a alarm) string { return a.Room }).FoldKeep(byTag, func(s *tagCount, a alarm) bool {
		s.N++
		s.Order = s.Order*0.75 + a.Level
		return s.N%17 != 0
	})
	byTagTable.To("tags", file.Upsert(dir+"/tags", func(_ string, s tagCount) tagCount { return s }))
	byTagTable.Changes().To("changes", file.Append[sluice.Change[string, tagCount]](dir+"/changes"))
	return job
}

func randomReading(r *rand.Rand) reading {
	tags := make([]string, r.IntN(4))
	for i := range tags {
		tags[i] = fmt.Sprintf("tag-%d", r.IntN(6))
	}
	return reading{fmt.Sprintf("device-%d", r.IntN(5)), fmt.Sprintf("room-%d", r.IntN(7)), r.Float64()*2 - 0.5, tags}
}

func TestReplayGivesTheSameBytes(t *testing.T) {
	seed := uint64(20261129)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	test := sluicetest.New(t, deterministicJob(t.TempDir()))
	test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 3, 4, 7 })
	for range 6 {
		for p := range 4 {
			var feed []reading
			for range 50 + r.IntN(200) {
				feed = append(feed, randomReading(r))
			}
			sluicetest.FeedPartition(test, "readings", fmt.Sprint(p), feed...)
			sluicetest.FeedPartition(test, "others", fmt.Sprint(p), feed[:len(feed)/3]...)
		}
		test.Step()
	}
	for _, shards := range []int{1, 2, 5, 8} {
		for _, batch := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("shards=%d/batch=%d", shards, batch), func(t *testing.T) {
				before := runtime.GOMAXPROCS(1 + (shards+batch)%4)
				defer runtime.GOMAXPROCS(before)
				test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = shards, 1+batch%3, batch })
			})
		}
	}
}
