package kafka_test

import (
	"os"
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/kafka"
)

// realKafka is the broker that the tests share, mortal the one that they kill.
var (
	realKafka = kafka.RealKafka
	mortal    = kafka.Mortal
)

// TestSinksOfBroker holds the sinks to the suite on the real broker; crashes at each
// request, which take a minute there, at full length only. The fake brokers have
// them in any case.
func TestSinksOfBroker(t *testing.T) {
	t.Parallel()
	testSinks(t, setupOfBroker)
}

func setupOfBroker(t *testing.T) connectortest.SinkSetup {
	setup := suite([]string{realKafka(t).Addr()})
	stream, table := setup.Stream, setup.Table
	setup.Stream = func(t *testing.T) connectortest.StreamFixture {
		f := stream(t)
		if os.Getenv("SLUICE_TORTURE") == "" {
			f.Faults = connectortest.Faults{}
		}
		return f
	}
	setup.Table = func(t *testing.T) connectortest.TableFixture {
		f := table(t)
		f.Faults = connectortest.Faults{} // as the stream's
		return f
	}
	return setup
}
