package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
)

// The lengths of a try and of the measurement, in seconds.
const (
	loadWarm  = 3
	tryLength = 6
)

func measureLatency(b *bench) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	r, err := on.measureLatencyAt("kafka.latency", "a real broker")
	if err != nil {
		return nil, err
	}
	inside, err := b.onEmbedded()
	if err != nil {
		return nil, err
	}
	e, err := inside.measureLatencyAt("", "")
	if err != nil {
		return nil, fmt.Errorf("the embedded broker: %w", err)
	}
	r.note("with the embedded broker, at %s: median %.0f ms, 99th percentile %s", e.Notes[0], e.Value, e.Notes[1])
	return []Result{r}, nil
}

// measureLatencyAt finds the highest rate at which lag stays flat, and measures at
// half of that.
func (b *bench) measureLatencyAt(name, broker string) (Result, error) {
	most, err := b.flatRate()
	if err != nil {
		return Result{}, err
	}
	length := 60.0
	if b.setting.Quick {
		length = 10
	}
	var s sample
	for range 2 {
		once, err := b.putLoad(load{Rate: most / 2, Warm: loadWarm, Length: length})
		if err != nil {
			return Result{}, err
		}
		if once["missing"] > 0 {
			return Result{}, fmt.Errorf("%.0f records have had no effect within %v", once["missing"], probesWithin)
		}
		s = lesser(s, once, "p99")
	}
	floor := liveEpoch.Seconds() + s["empty"]
	r := Result{
		Name: name, Value: s["median"] * 1e3, Unit: "ms",
		What: fmt.Sprintf("from a record's append, by %s's clock, to its effect readable by a consumer of committed records: median at half load, epochs of %v; floor: an epoch and a transaction of one record", broker, liveEpoch),
		Why:  "on average half an epoch passes before a record's epoch ends; then its changes are encoded, synced, noted in a manifest that is synced, read back and written in a transaction",
	}.against(floor * 1e3).atMost(1.2)
	r.Target, r.Reached = r.Target+", 99th percentile ≤ 3 ×", r.Reached && s["p99"] <= 3*floor
	r.note("%.0f records/s", s["rate"])
	r.note("%.0f ms (%.2f ×)", s["p99"]*1e3, s["p99"]/floor)
	if name == "" {
		return r, nil
	}
	r.Notes = []string{
		fmt.Sprintf("99th percentile %.0f ms, %.2f × the floor; %.0f records, one each millisecond, at %.0f records/s; the better of 2 runs by that", s["p99"]*1e3, s["p99"]/floor, s["probes"], s["rate"]),
		fmt.Sprintf("lag stayed flat up to %.0f records/s, with the broker, the writer and the consumer on the same cores: records were as late at the end of a try of %d s as at its beginning", most, tryLength),
		fmt.Sprintf("a transaction of one record takes %.1f ms (median, of those tried five times a second meanwhile)", s["empty"]*1e3),
	}
	return r, nil
}

// flatRate is the highest rate, within a fifth, at which lag stays flat. It is looked
// for once for each broker.
func (b *bench) flatRate() (rate float64, err error) {
	if b.servers.flat[b.setting.Kafka] == 0 {
		if b.servers.flat == nil {
			b.servers.flat = map[string]float64{}
		}
		b.servers.flat[b.setting.Kafka], err = b.findFlatRate()
	}
	return b.servers.flat[b.setting.Kafka], err
}

func (b *bench) findFlatRate() (float64, error) {
	l, clean, err := b.newLive(nil)
	if err != nil {
		return 0, err
	}
	defer clean()
	n := b.setting.scale(allKafkaOrders)
	if err := b.fillOrders("json", n); err != nil {
		return 0, err
	}
	l.Topic, l.Records = ordersTopic("json", n), int64(n)*3/4
	s, err := startChild(task{setting: b.setting, Name: "kafka.again", Live: l})
	if err != nil {
		return 0, err
	}
	const tries = 12
	rate := 1.2 * s["rate"] // what it reads at its best is less even
	for range tries {
		s, err := b.putLoad(load{Rate: rate, Warm: loadWarm, Length: tryLength})
		if err != nil {
			return 0, err
		}
		if s["missing"] == 0 && s["rate"] >= 0.97*rate && s["last"] <= 1.25*s["first"] && s["median"] < 1 {
			return rate, nil
		}
		rate *= 0.8
	}
	return 0, fmt.Errorf("lag grows even at %.0f records/s", rate)
}

// putLoad runs a job, and the process that writes its input and reads its output.
func (b *bench) putLoad(of load) (sample, error) {
	appendTime := "LogAppendTime"
	l, clean, err := b.newLive(map[string]*string{"message.timestamp.type": &appendTime})
	if err != nil {
		return nil, err
	}
	defer clean()
	job, err := b.talkAbout(task{setting: b.setting, Name: "kafka.live", Live: l}, false)
	if err != nil {
		return nil, err
	}
	defer job.cmd.Wait()
	defer job.cmd.Process.Kill()
	s, err := startChild(task{setting: b.setting, Name: "kafka.load", Live: l, Load: of})
	if err != nil {
		return nil, fmt.Errorf("%w (the job said: %s)", err, &job.said)
	}
	return s, nil
}

// newLive makes the topics of a live job: the input with the given settings.
func (b *bench) newLive(settings map[string]*string) (l live, clean func(), err error) {
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.setting.Kafka))
	if err != nil {
		return l, nil, err
	}
	l = live{Job: services.Unique("live"), Topic: services.Unique("input"), Output: services.Unique("seen")}
	clean = func() {
		if err := errors.Join(dropTopic(client, l.Topic), dropTopic(client, l.Output), os.RemoveAll(l.folder(b.setting))); err != nil {
			fmt.Fprintln(os.Stderr, "cleaning up:", err)
		}
		client.Close()
	}
	topic, output := l.Topic, l.Output
	if err := errors.Join(createTopic(ctx, client, topic, kafkaPartitions, settings), createTopic(ctx, client, output, kafkaPartitions, nil)); err != nil {
		clean()
		return l, nil, err
	}
	return l, clean, nil
}
