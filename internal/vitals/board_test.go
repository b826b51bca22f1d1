package vitals

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTotals(t *testing.T) {
	c := newClock()
	b := New(c)
	b.SetIdentity(Identity{Job: "spend", Branch: "main", Task: "0.0"})
	b.Committed(Commit{Epoch: 7, Position: 5, Records: 100, DeadLetters: 2, Bytes: 1000, Outputs: map[string]int64{"a": 3}, Pause: time.Millisecond})
	c.pass(time.Second)
	b.Committed(Commit{Epoch: 9, Position: 6, Records: 11, Bytes: 90, Outputs: map[string]int64{"a": 1, "b": 4}, Pause: 6 * time.Second})
	c.pass(3 * time.Second)
	s := b.Snapshot()
	if s.Epochs != 2 || s.Records != 111 || s.DeadLetters != 2 || s.Bytes != 1090 || !maps.Equal(s.Outputs, map[string]int64{"a": 4, "b": 4}) {
		t.Errorf("totals: %+v", s)
	}
	b.Committed(Commit{Late: map[string]int64{"a": 1, "b": 2}, Untimed: map[string]int64{"a": 3}, Ahead: map[string]int64{"t": 4}})
	b.Committed(Commit{Late: map[string]int64{"b": 5}})
	if s := b.Snapshot(); !maps.Equal(s.Late, map[string]int64{"a": 1, "b": 7}) || !maps.Equal(s.Untimed, map[string]int64{"a": 3}) || !maps.Equal(s.Ahead, map[string]int64{"t": 4}) {
		t.Errorf("late %v, untimed %v, ahead %v", s.Late, s.Untimed, s.Ahead)
	}
	if s.Last.Epoch != 9 || s.Last.Position != 6 || s.LastAge != 3*time.Second || s.Uptime != 4*time.Second || s.Quiet != 3*time.Second {
		t.Errorf("last commit %+v, age %v, uptime %v, quiet %v", s.Last, s.LastAge, s.Uptime, s.Quiet)
	}
	// A millisecond is one of the bounds, and bounds are included; six seconds
	// are above the last.
	if i := slices.Index(s.Pauses.Bounds, time.Millisecond); s.Pauses.Counts[i] != 1 || s.Pauses.Counts[len(s.Pauses.Bounds)] != 1 ||
		s.Pauses.Count() != 2 || s.Pauses.Sum != 6*time.Second+time.Millisecond {
		t.Errorf("pauses: %+v", s.Pauses)
	}
}

// What a board was given, and what it gave, are copies.
func TestCopies(t *testing.T) {
	b := New(newClock())
	outputs := map[string]int64{"a": 1}
	states := []State{{Name: "spend"}}
	partitions := []Partition{{Source: "orders", Partition: "0", Next: 1, End: 2}}
	b.Committed(Commit{Outputs: outputs})
	b.SetStates(states)
	b.SetPartitions(partitions)
	b.StoreCall("read", time.Second, nil)
	outputs["a"], states[0].Name, partitions[0].Next = 9, "x", 9
	first := b.Snapshot()
	first.Outputs["a"], first.Last.Outputs["a"], first.States[0].Name, first.Partitions[0].Next = 9, 9, "x", 9
	first.Pauses.Counts[0], first.StoreCalls[0].Durations.Counts[0] = 9, 9
	s := b.Snapshot()
	if s.Outputs["a"] != 1 || s.Last.Outputs["a"] != 1 || s.States[0].Name != "spend" || s.Partitions[0].Next != 1 ||
		s.Pauses.Count() != 1 || s.StoreCalls[0].Durations.Count() != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRecordsPerSecond(t *testing.T) {
	c := newClock()
	b := New(c)
	rate := func(want float64) {
		t.Helper()
		if got := b.Snapshot().RecordsPerSecond; got != want {
			t.Errorf("%v records a second, want %v", got, want)
		}
	}
	rate(0)
	c.pass(4 * time.Second)
	b.Committed(Commit{Records: 80})
	rate(20) // since the start
	c.pass(time.Hour)
	rate(0)
	b.Committed(Commit{Records: 50})
	rate(5) // the idle hour doesn't thin it out
	for range 1000 {
		c.pass(10 * time.Millisecond)
		b.Committed(Commit{Records: 1})
	}
	if n := len(b.records.marks); n > 42 {
		t.Errorf("%d marks are kept", n)
	}
	if got := b.Snapshot().RecordsPerSecond; got < 97 || got > 106 { // 100, but for a mark's grain and the burst at the window's edge
		t.Errorf("%v records a second, want about 100", got)
	}
}

// How long a backlog has waited, held against a model that remembers when every
// single offset came.
func TestWaited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		b := New(c)
		seen := map[int64]time.Time{} // by offset: when it was first seen
		var next, end int64
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			c.pass(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			for range rapid.IntRange(0, 3).Draw(t, "come") {
				seen[end] = c.Now()
				end++
			}
			next = min(end, next+int64(rapid.SampledFrom([]int{0, 0, 1, 2, 500}).Draw(t, "read")))
			b.SetPartitions([]Partition{{Source: "s", Partition: "p", Next: next, End: end}})
			p := b.Snapshot().Partitions[0]
			if p.Lag() != end-next || !p.Timed {
				t.Fatalf("%+v", p)
			}
			if next == end {
				if p.Waited != 0 {
					t.Fatalf("all is read, and something has waited %v", p.Waited)
				}
				continue
			}
			oldest := seen[next]
			want := c.Now().Sub(oldest)
			// Never too short, and at most a bin too long: no bin is wider
			// than a sixteenth of the history, which is as long as the
			// backlog's age at the most when it was thinned.
			if bin := b.backlogs[partition{"s", "p"}].width; p.Waited < want || p.Waited > want+bin {
				t.Fatalf("offset %d has waited %v, want %v within %v", next, p.Waited, want, bin)
			}
		}
	})
}

// A backlog of any age takes the same room, and its age stays exact to a
// thirty-second.
func TestWaitedForLong(t *testing.T) {
	c := newClock()
	b := New(c)
	for i := range int64(100_000) {
		b.SetPartitions([]Partition{{Source: "s", Partition: "p", Next: 0, End: i + 1}})
		c.pass(time.Second)
	}
	h := b.backlogs[partition{"s", "p"}]
	if len(h.bins) > maxBins {
		t.Errorf("%d bins", len(h.bins))
	}
	for _, next := range []int64{0, 1_000, 50_000, 90_000} {
		want := time.Duration(100_000-next) * time.Second
		if got := h.waited(c.Now(), next); got < want || got > want+100_000*time.Second/16 {
			t.Errorf("offset %d has waited %v, want %v", next, got, want)
		}
	}
}

// What can't be told isn't.
func TestUntimed(t *testing.T) {
	c := newClock()
	b := New(c)
	b.SetPartitions([]Partition{{Source: "s", Partition: "p", Next: 3, End: -1}})
	if p := b.Snapshot().Partitions[0]; p.Timed || p.Lag() != 0 {
		t.Errorf("a source without an end: %+v", p)
	}
	var many []Partition
	for i := range 3 * maxPartitions {
		many = append(many, Partition{Source: "s", Partition: fmt.Sprint("p", i), End: 5})
	}
	b.SetPartitions(many)
	s := b.Snapshot()
	if len(b.backlogs) != maxPartitions || len(s.Partitions) != len(many) || !s.Partitions[0].Timed || s.Partitions[len(many)-1].Timed || s.Partitions[len(many)-1].Lag() != 5 {
		t.Errorf("%d histories are kept of %d partitions", len(b.backlogs), len(s.Partitions))
	}
	b.SetPartitions(many[:1])
	if len(b.backlogs) != 1 {
		t.Errorf("%d histories are kept of one partition", len(b.backlogs))
	}
}

// A partition that is cut short begins anew.
func TestCutShort(t *testing.T) {
	c := newClock()
	b := New(c)
	b.SetPartitions([]Partition{{Source: "s", Partition: "p", End: 100}})
	c.pass(time.Hour)
	b.SetPartitions([]Partition{{Source: "s", Partition: "p", End: 10}})
	c.pass(time.Second)
	if got := b.Snapshot().Partitions[0].Waited; got != time.Second {
		t.Errorf("waited %v, want 1s", got)
	}
}

// Ages and rates don't care for a wall clock that steps.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		c := newClock()
		b := New(c)
		c.pass(10 * time.Second)
		b.SetRole(Running)
		b.SetPartitions([]Partition{{Source: "s", Partition: "p", End: 1}})
		b.Committed(Commit{Records: 10})
		c.step = step
		c.pass(2 * time.Second)
		b.Committed(Commit{Records: 10})
		c.pass(2 * time.Second)
		s := b.Snapshot()
		if s.Uptime != 14*time.Second || s.RoleFor != 4*time.Second || s.LastAge != 2*time.Second || s.Quiet != 2*time.Second ||
			s.RecordsPerSecond != 2 || s.Partitions[0].Waited != 4*time.Second || s.Sick() != "" {
			t.Errorf("a step by %v: %+v", step, s)
		}
	}
}

func TestHealth(t *testing.T) {
	long := quietLimit + time.Second
	for _, x := range []struct {
		name        string
		do          func(*Board, *clock)
		sick, ready string // what the reasons contain; empty: none
	}{
		{"starting", func(*Board, *clock) {}, "", "starting for 0s"},
		{"hung while starting", func(_ *Board, c *clock) { c.pass(long) }, "without a sign of life for 3m1s", "starting"},
		{"restores for long", func(b *Board, c *clock) {
			b.SetRole(Restoring)
			c.pass(long)
			b.StoreCall("read", time.Second, nil)
		}, "", "restoring for 3m1s"},
		{"restores from a store that fails", func(b *Board, c *clock) {
			b.SetRole(Restoring)
			c.pass(long)
			b.StoreCall("read", time.Second, errors.New("no"))
		}, "sign of life", "restoring"},
		{"standby", func(b *Board, c *clock) { b.SetRole(Standby); c.pass(long) }, "", ""},
		{"running", func(b *Board, c *clock) { b.SetRole(Running); c.pass(quietLimit) }, "", ""},
		{"idle but alive", func(b *Board, c *clock) { b.SetRole(Running); c.pass(long); b.Alive() }, "", ""},
		{"hung", func(b *Board, c *clock) {
			b.SetRole(Running)
			c.pass(long)
			b.StoreCall("heartbeat", time.Millisecond, nil) // another goroutine lives on
		}, "running, but without a sign of life", "sign of life"},
		{"waits by right", func(b *Board, c *clock) { b.SetRole(Running); b.Wait("the disk is full"); c.pass(long) }, "", ""},
		{"waited", func(b *Board, c *clock) { b.SetRole(Running); b.Wait("the disk is full"); b.Alive(); c.pass(long) }, "sign of life", "sign of life"},
		{"stopping", func(b *Board, c *clock) { b.SetRole(Stopping); c.pass(long) }, "", "stopping"},
		{"stopped", func(b *Board, c *clock) { b.SetRole(Stopped) }, "stopped", "stopped"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newClock()
			b := New(c)
			x.do(b, c)
			s := b.Snapshot()
			for _, side := range []struct{ what, got, want string }{{"sick", s.Sick(), x.sick}, {"unready", s.Unready(), x.ready}} {
				if (side.got == "") != (side.want == "") || !strings.Contains(side.got, side.want) {
					t.Errorf("%s: %q, want %q", side.what, side.got, side.want)
				}
			}
		})
	}
}

// Names of operations that were made of data don't fill the memory.
func TestOperationsAreBounded(t *testing.T) {
	b := New(newClock())
	for i := range 10 * maxOperations {
		b.StoreCall(fmt.Sprint("read ", i), time.Duration(i), nil)
	}
	s := b.Snapshot()
	var calls int64
	for _, c := range s.StoreCalls {
		calls += c.Durations.Count()
	}
	if len(s.StoreCalls) != maxOperations+1 || calls != 10*maxOperations {
		t.Errorf("%d operations with %d calls", len(s.StoreCalls), calls)
	}
}

// All methods may be called at once; the race detector watches, and nothing is
// lost.
func TestManyGoroutines(t *testing.T) {
	c := newClock()
	b := New(c)
	var wg sync.WaitGroup
	const each = 200
	for range 4 {
		wg.Go(func() {
			for i := range each {
				b.SetRole(Running)
				b.Alive()
				b.Wait("")
				b.SetIdentity(Identity{Job: "spend"})
				b.Committed(Commit{Records: 1, Outputs: map[string]int64{"out": 2}})
				b.SetPartitions([]Partition{{Source: "s", Partition: "p", Next: int64(i), End: int64(2 * i)}})
				b.SetStates([]State{{Name: "spend"}})
				b.SetSinks([]Sink{{Name: "out"}})
				b.SetHotKeys([]HotKey{{Operator: "spend"}})
				b.SetMemory(1, 2)
				b.StoreCall("read", 1, nil)
				s := b.Snapshot()
				s.Outputs["out"] = 0
				c.pass(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if s := b.Snapshot(); s.Records != 4*each || s.Outputs["out"] != 8*each || s.StoreCalls[0].Durations.Count() != 4*each {
		t.Errorf("%+v", s)
	}
}
