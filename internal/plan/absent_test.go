package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
	"github.com/sluicestream/sluice/store"
)

// What a sink was that is back after an absence is found in the log, by the
// version that was the last to have it; where the log does not reach back to
// that, it is one of all that versions have had.
func TestAbsentSinks(t *testing.T) {
	ctx := t.Context()
	job, err := epoch.OpenJob(ctx, env.Real(), store.NewMemory(), "spend", "")
	must(err)
	with := func(target string) epoch.Version {
		v := epoch.Version{Sources: map[string]epoch.Part{"orders": {Kind: "file.json"}}, Sinks: map[string]epoch.Part{}}
		if target != "" {
			v.Sinks["log"] = part("postgres", []string{"orders"}, "target", target)
		}
		return v
	}
	// run has a build of a version take the job and commit some epochs with data.
	run := func(v epoch.Version, epochs int) epoch.Manifest {
		o, err := job.TakeLive(ctx, epoch.FirstTask, epoch.Identity{Build: epoch.Build{Executable: "exe"}, Version: v, Writer: epoch.Writer{Host: "here", PID: 1}, Replace: true})
		must(err)
		head, _ := o.Head()
		sinks := map[string]epoch.SinkState{}
		if s, had := head.Sinks["log"]; len(v.Sinks) > 0 {
			s.Record, s.Dropped = "r", ""
			sinks["log"] = s
		} else if had {
			s.Dropped = "consented"
			sinks["log"] = s
		}
		hash, err := v.Hash()
		must(err)
		head, err = o.Commit(ctx, epoch.Manifest{Kind: epoch.Open, Now: head.Now, Version: hash, Build: epoch.Build{Executable: "exe", Version: hash}, Sources: head.Sources, Sinks: sinks})
		must(err)
		for range epochs {
			sinks = map[string]epoch.SinkState{}
			for name, s := range head.Sinks {
				if s.Dropped == "" {
					s.Confirmed = head.Position + 1
				}
				sinks[name] = s
			}
			next := head.Sources["orders"].Partitions["0"].Next + 1
			head, err = o.Commit(ctx, epoch.Manifest{
				Kind: epoch.Data, Now: head.Now + 1, Runs: []epoch.Run{{Source: "orders", Partition: "0", Next: next}},
				Sources: map[string]epoch.SourceState{"orders": {Partitions: map[string]epoch.Offset{"0": {Next: next}}}}, Sinks: sinks,
			})
			must(err)
		}
		return head
	}
	run(with("first"), 3)
	run(with("second"), 4)
	run(with("third"), 0) // is there for no data at all, and is the last all the same
	gone := run(with(""), 2)
	run(with("fourth"), 5)
	again := run(with(""), 9)

	targets := func(from epoch.Manifest) string {
		in, err := plan.Gather(ctx, job, from, plan.Build{Version: with("other"), Ways: func(func(string) *carry.Stored) map[string]*carry.Way { return nil }})
		must(err)
		var all []string
		for _, p := range in.Absent["log"] {
			all = append(all, p.Parameters["target"])
		}
		slices.Sort(all)
		return fmt.Sprint(all)
	}
	if got := targets(gone); got != "[third]" {
		t.Errorf("before the first absence it was %s, expected the third", got)
	}
	if got := targets(again); got != "[fourth]" {
		t.Errorf("before the second absence it was %s, expected the fourth", got)
	}
	must(job.PutFloor(ctx, epoch.MainBranch, epoch.FirstTask, again.Epoch-3))
	if got := targets(again); got != "[first fourth second third]" {
		t.Errorf("with a log that does not reach back to it, it was %s", got)
	}
}

// What a source was that is back is what all versions had under its name, also where
// the last one was not among them; one that is new, or was there, is not looked for.
func TestAbsentSources(t *testing.T) {
	ctx := t.Context()
	job, err := epoch.OpenJob(ctx, env.Real(), store.NewMemory(), "spend", "")
	must(err)
	reads := func(topics ...string) epoch.Version {
		v := epoch.Version{Sources: map[string]epoch.Part{}}
		for i, topic := range topics {
			if topic != "" {
				v.Sources[[]string{"orders", "clicks"}[i]] = part("kafka", nil, "topics", topic)
			}
		}
		return v
	}
	var head epoch.Manifest
	for _, v := range []epoch.Version{reads("o", "first"), reads("o", "second"), reads("o", "second"), reads("o"), reads("p")} {
		o, err := job.TakeLive(ctx, epoch.FirstTask, epoch.Identity{Build: epoch.Build{Executable: "exe"}, Version: v, Writer: epoch.Writer{Host: "here", PID: 1}, Replace: true})
		must(err)
		hash, err := v.Hash()
		must(err)
		before, _ := o.Head()
		head, err = o.Commit(ctx, epoch.Manifest{Kind: epoch.Open, Now: before.Now, Version: hash, Build: epoch.Build{Executable: "exe", Version: hash}, Sources: map[string]epoch.SourceState{
			"orders": {Partitions: map[string]epoch.Offset{"o/0": {Next: 3}}}, "clicks": {Partitions: map[string]epoch.Offset{"first/0": {Next: 5}}},
		}})
		must(err)
	}
	now := reads("p", "third")
	now.Sources["new"] = part("kafka", nil, "topics", "new")
	in, err := plan.Gather(ctx, job, head, plan.Build{Version: now, Ways: func(func(string) *carry.Stored) map[string]*carry.Way { return nil }})
	must(err)
	var topics []string
	for _, p := range in.AbsentSources["clicks"] {
		topics = append(topics, p.Parameters["topics"])
	}
	slices.Sort(topics)
	if len(in.AbsentSources) != 1 || !slices.Equal(topics, []string{"first", "second"}) {
		t.Errorf("what was there before: %v", in.AbsentSources)
	}
	in.Head.Position = 1 // as if it had read by then
	if l := plan.Compare(in).Line(plan.SourcePart, "clicks"); l.Verdict != plan.Refused || !slices.Contains(l.Causes, "clicks, topics: first → third: first would not be read any more") && !slices.Contains(l.Causes, "clicks, topics: second → third: first, second would not be read any more") {
		t.Errorf("the plan says %+v", l)
	}
}
