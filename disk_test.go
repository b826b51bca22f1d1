package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// counted is a source of one partition with the numbers from 0 to until-1, each
// of one byte.
type counted struct {
	until  int64
	opened func()          // if set, is called when the source is opened
	pause  int64           // before this number it waits
	resume <-chan struct{} // for this
}

func (counted) Describe() connector.Description {
	return connector.Description{Connector: "counted", Contract: 1}
}

func (c counted) Open(context.Context, connector.Opening) (connector.Reader, error) {
	if c.opened != nil {
		c.opened()
	}
	return c, nil
}

func (counted) NewDecoder() func(b *connector.Batch, i int, v *int64) error {
	return func(b *connector.Batch, i int, v *int64) error { *v = b.Records[i].Offset; return nil }
}

func (counted) Partitions(context.Context) ([]string, error) { return []string{"all"}, nil }
func (counted) Bounded() bool                                { return true }
func (counted) Close() error                                 { return nil }

func (c counted) Partition(_ context.Context, _ string, from connector.Offset) (connector.Partition, error) {
	return &countedPartition{c, from.Next}, nil
}

type countedPartition struct {
	counted
	next int64
}

func (p *countedPartition) Next(ctx context.Context, b *connector.Batch, _ int64) error {
	if p.next >= p.until {
		return io.EOF
	}
	if p.resume != nil && p.next >= p.pause {
		select {
		case <-p.resume:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for end := min(p.next+int64(b.Limit), p.until); p.next < end; p.next++ {
		b.Records = append(b.Records, connector.Record{Offset: p.next, Value: []byte("x")})
	}
	b.To = connector.Offset{Next: p.next}
	return nil
}

func (p *countedPartition) End() int64 { return p.until }

// removing is a store that tells when the first manifest is removed, and when a
// merge has made what comes of it.
type removing struct {
	store.Store
	once   sync.Once
	begun  chan struct{}
	merges chan struct{} // has room for one
}

func (s *removing) Create(ctx context.Context, name string, data []byte) error {
	err := s.Store.Create(ctx, name, data)
	s.tellMerge(err)
	return err
}

func (s *removing) Upload(ctx context.Context, name string) (store.Upload, error) {
	up, err := s.Store.Upload(ctx, name)
	return toldUpload{up, s}, err
}

type toldUpload struct {
	store.Upload
	s *removing
}

func (u toldUpload) Commit(ctx context.Context) error {
	err := u.Upload.Commit(ctx)
	u.s.tellMerge(err)
	return err
}

func (s *removing) tellMerge(err error) {
	if err != nil || !calledBy("internal/state.Merge") {
		return
	}
	select {
	case s.merges <- struct{}{}:
	default:
	}
}

func (s *removing) Delete(ctx context.Context, name string) error {
	if n, ok := epoch.ParsePath(strings.TrimPrefix(name, "disk/")); ok && n.Kind == epoch.ManifestObject {
		s.once.Do(func() { close(s.begun) })
	}
	return s.Store.Delete(ctx, name)
}

// box is a sink that keeps nothing of what it gets but how far that is. Unless it
// is open it takes nothing.
type box struct {
	connector.Sink
	*boxed
	open bool
}

type boxed struct {
	mu     sync.Mutex
	record *connector.SinkRecord
}

func (b box) Open(context.Context, connector.Opening, connector.RecordKey) (connector.Target, error) {
	return b, nil
}

func (b box) Record(context.Context) (*connector.SinkRecord, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record, nil
}

func (b box) Make(_ context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record == nil {
		b.record = &first
	}
	return *b.record, nil
}

func (b box) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	if !b.open {
		<-ctx.Done()
		return 0, nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.record
	verdict := d.Decide(found)
	if verdict == connector.Apply {
		b.record = &d.Record
	}
	return verdict, found, nil
}

func (box) Close() error { return nil }

// diskful is a job whose store is measured.
type diskful struct {
	t     *testing.T
	sink  boxed
	store *removing
	keys  int64 // of its state
	epoch int64 // records in an epoch
	read  int64 // records until now
	pins  map[epoch.Epoch]bool
}

type note struct {
	Count int64
	Text  string
}

// write makes a text of the number that doesn't compress well.
func (n *note) write(number int64) {
	n.Count++
	n.Text = epoch.Hash(fmt.Append(nil, number, n.Count))
}

func newDiskful(t *testing.T) *diskful {
	d := &diskful{
		t: t, keys: 20_000, epoch: 1000, pins: map[epoch.Epoch]bool{},
		store: &removing{Store: store.NewMemory(), begun: make(chan struct{}), merges: make(chan struct{}, 1)},
	}
	if os.Getenv("SLUICE_TORTURE") == "1" {
		d.keys, d.epoch = 200_000, 10_000
	}
	return d
}

func (d *diskful) job(source counted, open bool) *sluice.Job {
	d.t.Helper()
	job := sluice.NewJob("disk")
	job.From("numbers", source).
		KeyBy(func(n int64) int64 { return int64(uint64(n) * 0x9E3779B97F4A7C15 % uint64(d.keys)) }).
		Fold(sluice.NewState[int64, note]("notes"), (*note).write).
		To("out", file.Upsert("unused", func(_ int64, n note) note { return n }))
	if err := job.ReplaceSink("out", box{job.Sinks()[0].Sink, &d.sink, open}); err != nil {
		d.t.Fatal(err)
	}
	return job
}

const keptEpochs = 5

func (d *diskful) options() sluice.Options {
	return sluice.Options{
		Store: d.store, Log: slog.New(slog.DiscardHandler), Epoch: time.Hour, EpochBytes: d.epoch, BatchRecords: int(d.epoch),
		Keep: time.Nanosecond, KeepEpochs: keptEpochs, Grace: time.Millisecond,
	}
}

// run runs the job for some epochs more. In the middle of its first run it waits
// until the clean-up in the background has removed something.
func (d *diskful) run(epochs int64) {
	d.t.Helper()
	source := counted{until: d.read + epochs*d.epoch, pause: d.read + epochs/2*d.epoch, resume: d.store.begun}
	if err := d.job(source, true).Run(d.t.Context(), d.options()); err != nil {
		d.t.Fatal(err)
	}
	d.read = source.until
}

// owe runs the job for some epochs that it can't deliver.
func (d *diskful) owe(epochs int64) {
	d.t.Helper()
	d.oweFrom(counted{until: d.read + epochs*d.epoch}, epochs)
}

func (d *diskful) oweFrom(source counted, epochs int64) {
	d.t.Helper()
	d.read = source.until
	left := epochs
	d.stuck(source, func(stop func()) func(sluice.Committed) {
		return func(sluice.Committed) {
			if left--; left == 0 {
				stop()
			}
		}
	})
}

// settle runs the job for an epoch at a time until no merge is due: on a busy
// machine merges are behind, since no commit waits for them. Each start begins the
// one that is due, and reads on once it has ended.
func (d *diskful) settle() {
	d.t.Helper()
	for range 20 {
		if _, _, due := state.PlanMerge(d.headManifest().State["notes"].Segments); !due {
			return
		}
		select {
		case <-d.store.merges: // of a run before
		default:
		}
		d.oweFrom(counted{until: d.read + d.epoch, pause: d.read, resume: d.store.merges}, 1)
	}
	d.t.Fatal("a merge is due after 20 epochs that each waited for one")
}

// restart starts the job and stops it at once: so what its last owner has left
// may go.
func (d *diskful) restart() {
	d.t.Helper()
	source := counted{until: d.read}
	d.stuck(source, nil)
}

// stuck runs the job, its sink hanging, until it stops itself.
func (d *diskful) stuck(source counted, committed func(stop func()) func(sluice.Committed)) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	o := d.options()
	if committed == nil {
		source.opened = stop
	} else {
		o.Committed = committed(stop)
	}
	var pending *sluice.PendingError
	if err := d.job(source, false).Run(ctx, o); err != nil && !errors.As(err, &pending) {
		d.t.Fatal(err)
	}
}

func (d *diskful) found() *epoch.Job {
	d.t.Helper()
	j, err := epoch.FindJob(d.t.Context(), env.Real(), d.store, "disk")
	if err != nil {
		d.t.Fatal(err)
	}
	return j
}

// pin makes a savepoint of the newest epoch.
func (d *diskful) pin() {
	d.t.Helper()
	j, head := d.found(), d.head()
	at := epoch.Point{Branch: epoch.MainBranch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: head}}
	if _, err := j.PutSavepoint(d.t.Context(), "before", at, "a test"); err != nil {
		d.t.Fatal(err)
	}
	d.pins[head] = true
}

func (d *diskful) head() epoch.Epoch { return d.headManifest().Epoch }

func (d *diskful) headManifest() epoch.Manifest {
	d.t.Helper()
	head, err := d.found().Head(d.t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		d.t.Fatal(err)
	}
	return head.Manifest
}

// clean does what the command gc does.
func (d *diskful) clean() {
	d.t.Helper()
	if _, err := clean.New(d.found(), clean.Options{Keep: -1, KeepEpochs: keptEpochs}).All(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// bare is a manifest as this test reads it, by itself.
type bare struct {
	Epoch    epoch.Epoch
	Position int64
	State    map[string]struct{ Segments []struct{ Path string } }
	Sinks    map[string]struct {
		Confirmed int64
		Outbox    []struct{ Path string }
	}
}

// contents are the sizes of all objects of the store, and the manifests.
func (d *diskful) contents() (sizes map[string]int64, manifests []bare) {
	d.t.Helper()
	listed, err := d.store.List(d.t.Context(), "", "", 1<<20)
	if err != nil {
		d.t.Fatal(err)
	}
	sizes = map[string]int64{}
	for _, l := range listed {
		sizes[l.Name] = l.Size
		if base := strings.TrimSuffix(filepath.Base(l.Name), ".json"); filepath.Dir(l.Name) != "disk/branches/main/0.0" || len(base) != 20 {
			continue
		}
		data, err := d.store.Read(d.t.Context(), l.Name, l.Size)
		if err != nil {
			d.t.Fatal(err)
		}
		var m bare
		if err := json.Unmarshal(data, &m); err != nil {
			d.t.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	return sizes, manifests
}

// merged is how large the newest epoch's state is if it is one segment.
func (d *diskful) merged() int64 {
	d.t.Helper()
	entry := d.headManifest().State["notes"]
	form, err := state.FormOf("notes", entry)
	if err != nil {
		d.t.Fatal(err)
	}
	aside := store.NewMemory()
	for _, s := range entry.Segments {
		data, err := d.store.Read(d.t.Context(), "disk/"+s.Path, s.Bytes)
		if err == nil {
			err = aside.Create(d.t.Context(), "disk/"+s.Path, data)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	whole, err := state.Merge(d.t.Context(), aside, "disk", "branches/main/0.0/data/merged.avro", form, entry.Segments, true)
	if err != nil {
		d.t.Fatal(err)
	}
	if whole.Rows != min(d.keys, d.read) {
		d.t.Fatalf("the state has %d entries, want %d", whole.Rows, d.keys)
	}
	return whole.Bytes
}

// check holds what is on the disk against the bound, and every manifest against
// the reason why it is still there.
func (d *diskful) check() {
	d.t.Helper()
	sizes, manifests := d.contents()
	head := manifests[len(manifests)-1]
	inHead, besides := map[string]bool{}, map[string]bool{}
	for _, s := range head.State["notes"].Segments {
		inHead["disk/"+s.Path] = true
	}
	owed := head.Sinks["out"].Confirmed < head.Position
	for _, m := range manifests {
		kept := m.Epoch+keptEpochs >= head.Epoch
		if !kept && !d.pins[m.Epoch] && !(owed && m.Position >= head.Sinks["out"].Confirmed) {
			d.t.Errorf("epoch %d is there, of %d, and nobody needs it", m.Epoch, head.Epoch)
		}
		for _, s := range m.State["notes"].Segments {
			besides["disk/"+s.Path] = true
		}
		for _, o := range m.Sinks["out"].Outbox {
			besides["disk/"+o.Path] = true
		}
	}
	total, others := int64(0), int64(0)
	for name, size := range sizes {
		total += size
		if besides[name] && !inHead[name] {
			others += size
		}
	}
	merged := d.merged()
	d.t.Logf("epoch %d, %d manifests: %d bytes in %d objects; the state merged %d, %d segments; only others refer to %d; (total - others) / merged = %.2f",
		head.Epoch, len(manifests), total, len(sizes), merged, len(inHead), others, float64(total-others)/float64(merged))
	if limit := merged*5/2 + others; total > limit {
		d.t.Errorf("%d bytes are on the disk, want at most 2.5 times %d and %d", total, merged, others)
	}
}

// TestDiskStaysBounded: whatever has passed, a store holds little more than the
// newest state, and what is kept for a reason.
func TestDiskStaysBounded(t *testing.T) {
	epochs := int64(150)
	if os.Getenv("SLUICE_TORTURE") == "1" {
		epochs = 2000
	}
	for name, live := range map[string]func(d *diskful){
		"updates":      func(d *diskful) { d.run(epochs) },
		"large epochs": func(d *diskful) { d.epoch += d.epoch / 2; d.run(epochs) },
		"restarts": func(d *diskful) {
			for range 10 {
				d.run(epochs / 10)
			}
		},
		"a savepoint": func(d *diskful) { d.run(epochs / 2); d.pin(); d.run(epochs / 2) },
		"owed":        func(d *diskful) { d.run(epochs); d.owe(60) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDiskful(t)
			live(d)
			d.settle()
			d.restart()
			d.clean()
			d.check()
		})
	}
}
