package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/services"
)

const (
	allCuts = 50
	// cutsWarm is how long the job runs before the first upgrade, and between two.
	cutsWarm = 5 * liveEpoch
	// behindCut is how long behind a cut its gap is looked for.
	behindCut = 10 * liveEpoch
	// upgradeWithin bounds an upgrade, from the start of its process to the end of the
	// one before.
	upgradeWithin = time.Minute
)

// cutsOf is how many upgrades there are.
func cutsOf(s setting) int {
	if s.Quick {
		return 3
	}
	return allCuts
}

// upgradeLive takes the job's place as soon as it can, and runs until it is killed or
// another build has taken its own. It tells how far it is, and when.
func upgradeLive(t task) (sample, error) {
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	u := sluice.Upgrade{Auto: true, Told: func(p sluice.UpgradeProgress) {
		fmt.Println(saysStage(p.Stage) + strconv.FormatInt(time.Now().UnixNano(), 10))
	}}
	return sample{}, unlessReplaced(t.Live.job(t.Kafka).Upgrade(context.Background(), sluice.Options{Store: st, Log: quiet(), Epoch: liveEpoch}, u))
}

// saysStage is what comes before the time at which an upgrade has come to a stage.
func saysStage(stage string) string { return stage + " " }

// tellsTime waits until the child tells when something was.
func (c *talking) tellsTime(what string) (time.Time, error) {
	text, err := c.tells(what)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(0, ns), err
}

// cut is one upgrade as it went.
type cut struct {
	span          // from its beginning to the new branch's being live
	ready float64 // seconds from the start of the process to the cut's beginning
}

// upgrades are those of a job to which an even load is written, while its output is
// read.
type upgrades struct {
	b      *bench
	live   live
	fenced fencing

	running *talking
	cuts    []cut
	empty   []float64 // seconds that fenced transactions took
}

// cutOver upgrades the job some times, measures the gaps in what can be read of its
// output, and counts all of it anew.
func cutOver(t task) (_ sample, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &outputWatch{latencies: map[string]float64{}}
	watching := make(chan error, 1)
	go func() { watching <- w.run(ctx, t) }()
	u := &upgrades{b: &bench{setting: t.setting}, live: t.Live}
	if u.fenced, err = newFencing(ctx, t.Kafka); err != nil {
		return nil, err
	}
	defer u.fenced.close()
	defer u.kill()
	t.Load.Length = math.Inf(1)
	g := &generator{task: t}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	written := make(chan error, 1)
	go func() { written <- g.run(writing) }()
	err = u.make(cutsOf(t.setting))
	stop()
	if err := errors.Join(err, <-written); err != nil {
		return nil, err
	}
	w.await(g.probes, watching)
	cancel()
	if err := <-watching; err != nil {
		return nil, err
	}
	u.kill()
	counted, err := recountLive(context.Background(), t.Kafka, t.Live)
	if err != nil {
		return nil, err
	}
	return u.summary(w.arrived(), counted, float64(g.sent)/g.took.Seconds()), nil
}

// make starts the job, and upgrades it.
func (u *upgrades) make(times int) (err error) {
	u.live.Records = 1
	if u.running, err = u.b.talkAbout(task{setting: u.b.setting, Name: "kafka.live", Live: u.live}, false); err != nil {
		return err
	}
	if err := u.running.says(saysRuns); err != nil {
		return err
	}
	for range times {
		time.Sleep(cutsWarm)
		if err := u.upgrade(); err != nil {
			return fmt.Errorf("upgrade %d: %w", len(u.cuts)+1, err)
		}
		took, err := u.fenced.transaction()
		if err != nil {
			return err
		}
		u.empty = append(u.empty, took)
	}
	time.Sleep(behindCut)
	return nil
}

// upgrade starts the next build, and waits until it is live and the one before has
// ended.
func (u *upgrades) upgrade() error {
	u.live.Meaning++
	next, err := u.b.talkAbout(task{setting: u.b.setting, Name: "kafka.upgrade", Live: u.live}, false)
	if err != nil {
		return err
	}
	before := u.running
	u.running = next
	bound := time.AfterFunc(upgradeWithin, func() { // whoever waits for one of them sees that it ends
		next.cmd.Process.Kill()
		before.cmd.Process.Kill()
	})
	defer bound.Stop()
	from, err := next.tellsTime(saysStage("cutting over"))
	if err != nil {
		return err
	}
	to, err := next.tellsTime(saysStage("live"))
	if err != nil {
		return err
	}
	u.cuts = append(u.cuts, cut{span{from, to}, from.Sub(next.started).Seconds()})
	if _, err := before.sample(); err != nil {
		return fmt.Errorf("the build before: %w", err)
	}
	return nil
}

// kill ends the job.
func (u *upgrades) kill() {
	if u.running != nil {
		u.running.cmd.Process.Kill()
		u.running.cmd.Wait()
		u.running = nil
	}
}

// summary says what the cuts have cost.
func (u *upgrades) summary(arrivals []time.Time, counted *recount, rate float64) sample {
	var around []span
	var ready, cutting []float64
	for _, c := range u.cuts {
		around = append(around, span{c.from, c.to.Add(behindCut)})
		ready, cutting = append(ready, c.ready), append(cutting, c.length().Seconds())
	}
	usual := usualGap(arrivals, liveEpoch/4, around).Seconds()
	var gaps []float64
	for _, s := range around {
		gaps = append(gaps, longestGap(arrivals, s).length().Seconds()-usual)
	}
	missing, more, wrong := counted.missing()
	return sample{
		"usual": usual, "median": quantile(gaps, 0.5), "p90": quantile(gaps, 0.9), "worst": slices.Max(gaps), "cuts": float64(len(gaps)),
		"ready": quantile(ready, 0.5), "slowest": slices.Max(ready), "cutting": quantile(cutting, 0.5), "empty": quantile(u.empty, 0.5),
		"missing": float64(missing), "more": float64(more), "wrong": float64(wrong), "again": float64(counted.again),
		"records": float64(counted.records), "rows": float64(counted.rows), "users": float64(len(counted.written)), "rate": rate,
	}
}

// fencing measures transactions each of whose producers fences the one before.
type fencing struct {
	client  *kgo.Client
	brokers string
	topic   string
	id      string
}

func newFencing(ctx context.Context, brokers string) (f fencing, err error) {
	f = fencing{brokers: brokers, topic: services.Unique("fenced"), id: services.Unique("fenced")}
	if f.client, err = kgo.NewClient(kgo.SeedBrokers(brokers)); err != nil {
		return f, err
	}
	if err := createTopic(ctx, f.client, f.topic, 1, nil); err != nil {
		f.client.Close()
		return f, err
	}
	return f, nil
}

func (f fencing) close() {
	dropTopic(f.client, f.topic)
	f.client.Close()
}

// transaction is the seconds that a new producer, which has a connection, needs to
// shut out the one before and to write one record in a transaction.
func (f fencing) transaction() (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), upgradeWithin)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.TransactionalID(f.id), kgo.ProducerLinger(0))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := client.BeginTransaction(); err != nil {
		return 0, err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: f.topic, Value: []byte("x")}).FirstErr(); err != nil {
		return 0, err
	}
	err = client.EndTransaction(ctx, kgo.TryCommit)
	return time.Since(began).Seconds(), err
}

func measureCutover(b *bench) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	most, err := on.flatRate()
	if err != nil {
		return nil, err
	}
	l, clean, err := on.newLive(nil)
	if err != nil {
		return nil, err
	}
	defer clean()
	s, err := startChild(task{setting: on.setting, Name: "kafka.upgrades", Live: l, Load: load{Rate: most / 2, Warm: loadWarm}})
	if err != nil {
		return nil, err
	}
	const median, worst = 0.15, 0.5
	bound := max(worst, 5*s["empty"])
	gap := Result{
		Name: "cutover.gap", Value: s["median"] * 1e3, Unit: "ms",
		What: fmt.Sprintf("longest gap at a cut between two outputs that a consumer of committed records sees, beyond the usual gap between epochs: median of %.0f upgrades of a job between two topics of a real broker at half load, epochs of %v, each by the process of a build that gives its state another meaning; floor: a new producer shuts the one before out and writes one record in a transaction", s["cuts"], liveEpoch),
		Why:  "from the seal to the first output of the new branch: the last epoch is covered, its end noted, the live record made, the producer's new epoch fetched, the progress topic read, and an epoch passes",
	}.against(s["empty"] * 1e3).within(median * 1e3)
	gap.Target, gap.Reached = fmt.Sprintf("%s, worst ≤ %.0f ms", gap.Target, bound*1e3), gap.Reached && s["worst"] <= bound
	gap.note("worst %.0f ms, 90th percentile %.0f ms; the usual gap is %.0f ms", s["worst"]*1e3, s["p90"]*1e3, s["usual"]*1e3)
	gap.note("from the start of an upgrade's process to the beginning of its cut %.2f s (median), at most %.2f s; from there until it is live %.0f ms (median)", s["ready"], s["slowest"], s["cutting"]*1e3)
	gap.note("at %.0f records/s; lag stayed flat up to %.0f records/s, with the broker, the writer and the consumer on the same cores", s["rate"], most)
	loss := Result{
		Name: "cutover.loss", Value: s["missing"] + s["more"] + s["wrong"] + s["again"], Unit: "records",
		What: "records lost or counted twice in all of these upgrades, users with a wrong amount, and rows that came again: both topics are counted anew, with the client library alone",
	}.within(0)
	loss.note("%s records of %s users, and %s rows of them", grouped(s["records"]), grouped(s["users"]), grouped(s["rows"]))
	return []Result{gap, loss}, nil
}

// grouped is a count in groups of three digits.
func grouped(n float64) string {
	text := strconv.FormatInt(int64(n), 10)
	var groups []string
	for len(text) > 3 {
		groups = append([]string{text[len(text)-3:]}, groups...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, groups...), ",")
}
