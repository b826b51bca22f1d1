package kafka_test

import (
	"testing"

	"github.com/sluicestream/sluice/connector/connectortest"
)

func TestSinksOfFakeBrokers(t *testing.T) {
	connectortest.TestSink(t, suite(fakeBrokers(t).ListenAddrs()))
}
