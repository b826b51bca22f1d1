package kafka_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/codec/registry/registrytest"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
)

var _ connector.Checker = kafka.AppendSink[string]{}

// TestCheck: what a start would refuse is told, and nothing is made.
func TestCheck(t *testing.T) {
	c := fakeBrokers(t)
	addrs := c.ListenAddrs()
	at := kafka.On(kafka.Connect(kafka.Brokers(addrs...)))
	o := connector.Opening{Env: env.Real(), Job: "spend", JobID: "01", Name: "out"}
	check := func(s connector.Checker, want string) {
		t.Helper()
		err := s.Check(t.Context(), o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, connector.ErrNotAsked)) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
	lines := func(opts ...kafka.SinkOption) kafka.AppendSink[string] {
		return kafka.Append("lines", codec.String(), append(opts, at)...)
	}
	check(lines(), "topic lines isn't there")
	check(lines(kafka.CreateTopic(2, 1, nil)), "")
	topics, err := kadm.NewClient(plainClient(t, addrs)).ListTopics(t.Context())
	if err != nil || len(topics) != 0 {
		t.Errorf("a check has made topics: %v, %v", topics.Names(), err)
	}
	makeTopic(t, addrs, "lines", 1, nil)
	check(lines(), "")
	makeTopic(t, addrs, "compact", 1, map[string]string{"cleanup.policy": "compact"})
	check(kafka.Append("compact", codec.String(), at), "takes records with keys only")
	check(kafka.Append("compact", codec.String(), at).Key(func(s string) []byte { return []byte(s) }), "")

	c.Close()
	o.Env.Clock = impatient{o.Env.Clock}
	if err := lines().Check(t.Context(), o); !errors.Is(err, connector.ErrNotAsked) {
		t.Errorf("without brokers: %v", err)
	}
}

// TestCheckAsksTheRegistry: its rule of compatibility is asked, and nothing is
// registered.
func TestCheckAsksTheRegistry(t *testing.T) {
	addrs := fakeBrokers(t).ListenAddrs()
	makeTopic(t, addrs, "orders", 1, nil)
	at := kafka.On(kafka.Connect(kafka.Brokers(addrs...)))
	server := registrytest.Start(t)
	schemas, err := registry.New(registry.URLs(server.URL), registry.Patience(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { schemas.Close() })
	type order struct {
		ID    string
		Cents int64
	}
	type wider struct {
		ID    string
		Cents int64
		VIP   bool
	}
	type other struct{ ID int64 }
	o := connector.Opening{Env: env.Real(), Job: "spend", JobID: "01", Name: "out"}
	inRegistry := codec.Registered(schemas)
	first := codec.Avro[order](codec.Record("shop.Order"), inRegistry)
	if err := kafka.Append("orders", first, at).Check(t.Context(), o); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := first.(codec.Preparer).Prepare(t.Context(), codec.Use{Topic: "orders"}); err != nil {
		t.Fatal(err)
	}
	before := len(posts(server))
	if err := kafka.Append("orders", codec.Avro[wider](codec.Record("shop.Order"), inRegistry), at).Check(t.Context(), o); err != nil {
		t.Errorf("a field added: %v", err)
	}
	err = kafka.Append("orders", codec.Avro[other](codec.Record("shop.Order"), inRegistry), at).Check(t.Context(), o)
	if clash, is := errors.AsType[*registry.IncompatibleError](err); !is || clash.Subject != "orders-value" || errors.Is(err, connector.ErrNotAsked) {
		t.Errorf("a field retyped: %v", err)
	}
	err = kafka.Append("orders", codec.Avro[wider](codec.Record("shop.Order"), codec.Registered(schemas, codec.LookUpOnly())), at).Check(t.Context(), o)
	if missing, is := errors.AsType[*registry.MissingError](err); !is || missing.Newest != 1 {
		t.Errorf("one that is only looked up: %v", err)
	}
	if after := posts(server); len(after) != before {
		t.Errorf("registered by checks: %q", after[before:])
	}
	server.Close()
	if err := kafka.Append("orders", codec.Avro[wider](codec.Record("shop.Order"), inRegistry), at).Check(t.Context(), o); !errors.Is(err, connector.ErrNotAsked) {
		t.Errorf("without a registry: %v", err)
	}
}

// posts are the requests that register a schema.
func posts(server *registrytest.Server) []string {
	return slices.DeleteFunc(server.Requests(), func(q string) bool {
		return !strings.HasPrefix(q, "POST /subjects/") || !strings.HasSuffix(q, "/versions")
	})
}
