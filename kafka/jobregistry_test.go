package kafka_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/types/known/typepb"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/codec/registry/registrytest"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// catalog is a registry, and a job's topics in a cluster.
type catalog struct {
	*registrytest.Server
	t        testing.TB
	addrs    []string
	name     string // the job's
	in, out  string // topics
	dead     string
	schemas  *registry.Registry
	subjects *sr.Client
	writer   *kgo.Client
	store    store.Store
	log      journal
}

func newCatalog(t testing.TB, addrs []string) *catalog {
	t.Helper()
	c := &catalog{Server: registrytest.Start(t), t: t, addrs: addrs, name: services.Unique("sums"), store: store.NewMemory()}
	c.in, c.out, c.dead = c.name+"-orders", c.name+"-totals", c.name+"-dead"
	for _, topic := range []string{c.in, c.out, c.dead} {
		makeTopic(t, addrs, topic, 1, nil)
	}
	c.schemas = c.open(registry.Patience(0))
	var err error
	if c.subjects, err = sr.NewClient(sr.URLs(c.URL)); err != nil {
		t.Fatal(err)
	}
	c.writer = plainClient(t, addrs)
	return c
}

// open opens the registry as a job does.
func (c *catalog) open(opts ...registry.Option) *registry.Registry {
	c.t.Helper()
	r, err := registry.New(append([]registry.Option{registry.URLs(c.URL)}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { r.Close() })
	return r
}

func (c *catalog) on() kafka.Option {
	return kafka.On(kafka.Connect(kafka.Brokers(c.addrs...), hasty()))
}

// avroOrders and the like are the codecs of the tests: of both formats, for both
// sides.
func (c *catalog) avroOrders() codec.Codec[order] {
	return codec.Avro[order](codec.Record("shop.Order"), codec.Registered(c.schemas))
}

func (c *catalog) avroTotals() codec.Codec[total] {
	return codec.Avro[total](codec.Record("shop.Total"), codec.Registered(c.schemas))
}

func (c *catalog) avroKeys() codec.Codec[string] {
	return codec.Avro[string](codec.Registered(c.schemas))
}

func (c *catalog) protobufOrders() codec.Codec[order] {
	return codec.Protobuf(
		func(m *typepb.Field, o *order) error { o.User, o.Cents = m.GetName(), int64(m.GetNumber()); return nil },
		func(o *order, m *typepb.Field) error { m.Name, m.Number = o.User, int32(o.Cents); return nil },
		codec.Registered(c.schemas))
}

func (c *catalog) protobufTotals() codec.Codec[total] {
	return codec.Protobuf(
		func(m *typepb.Field, s *total) error { s.User, s.Cents = m.GetName(), int64(m.GetNumber()); return nil },
		func(s *total, m *typepb.Field) error { m.Name, m.Number = s.User, int32(s.Cents); return nil },
		codec.Registered(c.schemas))
}

// job sums up orders. With dead letters it has a topic for these.
func (c *catalog) job(orders codec.Codec[order], totals codec.Codec[total], deadLetters bool) *sluice.Job {
	job := sluice.NewJob(c.name)
	sums(job, job.From("orders", kafka.Topic(c.in, orders, c.on()))).
		To("totals", kafka.Upsert(c.out, oneTotal, c.avroKeys(), totals, c.on()))
	if deadLetters {
		job.DeadLetter("dead", kafka.Append(c.dead, codec.JSON[sluice.DeadLetter](), c.on()))
	}
	return job
}

func (c *catalog) run(job *sluice.Job, enough func() bool) error {
	c.t.Helper()
	return run(c.t, job, c.store, &c.log, enough)
}

// feed writes orders as a codec makes them.
func (c *catalog) feed(orders codec.Codec[order], all ...order) {
	c.t.Helper()
	encode := codec.For(orders, codec.Use{Topic: c.in}).NewEncoder()
	for i := range all {
		value, err := encode(nil, &all[i])
		if err != nil {
			c.t.Fatal(err)
		}
		c.put(value)
	}
}

func (c *catalog) put(value []byte) {
	c.t.Helper()
	if err := c.writer.ProduceSync(c.t.Context(), &kgo.Record{Topic: c.in, Value: value}).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// table is what the output's topic comes to, by its keys.
func (c *catalog) table(totals codec.Codec[total]) map[string]int64 {
	c.t.Helper()
	decodeKey, decode := c.avroKeys().NewDecoder(), totals.NewDecoder()
	out := map[string]int64{}
	for _, r := range committed(c.t, c.addrs, c.out) {
		var user string
		var s total
		if err := errors.Join(decodeKey(r.Key, &user), decode(r.Value, &s)); err != nil || s.User != user {
			c.t.Fatalf("key %x, value %x: %q, %+v, %v", r.Key, r.Value, user, s, err)
		}
		out[user] = s.Cents
	}
	return out
}

// known are the registry's subjects.
func (c *catalog) known() []string {
	c.t.Helper()
	names, err := c.subjects.Subjects(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return names
}

func (c *catalog) versions(subject string) []int {
	versions, _ := c.subjects.SubjectVersions(c.t.Context(), subject) // none: there is no such subject
	return versions
}

// exitCode is what the command line ends with after an error.
func exitCode(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return 1
}

// TestJobsWithRegistry: schemas of the outputs are registered when a job starts,
// before there is any record, under the subjects of their topics; records come out
// right; and a replay gives the bytes that the job has frozen, ids among them.
func TestJobsWithRegistry(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		for name, codecs := range map[string]func(c *catalog) (codec.Codec[order], codec.Codec[total], sr.SchemaType){
			"avro to protobuf": func(c *catalog) (codec.Codec[order], codec.Codec[total], sr.SchemaType) {
				return c.avroOrders(), c.protobufTotals(), sr.TypeProtobuf
			},
			"protobuf to avro": func(c *catalog) (codec.Codec[order], codec.Codec[total], sr.SchemaType) {
				return c.protobufOrders(), c.avroTotals(), sr.TypeAvro
			},
		} {
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				c := newCatalog(t, addrs)
				orders, totals, format := codecs(c)
				value := c.out + "-value"
				if err := c.run(c.job(orders, totals, false), func() bool { return len(c.versions(value)) > 0 && len(c.versions(c.out+"-key")) > 0 }); err != nil {
					t.Fatal(err)
				}
				if found := committed(t, addrs, c.out); len(found) != 0 {
					t.Fatalf("%d records came of nothing", len(found))
				}
				own := slices.DeleteFunc(c.known(), func(subject string) bool { return strings.HasPrefix(subject, "google/") }) // imports
				if want := []string{c.out + "-key", value}; !slices.Equal(slices.Sorted(slices.Values(own)), want) {
					t.Fatalf("registered: %q, expected %q", own, want)
				}
				if s, err := c.subjects.SchemaByVersion(t.Context(), value, -1); err != nil || s.Type != format || s.Version != 1 {
					t.Fatalf("registered %+v, %v", s, err)
				}

				c.feed(orders, order{"ann", 5}, order{"bob", 7}, order{"ann", 30})
				done := func() bool { r := c.table(totals); return r["ann"] == 35 && r["bob"] == 7 }
				if err := c.run(c.job(orders, totals, false), done); err != nil {
					t.Fatal(err)
				}
				c.feed(orders, order{"bob", 100})
				if err := c.run(c.job(orders, totals, false), func() bool { return c.table(totals)["bob"] == 107 }); err != nil {
					t.Fatal(err)
				}
				if got := c.versions(value); len(got) != 1 {
					t.Errorf("versions %v after three starts", got)
				}
				replayed, err := c.job(orders, totals, false).Replay(t.Context(), options(c.store, &c.log), 0)
				if err != nil || replayed.Records != 4 || len(replayed.Differences) != 0 {
					t.Errorf("replayed %+v, %v", replayed, err)
				}
			})
		}
	})
}

// avroTotal is a schema of the output's records, with a type for the field Cents
// and perhaps further fields.
func avroTotal(cents string, more ...string) sr.Schema {
	fields := append([]string{`{"name":"User","type":"string","default":""}`, `{"name":"Cents","type":"` + cents + `"}`}, more...)
	return sr.Schema{Type: sr.TypeAvro, Schema: `{"type":"record","name":"Total","namespace":"shop","fields":[` + strings.Join(fields, ",") + `]}`}
}

// TestIncompatibleAtStart: a schema that doesn't fit what the subject has, by its
// mode, ends the start, with nothing registered. The error names subject, mode and
// version.
func TestIncompatibleAtStart(t *testing.T) {
	t.Parallel()
	addrs := fakeBrokers(t).ListenAddrs()
	fits := avroTotal("long", `{"name":"Note","type":"string","default":""}`)
	all := []string{registrytest.Backward, registrytest.BackwardTransitive, registrytest.Forward, registrytest.ForwardTransitive, registrytest.Full, registrytest.FullTransitive}
	for _, before := range []struct {
		name     string
		versions []sr.Schema
		refuse   []string // modes
		names    int      // the version
	}{
		{"fits", []sr.Schema{fits}, nil, 0},
		{"neither reads the other", []sr.Schema{avroTotal("string")}, all, 1},
		{"only the old reads the new", []sr.Schema{avroTotal("double")}, []string{registrytest.Backward, registrytest.BackwardTransitive, registrytest.Full, registrytest.FullTransitive}, 1},
		{"only the new reads the old", []sr.Schema{avroTotal("int")}, []string{registrytest.Forward, registrytest.ForwardTransitive, registrytest.Full, registrytest.FullTransitive}, 1},
		{"an earlier version", []sr.Schema{avroTotal("string"), fits}, []string{registrytest.BackwardTransitive, registrytest.ForwardTransitive, registrytest.FullTransitive}, 1},
		{"the newest version", []sr.Schema{fits, avroTotal("string")}, all, 2},
	} {
		for _, mode := range registrytest.Modes() {
			t.Run(strings.ReplaceAll(before.name, " ", "-")+"/"+mode, func(t *testing.T) {
				c := newCatalog(t, addrs)
				subject := c.out + "-value"
				set := func(mode string) {
					level := sr.CompatNone
					if err := level.UnmarshalText([]byte(mode)); err != nil {
						t.Fatal(err)
					}
					if r := c.subjects.SetCompatibility(t.Context(), sr.SetCompatibility{Level: level}, subject)[0]; r.Err != nil {
						t.Fatal(r.Err)
					}
				}
				set(registrytest.None)
				for _, s := range before.versions {
					if _, err := c.subjects.RegisterSchema(t.Context(), subject, s, -1, -1); err != nil {
						t.Fatal(err)
					}
				}
				set(mode)
				count := len(before.versions)
				err := c.run(c.job(c.avroOrders(), c.avroTotals(), true), func() bool { return len(c.versions(subject)) > count })
				if !slices.Contains(before.refuse, mode) {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				bad, ok := errors.AsType[*registry.IncompatibleError](err)
				if !ok || bad.Subject != subject || bad.Mode != mode || bad.Version != before.names || exitCode(err) != 1 {
					t.Fatalf("ended with %v (exit code %d)", err, exitCode(err))
				}
				for _, part := range []string{"sink totals", "subject " + subject, "mode " + mode, fmt.Sprint("version ", before.names), "Cents"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q isn't in %v", part, err)
					}
				}
				if n := len(c.versions(subject)); n != count {
					t.Errorf("%d versions, expected %d", n, count)
				}
			})
		}
	}
}

// TestRegistryAwayAtStart: a start that needs a schema's id ends, and says why; a
// later one goes on.
func TestRegistryAwayAtStart(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, fakeBrokers(t).ListenAddrs())
	for status, says := range map[int]string{http.StatusServiceUnavailable: "HTTP status 503", http.StatusUnauthorized: "registry.BasicAuth"} {
		c.Fail(func(*http.Request) int { return status })
		c.schemas = c.open(registry.Patience(0), registry.BasicAuth("ann", "s3cret-one"))
		err := c.run(c.job(c.avroOrders(), c.avroTotals(), true), never)
		away, ok := errors.AsType[*registry.Error](err)
		if !ok || away.Status != status || exitCode(err) != 1 {
			t.Fatalf("ended with %v", err)
		}
		for _, part := range []string{"sink totals", c.URL, says, "subject " + c.out + "-value"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q isn't in %v", part, err)
			}
		}
		if text := err.Error() + c.log.String(); strings.Contains(text, "s3cret") {
			t.Errorf("the password is in %s", text)
		}
	}
	c.Fail(nil)
	c.feed(c.avroOrders(), order{"ann", 5})
	if err := c.run(c.job(c.avroOrders(), c.avroTotals(), true), func() bool { return c.table(c.avroTotals())["ann"] == 5 }); err != nil {
		t.Fatal(err)
	}
}

// TestRegistryAwayWhileRunning: a record whose schema can't be had stops the job.
// It is no dead letter; the next start reads it.
func TestRegistryAwayWhileRunning(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			c := newCatalog(t, fakeBrokers(t).ListenAddrs())
			type older struct{ User string }
			old := codec.For(codec.Avro[older](codec.Record("shop.Order"), codec.Registered(c.schemas, codec.Subject("old"))), codec.Use{Topic: c.in})
			encoded, err := old.NewEncoder()(nil, &older{"bob"}) // registered before the registry goes
			if err != nil {
				t.Fatal(err)
			}
			c.feed(c.avroOrders(), order{"ann", 5})
			c.schemas = c.open(registry.Patience(0)) // a process of its own
			fed := false
			err = c.run(c.job(c.avroOrders(), c.avroTotals(), true), func() bool {
				if !fed && c.table(c.avroTotals())["ann"] == 5 {
					fed = true
					c.Fail(func(*http.Request) int { return status })
					c.put(encoded)
				}
				return false
			})
			away, ok := errors.AsType[*registry.Error](err)
			if !ok || away.Status != status || exitCode(err) != 1 || !strings.Contains(err.Error(), "partition "+c.in) {
				t.Fatalf("ended with %v", err)
			}
			c.Fail(nil)
			c.schemas = c.open(registry.Patience(0))
			if n := len(committed(t, c.addrs, c.dead)); n != 0 {
				t.Errorf("%d dead letters", n)
			}
			c.feed(c.avroOrders(), order{"ann", 30})
			if err := c.run(c.job(c.avroOrders(), c.avroTotals(), true), func() bool { r := c.table(c.avroTotals()); _, bob := r["bob"]; return bob && r["ann"] == 35 }); err != nil {
				t.Fatal(err)
			}
			if n := len(committed(t, c.addrs, c.dead)); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// TestUnknownSchemaID: a record with an id that the registry doesn't know is bad
// input: a dead letter where there is a place for it, else the job's end.
func TestUnknownSchemaID(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, fakeBrokers(t).ListenAddrs())
	unknown := []byte{0, 0, 0, 0x27, 0x0f, 6, 'a', 'n', 'n', 10}
	c.feed(c.avroOrders(), order{"ann", 5})
	c.put(unknown)
	c.feed(c.avroOrders(), order{"bob", 7})
	err := c.run(c.job(c.avroOrders(), c.avroTotals(), false), never)
	if !errors.Is(err, codec.ErrUnknownID) || exitCode(err) != 16 || !strings.Contains(err.Error(), "9999") || !strings.Contains(err.Error(), "offset 1") {
		t.Fatalf("ended with %v (exit code %d)", err, exitCode(err))
	}
	c.store = store.NewMemory()
	c.out += "-again"
	makeTopic(t, c.addrs, c.out, 1, nil)
	job := sluice.NewJob(c.name + "_again")
	sums(job, job.From("orders", kafka.Topic(c.in, c.avroOrders(), c.on()))).
		To("totals", kafka.Upsert(c.out, oneTotal, c.avroKeys(), c.avroTotals(), c.on()))
	job.DeadLetter("dead", kafka.Append(c.dead, codec.JSON[sluice.DeadLetter](), c.on()))
	if err := c.run(job, func() bool {
		r := c.table(c.avroTotals())
		return r["ann"] == 5 && r["bob"] == 7 && len(committed(t, c.addrs, c.dead)) > 0
	}); err != nil {
		t.Fatal(err)
	}
	dead := committed(t, c.addrs, c.dead)
	var letter sluice.DeadLetter
	if err := codec.JSON[sluice.DeadLetter]().NewDecoder()(dead[0].Value, &letter); err != nil || len(dead) != 1 ||
		string(letter.Bytes) != string(unknown) || letter.Offset != 1 || !strings.Contains(letter.Error, "9999") {
		t.Errorf("%d dead letters, %+v, %v", len(dead), letter, err)
	}
}

// TestStopWhileRegistryIsAway: a stop waits for a registry as long as its patience
// has it, and no longer.
func TestStopWhileRegistryIsAway(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, fakeBrokers(t).ListenAddrs())
	c.feed(c.avroOrders(), order{"ann", 5})
	c.schemas = c.open(registry.Patience(2 * time.Second))
	asked := make(chan struct{}, 1)
	c.Fail(func(q *http.Request) int {
		if strings.HasPrefix(q.URL.Path, "/schemas/ids/") {
			select {
			case asked <- struct{}{}:
			default:
			}
			return http.StatusServiceUnavailable
		}
		return 0
	})
	var stopped time.Time
	err := c.run(c.job(c.avroOrders(), c.avroTotals(), true), func() bool {
		select {
		case <-asked:
			stopped = time.Now()
			return true
		default:
			return false
		}
	})
	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if _, ok := errors.AsType[*registry.Error](err); !ok || exitCode(err) != 1 {
		t.Errorf("ended with %v", err)
	}
}

// TestCodecsOfNoUse: a codec that can't work is told when the job is built, or at
// the latest when the source is opened.
func TestCodecsOfNoUse(t *testing.T) {
	t.Parallel()
	none := codec.Avro[order](codec.Registered(nil))
	c := newCatalog(t, fakeBrokers(t).ListenAddrs())
	job := sluice.NewJob(c.name)
	job.From("orders", kafka.Topic(c.in, none, c.on())).To("out", kafka.Append(c.out, codec.JSON[order](), c.on()))
	if err := c.run(job, never); err == nil || !strings.Contains(err.Error(), "source orders") || !strings.Contains(err.Error(), "no registry") {
		t.Errorf("a source of it: %v", err)
	}
	job = sluice.NewJob(c.name)
	job.From("orders", kafka.Topic(c.in, codec.JSON[order](), c.on())).To("out", kafka.Append(c.out, none, c.on()))
	if err := job.Check(); err == nil || !strings.Contains(err.Error(), "topic "+c.out) || !strings.Contains(err.Error(), "no registry") {
		t.Errorf("a sink of it: %v", err)
	}
}
