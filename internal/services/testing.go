package services

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"
)

// Kafka starts a broker for one test, and ends it with the test.
func Kafka(tb testing.TB, o KafkaOptions) *Broker {
	tb.Helper()
	o.brief = isTest(tb)
	b, err := StartKafka(o)
	if err != nil {
		give(tb, err)
	}
	tb.Cleanup(func() { closeServer(tb, b) })
	return b
}

// SharedKafka is a broker for all tests of a binary, held in a variable of
// theirs: the first call of what it returns starts it, and it ends with the
// binary. A test that stops or pauses it sets it going again.
func SharedKafka(o KafkaOptions) func(testing.TB) *Broker {
	return shared(func(tb testing.TB) (*Broker, error) {
		o.brief = isTest(tb)
		return StartKafka(o)
	})
}

// isTest tells a test from a benchmark, whose server is to be as fast as others are.
func isTest(tb testing.TB) bool {
	_, benchmark := tb.(*testing.B)
	return !benchmark
}

// Postgres starts a server for one test, and ends it with the test.
func Postgres(tb testing.TB, o PostgresOptions) *Database {
	tb.Helper()
	d, err := StartPostgres(o)
	if err != nil {
		give(tb, err)
	}
	tb.Cleanup(func() { closeServer(tb, d) })
	return d
}

// SharedPostgres is a server for all tests of a binary, as [SharedKafka] is.
func SharedPostgres(o PostgresOptions) func(testing.TB) *Database {
	return shared(func(testing.TB) (*Database, error) { return StartPostgres(o) })
}

// shared starts a server at the first call. Nobody closes it: its watchdog does,
// when the process ends.
func shared[S any](start func(first testing.TB) (S, error)) func(testing.TB) S {
	var once sync.Once
	var s S
	var err error
	return func(tb testing.TB) S {
		tb.Helper()
		once.Do(func() { s, err = start(tb) })
		if err != nil {
			give(tb, err)
		}
		return s
	}
}

func closeServer(tb testing.TB, s interface{ Close() error }) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

// RequireKafka skips a test where Kafka can't be started, as [Kafka] does.
func RequireKafka(tb testing.TB) {
	tb.Helper()
	_, err := findJava()
	if err == nil {
		_, err = KafkaJars()
	}
	if err != nil {
		give(tb, err)
	}
}

// RequirePostgres skips a test where PostgreSQL can't be started, as [Postgres] does.
func RequirePostgres(tb testing.TB) {
	tb.Helper()
	if _, _, err := findPostgres(); err != nil {
		give(tb, err)
	}
}

// Unique makes a name that nothing else has, for a topic, a group, a database or
// a table: small letters, digits and underscores.
func Unique(base string) string {
	return strings.ToLower(base + "_" + rand.Text()[:10])
}
