package migrate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

var errInjected = errors.New("injected fault")

// Each call of a folder's file system fails in turn. The migration then ends with
// that error, or went well all the same: in no case is a segment there that isn't
// whole.
func TestEachCallFails(t *testing.T) {
	for name, test := range map[string]struct {
		large bool
		way   func(x *stock) *carry.Way
	}{
		"a small segment": {way: (*stock).sealing},
		"an upload":       {large: true, way: (*stock).sealing},
		"other keys": {way: func(x *stock) *carry.Way {
			return x.rekeying(func(key string, _ box) []string { return []string{"new " + key} }, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newStock(t)
			dir := t.TempDir()
			open := func(h faultenv.Hooks) *store.Folder {
				t.Helper()
				e := faultenv.Wrap(env.Real(), faultenv.Places{Store: dir}, h)
				st, err := store.OpenFolder(e, dir)
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			whole := open(faultenv.Hooks{})
			x.st = whole
			stored := crates(2000)
			if test.large { // so that they are more than one create takes
				for i := range 60 {
					stored[i].value.Label = strings.Repeat(fmt.Sprintf("%08x", uint32(i)*2654435761), 20_000)
				}
			}
			x.keep("things", false, stored[:1500]...)
			x.keep("things", false, stored[1000:]...)
			want := boxed(stored)
			if name == "other keys" {
				for i := range want {
					want[i].key = "new " + want[i].key
				}
			}
			want = inOrder(want)

			failed := 0
			for nth := int64(1); ; nth++ {
				var calls atomic.Int64
				var armed, hit atomic.Bool
				st := open(faultenv.Hooks{Before: func(c faultenv.Call) (f faultenv.Fault) {
					if armed.Load() && c.Path != "" && calls.Add(1) == nth {
						hit.Store(true)
						f.Err = errInjected
					}
					return f
				}})
				armed.Store(true)
				way, path := test.way(x), fmt.Sprintf("new-%d.avro", nth)
				o := x.options(way, path, 2)
				o.Store = st
				segment, _, err := State(t.Context(), o)
				armed.Store(false)
				switch {
				case err == nil:
					x.st = whole
					same(t, x.migrated(way, segment), want)
				case !errors.Is(err, errInjected) && !errors.Is(err, store.ErrUnknown):
					t.Fatalf("call %d: %v", nth, err)
				default:
					failed++
				}
				os.Remove(filepath.Join(dir, "depot", path))
				if !hit.Load() {
					if err != nil || failed < 5 {
						t.Fatalf("%d of %d calls' failures ended a migration; without one: %v", failed, nth-1, err)
					}
					t.Logf("%d of %d calls' failures ended a migration", failed, nth-1)
					return
				}
			}
		})
	}
}

// stuckAt is where objects of [stuck] stop answering: behind some batches, and
// before as many are under way as there may be.
const stuckAt = 600_000

// stuck is a store whose objects answer nothing from there on until the context
// ends that they were opened with.
type stuck struct {
	store.Store
	waits   chan struct{} // is closed once somebody waits
	waiting *sync.Once
}

type stuckObject struct {
	store.Object
	ctx   context.Context
	store *stuck
}

func (s *stuck) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &stuckObject{o, ctx, s}, nil
}

func (o *stuckObject) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) <= stuckAt {
		return o.Object.ReadAt(p, at)
	}
	o.store.waiting.Do(func() { close(o.store.waits) })
	<-o.ctx.Done()
	return 0, fmt.Errorf("read: %w", o.ctx.Err())
}

// An error of a worker, and a cancellation, end a read that the store does not
// answer.
func TestStoreThatHangs(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		x := newStock(t)
		stored := inOrder(crates(7000))
		random := rand.New(rand.NewPCG(1, 2)) // so that labels can't be compressed
		for i := range stored {
			label := make([]byte, 100)
			for i := range label {
				label[i] = byte(random.Uint32())
			}
			stored[i].value.Label = hex.EncodeToString(label)
		}
		if !cancelled {
			stored[100].value.Label = "bad"
		}
		x.keep("things", false, stored...)
		hung := &stuck{x.st, make(chan struct{}), new(sync.Once)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := x.options(x.way(false, carry.Spec[spot, box]{Chain: carry.First(func(c crate) (box, error) {
			if c.Label == "bad" {
				<-hung.waits
			}
			return seal(c)
		})}), "new.avro", 2)
		o.Store = hung
		ended := make(chan error, 1)
		go func() {
			_, _, err := State(ctx, o)
			ended <- err
		}()
		select {
		case <-hung.waits:
		case err := <-ended:
			t.Fatalf("it ended before the store hung: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("the store does not hang")
		}
		if cancelled {
			cancel()
		}
		select {
		case err := <-ended:
			var failed *carry.EntryError
			if cancelled != errors.Is(err, context.Canceled) || !cancelled && !errors.As(err, &failed) {
				t.Fatalf("cancelled %v: %v", cancelled, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it waits for the store for ever")
		}
	}
}
