package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// shopJob is rewriteJob with real files. Version 2 has a key of its own for each user
// whose name ends with 1, which version 1 lacks, and twice what the user paid.
func shopJob(dir string, version int) *sluice.Job {
	job := sluice.NewJob("payments")
	stream := job.From("payments", file.JSONLines[payment](dir+"/in/*.jsonl", file.Follow(), file.Poll(10*time.Millisecond)))
	keyed := stream.KeyBy(func(p payment) string { return keyOf(p, version) })
	if version == 1 {
		keyed.FoldKeep(balances, func(b *balance, p payment) bool { b.add(p); return open(p) }).
			To("owing", file.Upsert(dir+"/owing", func(user string, b balance) owing { return owing{user, b.Cents, 1} }))
	} else {
		keyed.FoldKeep(sluice.NewState[string, doubled]("balance"), func(d *doubled, p payment) bool { d.add(p); return open(p) }).
			To("owing", file.Upsert(dir+"/owing", func(user string, d doubled) owing { return owing{user, d.Cents, int64(version)} }))
	}
	return job
}

func keyOf(p payment, version int) string {
	if version == 2 && strings.HasSuffix(p.User, "1") {
		return p.User + " too"
	}
	return p.User
}

// oweBy is owe for a job of shopJob.
func oweBy(payments []payment, version int) map[string]owing {
	keyed := slices.Clone(payments)
	for i, p := range keyed {
		keyed[i].User = keyOf(p, version)
	}
	table := owe(keyed, int64(version))
	if version == 2 { // which has what was paid, not twice that
		for user, row := range table {
			row.Cents /= 2
			table[user] = row
		}
	}
	return table
}

// shop is a folder in which versions of the job run one after the other.
type shop struct {
	*testing.T
	dir     string
	store   store.Store
	options sluice.Options
}

func newShop(t *testing.T) *shop {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	return &shop{T: t, dir: dir, store: st, options: sluice.Options{
		Store: st, Volatile: true, Log: slog.New(slog.DiscardHandler), Epoch: 20 * time.Millisecond, EpochBytes: 4000, Keep: time.Millisecond, KeepEpochs: 1,
	}}
}

// pay appends payments to the job's input.
func (s *shop) pay(payments []payment) {
	s.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "in", "payments.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	for _, p := range payments {
		line, err := json.Marshal(p)
		if err == nil {
			_, err = f.Write(append(line, '\n'))
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

// rows are the table as the files of the sink have it.
func (s *shop) rows() map[string]owing {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "owing", "*.jsonl"))
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(files)
	table := map[string]owing{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			s.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var row struct {
				Op  string `json:"op"`
				Key string `json:"key"`
				Row owing  `json:"row"`
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				s.Fatalf("%s: %q: %v", name, line, err)
			}
			if row.Op == "delete" {
				delete(table, row.Key)
			} else {
				table[row.Key] = row.Row
			}
		}
	}
	return table
}

// await waits until the sink has just these rows; what is amiss is told by the
// deadline of all tests.
func (s *shop) await(running *life, want map[string]owing) {
	s.Helper()
	for tell := 0; ; tell++ {
		got := s.rows()
		if maps.Equal(got, want) {
			return
		}
		if tell%500 == 499 {
			s.Logf("the sink has %d rows, want %d:\n%s", len(got), len(want), differing(got, want))
		}
		select {
		case err := <-running.ended:
			s.Fatalf("the job has ended: %v; the sink has %d rows, want %d:\n%s", err, len(got), len(want), differing(got, want))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// life is a version that runs.
type life struct {
	stop  context.CancelFunc
	live  chan struct{}
	ended chan error
}

// begin runs a version; how says how it comes to be live.
func (s *shop) begin(how func(ctx context.Context, u sluice.Upgrade) error) *life {
	ctx, stop := context.WithCancel(s.Context())
	l := &life{stop: stop, live: make(chan struct{}), ended: make(chan error, 1)}
	told := false
	u := sluice.Upgrade{Auto: true, Told: func(p sluice.UpgradeProgress) {
		if p.Stage == "live" && !told {
			told = true
			close(l.live)
		}
	}}
	go func() { l.ended <- how(ctx, u) }()
	return l
}

// awaitLive waits until a version is live.
func (s *shop) awaitLive(l *life) {
	s.Helper()
	select {
	case <-l.live:
	case err := <-l.ended:
		s.Fatalf("it has ended before it was live: %v", err)
	}
}

// superseded waits until a version has ended because another one is live.
func (s *shop) superseded(l *life) {
	s.Helper()
	var e *epoch.SupersededError
	if err := <-l.ended; !errors.As(err, &e) {
		s.Errorf("the version that was replaced ended with %v", err)
	}
}

// Going back writes each row of the old version's table, and deletes what only the new
// version has put out: the sink is what the old version makes of all inputs.
func TestGoingBackWritesTheOldVersionsTable(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	s := newShop(t)
	first, second, third := somePayments(random, 500, 200), somePayments(random, 80, 220), somePayments(random, 40, 230)

	s.pay(first)
	v1 := s.begin(func(ctx context.Context, _ sluice.Upgrade) error { return shopJob(s.dir, 1).Run(ctx, s.options) })
	s.await(v1, oweBy(first, 1))
	v2 := s.begin(func(ctx context.Context, u sluice.Upgrade) error { return shopJob(s.dir, 2).Upgrade(ctx, s.options, u) })
	s.awaitLive(v2)
	s.superseded(v1)
	s.pay(second)
	mixed := oweBy(first, 1) // rows of keys that the second version did not touch stay
	for _, p := range second {
		row := mixed[keyOf(p, 2)]
		row.User, row.Cents, row.By = keyOf(p, 2), row.Cents+p.Cents, 2
		if mixed[row.User] = row; !open(p) {
			delete(mixed, row.User)
		}
	}
	s.await(v2, mixed)

	back := s.begin(func(ctx context.Context, u sluice.Upgrade) error {
		return shopJob(s.dir, 1).Rollback(ctx, s.options, u)
	})
	s.awaitLive(back)
	s.superseded(v2)
	s.pay(third)
	s.await(back, oweBy(slices.Concat(first, second, third), 1))
	back.stop()
	if err := <-back.ended; err != nil {
		t.Error(err)
	}
}

// An upgrade writes nothing anew unless it is told to; with "all" the sink is the new
// version's table.
func TestAnUpgradeWritesAnewByWish(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	s := newShop(t)
	first, second := somePayments(random, 500, 200), somePayments(random, 60, 220)
	s.pay(first)
	v1 := s.begin(func(ctx context.Context, _ sluice.Upgrade) error { return shopJob(s.dir, 1).Run(ctx, s.options) })
	s.await(v1, oweBy(first, 1))
	v3 := s.begin(func(ctx context.Context, u sluice.Upgrade) error {
		o := s.options
		o.Rewrite = map[string]string{"owing": "all"}
		return shopJob(s.dir, 3).Upgrade(ctx, o, u)
	})
	s.awaitLive(v3)
	s.superseded(v1)
	s.await(v3, oweBy(first, 3))
	s.pay(second)
	s.await(v3, oweBy(slices.Concat(first, second), 3))
	v3.stop()
	if err := <-v3.ended; err != nil {
		t.Error(err)
	}
}
