package fsck_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/store"
)

// busyStore does something else before one of its calls.
type busyStore struct {
	store.Store
	mu        sync.Mutex
	calls, at int
	do        func()
}

func (s *busyStore) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls == s.at {
		s.do()
	}
}

func (s *busyStore) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	s.count()
	return s.Store.Read(ctx, name, limit)
}

func (s *busyStore) Open(ctx context.Context, name string) (store.Object, error) {
	s.count()
	return s.Store.Open(ctx, name)
}

func (s *busyStore) List(ctx context.Context, prefix, after string, limit int) ([]store.Listed, error) {
	s.count()
	return s.Store.List(ctx, prefix, after, limit)
}

func (s *busyStore) Exists(ctx context.Context, name string) (bool, error) {
	s.count()
	return s.Store.Exists(ctx, name)
}

// TestCheckDuringCleanUp cleans the log up before the n-th call of a check, for
// each n: nothing that goes in this way is damage.
func TestCheckDuringCleanUp(t *testing.T) {
	l := newLife(t)
	golden := l.snapshot(t)
	every := 7
	if os.Getenv("SLUICE_TORTURE") != "" {
		every = 1
	}
	for at := 1; ; at += every {
		l.restore(t, golden)
		s := &busyStore{Store: l.store(t), at: at, do: func() { l.cleanUp(t) }}
		report, err := fsck.Check(context.Background(), s, "spend", fsck.Options{Readers: 1, Shallow: true})
		if err != nil || !report.Whole() {
			t.Errorf("cleaned up before call %d: %v, %+v", at, err, report.Findings)
		}
		if s.calls < at {
			return // no such call
		}
	}
}

// cleanUp removes all that only epochs before the head need; what is pinned stays.
func (l life) cleanUp(t testing.TB) {
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, env.Real(), l.store(t), "spend")
	if err != nil {
		t.Fatal(err)
	}
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.PutFloor(ctx, epoch.MainBranch, epoch.FirstTask, head.Manifest.Epoch); err != nil {
		t.Fatal(err)
	}
	if err := job.DropOldFloors(ctx, epoch.MainBranch, epoch.FirstTask); err != nil {
		t.Fatal(err)
	}
	var needed strings.Builder
	var going []string
	for _, object := range l.objects(t) {
		name, _ := epoch.ParsePath(strings.TrimPrefix(object, "spend/"))
		switch {
		case name.Kind == epoch.DataObject:
			going = append(going, object)
		case name.Kind != epoch.ManifestObject:
		case name.Epoch == head.Manifest.Epoch || name.Epoch == savedEpoch || name.Epoch == pinnedEpoch:
			text, err := os.ReadFile(l.path(object))
			if err != nil {
				t.Fatal(err)
			}
			needed.Write(text)
		default:
			going = append(going, object)
		}
	}
	for _, object := range going {
		if !strings.Contains(needed.String(), `"`+strings.TrimPrefix(object, "spend/")+`"`) {
			if err := job.Store().Delete(ctx, object); err != nil {
				t.Fatal(err)
			}
		}
	}
}
