package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
)

// openAt tries to open a topic at a cluster.
func openAt(t *testing.T, topic string, c *Cluster, opts ...SourceOption) error {
	t.Helper()
	r, err := Topic(topic, codec.String(), append(opts, On(c))...).Open(t.Context(), opening(io.Discard))
	if err == nil {
		r.Close()
	}
	return err
}

// TestNoBroker: a bounded time, and then the addresses and the cause.
func TestNoBroker(t *testing.T) {
	noLeaks(t)
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	addr := c.ListenAddrs()[0]
	c.Close()
	o := opening(io.Discard)
	o.Env = hastyEnv()
	_, err = topicOf([]string{addr}, "orders").Open(t.Context(), o)
	away, ok := errors.AsType[*UnreachableError](err)
	if !ok || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "refused") || away.Cause == nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := topicOf([]string{addr}, "orders").Open(ctx, opening(io.Discard)); !errors.Is(err, context.Canceled) {
		t.Fatalf("with a context that ended: %v", err)
	}
}

// TestRefusedByTheRealBroker: what is wrong is told, and no password.
func TestRefusedByTheRealBroker(t *testing.T) {
	t.Parallel()
	b, topic, group := guarded(t), services.Unique("orders"), services.Unique("spend")
	super := writer(t, []string{b.Addr()})
	newTopic(t, super, topic, 1)
	put(t, super, numbered(topic, 0, 0, 3)...)
	config := func(a *services.Authority, own ...*services.Certificate) *tls.Config {
		c, err := a.TLS(own...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	other, err := services.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	right := config(b.Authority())
	for _, c := range []struct {
		name     string
		listener string
		options  []ClusterOption
		says     string
	}{
		{"another authority", "TLS", []ClusterOption{TLS(config(other))}, "authority"},
		{"plain text to TLS", "TLS", nil, "wants TLS"},
		{"TLS to plain text", "SASL", []ClusterOption{TLS(right)}, "TLS"},
		{"no certificate", "MUTUAL", []ClusterOption{TLS(right)}, "certificate of the client"},
		{"wrong password", "SASL", []ClusterOption{Plain("eve", wrongPassword)}, "password is wrong"},
		{"wrong password, SCRAM", "BOTH", []ClusterOption{TLS(right), ScramSHA512("eve", wrongPassword)}, "password is wrong"},
		{"no login", "SASL", nil, "SASL"},
	} {
		err := openAt(t, topic, Connect(append(c.options, Brokers(b.AddrOf(c.listener)))...))
		if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%s: %v", c.name, err)
		}
	}

	eve := Connect(Brokers(b.AddrOf("BOTH")), TLS(right), ScramSHA256("eve", rightPassword))
	admin := kadm.NewClient(super)
	allow := func(topic, group string, operations ...kadm.ACLOperation) {
		acl := kadm.NewACLs().Allow("User:eve").AllowHosts("*").Operations(operations...).ResourcePatternType(kadm.ACLPatternLiteral)
		if topic != "" {
			acl.Topics(topic)
		}
		if group != "" {
			acl.Groups(group)
		}
		if _, err := admin.CreateACLs(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(resource, operation string) {
		t.Helper()
		// A broker may learn of a permission a little later.
		var err error
		until(t, fmt.Sprintf("the want of %s on %s", operation, resource), func() bool {
			err = openAt(t, topic, eve, Group(group))
			want, ok := errors.AsType[*PermissionError](err)
			if ok && *want == (PermissionError{resource, operation}) {
				return true
			}
			return err == nil
		})
		if err == nil {
			t.Fatalf("opened without %s on %s", operation, resource)
		}
	}
	expect("topic "+topic, "Read")
	allow(topic, "", kadm.OpDescribe)
	expect("topic "+topic, "Read")
	allow(topic, "", kadm.OpRead)
	expect("group "+group, "Read")
	if err := openAt(t, topic, eve, NoGroup()); err != nil {
		t.Fatalf("without a group: %v", err)
	}
	allow("", group, kadm.OpDescribe)
	expect("group "+group, "Read")
	allow("", group, kadm.OpRead)
	until(t, "the source to open", func() bool { return openAt(t, topic, eve, Group(group)) == nil })
	r := openSource(t, Topic(topic, codec.String(), On(eve), Group(group)), opening(io.Discard)).(connector.GroupReader)
	got, to := values(t, partitionAt(t, r, topic+"/0", connector.Offset{}), 3)
	if len(got) != 3 {
		t.Fatalf("read %q", got)
	}
	if err := r.CommitOffsets(t.Context(), map[string]connector.Offset{topic + "/0": to}); err != nil {
		t.Fatal(err)
	}
}

// TestPermissionTakenWhileReading: it stops, and says what is missing.
func TestPermissionTakenWhileReading(t *testing.T) {
	l := newLossy(t)
	values(t, l.part, 7)
	l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	_, err := failure(t, l.part)
	if want, ok := errors.AsType[*PermissionError](err); !ok || *want != (PermissionError{"topic orders", "Read"}) {
		t.Fatalf("%v", err)
	}
}

// TestPassingErrors: what a broker says while it is being started, stopped or led
// elsewhere is waited out.
func TestPassingErrors(t *testing.T) {
	for _, passing := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.LeaderNotAvailable,
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.OffsetOutOfRange, kerr.RequestTimedOut} {
		t.Run(passing.Message, func(t *testing.T) {
			l := newLossy(t)
			values(t, l.part, 7)
			l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: passing, Count: 3})
			l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Err: kerr.UnknownTopicOrPartition, Count: 1})
			l.put(10, 12)
			if got, _ := values(t, l.part, 2); got[1] != "v11" {
				t.Fatalf("behind %v: read %q", passing, got)
			}
		})
	}
}

// TestHopelessError: what won't pass stops.
func TestHopelessError(t *testing.T) {
	l := newLossy(t)
	values(t, l.part, 7)
	l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.InvalidRecord, Count: -1})
	if _, err := failure(t, l.part); !errors.Is(err, kerr.InvalidRecord) || !strings.Contains(err.Error(), "offset 10") {
		t.Fatalf("%v", err)
	}
}
