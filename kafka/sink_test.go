package kafka_test

import (
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
)

func TestSinksOfFakeBrokers(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, suite(fakeBrokers(t).ListenAddrs()))
}
