package kafka_test

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// TestImport takes a job over by its state in a file and the offsets that its group
// has committed, or that a person gives: what comes of the new job's topic is what
// one job would have made that had read everything.
func TestImport(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(in, group string) sluice.Import{
		"by the group": func(_, group string) sluice.Import { return sluice.Import{Groups: []string{group}} },
		"by the topic": func(in, _ string) sluice.Import {
			return sluice.Import{Offsets: map[string]int64{in + ":0": 3, in + ":1": 0}}
		},
		"by the source": func(in, _ string) sluice.Import {
			return sluice.Import{Offsets: map[string]int64{"orders:" + in + "/0": 3, "orders:" + in + "/1": 0}}
		},
		"the rest begins": func(in, _ string) sluice.Import {
			return sluice.Import{Offsets: map[string]int64{in + "/0": 3}, BeginRest: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeBrokers(t)
			addrs, group := c.ListenAddrs(), services.Unique("old")
			in, out := group+"-orders", group+"-totals"
			makeTopic(t, addrs, in, 2, nil)
			makeTopic(t, addrs, out, 1, nil)
			// The old job has read the first three orders, and this is what it knew.
			for _, r := range []struct {
				partition int32
				order
			}{{0, order{"ann", 1}}, {0, order{"bob", 10}}, {0, order{"ann", 5}}, {0, order{"ann", 100}}, {1, order{"bob", 1000}}} {
				feedPartition(t, addrs, in, r.partition, r.order)
			}
			offsets := kadm.Offsets{}
			offsets.AddOffset(in, 0, 3, -1)
			offsets.AddOffset(in, 1, 0, -1)
			if err := kadm.NewClient(plainClient(t, addrs)).CommitAllOffsets(t.Context(), group, offsets); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "sums.csv")
			if err := os.WriteFile(path, []byte("key,User,Cents\nann,ann,6\nbob,bob,10\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			job := func() *sluice.Job {
				on := kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty()))
				job := sluice.NewJob("sums")
				sums(job, job.From("orders", kafka.Topic(in, codec.JSON[order](), on, kafka.Group(group+"-new")))).
					To("totals", kafka.Upsert(out, oneTotal, codec.String(), codec.JSON[total](), on))
				return job
			}
			st, log := store.NewMemory(), new(journal)
			im := where(in, group)
			im.Files = []sluice.ImportFile{{State: "sums", Path: path}}
			done, err := job().Import(t.Context(), options(st, log), im)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, p := range done.Offsets {
				got[p.Partition] = p.Next
			}
			if want := map[string]int64{in + "/0": 3, in + "/1": 0}; !maps.Equal(got, want) {
				t.Errorf("the partitions begin at %v, expected %v", got, want)
			}
			if want := (sluice.ImportedState{State: "sums", Rows: 2, Entries: 2}); len(done.States) != 1 || done.States[0] != want {
				t.Errorf("imported: %+v", done.States)
			}
			want := map[string]int64{"ann": 106, "bob": 1010}
			if err := run(t, job(), st, log, func() bool { return maps.Equal(totalsIn(t, addrs[0], out), want) }); err != nil {
				t.Fatal(err)
			}
			if got := totalsIn(t, addrs[0], out); !maps.Equal(got, want) {
				t.Errorf("the totals are %v, expected %v", got, want)
			}
		})
	}
}

// TestImportRefuses sees that offsets that a topic doesn't have are refused before
// anything is made of the job.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	c := fakeBrokers(t)
	addrs := c.ListenAddrs()
	in := services.Unique("orders")
	makeTopic(t, addrs, in, 2, nil)
	feedPartition(t, addrs, in, 0, order{"ann", 1})
	feedPartition(t, addrs, in, 0, order{"ann", 2})
	half, offsets := in+"-half", kadm.Offsets{}
	offsets.AddOffset(in, 0, 0, -1)
	admin := kadm.NewClient(plainClient(t, addrs))
	if err := admin.CommitAllOffsets(t.Context(), half, offsets); err != nil {
		t.Fatal(err)
	}
	removed := kadm.Offsets{}
	removed.AddOffset(in, 0, 1, -1)
	if _, err := admin.DeleteRecords(t.Context(), removed); err != nil {
		t.Fatal(err)
	}
	job := sluice.NewJob("sums")
	sums(job, job.From("orders", kafka.Topic(in, codec.JSON[order](), kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty()))))).Changes().Discard()
	for _, c := range []struct {
		im   sluice.Import
		says string
	}{
		{sluice.Import{Offsets: map[string]int64{in + ":0": 7, in + ":1": 0}}, "partition 0: expected an offset from 1, where the log starts, to 2, where it ends; found that reading is to begin at 7, beyond its end"},
		{sluice.Import{Offsets: map[string]int64{in + ":0": 1}}, fmt.Sprintf("no offset is given for orders:%s/1", in)},
		{sluice.Import{Offsets: map[string]int64{in + ":0": 1, in + ":2": 1}}, fmt.Sprintf("no source has a partition %s:2", in)},
		{sluice.Import{Groups: []string{"nobody"}}, fmt.Sprintf("no offset is given for orders:%s/0, orders:%s/1: expected one for each partition, found none, also in group nobody; give it with --offsets", in, in)},
		{sluice.Import{Groups: []string{half}}, fmt.Sprintf("no offset is given for orders:%s/1: expected one for each partition, found none, also in group %s", in, half)},
		{sluice.Import{Groups: []string{half}, Offsets: map[string]int64{in + ":1": 0}}, "partition 0: expected an offset from 1, where the log starts, to 2, where it ends; found that reading is to begin at 0, before its start"},
	} {
		st, log := store.NewMemory(), new(journal)
		_, err := job.Import(t.Context(), options(st, log), c.im)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, expected that it says %q", c.im, err, c.says)
		}
		if left, _ := st.List(t.Context(), "sums/branches/", "", 10); len(left) > 0 {
			t.Errorf("%+v: %v is left behind", c.im, left[0].Name)
		}
	}
}

// feedPartition writes an order to a partition.
func feedPartition(t *testing.T, addrs []string, topic string, partition int32, o order) {
	t.Helper()
	value, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	client := plainClient(t, addrs, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
