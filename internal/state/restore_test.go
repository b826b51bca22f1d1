package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// many is a model of enough entries for many blocks, that differs by seed.
func many(seed, n int) model {
	m := model{}
	for i := range n {
		m[row{key: fmt.Sprintf("customer %d of many", i*(seed+1))}] = int64(seed*1000 + i)
	}
	return m
}

func TestRestoreOrder(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	epochs := []model{many(0, 20_000), many(1, 20_000), many(2, 3)}
	s := segments(t, st, f, epochs...)
	parts := []epoch.Slots{{First: 0, Last: 63}, {First: 64, Last: 65535}}
	got := make([][]row, len(parts))
	err := Restore(ctx, st, job, f, s, parts, func(part int) func(*Entry) error {
		return func(e *Entry) error {
			r, _, err := decode(f, e)
			got[part] = append(got[part], r)
			return err
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for part, slots := range parts {
		var want []row
		for _, m := range epochs {
			for _, r := range m.ordered() {
				if r.slot() >= slots.First && r.slot() <= slots.Last {
					want = append(want, r)
				}
			}
		}
		if !slices.Equal(got[part], want) {
			t.Errorf("part %d: %d records in another order than the %d that there are", part, len(got[part]), len(want))
		}
	}
}

func TestRestoreOfSomeSlots(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	base := many(0, 20_000)
	s := segments(t, st, f, base)
	parts := []epoch.Slots{{First: 40000, Last: 50000}, {First: 1, Last: 1}} // with gaps, in any order
	got, err := restored(ctx, st, f, s, parts)
	want := maps.Clone(base)
	maps.DeleteFunc(want, func(r row, _ int64) bool { return r.slot() != 40000 && r.slot() != 1 })
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d entries, error %v; want %d", len(got), err, len(want))
	}
	if err := st.Delete(ctx, job+"/"+s[0].Path); err != nil {
		t.Fatal(err)
	}
	s[0].Slots = epoch.Slots{First: 2, Last: 100}
	if got, err := restored(ctx, st, f, s, parts); err != nil || len(got) > 0 {
		t.Errorf("a segment of others' slots was read: %d entries, error %v", len(got), err)
	}
	if err := Restore(ctx, st, job, f, s, nil, nil); err != nil {
		t.Errorf("no parts: %v", err)
	}
}

// The first error ends everything, from wherever it comes; the goroutines are
// looked after by TestMain.
func TestRestoreEndsAtTheFirstError(t *testing.T) {
	f, st := plainForm(), store.NewMemory()
	s := segments(t, st, f, many(0, 30_000), many(1, 30_000))
	parts := []epoch.Slots{{First: 0, Last: 63}, {First: 64, Last: 8192}, {First: 8193, Last: 65535}}
	mine := errors.New("no room")
	for _, at := range []int{1, 5000, 10_000} {
		err := Restore(context.Background(), st, job, f, s, parts, func(part int) func(*Entry) error {
			n := 0
			return func(*Entry) error {
				if n++; part == 1 && n == at {
					return mine
				}
				return nil
			}
		})
		if !errors.Is(err, mine) || !strings.Contains(err.Error(), "state totals: restore segment spend/totals-") {
			t.Errorf("at %d: error %v", at, err)
		}
	}
	for part := range parts {
		ctx, cancel := context.WithCancel(context.Background())
		err := Restore(ctx, st, job, f, s, parts, func(p int) func(*Entry) error {
			return func(*Entry) error {
				if p == part {
					cancel()
				}
				return nil
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled by part %d: error %v", part, err)
		}
	}
}

func TestReadStopsWhenNoMoreIsWanted(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	s := segments(t, st, f, many(0, 1000), many(1, 1000))
	n := 0
	for _, err := range Read(ctx, st, job, f, s, epoch.AllSlots) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 10 {
			break
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := all(cancelled, st, f, s, epoch.AllSlots); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
