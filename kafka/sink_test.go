package kafka_test

import (
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
)

func TestSinksOfFakeBrokers(t *testing.T) {
	t.Parallel()
	testSinks(t, func(t *testing.T) connectortest.SinkSetup { return suite(fakeBrokers(t).ListenAddrs()) })
}

// testSinks holds the sinks to the suite, streams and tables at once.
func testSinks(t *testing.T, setup func(t *testing.T) connectortest.SinkSetup) {
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		connectortest.TestSink(t, connectortest.SinkSetup{Stream: setup(t).Stream})
	})
	t.Run("tables", func(t *testing.T) {
		t.Parallel()
		connectortest.TestSink(t, connectortest.SinkSetup{Table: setup(t).Table})
	})
}
