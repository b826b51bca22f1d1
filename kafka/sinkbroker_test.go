package kafka_test

import (
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/internal/services"
)

// sinkBroker is a real broker that the tests of sinks share.
var sinkBroker = services.SharedKafka(services.KafkaOptions{Properties: map[string]string{
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}})

func TestSinksOfBroker(t *testing.T) {
	setup := suite([]string{sinkBroker(t).Addr()})
	table := setup.Table
	setup.Table = func(t *testing.T) connectortest.TableFixture {
		f := table(t)
		f.Faults = connectortest.Faults{} // as the stream's, which take half a minute
		return f
	}
	connectortest.TestSink(t, setup)
}
