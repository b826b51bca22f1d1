package kafka_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// deskJob is a job that sums up orders, with its store in a folder.
type deskJob struct {
	t            *testing.T
	addrs        []string
	name, folder string
	in, out      string
	admin        *kadm.Client
	fed          int64
	log          journal
	opts         []kafka.SourceOption
	sinkName     string
	takeOver     bool
	more         func(orders *sluice.Stream[order], on kafka.Option) // adds to the job, before its sink
}

func newDeskJob(t *testing.T) *deskJob {
	t.Helper()
	c := fakeBrokers(t)
	d := &deskJob{t: t, addrs: c.ListenAddrs(), name: services.Unique("sums"), folder: filepath.Join(t.TempDir(), "store"), sinkName: "totals"}
	d.in, d.out = d.name+"-orders", d.name+"-totals"
	d.admin = kadm.NewClient(plainClient(t, d.addrs))
	for _, topic := range []string{d.in, d.out} {
		makeTopic(t, d.addrs, topic, 1, nil)
	}
	return d
}

// job is the job.
func (d *deskJob) job() *sluice.Job {
	on := kafka.On(kafka.Connect(kafka.Brokers(d.addrs...), hasty()))
	job := sluice.NewJob(d.name)
	orders := job.From("orders", kafka.Topic(d.in, codec.JSON[order](), append(d.opts, on)...))
	if d.more != nil {
		d.more(orders, on)
	}
	sums(job, orders).
		To(d.sinkName, kafka.Upsert(d.out, oneTotal, codec.String(), codec.JSON[total](), on))
	return job
}

func (d *deskJob) open() store.Store {
	d.t.Helper()
	st, err := store.OpenFolder(env.Real(), d.folder)
	if err != nil {
		d.t.Fatal(err)
	}
	return st
}

// passes runs the job over some more orders.
func (d *deskJob) passes() {
	d.t.Helper()
	for range 3 {
		d.fed++
		feedOrders(d.t, d.addrs[0], d.in, order{"ann", 1})
	}
	if err := run(d.t, d.job(), d.open(), &d.log, func() bool { return totalsIn(d.t, d.addrs[0], d.out)["ann"] == d.fed }); err != nil {
		d.t.Fatal(err)
	}
}

// ends runs the job, which is to end by itself.
func (d *deskJob) ends(code int, says ...string) error {
	d.t.Helper()
	o := options(d.open(), &d.log)
	o.TakeOver = d.takeOver
	err := runWith(d.t, d.job(), o, &d.log, never)
	if err == nil || exitCode(err) != code {
		d.t.Fatalf("exit code %d, expected %d: %v", exitCode(err), code, err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			d.t.Errorf("%q isn't in %v", s, err)
		}
	}
	return err
}

func (d *deskJob) remove(topic string) {
	d.t.Helper()
	if r, err := d.admin.DeleteTopics(d.t.Context(), topic); err != nil || r.Error() != nil {
		d.t.Fatal(err, r.Error())
	}
}

// TestHowJobsEnd holds the exit codes of docs/operations.md, where a system was
// replaced or restored.
func TestHowJobsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(d *deskJob){
		"the source's topic is made anew": func(d *deskJob) {
			d.passes()
			d.remove(d.in)
			makeTopic(d.t, d.addrs, d.in, 1, nil)
			if _, ok := errors.AsType[*kafka.ReplacedError](d.ends(16, d.in)); !ok {
				d.t.Error("no ReplacedError")
			}
		},
		"records are gone before they were read": func(d *deskJob) {
			d.passes()
			feedOrders(d.t, d.addrs[0], d.in, order{"ann", 1}, order{"ann", 1})
			to := kadm.Offsets{}
			to.AddOffset(d.in, 0, 5, -1)
			if r, err := d.admin.DeleteRecords(d.t.Context(), to); err != nil || r.Error() != nil {
				d.t.Fatal(err, r.Error())
			}
			if _, ok := errors.AsType[*kafka.LostError](d.ends(16, d.in)); !ok {
				d.t.Error("no LostError")
			}
		},
		"the sink's topic is gone": func(d *deskJob) {
			d.passes()
			d.remove(d.out)
			d.ends(1, "sink totals", d.out, "isn't there")
		},
		"the progress topic is gone": func(d *deskJob) {
			d.passes()
			d.remove(d.name + ".sluice")
			d.ends(15, "sink totals", d.name+".sluice", "isn't there", "restore it")
			d.takeOver = true
			d.ends(15, "sink totals", d.name+".sluice", "isn't there")
			d.takeOver = false
			// A sink that is new, and comes first, doesn't make it anew either.
			feedOrders(d.t, d.addrs[0], d.in, order{"ann", 1})
			d.more = func(orders *sluice.Stream[order], on kafka.Option) {
				orders.To("another", kafka.Append(d.out, codec.JSON[order](), on))
			}
			d.ends(15, "sink totals", d.name+".sluice", "isn't there")
			if found, err := d.admin.ListTopics(d.t.Context(), d.name+".sluice"); err != nil || found.Has(d.name+".sluice") {
				d.t.Errorf("the topic was made anew: %v", err)
			}
			if got := totalsIn(d.t, d.addrs[0], d.out)["ann"]; got != d.fed {
				d.t.Errorf("delivered without the record: %d, expected %d", got, d.fed)
			}
		},
		"the progress topic is an older one": func(d *deskJob) {
			d.passes()
			old := committed(d.t, d.addrs, d.name+".sluice")
			d.passes()
			last := old[len(old)-1]
			again := &kgo.Record{Topic: last.Topic, Key: last.Key, Value: last.Value}
			if err := plainClient(d.t, d.addrs).ProduceSync(d.t.Context(), again).FirstErr(); err != nil {
				d.t.Fatal(err)
			}
			feedOrders(d.t, d.addrs[0], d.in, order{"ann", 1})
			d.ends(15, "sink totals")
		},
		"the store is an older one": func(d *deskJob) {
			d.passes()
			copied := d.folder + "2"
			if err := os.CopyFS(copied, os.DirFS(d.folder)); err != nil {
				d.t.Fatal(err)
			}
			d.passes()
			d.folder = copied
			d.ends(15, "sink totals")
		},
		"another job's topic": func(d *deskJob) {
			d.passes()
			d.folder += "2"
			d.opts = []kafka.SourceOption{kafka.NoGroup()}
			d.ends(15, "two jobs of one name")
		},
		"a group that others use": func(d *deskJob) {
			to := kadm.Offsets{}
			to.AddOffset(d.in, 0, 0, -1)
			if r, err := d.admin.CommitOffsets(d.t.Context(), d.name, to); err != nil || r.Error() != nil {
				d.t.Fatal(err, r.Error())
			}
			if _, ok := errors.AsType[*kafka.GroupInUseError](d.ends(16, "kafka.Group")); !ok {
				d.t.Error("no GroupInUseError")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(newDeskJob(t)) })
	}
}
