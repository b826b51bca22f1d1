package kafka

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/connector"
)

// lossy is a topic with the values 0 to 9, of which the first three were read.
type lossy struct {
	cluster *kfake.Cluster
	put     func(from, to int)
	reader  connector.Reader
	part    connector.Partition
	at      connector.Offset
}

func newLossy(t *testing.T) *lossy {
	noLeaks(t)
	l := &lossy{cluster: fake(t)}
	w := writer(t, l.cluster.ListenAddrs())
	newTopic(t, w, "orders", 1)
	l.put = func(from, to int) { put(t, w, numbered("orders", 0, from, to)...) }
	l.put(0, 10)
	l.reader = l.open(t)
	l.part = partitionAt(t, l.reader, "orders/0", connector.Offset{})
	var got []string
	if got, l.at = values(t, l.part, 3); !slices.Equal(got, texts(0, 3)) || l.at.Next != 3 {
		t.Fatalf("read %q to %+v", got, l.at)
	}
	return l
}

// open opens the source with a clock that makes waiting short.
func (l *lossy) open(t *testing.T) connector.Reader {
	o := opening(io.Discard)
	o.Env = hastyEnv()
	return openSource(t, topicOf(l.cluster.ListenAddrs(), "orders"), o)
}

// refused expects that the partition can't be opened where it was read to.
func (l *lossy) refused(t *testing.T, at connector.Offset) error {
	t.Helper()
	_, err := l.open(t).Partition(t.Context(), "orders/0", at)
	if err == nil {
		t.Fatal("the partition was opened")
	}
	return err
}

func TestRetentionTookUnreadRecords(t *testing.T) {
	l := newLossy(t)
	if err := l.cluster.DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	lost, ok := errors.AsType[*LostError](l.refused(t, l.at))
	if !ok || *lost != (LostError{"orders", 0, 3, 7}) {
		t.Fatalf("%+v", lost)
	}
	at := l.at
	at.Next = 7
	if got, _ := values(t, partitionAt(t, l.open(t), "orders/0", at), 3); !slices.Equal(got, texts(7, 10)) {
		t.Fatalf("read %q from where the log begins", got)
	}
}

// TestRetentionWhileReading: what was fetched is still given out, then the loss is
// told.
func TestRetentionWhileReading(t *testing.T) {
	l := newLossy(t)
	p := partitionAt(t, l.reader, "orders/0", l.at)
	l.put(10, 12)
	if err := l.cluster.DeleteRecords("orders", 0, 11); err != nil {
		t.Fatal(err)
	}
	got, err := failure(t, p)
	lost, ok := errors.AsType[*LostError](err)
	if !ok || *lost != (LostError{"orders", 0, 3, 11}) || len(got) > 0 {
		t.Fatalf("read %q, then %v", got, err)
	}
	if _, err := failure(t, p); !errors.As(err, &lost) {
		t.Fatalf("again: %v", err)
	}
}

func TestLogEndsEarly(t *testing.T) {
	l := newLossy(t)
	at := l.at
	at.Next, at.LeaderEpoch = 12, -1
	cut, ok := errors.AsType[*CutError](l.refused(t, at))
	if !ok || *cut != (CutError{"orders", 0, 10, 12, -1}) {
		t.Fatalf("%+v", cut)
	}
}

// divergedAt has the cluster say that what was written in the first leader epoch
// ends at an offset, as it does after an unclean election.
func divergedAt(c *kfake.Cluster, end int64) {
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = req.Topics[0].Topic
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.LeaderEpoch, p.EndOffset = req.Topics[0].Partitions[0].LeaderEpoch, end
		topic.Partitions = append(topic.Partitions, p)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
}

// TestUncleanElection: the offset is inside of the log, and yet what was read before
// it is not in it any more.
func TestUncleanElection(t *testing.T) {
	for _, end := range []int64{2, -1} {
		t.Run(fmt.Sprint("which ended at ", end), func(t *testing.T) {
			l := newLossy(t)
			divergedAt(l.cluster, end)
			cut, ok := errors.AsType[*CutError](l.refused(t, l.at))
			if !ok || *cut != (CutError{"orders", 0, end, 3, 0}) {
				t.Fatalf("%+v", cut)
			}
		})
	}
}

func TestUncleanElectionWhileReading(t *testing.T) {
	l := newLossy(t)
	values(t, l.part, 7)
	divergedAt(l.cluster, 8)
	if err := l.cluster.MoveTopicPartition("orders", 0, 0); err != nil { // a new leader epoch
		t.Fatal(err)
	}
	l.put(10, 12)
	got, err := failure(t, l.part)
	cut, ok := errors.AsType[*CutError](err)
	if !ok || *cut != (CutError{"orders", 0, 8, 10, 0}) || len(got) > 0 {
		t.Fatalf("read %q, then %v", got, err)
	}
}

func TestTopicMadeAnewWhileReading(t *testing.T) {
	l := newLossy(t)
	before := l.at.Identity
	if err := l.cluster.DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	if err := l.cluster.CreateTopic("orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	put(t, writer(t, l.cluster.ListenAddrs()), numbered("orders", 0, 100, 120)...)
	got, err := failure(t, l.part)
	replaced, ok := errors.AsType[*ReplacedError](err)
	if !ok || replaced.Expected != before || replaced.Found == before || !slices.Equal(got, texts(3, 10)) {
		t.Fatalf("read %q, then %v", got, err)
	}
	if replaced, ok := errors.AsType[*ReplacedError](l.refused(t, l.at)); !ok || replaced.Offset != 3 {
		t.Fatalf("at the next start: %+v", replaced)
	}
}

func TestTopicVanishes(t *testing.T) {
	l := newLossy(t)
	if err := l.cluster.DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	got, err := failure(t, l.part)
	if gone, ok := errors.AsType[*VanishedError](err); !ok || gone.Partition != 0 || !slices.Equal(got, texts(3, 10)) {
		t.Fatalf("read %q, then %v", got, err)
	}
	o := opening(io.Discard)
	o.Env = hastyEnv()
	_, err = topicOf(l.cluster.ListenAddrs(), "orders").Open(t.Context(), o)
	if gone, ok := errors.AsType[*VanishedError](err); !ok || gone.Partition != -1 {
		t.Fatalf("at the next start: %v", err)
	}
}

func TestPartitionVanishes(t *testing.T) {
	l := newLossy(t)
	at := l.at
	_, err := l.reader.Partition(t.Context(), "orders/3", at)
	if gone, ok := errors.AsType[*VanishedError](err); !ok || gone.Partition != 3 {
		t.Fatalf("%v", err)
	}
}

// TestOffsetByHand: an offset without an identity is taken, and checked against the
// log alone.
func TestOffsetByHand(t *testing.T) {
	l := newLossy(t)
	divergedAt(l.cluster, 0)
	p := partitionAt(t, l.open(t), "orders/0", connector.Offset{Next: 8})
	if got, to := values(t, p, 2); !slices.Equal(got, texts(8, 10)) || to.Identity != l.at.Identity {
		t.Fatalf("read %q to %+v", got, to)
	}
}
