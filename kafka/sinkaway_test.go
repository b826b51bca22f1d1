package kafka_test

import (
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/kafka"
)

// TestBrokerAway has the only broker stand still, and die, in the middle of a
// delivery: the call ends by itself, and what became of the delivery is found out
// once the broker is back.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	broker := mortal(t)
	for name, c := range map[string]struct{ leave, back func() }{
		"standing still": {func() { broker.Pause() }, func() { broker.Resume() }},
		"killed":         {func() { broker.Kill() }, func() { broker.Start() }},
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 3 * time.Second
			l := newLife(t, []string{broker.Addr()}, kafka.TransactionTimeout(limit))
			target := l.open(t)
			l.make(t, target)
			l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
			begun := time.Now()
			err := l.fails(t, target, l.delivery(2, func() {
				l.hasOpen(t)
				begun = time.Now()
				c.leave()
			}, "b", "c"))
			took := time.Since(begun)
			t.Logf("after %v: %v", took.Round(time.Millisecond), err)
			if took > limit+5*time.Second {
				t.Errorf("the delivery took %v, expected an end soon after %v", took, limit)
			}
			c.back()
			deadline := time.Now().Add(settleWithin)
			for {
				verdict, _, err := target.Deliver(t.Context(), l.delivery(2, nil, "b", "c"))
				if err == nil && verdict == connector.Apply {
					break
				}
				if err == nil || time.Now().After(deadline) {
					t.Fatalf("with the broker back: verdict %d, %v", verdict, err)
				}
				moment()
			}
			l.sees(t, "a", "b", "c")
		})
	}
}
