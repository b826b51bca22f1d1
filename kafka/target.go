package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// target is a topic that one task of a job delivers to.
//
// Its transactional id names the job, the task and the sink, and nothing that
// changes: so whoever starts a producer ends what another has left open, and is
// fenced by whoever comes later. Only then is the job's progress read, up to the
// end that the topic has by then: so nothing can still come that the record
// doesn't know of. As long as no call fails, the record that this producer has
// committed last is the one that stands there; that nobody else has written one in
// between is seen by the offsets. After any error the producer is
// thrown away, and the next call begins anew: what became of a transaction is
// read, and never guessed.
type target struct {
	env         *env.Env
	log         *slog.Logger
	key         connector.RecordKey
	sink        topicSink
	job         string      // the job's name
	client      *kgo.Client // reads, and asks
	transaction string      // the transactional id
	progress    progressTopic
	cluster     string
	old         bool // brokers without the second version of transactions

	ready    *kgo.Client     // of the next producer; nil: it is made when that is started
	producer *producer       // nil: to be started
	known    *progressRecord // what stands there, once the producer is started
	by       identity        // the producer that wrote it
	read     int64           // the offset up to which the progress topic is known
	wrote    bool            // what is known there last is a record of this producer
	span     topicSpan       // of the record that was found or written last
}

// open looks at the cluster and the topics.
func (t *target) open(ctx context.Context, brokers *answer, begun bool, log *slog.Logger) (err error) {
	if t.old, err = t.sink.checkTransactions(brokers.versions); err != nil {
		return err
	}
	state, err := t.sink.checkTopic(ctx, t.client, t.env.Clock, log)
	if err != nil {
		return err
	}
	t.cluster = state.cluster
	if err := t.progress.open(ctx, begun, log); err != nil {
		return err
	}
	for _, found := range kadm.NewClient(t.client).FindTxnCoordinators(ctx, t.transaction) {
		if errors.Is(found.Err, kerr.TransactionalIDAuthorizationFailed) {
			return t.explain(found.Err)
		}
	}
	return nil
}

// Cluster implements [connector.GroupTarget].
func (t *target) Cluster() string { return t.cluster }

// Close implements [connector.Target].
func (t *target) Close() error {
	t.drop()
	if t.ready != nil {
		t.ready.Close()
	}
	t.client.Close()
	return nil
}

// Record implements [connector.Target].
func (t *target) Record(ctx context.Context) (*connector.SinkRecord, error) {
	found, err := t.progress.read(ctx, t.readWithin())
	if err != nil {
		return nil, t.explain(err)
	}
	record, _, err := found.of(t.progress.name, t.key)
	return t.finds(record), err
}

// finds notes where the rows of a record stand that was found; it may be nil.
func (t *target) finds(record *progressRecord) *connector.SinkRecord {
	if record == nil {
		t.span = topicSpan{}
		return nil
	}
	t.span = record.topicSpan
	return &record.SinkRecord
}

// Span implements [connector.SpanTarget].
func (t *target) Span() connector.Span { return t.span.named(t.sink.topic) }

// CommittedOffsets implements [connector.CommittedTarget].
func (t *target) CommittedOffsets(ctx context.Context, group string) (map[string]connector.Offset, error) {
	ctx, cancel := env.Within(ctx, t.env.Clock, askWithin)
	defer cancel()
	committed, err := committedBy(ctx, t.client, group)
	return offsetsByName(committed), standing(onlyDescribed(group, err))
}

// askWithin bounds how long a group's offsets are asked for.
const askWithin = 10 * time.Second

// EndOpen implements [connector.OpenEndsTarget]: the start of a producer ends the
// transaction that one before it has left open.
func (t *target) EndOpen(ctx context.Context) error {
	t.drop()
	p, err := t.newProducer(ctx)
	if err != nil {
		return t.explain(err)
	}
	p.close()
	return nil
}

// Make implements [connector.Target].
func (t *target) Make(ctx context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	for try := 1; ; try++ {
		err := t.makeOnce(ctx, first)
		if err == nil {
			return *t.finds(t.known), nil
		}
		t.drop()
		// Brokers have no word of their own for a commit that meets a start.
		if !fenced(err) && !errors.Is(err, kerr.UnknownServerError) || try == makeTries {
			return connector.SinkRecord{}, t.explain(err)
		}
		// Another is about it, and must not be fenced in turn while it is.
		found, err := t.madeByOther(ctx)
		if err != nil || found != nil {
			return *cmp.Or(found, &connector.SinkRecord{}), err
		}
	}
}

// makeTries is how often making a record is tried if others who make it come in
// between, madeWithin how long they are waited for, madePause how often it is
// looked whether they have made it.
const (
	makeTries  = 5
	madeWithin = 2 * time.Second
	madePause  = 50 * time.Millisecond
)

// fenced tells whether an error says that another producer has started since.
func fenced(err error) bool {
	for _, says := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState} {
		if errors.Is(err, says) {
			return true
		}
	}
	return false
}

// makeOnce makes the record if there is none; what stands there is known then.
// Other jobs have other transactional ids, so that one that is new as well may
// make its record at the same time: once both stand there, the later one gives way.
func (t *target) makeOnce(ctx context.Context, first connector.SinkRecord) error {
	t.drop()
	all, err := t.start(ctx)
	if err != nil {
		return err
	}
	made := t.known == nil
	if made {
		if err := all.refuseStrangers(t.progress.name, t.key, first, t.sink.topic); err != nil {
			return err
		}
		begins, err := t.sink.ends(ctx, t.client)
		if err != nil {
			return err
		}
		if err := t.apply(ctx, &connector.Delivery{Record: first}, topicSpan{begins: begins}); err != nil {
			return err
		}
		if all, err = t.progress.read(ctx, t.readWithin()); err != nil {
			return err
		}
	}
	err = all.refuseStrangers(t.progress.name, t.key, first, t.sink.topic)
	if err != nil && made {
		if left := t.withdraw(ctx); left != nil {
			t.log.Warn("the record of a sink that gives way to another job's stays; the next start gives way as well", "topic", t.progress.name, "sink", t.key.Sink, "error", left)
		}
	}
	return err
}

// withdraw takes back the record that this producer has made.
func (t *target) withdraw(ctx context.Context) error {
	key, err := encodeProgressKey(t.key)
	if err != nil {
		return err
	}
	within, cancel := env.Within(ctx, t.env.Clock, t.sink.settings.transaction)
	defer cancel()
	return t.producer.transact(within, func(tx *transaction) error {
		tx.produce(within, &kgo.Record{Topic: t.progress.name, Partition: 0, Key: key, Timestamp: tx.now})
		return nil
	}, func(*transaction) error { return nil })
}

// madeByOther waits for a while until another has made the record.
func (t *target) madeByOther(ctx context.Context) (*connector.SinkRecord, error) {
	within, cancel := env.Within(ctx, t.env.Clock, madeWithin)
	defer cancel()
	for {
		found, err := t.Record(ctx)
		if err != nil || found != nil {
			return found, err
		}
		if env.Pause(within, t.env.Clock, madePause) != nil {
			return nil, ctx.Err()
		}
	}
}

// Deliver implements [connector.Target].
func (t *target) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	verdict, found, err := t.decide(ctx, d)
	if err != nil {
		t.drop()
		return connector.Disagree, nil, t.explain(err)
	}
	if verdict != connector.Apply {
		return verdict, found, nil
	}
	if found == nil {
		return connector.Disagree, nil, nil // without a record nothing may be written
	}
	if err := t.apply(ctx, d, t.known.topicSpan); err != nil {
		t.drop()
		if errors.Is(err, errMissed) {
			if _, damaged := t.Record(ctx); errors.Is(damaged, connector.ErrRecord) {
				return connector.Disagree, nil, damaged
			}
		}
		return connector.Disagree, found, t.explain(err)
	}
	return connector.Apply, found, nil
}

// decide has it decided what is to be done, by what stands in the progress topic.
// A producer that was fenced doesn't know it yet, and takes an older record for
// the newest: if that doesn't fit, it is read anew.
func (t *target) decide(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	if t.producer != nil {
		found := t.finds(t.known)
		if verdict := d.Decide(found); verdict != connector.Disagree {
			return verdict, found, nil
		}
		t.drop()
	}
	if _, err := t.start(ctx); err != nil {
		return connector.Disagree, nil, err
	}
	found := t.finds(t.known)
	return d.Decide(found), found, nil
}

// readWithin bounds how long open transactions are waited for: others' end by
// their time-out, which brokers look at every few seconds.
func (t *target) readWithin() time.Duration { return 2*t.sink.settings.transaction + openWithin/4 }

// start starts the producer, then reads what stands in the progress topic.
func (t *target) start(ctx context.Context) (*progress, error) {
	counted := make(chan error, 1)
	go func() { counted <- t.sink.countPartitions(ctx, t.client) }()
	p, err := t.newProducer(ctx)
	t.producer = p
	if err := cmp.Or(err, <-counted); err != nil {
		return nil, err
	}
	all, err := t.progress.read(ctx, t.readWithin())
	if err != nil {
		return nil, err
	}
	t.read = all.end
	t.known, t.by, err = all.of(t.progress.name, t.key)
	return all, err
}

// apply writes a delivery, and the record, in one transaction. The record comes behind
// the rows, since it tells where these stand; before is where those before them do.
func (t *target) apply(ctx context.Context, d *connector.Delivery, before topicSpan) error {
	key, err := encodeProgressKey(t.key)
	if err != nil {
		return err
	}
	if !t.wrote {
		if err := t.ended(ctx, t.producer.lived.id); err != nil {
			return err
		}
	}
	stands := progressRecord{d.Record, t.sink.topic, before}
	record := &kgo.Record{Topic: t.progress.name, Key: key}
	within, cancel := env.Within(ctx, t.env.Clock, t.sink.settings.transaction)
	defer cancel()
	err = t.producer.transact(within, func(tx *transaction) error {
		if d.Rows != nil {
			if err := tx.rows(within, d.Rows); err != nil {
				return err
			}
			ends, err := tx.written(within)
			if err != nil {
				return err
			}
			stands.topicSpan = before.moved(ends)
		}
		var err error
		if record.Value, err = encodeProgress(stands); err != nil {
			return err
		}
		record.Timestamp = tx.now
		tx.produce(within, record)
		return tx.offsets(within, d.Offsets, "sluice:"+t.key.JobID)
	}, func(*transaction) error {
		if t.wrote && record.Offset == t.read+1 {
			return nil // in between is the end of the transaction before
		}
		return t.progress.untouched(within, t.read, record.Offset, key)
	})
	if err != nil {
		if context.Cause(within) == env.ErrTooLong {
			err = fmt.Errorf("the transaction wasn't written within its time-out of %v: brokers are away or slow, or it is too large; kafka.TransactionTimeout lengthens the time, kafka.MaxDelivery makes deliveries smaller: %w", t.sink.settings.transaction, err)
		}
		return err
	}
	t.known, t.read, t.wrote = &stands, record.Offset+1, true
	t.finds(t.known)
	return nil
}

// drop throws the producer away, and what was known with it.
func (t *target) drop() {
	if t.producer != nil {
		t.producer.close()
	}
	t.producer, t.known, t.wrote = nil, nil, false
}

// explain names what an error is about, and the way out where there is one.
func (t *target) explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return &PermissionError{Resource: "transactional id " + t.transaction, Operation: "Write"}
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		hint = "; allow Read on the group"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		hint = fmt.Sprintf("; allow Write on topic %s, and Read and Write on topic %s", t.sink.topic, t.progress.name)
	case fenced(err):
		hint = "; another process has started to deliver by it, or the transaction's time-out has passed"
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		hint = fmt.Sprintf("; kafka.TransactionTimeout is %v, which is more than the brokers' transaction.max.timeout.ms", t.sink.settings.transaction)
	case errors.Is(err, kerr.InvalidTimestamp):
		hint = "; a record's time is too far from now for the topic: raise its message.timestamp.after.max.ms, or message.timestamp.before.max.ms, until it is through"
		if t.sink.bounds.times.Load() == nil {
			hint += "; a start that may read the topic's settings (DescribeConfigs) refuses such a record when it is made"
		}
	case errors.Is(err, kerr.InvalidRecord):
		hint = "; the topic takes no such record, as a compacted one takes none without a key: change its cleanup.policy until it is through"
	case errors.Is(err, kerr.MessageTooLarge):
		hint = "; the topic's max.message.bytes was lowered since the record was made: raise it again"
	}
	return fmt.Errorf("topic %s, transactional id %s: %w%s", t.sink.topic, t.transaction, err, hint)
}
