package kafka_test

import (
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/internal/services"
)

// sinkBroker is a real broker that the tests of sinks share.
var sinkBroker = services.SharedKafka(services.KafkaOptions{})

func TestSinksOfBroker(t *testing.T) {
	connectortest.TestSink(t, suite([]string{sinkBroker(t).Addr()}))
}
