package kafka

import (
	"flag"
	"os"
	"testing"
)

// RealKafka is the shared broker, for the tests outside of the package.
var RealKafka = realKafka

// atOnce is how many tests run at a time: they wait for brokers more than they
// compute.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
