package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
)

// TestPermissions takes away what a sink needs, one by one, from a user of a real
// broker: the error names what is missing.
func TestPermissions(t *testing.T) {
	t.Parallel()
	broker := guarded(t)
	super := []string{broker.Addr()}
	admin := kadm.NewClient(plainClient(t, super))
	l := newLife(t, super)
	input := services.Unique("input")
	makeTopic(t, super, input, 1, nil)
	progress := l.open(t)
	l.make(t, progress)
	sink := kafka.Append(l.topic, codec.String(), kafka.On(kafka.Connect(kafka.Brokers(broker.AddrOf("SASL")), kafka.ScramSHA256("ann", rightPassword), hasty())))
	try := func() error {
		target, err := sink.Open(t.Context(), l.opening, l.key)
		if err != nil {
			return err
		}
		defer target.Close()
		d := l.delivery(1, nil, "a")
		d.Offsets = []connector.GroupOffsets{{Group: "readers", Offsets: map[string]connector.Offset{input + "/0": {Next: 0}}}}
		verdict, _, err := target.Deliver(t.Context(), d)
		if err == nil && verdict != connector.Apply {
			t.Fatalf("verdict %d", verdict)
		}
		return err
	}
	allow := func(b *kadm.ACLBuilder, ops ...kadm.ACLOperation) {
		t.Helper()
		made, err := admin.CreateACLs(t.Context(), b.Allow("User:ann").AllowHosts("*").Operations(ops...).ResourcePatternType(kadm.ACLPatternLiteral))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			if m.Err != nil {
				t.Fatal(m.Err)
			}
		}
	}
	for _, c := range []struct {
		missing, says string
		allow         func()
	}{
		{"the topic", "topic " + l.topic, func() { allow(kadm.NewACLs().Topics(l.topic), kadm.OpDescribe) }},
		{"writing to the topic", "topic " + l.topic, func() { allow(kadm.NewACLs().Topics(l.topic), kadm.OpWrite) }},
		{"the progress", "topic " + l.progress(), func() { allow(kadm.NewACLs().Topics(l.progress()), kadm.OpDescribe, kadm.OpRead) }},
		{"writing the progress", "topic " + l.progress(), func() { allow(kadm.NewACLs().Topics(l.progress()), kadm.OpWrite) }},
		{"the transactional id", "transactional id " + l.opening.TransactionPrefix, func() {
			allow(kadm.NewACLs().TransactionalIDs(l.opening.TransactionPrefix+l.key.JobID+"/0.0/texts"), kadm.OpDescribe, kadm.OpWrite)
		}},
		{"the group", "group readers", func() { allow(kadm.NewACLs().Groups("readers"), kadm.OpRead) }},
		{"the source's topic", "topic " + input, func() { allow(kadm.NewACLs().Topics(input), kadm.OpRead) }},
	} {
		var err error
		for range 200 { // what was allowed before takes a moment
			if err = try(); err != nil && strings.Contains(err.Error(), c.says) {
				break
			}
			moment()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Fatalf("without %s: got %v, expected %q in it", c.missing, err, c.says)
		}
		t.Logf("without %s: %v", c.missing, err)
		if hasSecret(err.Error()) {
			t.Errorf("the password is in %v", err)
		}
		c.allow()
	}
	err := errors.New("not tried")
	for range 200 {
		if err = try(); err == nil {
			break
		}
		moment()
	}
	if err != nil {
		t.Fatalf("with all permissions: %v", err)
	}
	l.sees(t, "a")
}
