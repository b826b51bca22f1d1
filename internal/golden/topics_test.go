package golden

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/kafka/embedded"
)

// order is what the job topics reads. One that closes its user's account has the table's
// entry go.
type order struct {
	User  string
	Cents int64
	Close bool
}

func (o order) user() string { return o.User }

func (t *total) order(o order) bool {
	t.Readings++
	t.Sum += o.Cents
	return !o.Close
}

// broker is the Kafka of the job topics, in a folder beside its store.
type broker struct {
	t *testing.T
	*embedded.Broker
	client *kgo.Client
}

const (
	orders  = "orders"
	ordersP = "orders/0"
)

func startBroker(t *testing.T) *broker {
	t.Helper()
	b, err := embedded.Start(embedded.Options{Folder: "broker", Topics: []embedded.Topic{{Name: orders}, {Name: "sums"}, {Name: "log"}, {Name: "filled"}}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	return &broker{t: t, Broker: b, client: client}
}

func (b *broker) stop() {
	b.t.Helper()
	b.client.Close()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// put writes orders.
func (b *broker) put(all ...order) {
	b.t.Helper()
	for _, o := range all {
		data, err := json.Marshal(o)
		if err == nil {
			err = b.client.ProduceSync(b.t.Context(), &kgo.Record{Topic: orders, Value: data}).FirstErr()
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// job is a build of the job, which has these sinks beside that of the table.
func (b *broker) job(sinks ...string) *sluice.Job {
	on := kafka.On(kafka.Connect(kafka.Brokers(b.Addr())))
	job := sluice.NewJob("topics")
	stream := job.From(orders, kafka.Topic(orders, codec.JSON[order](), kafka.NoGroup(), on))
	stream.KeyBy(order.user).FoldKeep(sluice.NewState[string, total]("sums"), (*total).order).
		To("sums", kafka.Upsert("sums", func(_ string, t total) total { return t }, codec.String(), codec.JSON[total](), kafka.MaxDelivery(2, 0), on))
	for _, sink := range sinks {
		stream.To(sink, kafka.Append(sink, codec.JSON[order](), on))
	}
	return job
}

// running is a build that runs, until it is stopped or ends.
type running struct {
	stop  context.CancelFunc
	ended chan error
}

func (p *place) start(how func(ctx context.Context, o sluice.Options) error) *running {
	ctx, stop := context.WithCancel(p.t.Context())
	r := &running{stop, make(chan error, 1)}
	o := p.options(func(o *sluice.Options) { o.Epoch = 200 * time.Millisecond })
	go func() { r.ended <- how(ctx, o) }()
	return r
}

// await waits until something is so, and fails if the build ends before.
func (r *running) await(p *place, what string, is func() bool) {
	p.t.Helper()
	for !is() {
		select {
		case err := <-r.ended:
			p.t.Fatalf("the build has ended before %s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *running) end(p *place) {
	p.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		p.t.Fatal(err)
	}
}

// delivered tells whether the live branch has read up to an offset, and has noted that
// all sinks which it has got what comes of that.
func (p *place) delivered(next int64, sinks ...string) bool {
	p.t.Helper()
	if exists, err := p.store.Exists(p.t.Context(), "topics/live/0.json"); err != nil || !exists {
		return false
	}
	head := p.head()
	for _, sink := range sinks {
		if head.Sinks[sink].Confirmed != head.Position {
			return false
		}
	}
	return head.Sources[orders].Partitions[ordersP].Next == next
}

// branch is one whose name begins with a word, besides another, once its owner has opened
// it; empty if there is none.
func (p *place) branch(begins, besides string) string {
	p.t.Helper()
	names, err := p.log().Branches(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, begins) && name != besides {
			if exists, err := p.store.Exists(p.t.Context(), "topics/"+epoch.ManifestPath(name, epoch.FirstTask, 1)); err != nil {
				p.t.Fatal(err)
			} else if exists {
				return name
			}
		}
	}
	return ""
}

// filled tells how many parts a sink has got of what a branch fills it with.
func (p *place) filled(branch, sink string) int {
	p.t.Helper()
	if f := p.headOf(branch).Sinks[sink].Fill; f != nil {
		return f.Delivered
	}
	return 0
}

// writeTopics has a build be replaced by one that lacks its sink log, and has another one
// that it has filled, behind a third which had filled that in vain; then it is gone back
// to.
func writeTopics(p *place) {
	p.t.Helper()
	ctx := p.t.Context()
	b := startBroker(p.t)
	b.put(order{"ann", 1, false}, order{"bob", 2, false}, order{"cid", 3, false}, order{"dan", 4, false}, order{"eve", 5, false})
	old := p.start(func(ctx context.Context, o sluice.Options) error { return b.job("log").Run(ctx, o) })
	old.await(p, "it has read five orders", func() bool { return p.delivered(5, "sums", "log") })
	if err := b.MoveLeader(orders, 0, 0); err != nil {
		p.t.Fatal(err)
	}
	b.put(order{"ann", 10, false}, order{"bob", 0, true})
	old.await(p, "it has read seven orders", func() bool { return p.delivered(7, "sums", "log") })
	if _, err := p.log().AskDrainTo(ctx, map[string]int64{ordersP: 1}, false, by); err != nil {
		p.t.Fatal(err)
	}
	old.await(p, "it has refused to go back", func() bool { return len(p.head().Unmet) > 0 })

	vain := p.start(func(ctx context.Context, o sluice.Options) error {
		return b.job("log", "filled").Upgrade(ctx, o, sluice.Upgrade{Backfill: true})
	})
	vain.await(p, "it has a branch", func() bool { return p.branch("upgrade", "") != "" })
	vainly := p.branch("upgrade", "")
	b.put(order{"fay", 6, false})
	vain.await(p, "it has filled", func() bool { return p.filled(vainly, "filled") > 0 })
	vain.end(p)
	if err := p.log().GiveUp(ctx, vainly, epoch.ThisProcess(), by); err != nil {
		p.t.Fatal(err)
	}
	old.await(p, "it has read eight orders", func() bool { return p.delivered(8, "sums", "log") })

	now := p.start(func(ctx context.Context, o sluice.Options) error {
		return b.job("filled").Upgrade(ctx, o, sluice.Upgrade{Backfill: true})
	})
	now.await(p, "it has a branch", func() bool { return p.branch("upgrade", vainly) != "" })
	branch := p.branch("upgrade", vainly)
	b.put(order{"gus", 7, false})
	now.await(p, "it has filled", func() bool { return p.filled(branch, "filled") > 0 })
	if _, err := p.log().AskCutover(ctx, branch, by); err != nil {
		p.t.Fatal(err)
	}
	superseded(p.t, <-old.ended)
	b.put(order{"hal", 8, false})
	now.await(p, "it has read ten orders", func() bool { return p.delivered(10, "sums", "filled") })
	if _, err := p.log().Ask(ctx, epoch.StopRequest, by); err != nil {
		p.t.Fatal(err)
	}
	if err := <-now.ended; err != nil {
		p.t.Fatal(err)
	}

	back := p.start(func(ctx context.Context, o sluice.Options) error {
		o.Gap = []string{"log"}
		return b.job("log").Rollback(ctx, o, sluice.Upgrade{Auto: true, DropDeliveries: []string{"filled"}})
	})
	back.await(p, "it is live", func() bool { return len(p.lives()) == 3 })
	b.put(order{"ida", 9, false})
	back.await(p, "it has read eleven orders", func() bool { return p.delivered(11, "sums", "log") })
	if _, err := p.log().AskDrainTo(ctx, map[string]int64{ordersP: 12}, false, by); err != nil {
		p.t.Fatal(err)
	}
	b.put(order{"jan", 10, false})
	if err := <-back.ended; err != nil {
		p.t.Fatal(err)
	}
	b.stop()
}

// records are those of a topic as a consumer of what is committed gets them.
func (b *broker) records(topic string) (all []*kgo.Record) {
	b.t.Helper()
	ctx := b.t.Context()
	ends, err := kadm.NewClient(b.client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	for next := int64(0); next < end.Offset && ctx.Err() == nil; {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if next = r.Offset + 1; !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// cents are the cents of orders.
func (b *broker) cents(records []*kgo.Record) (all []int64) {
	b.t.Helper()
	for _, r := range records {
		var o order
		if err := json.Unmarshal(r.Value, &o); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, o.Cents)
	}
	return all
}

// What the sinks log and filled have got, and the rows of the table, by hand: the build
// with the sink filled has read the order of 8 cents, and had no sink log.
var (
	logged = []int64{1, 2, 3, 4, 5, 10, 0, 6, 7, 9, 10}
	filled = []int64{7, 8}
	sums   = map[string]string{`"ann"`: sum(2, 11), `"cid"`: sum(1, 3), `"dan"`: sum(1, 4), `"eve"`: sum(1, 5), `"fay"`: sum(1, 6), `"gus"`: sum(1, 7), `"hal"`: sum(1, 8), `"ida"`: sum(1, 9), `"jan"`: sum(1, 10)}
)

// readTopics reads what the job's objects say, holds it against what stands in its
// topics, and goes on.
func readTopics(p *place) {
	p.t.Helper()
	b := startBroker(p.t)
	p.check(p.head(), held{"sums": sums})
	log := b.records("log")
	if got := b.cents(log); !slices.Equal(got, logged) {
		p.t.Errorf("topic log has %v, want %v", got, logged)
	}
	if got := b.cents(b.records("filled")); !slices.Equal(got, filled) {
		p.t.Errorf("topic filled has %v, want %v", got, filled)
	}
	p.checkSpans(log)
	p.checkDelivered()
	p.checkRequests()

	goes := p.start(func(ctx context.Context, o sluice.Options) error { return b.job("log").Run(ctx, o) })
	b.put(order{"leo", 12, false})
	goes.await(p, "it has read thirteen orders", func() bool { return p.delivered(13, "sums", "log") })
	goes.end(p)
	rows := maps.Clone(sums)
	rows[`"leo"`] = sum(1, 12)
	p.check(p.head(), held{"sums": rows})
	if got := b.cents(b.records("log")); !slices.Equal(got, append(slices.Clone(logged), 12)) {
		p.t.Errorf("topic log has %v at last", got)
	}
	// The rows of nine users, written anew by the rollback, stand behind all that came
	// before: what counts is the newest of each key.
	got := map[string]string{}
	for _, r := range b.records("sums") {
		if got[fmt.Sprintf("%q", r.Key)] = string(r.Value); r.Value == nil {
			delete(got, fmt.Sprintf("%q", r.Key))
		}
	}
	if !maps.Equal(got, rows) {
		p.t.Errorf("topic sums has %v, want %v", got, rows)
	}
	b.stop()
}

// checkSpans holds the offsets at which the sinks' rows stand against the topics. The
// first row of the sink filled, and what ended its transaction, were removed.
func (p *place) checkSpans(log []*kgo.Record) {
	p.t.Helper()
	read := map[epoch.Position]int64{}
	for _, m := range p.data("main") {
		read[m.Position] = m.Sources[orders].Partitions[ordersP].Next
	}
	for _, m := range p.manifests("main") {
		s := m.Sinks["log"]
		if s.Confirmed == 0 {
			continue
		}
		want := epoch.Span{Begins: map[string]int64{"log/0": 0}, Ends: map[string]int64{"log/0": log[read[s.Confirmed]-1].Offset + 1}}
		if !s.Span.Equal(&want) {
			p.t.Errorf("epoch %d has the span %v of the sink log, want %v", m.Epoch, s.Span, want)
		}
	}
	if got := p.head().Sinks["filled"].Span.Begins["filled/0"]; got != 2 {
		p.t.Errorf("the sink filled begins at offset %d, want 2", got)
	}
	data, err := p.store.Read(p.t.Context(), "topics/drained/1-0.0-log.json", epoch.MaxObject)
	if err != nil {
		p.t.Fatal(err)
	}
	drain, err := epoch.Decode[epoch.Drain](data)
	want := epoch.Span{Begins: map[string]int64{"log/0": 0}, Ends: map[string]int64{"log/0": log[8].Offset + 1}} // behind 7 cents
	if err != nil || drain.Live != 1 || drain.Task != epoch.FirstTask || drain.Sink != "log" || !drain.Span.Equal(&want) {
		p.t.Errorf("the sink log was drained as %+v, with %v, %v", drain, drain.Span, err)
	}
}

// checkDelivered sees in which parts the table's rows were delivered, what the leader's
// epochs are, and in whose place the sink filled has its record.
func (p *place) checkDelivered() {
	p.t.Helper()
	parts := 0
	var epochs []int32
	for _, m := range p.data("main") {
		epochs = append(epochs, m.Sources[orders].Partitions[ordersP].LeaderEpoch)
		s := m.Sinks["sums"]
		var want []int64
		rows := int64(0)
		for _, o := range s.Outbox {
			if rows += o.Rows; o.Rows > 2 {
				p.t.Errorf("epoch %d has an outbox of %d rows, want two at most", m.Epoch, o.Rows)
			}
			want = append(want, rows)
		}
		if len(want) < 2 {
			want = nil
		}
		if parts += len(s.Parts); !slices.Equal(s.Parts, want) {
			p.t.Errorf("epoch %d has parts up to %v, want %v", m.Epoch, s.Parts, want)
		}
	}
	if parts == 0 || epochs[0] != 0 || epochs[len(epochs)-1] != 1 {
		p.t.Errorf("there are %d parts, and the leader's epochs are %v", parts, epochs)
	}
	lives := p.lives()
	vainly := p.branch("upgrade", lives[1].Branch)
	if ended, err := p.log().Ended(p.t.Context(), vainly); err != nil || !ended {
		p.t.Errorf("branch %s, which has filled the sink in vain, has ended: %v, %v", vainly, ended, err)
	}
	takes := ""
	for _, m := range p.manifests(lives[1].Branch) {
		if s := m.Sinks["filled"]; s.Fill != nil && s.Record != "" {
			takes = s.Takes
		}
	}
	if old := p.headOf(vainly).Sinks["filled"].Record; old == "" || takes != old {
		p.t.Errorf("the sink filled has taken the place of %q, want %q", takes, old)
	}
	for n, want := range []map[string]epoch.SinkConsent{nil, {"filled": {Start: "base"}, "log": {Dropped: "to drain"}}, {"filled": {Dropped: "consented"}, "log": {Gap: "consented"}}} {
		if !maps.Equal(lives[n].Sinks, want) {
			p.t.Errorf("generation %d settles %v of its sinks, want %v", n, lives[n].Sinks, want)
		}
	}
}

// checkRequests reads what was asked, and what was not met of it.
func (p *place) checkRequests() {
	p.t.Helper()
	found, err := p.log().RequestsAfter(p.t.Context(), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	kinds := []epoch.RequestKind{epoch.DrainToRequest, epoch.CutoverRequest, epoch.StopRequest, epoch.DrainToRequest}
	if len(found) != len(kinds) {
		p.t.Fatalf("%d requests, want %d", len(found), len(kinds))
	}
	for i, r := range found {
		if r.Kind != kinds[i] || r.N != uint64(i+1) || r.By != by {
			p.t.Errorf("request %d is %+v", i+1, r)
		}
	}
	if found[0].To[ordersP] != 1 || found[1].Branch != p.lives()[1].Branch || found[3].To[ordersP] != 12 {
		p.t.Errorf("the requests are %+v", found)
	}
	head := p.head()
	if len(head.Unmet) != 1 || head.Unmet[0].Request != 1 || !strings.Contains(head.Unmet[0].Why, "offset 1 is asked for, and it has been read to 7 already") || head.Request != 4 {
		p.t.Errorf("request %d is done at last, and not met is %+v", head.Request, head.Unmet)
	}
}
