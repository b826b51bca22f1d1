package upgrades

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// drainTo asks for a stop at offsets, as the command stop does.
func (w *way) drainTo(to map[string]int64) epoch.Request {
	w.t.Helper()
	request, err := w.log().AskDrainTo(w.t.Context(), to, false, "a test")
	if err != nil {
		w.t.Fatal(err)
	}
	return request
}

// offsets are how far the live branch has read, by partition.
func (w *way) offsets() map[string]int64 {
	all := map[string]int64{}
	for partition, at := range w.head(w.live().Branch).Manifest.Sources["inputs"].Partitions {
		all[partition] = at.Next
	}
	return all
}

// upTo are the inputs before offsets.
func (w *way) upTo(offsets map[string]int64) []placed {
	return slices.DeleteFunc(slices.Clone(w.fed), func(i placed) bool {
		return i.offset >= offsets[fmt.Sprintf("inputs/%d", i.partition)]
	})
}

// unmet waits until a request is told not to be met, and returns why.
func (w *way) unmet(request epoch.Request) (why string) {
	w.t.Helper()
	w.await("a request that is not met", func() bool {
		for _, u := range w.head(w.live().Branch).Manifest.Unmet {
			if u.Request == request.N {
				why = u.Why
				return true
			}
		}
		return false
	}, nil)
	return why
}

// TestDrainToOffsets stops a job at offsets that are still to come: what was put out is
// what comes of the inputs before them, and the next run goes on just there.
func TestDrainToOffsets(t *testing.T) {
	w := newWay(t, "rows")
	b := build{version: 1, rows: []string{"rows"}}
	job := w.run("the job", first(w, b), sluice.Options{})
	w.feedEpochs(2, nil)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	to, given := map[string]int64{}, map[string]int64{}
	for n := range partitions {
		to[fmt.Sprintf("inputs/%d", n)] = 0
	}
	for _, i := range w.fed {
		to[fmt.Sprintf("inputs/%d", i.partition)] = i.offset + 1
	}
	for partition, at := range to {
		at += w.rng.Int64N(4) // some partitions have come there already,
		if partition == "inputs/0" {
			at++ // and one has not
		}
		to[partition], given[strings.Replace(partition, "/", ":", 1)] = at, at
	}
	w.drainTo(given)
	job.says("nothing behind the offsets is read")
	request := w.drainTo(given) // by the same command once more
	job.says("once more")
	for range 8 {
		w.feedAll()
	}
	if err := job.ends(); err != nil {
		t.Fatal(err)
	}
	if got := w.offsets(); fmt.Sprint(got) != fmt.Sprint(to) {
		t.Errorf("it has stopped at %v, want %v", got, to)
	}
	if head := w.head(epoch.MainBranch).Manifest; head.Request < request.N || len(head.Unmet) > 0 {
		t.Errorf("request %d is not called done: %d, %v", request.N, head.Request, head.Unmet)
	}
	w.awaitTable("totals", recount(w.upTo(to), nil))
	w.checkRows("rows", w.upTo(to))
	again := w.run("the job again", first(w, b), sluice.Options{})
	w.awaitTable("totals", recount(w.fed, nil))
	w.awaitRows("rows", w.fed)
	again.stops()
}

// feedUntilEnd goes on writing inputs until a process has ended.
func (w *way) feedUntilEnd(p *process) {
	w.t.Helper()
	for {
		w.feed(5)
		select {
		case <-p.ended:
			return
		default:
		}
	}
}

// TestDrainToNow stops a job in the midst of its input.
func TestDrainToNow(t *testing.T) {
	w := newWay(t, "rows")
	b := build{version: 1, rows: []string{"rows"}}
	job := w.run("the job", first(w, b), sluice.Options{})
	w.feedEpochs(2, nil)
	w.feed(50)
	before := len(w.fed)
	w.drainTo(nil)
	w.feedUntilEnd(job)
	if err := job.ends(); err != nil {
		t.Fatal(err)
	}
	read := w.upTo(w.offsets())
	if len(read) < before {
		t.Errorf("it has stopped behind %d inputs, and there were %d when it was asked", len(read), before)
	}
	w.awaitTable("totals", recount(read, nil))
	w.checkRows("rows", read)
}

// TestDrainToNowhere refuses offsets at which the job can't stop; it goes on as before.
func TestDrainToNowhere(t *testing.T) {
	w := newWay(t)
	job := w.run("the job", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	all := func(change func(map[string]int64)) map[string]int64 {
		to := map[string]int64{}
		for n := range partitions {
			to[fmt.Sprintf("inputs/%d", n)] = 1000
		}
		change(to)
		return to
	}
	for says, to := range map[string]map[string]int64{
		"it has been read to":               all(func(to map[string]int64) { to["inputs/0"] = 0 }),
		"no source has a partition other/0": all(func(to map[string]int64) { to["other/0"] = 7 }),
		"no offset is given for inputs:inputs/1: expected one for each partition, found none; give one for it too": all(func(to map[string]int64) { delete(to, "inputs/1") }),
	} {
		if why := w.unmet(w.drainTo(to)); !strings.Contains(why, says) {
			t.Errorf("it says %q, want %q", why, says)
		}
	}
	job.goesOn()
	w.feedEpochs(1, nil)

	// One that is stopped on its way says that it has not come there.
	requests := []epoch.Request{w.drainTo(all(func(map[string]int64) {}))}
	job.says("nothing behind the offsets is read")
	requests = append(requests, w.drainTo(all(func(map[string]int64) {})))
	job.says("once more")
	if why := w.unmet(w.drainTo(all(func(to map[string]int64) { to["inputs/0"]++ }))); !strings.Contains(why, "other offsets already") {
		t.Errorf("it says %q", why)
	}
	w.feedEpochs(1, nil)
	job.stops()
	for _, request := range requests {
		if why := w.unmet(request); !strings.Contains(why, "was stopped before") {
			t.Errorf("it says %q", why)
		}
	}
}

// TestDrainWithAStandby stops a job at the ends of its inputs while a standby is about to
// go on with it by itself: that ends as well, and nothing behind is read.
func TestDrainWithAStandby(t *testing.T) {
	w := newWay(t, "rows")
	b := build{version: 1, rows: []string{"rows"}}
	job := w.run("the job", first(w, b), sluice.Options{})
	w.feedEpochs(2, nil)
	standby := w.run("the standby", first(w, b), sluice.Options{Standby: true})
	w.awaitFollower(epoch.Failover)
	w.feed(50)
	w.drainTo(nil)
	w.feedUntilEnd(job)
	if err := job.ends(); err != nil {
		t.Fatal(err)
	}
	w.feed(20)
	if err := standby.ends(); err != nil {
		t.Fatal(err)
	}
	if live := w.live(); live.Branch != epoch.MainBranch {
		t.Errorf("branch %s is live", live.Branch)
	}
	read := w.upTo(w.offsets())
	w.awaitTable("totals", recount(read, nil))
	w.checkRows("rows", read)
}
