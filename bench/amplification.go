package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

const (
	amplifyJob    = "amplify" // the job's name
	epochUpdates  = 100_000
	amplifyEpochs = 3_600
	quickEpochs   = 360
)

// amplify writes an epoch's segment after the other, and merges what is to be
// merged by the plan before the next. It measures bytes, not time.
func amplify(t task) (sample, error) {
	form, err := spendForm()
	if err != nil {
		return nil, err
	}
	epochs := amplifyEpochs
	if t.Quick {
		epochs = quickEpochs
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &levels{form: form, store: store.NewMemory()}
	written := l.writeEpochs(ctx, epochs)
	for w := range written {
		if w.err != nil {
			return nil, w.err
		}
		if err := l.add(ctx, w.segment); err != nil {
			return nil, err
		}
	}
	return sample{"own": float64(l.own), "all": float64(l.all), "most": float64(l.most), "merges": float64(l.merges)}, nil
}

func spendForm() (state.Form, error) {
	keys, err := schema.KeyOf[string]("key")
	if err != nil {
		return state.Form{}, err
	}
	value, err := schema.Of[spend]("spend")
	if err != nil {
		return state.Form{}, err
	}
	return state.Form{Name: "spend", Key: keys.Schema(), Value: value.Schema()}, nil
}

// levels are a state's segments as epochs and merges leave them.
type levels struct {
	form     state.Form
	store    *store.Memory
	segments []epoch.Segment
	own, all int64 // bytes: of the epochs' segments, and with the merges'
	most     int   // segments at an epoch's end
	merges   int
}

// writtenSegment is an epoch's segment, or why there is none.
type writtenSegment struct {
	segment epoch.Segment
	err     error
}

// writeEpochs writes the epochs' segments, in a goroutine beside the merges.
func (l *levels) writeEpochs(ctx context.Context, epochs int) <-chan writtenSegment {
	out := make(chan writtenSegment, 2)
	go func() {
		defer close(out)
		u := newUpdater()
		for i := range epochs {
			s, err := state.Write(ctx, l.store, amplifyJob, fmt.Sprintf("epoch-%d", i), l.form, []*state.Changes{u.epoch()}, 0)
			select {
			case out <- writtenSegment{s, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// add takes in an epoch's segment, and merges.
func (l *levels) add(ctx context.Context, s epoch.Segment) error {
	l.segments = append(l.segments, s)
	l.own, l.all, l.most = l.own+s.Bytes, l.all+s.Bytes, max(l.most, len(l.segments))
	for {
		from, to, ok := state.PlanMerge(l.segments)
		if !ok {
			return nil
		}
		merged, err := state.Merge(ctx, l.store, amplifyJob, fmt.Sprintf("merge-%d", l.merges), l.form, l.segments[from:to], from == 0)
		if err != nil {
			return err
		}
		l.merges++
		l.all += merged.Bytes
		for _, s := range l.segments[from:to] {
			if err := l.store.Delete(ctx, amplifyJob+"/"+s.Path); err != nil {
				return err
			}
		}
		l.segments = slices.Replace(l.segments, from, to, merged)
	}
}

// updater updates entries at random.
type updater struct {
	random  *rand.Rand
	keys    [][]byte // encoded
	slots   []epoch.Slot
	values  []spend
	touched []int // the epoch of the last update, by key
	number  int
	changes state.Changes
}

func newUpdater() *updater {
	u := &updater{random: newRandom(3), values: make([]spend, allKeys), touched: make([]int, allKeys)}
	for k := range allKeys {
		key := appendText(nil, userName(k))
		u.keys = append(u.keys, key)
		u.slots = append(u.slots, epoch.Slot(xxhash.Sum64(key)>>48))
	}
	return u
}

// epoch makes an epoch's updates and returns what has changed. It holds until
// the next epoch.
func (u *updater) epoch() *state.Changes {
	u.number++
	var keys []int
	for range epochUpdates {
		k := u.random.IntN(allKeys)
		u.values[k].add(payment{Cents: int64(u.random.IntN(10_000))})
		if u.touched[k] != u.number {
			u.touched[k] = u.number
			keys = append(keys, k)
		}
	}
	c := &u.changes
	c.Reset()
	for _, k := range keys {
		c.Begin(u.slots[k])
		c.Buf = append(c.Buf, u.keys[k]...)
		c.Element()
		c.Value()
		c.Buf = append(c.Buf, 2) // there is a value
		c.Buf = binary.AppendVarint(c.Buf, u.values[k].Orders)
		c.Buf = binary.AppendVarint(c.Buf, u.values[k].Cents)
		c.End()
	}
	return c
}

func measureAmplification(b *bench) ([]Result, error) {
	s, err := b.child("amplification", "")
	if err != nil {
		return nil, err
	}
	epochs := amplifyEpochs
	if b.setting.Quick {
		epochs = quickEpochs
	}
	r := Result{
		Name: "write.amplification", Value: s["all"] / s["own"], Unit: "bytes per byte",
		What: fmt.Sprintf("%d epochs of %d uniform updates on 1M keys: all bytes written for the state per byte of the epochs' own segments", epochs, epochUpdates),
		Why:  "a restore reads few segments (at most 12), which has to be paid for by rewriting the large ones more often",
	}.within(8)
	r.note("%.0f merges, at most %.0f segments at an epoch's end, %.1f GB written", s["merges"], s["most"], s["all"]/1e9)
	return []Result{r}, nil
}
