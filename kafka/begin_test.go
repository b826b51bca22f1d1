package kafka

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// TestBegin: three partitions, of which the first has times 1000 to 9000 ms at the
// offsets 0 to 8, the second one record of 5000, the third none.
func TestBegin(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs)
		newTopic(t, w, topic, 3)
		for i := range int64(9) {
			put(t, w, &kgo.Record{Topic: topic, Value: []byte("a"), Timestamp: time.UnixMilli(1000 * (i + 1))})
		}
		put(t, w, &kgo.Record{Topic: topic, Partition: 1, Value: []byte("a"), Timestamp: time.UnixMilli(5000)})
		admin := kadm.NewClient(w)
		commit := func(group string, offsets map[int32]int64) {
			os := kadm.Offsets{}
			for part, at := range offsets {
				os.AddOffset(topic, part, at, -1)
			}
			if err := admin.CommitAllOffsets(t.Context(), group, os); err != nil {
				t.Fatal(err)
			}
		}
		commit(topic+"-all", map[int32]int64{0: 4, 1: 1, 2: 0})
		commit(topic+"-some", map[int32]int64{0: 4})
		offsets := Offsets(map[string]map[int32]int64{topic: {0: 7, 1: 0}})
		for _, c := range []struct {
			name  string
			where Beginning
			begun bool
			want  [3]int64
		}{
			{"earliest", Earliest(), false, [3]int64{0, 0, 0}},
			{"latest", Latest(), false, [3]int64{9, 1, 0}},
			{"latest, begun", Latest(), true, [3]int64{0, 0, 0}},
			{"time", At(time.UnixMilli(4000)), false, [3]int64{3, 0, 0}},
			{"between", At(time.UnixMicro(4000_001)), false, [3]int64{4, 0, 0}},
			{"too late", At(time.UnixMilli(9001)), false, [3]int64{9, 1, 0}},
			{"offsets", offsets.Otherwise(Latest()), false, [3]int64{7, 0, 0}},
			{"group", FromGroup(topic + "-all"), false, [3]int64{4, 1, 0}},
			{"group, begun", FromGroup(topic + "-some"), true, [3]int64{0, 0, 0}},
			{"some of a group", FromGroup(topic + "-some").Otherwise(Latest()), false, [3]int64{4, 1, 0}},
			{"two groups", FromGroup(topic + "-some").Otherwise(FromGroup(topic + "-all")), false, [3]int64{4, 1, 0}},
		} {
			o := opening(io.Discard)
			o.Begun = c.begun
			r := openSource(t, topicOf(addrs, topic, Begin(c.where), NoGroup()), o)
			if _, group := r.(connector.GroupReader); group {
				t.Fatal("NoGroup has a group")
			}
			for i, want := range c.want {
				p := partitionAt(t, r, place{topic, int32(i)}.String(), connector.Offset{})
				if from := p.(connector.FoundPartition).From(); from.Next != want || from.LeaderEpoch != -1 || len(from.Identity) != 22 {
					t.Errorf("%s: partition %d begins at %+v, expected %d", c.name, i, from, want)
				}
			}
		}
		for _, c := range []struct {
			where Beginning
			want  NoBeginningError
		}{
			{FromGroup(topic + "-some"), NoBeginningError{topic + "-some", []string{topic + "/1", topic + "/2"}}},
			{FromGroup(topic + "-none"), NoBeginningError{topic + "-none", []string{topic + "/0", topic + "/1", topic + "/2"}}},
			{offsets, NoBeginningError{"", []string{topic + "/2"}}},
		} {
			r := openSource(t, topicOf(addrs, topic, Begin(c.where), NoGroup()), opening(io.Discard))
			_, err := r.Partition(t.Context(), topic+"/0", connector.Offset{})
			if got, ok := errors.AsType[*NoBeginningError](err); !ok || got.Group != c.want.Group || !slices.Equal(got.Partitions, c.want.Partitions) {
				t.Errorf("%v", err)
			}
		}
		r := openSource(t, topicOf(addrs, topic, Begin(Offsets(map[string]map[int32]int64{topic: {0: 10, 1: 0, 2: 0}})), NoGroup()), opening(io.Discard))
		if _, err := r.Partition(t.Context(), topic+"/0", connector.Offset{}); !errors.As(err, new(*OutsideError)) {
			t.Errorf("an offset behind the end: %v", err)
		}
	})
}

// TestBeginFromALiveGroup: a consumer that still runs would read on as well.
func TestBeginFromALiveGroup(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs)
		newTopic(t, w, topic, 1)
		put(t, w, numbered(topic, 0, 0, 3)...)
		group := topic + "-old"
		consumer, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ClientID("old"), kgo.DisableAutoCommit(), kgo.DisableClientMetrics())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(consumer.Close)
		fetches := consumer.PollRecords(t.Context(), 2)
		if err := consumer.CommitRecords(t.Context(), fetches.Records()...); err != nil {
			t.Fatal(err)
		}
		r := openSource(t, topicOf(addrs, topic, Begin(FromGroup(group))), opening(io.Discard))
		_, err = r.Partition(t.Context(), topic+"/0", connector.Offset{})
		if used, ok := errors.AsType[*GroupInUseError](err); !ok || len(used.Members) != 1 || !strings.HasPrefix(used.Members[0], "old at ") {
			t.Fatalf("%v", err)
		}
		// Taken over under its own name, it is looked at before anything starts.
		_, err = topicOf(addrs, topic, Begin(FromGroup(group)), Group(group)).Open(t.Context(), opening(io.Discard))
		if used, ok := errors.AsType[*GroupInUseError](err); !ok || len(used.Members) != 1 {
			t.Fatalf("%v", err)
		}
		consumer.LeaveGroup()
		_, err = topicOf(addrs, topic, Group(group)).Open(t.Context(), opening(io.Discard))
		if used, ok := errors.AsType[*GroupInUseError](err); !ok || used.Found != "" || len(used.Members) != 0 {
			t.Fatalf("somebody's offsets: %v", err)
		}
		r = openSource(t, topicOf(addrs, topic, Begin(FromGroup(group)), Group(group)), opening(io.Discard))
		p := partitionAt(t, r, topic+"/0", connector.Offset{})
		if got, _ := values(t, p, 1); got[0] != "v2" {
			t.Fatalf("read %q", got)
		}
	})
}

// TestGroupOffsets: the group shows how far the job has read, and belongs to it.
func TestGroupOffsets(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs)
		newTopic(t, w, topic, 2)
		put(t, w, numbered(topic, 0, 0, 3)...)
		o := opening(io.Discard)
		o.Job = topic
		r := openSource(t, topicOf(addrs, topic), o).(connector.GroupReader)
		p := partitionAt(t, r, topic+"/0", connector.Offset{})
		_, to := values(t, p, 2)
		unread := partitionAt(t, r, topic+"/1", connector.Offset{}).(connector.FoundPartition).From()
		if err := r.CommitOffsets(t.Context(), map[string]connector.Offset{topic + "/0": to, topic + "/1": unread}); err != nil {
			t.Fatal(err)
		}
		if r.Group() != topic || r.Cluster() == "" {
			t.Fatalf("group %q in cluster %q", r.Group(), r.Cluster())
		}
		got, err := kadm.NewClient(w).FetchOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		zero, _ := got.Lookup(topic, 0)
		one, _ := got.Lookup(topic, 1)
		if zero.At != 2 || zero.LeaderEpoch != 0 || zero.Metadata != "sluice:0123456789abcdef" || one.At != 0 || one.LeaderEpoch != -1 {
			t.Fatalf("committed %+v and %+v", zero, one)
		}
		openSource(t, topicOf(addrs, topic), o)
		o.JobID = "fedcba9876543210"
		_, err = topicOf(addrs, topic).Open(t.Context(), o)
		used, ok := errors.AsType[*GroupInUseError](err)
		if !ok || used.Found != "0123456789abcdef" || used.Job != o.JobID || used.Group != topic {
			t.Fatalf("another job: %v", err)
		}
		openSource(t, topicOf(addrs, topic, Group(topic+"-2")), o)
		openSource(t, topicOf(addrs, topic, NoGroup()), o)
	})
}

// TestSelections: which topics a source has.
func TestSelections(t *testing.T) {
	noLeaks(t)
	addrs := fake(t).ListenAddrs()
	w := writer(t, addrs)
	for _, name := range []string{"orders", "orders-old", "my.orders", "Orders"} {
		newTopic(t, w, name, 1)
	}
	on := On(Connect(Brokers(addrs...)))
	for _, c := range []struct {
		source *Source[string]
		want   []string
		target string
	}{
		{Topics([]string{"orders", "my.orders"}, codec.String(), on), []string{"my.orders/0", "orders/0"}, "topics my.orders,orders"},
		{Pattern("orders(-.*)?", codec.String(), on), []string{"orders-old/0", "orders/0"}, "pattern orders(-.*)?"},
		{Pattern("none", codec.String(), on), nil, "pattern none"},
	} {
		r := openSource(t, c.source, opening(io.Discard))
		names, err := r.Partitions(t.Context())
		slices.Sort(c.want)
		slices.Sort(names)
		if err != nil || !slices.Equal(names, c.want) {
			t.Errorf("partitions %q, expected %q: %v", names, c.want, err)
		}
		d := c.source.Describe()
		if got := d.Parameters[0].Name + " " + d.Parameters[0].Value; d.Connector != "kafka" || got != c.target || strings.Contains(got, addrs[0]) {
			t.Errorf("described as %+v", d)
		}
	}
	if _, err := openSource(t, Topic("orders", codec.String(), on), opening(io.Discard)).Partition(t.Context(), "my.orders/0", connector.Offset{}); err == nil {
		t.Error("another source's partition was opened")
	}
	for _, bad := range []*Source[string]{
		Topics(nil, codec.String(), on), Topics([]string{"a", "a"}, codec.String(), on), Topic("a/b", codec.String(), on), Topic("", codec.String(), on),
		Pattern("(", codec.String(), on), Topic("a", codec.String(), on, FetchBytes(0)), Topic("a", codec.String(), on, Group("g"), NoGroup()),
		Topic("a", codec.String(), on, Begin(Latest().Otherwise(Earliest()))), Topic("a", codec.String(), on, Begin(FromGroup(""))),
		Topic("a", codec.String(), on, Begin(Offsets(map[string]map[int32]int64{"a": {0: -5}}))),
	} {
		if r, err := bad.Open(t.Context(), opening(io.Discard)); err == nil {
			r.Close()
			t.Errorf("%+v was opened", bad.Describe())
		}
	}
}
