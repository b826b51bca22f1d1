package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/kafka"
)

// stopAt stops the process, as SIGSTOP from elsewhere does, if the file that TIDE_STOP
// names holds the place's name. The file goes, so that a process stops once.
func stopAt(place string) {
	file := os.Getenv("TIDE_STOP")
	if held, err := os.ReadFile(file); err != nil || string(held) != place || os.Remove(file) != nil {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// stops is a sink at whose deliveries the process can be stopped: an epoch is committed,
// and nothing of it delivered.
type stops struct{ connector.StreamSink[Audit] }

// Open implements [connector.Sink].
func (s stops) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	target, err := s.StreamSink.Open(ctx, o, key)
	if err != nil {
		return nil, err
	}
	return stopsTarget{target}, nil
}

type stopsTarget struct{ connector.Target }

// Deliver implements [connector.Target].
func (t stopsTarget) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	stopAt("delivery")
	return t.Target.Deliver(ctx, d)
}

// stopping stops the process once records of a transaction were sent, which is open then.
func stopping() kafka.Option { return kafka.On(kafka.Connect(kafka.Client(kgo.WithHooks(sent{})))) }

type sent struct{}

// produce is the key of Kafka's requests that send records.
const produce = 0

// OnBrokerWrite implements [kgo.HookBrokerWrite].
func (sent) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == produce && err == nil {
		stopAt("transaction")
	}
}
