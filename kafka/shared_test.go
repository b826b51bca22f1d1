package kafka

import (
	"flag"
	"os"
	"testing"
)

// The shared brokers, for the tests outside of the package.
var (
	RealKafka = realKafka
	Guarded   = guarded
	Mortal    = mortal
)

// The passwords of Guarded's users.
const (
	RightPassword = rightPassword
	WrongPassword = wrongPassword
)

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
