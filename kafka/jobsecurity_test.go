package kafka_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// guarded is the broker that the tests share which looks at who comes.
var guarded = kafka.Guarded

const (
	rightPassword = kafka.RightPassword
	wrongPassword = kafka.WrongPassword
)

// token is one that the broker takes until a time.
func token(until time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":"alice","note":"S3cret","iat":%d,"exp":%d}`, time.Now().Unix(), until.Unix())
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
}

// bearer logs in by a token that holds for a time.
func bearer(lasts time.Duration) kafka.ClusterOption {
	return kafka.OAuthBearer(func(context.Context) (string, error) { return token(time.Now().Add(lasts)), nil })
}

// hasSecret tells whether a text holds one of the tests' passwords or tokens.
func hasSecret(text string) bool {
	return strings.Contains(text, "S3cret") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("S3cret"))[:6]) ||
		strings.Contains(text, strings.Split(token(time.Now()), ".")[0])
}

// setVariables sets the environment's variables of a prefix.
func setVariables(t *testing.T, prefix string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		t.Setenv(prefix+name, value)
	}
}

// keep makes a file, for a variable that names one.
func keep(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trusting is how a client talks to a server of the authority.
func trusting(t *testing.T, a *services.Authority, own ...*services.Certificate) *tls.Config {
	t.Helper()
	c, err := a.TLS(own...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// issued is a certificate.
func issued(t *testing.T, issue func(name string) (*services.Certificate, error)) *services.Certificate {
	t.Helper()
	c, err := issue("alice")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// feedOrders writes orders as JSON.
func feedOrders(t *testing.T, addr, topic string, all ...order) {
	t.Helper()
	client := plainClient(t, []string{addr})
	for _, o := range all {
		value, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// totalsIn is the table that a topic of totals holds.
func totalsIn(t *testing.T, addr, topic string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, r := range committed(t, []string{addr}, topic) {
		var s total
		if err := json.Unmarshal(r.Value, &s); err != nil {
			t.Fatal(err)
		}
		out[s.User] = s.Cents
	}
	return out
}

// passes runs a whole job from one cluster to another, whose plain addresses are
// given, through two lives.
func passes(t *testing.T, source, sink *kafka.Cluster, from, to string) {
	t.Helper()
	name := services.Unique("safe")
	in, out := name+"-orders", name+"-totals"
	makeTopic(t, []string{from}, in, 2, nil)
	makeTopic(t, []string{to}, out, 2, nil)
	st, log := store.NewMemory(), &journal{}
	for life, o := range []order{{"ann", 5}, {"ann", 30}} {
		feedOrders(t, from, in, o)
		job := sluice.NewJob(name)
		sums(job, job.From("orders", kafka.Topic(in, codec.JSON[order](), kafka.On(source)))).
			To("totals", kafka.Upsert(out, oneTotal, codec.String(), codec.JSON[total](), kafka.On(sink)))
		want := []int64{5, 35}[life]
		if err := run(t, job, st, log, func() bool { return totalsIn(t, to, out)["ann"] == want }); err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
	}
	if text := log.String(); hasSecret(text) {
		t.Errorf("a secret is in the log:\n%s", text)
	}
}

// refused sees that a job's start ends soon, once as source and once as sink, and
// that the error says what is wrong and holds no secret.
func refused(t *testing.T, cluster func() *kafka.Cluster, says ...string) {
	t.Helper()
	input := keep(t, []byte(`{"User":"ann","Cents":5}`))
	for _, part := range []string{"source", "sink"} {
		job := sluice.NewJob(services.Unique("refused"))
		if part == "source" {
			job.From("orders", kafka.Topic("orders", codec.JSON[order](), kafka.On(cluster()))).To("out", file.Append[order](filepath.Join(t.TempDir(), "out")))
		} else {
			job.From("orders", file.JSONLines[order](input)).To("out", kafka.Append("orders", codec.JSON[order](), kafka.On(cluster())))
		}
		log := &journal{}
		began := time.Now()
		err := run(t, job, store.NewMemory(), log, never)
		if _, ok := errors.AsType[*kafka.UnreachableError](err); !ok || exitCode(err) != 1 || time.Since(began) > 20*time.Second {
			t.Errorf("%s: after %v: %v", part, time.Since(began), err)
			continue
		}
		for _, s := range append(says, part+" o") {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q isn't in %v", part, s, err)
			}
		}
		if text := err.Error() + log.String(); hasSecret(text) {
			t.Errorf("%s: a secret is in %s", part, text)
		}
	}
}

// TestJobsAreLetIn: whole jobs by each way in, told by options or by the
// environment.
func TestJobsAreLetIn(t *testing.T) {
	b := guarded(t)
	ca := string(b.Authority().PEM())
	own := issued(t, b.Authority().Issue)
	both := func(login kafka.ClusterOption) []kafka.ClusterOption {
		return []kafka.ClusterOption{kafka.Brokers(b.AddrOf("BOTH")), kafka.TLS(trusting(t, b.Authority())), login}
	}
	options := map[string][]kafka.ClusterOption{
		"TLS":                {kafka.Brokers(b.AddrOf("TLS")), kafka.TLS(trusting(t, b.Authority()))},
		"client certificate": {kafka.Brokers(b.AddrOf("MUTUAL")), kafka.TLS(trusting(t, b.Authority(), own))},
		"PLAIN":              both(kafka.Plain("alice", rightPassword)),
		"SCRAM-SHA-256":      both(kafka.ScramSHA256("alice", rightPassword)),
		"SCRAM-SHA-512":      both(kafka.ScramSHA512("alice", rightPassword)),
		"OAUTHBEARER":        both(bearer(time.Hour)),
		"SASL without TLS":   {kafka.Brokers(b.AddrOf("SASL")), kafka.ScramSHA256("alice", rightPassword)},
	}
	t.Run("options", func(t *testing.T) {
		for name, opts := range options {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cluster := kafka.Connect(opts...)
				passes(t, cluster, cluster, b.Addr(), b.Addr())
			})
		}
	})
	for name, variables := range map[string]map[string]string{
		"TLS": {"": b.AddrOf("TLS"), "_TLS": "true", "_CA": keep(t, []byte(ca))},
		"client certificate": {"": b.AddrOf("MUTUAL"), "_TLS": "true", "_CA": keep(t, []byte(ca)),
			"_CERT": keep(t, own.Chain), "_KEY": keep(t, own.Key)},
		"PLAIN": {"": b.AddrOf("BOTH"), "_TLS": "true", "_CA": keep(t, []byte(ca)), "_SASL": "PLAIN", "_USER": "alice", "_PASSWORD": rightPassword},
		"SCRAM-SHA-256": {"": b.AddrOf("BOTH"), "_TLS": "true", "_CA": keep(t, []byte(ca)), "_SASL": "SCRAM-SHA-256", "_USER": "alice",
			"_PASSWORD_FILE": keep(t, []byte(rightPassword+"\n"))},
		"SCRAM-SHA-512": {"": b.AddrOf("SASL"), "_SASL": "SCRAM-SHA-512", "_USER": "alice", "_PASSWORD_FILE": keep(t, []byte(rightPassword))},
	} {
		t.Run("environment/"+name, func(t *testing.T) {
			setVariables(t, "SLUICE_KAFKA", variables)
			passes(t, kafka.Connect(), kafka.Connect(), b.Addr(), b.Addr())
		})
	}
}

// TestTwoClusters: a job reads from one, with TLS, and writes to another, without.
func TestTwoClusters(t *testing.T) {
	from, to := guarded(t), realKafka(t)
	setVariables(t, "ARCHIVE_KAFKA", map[string]string{"": from.AddrOf("BOTH"), "_TLS": "true", "_CA": keep(t, from.Authority().PEM()),
		"_SASL": "SCRAM-SHA-512", "_USER": "alice", "_PASSWORD": rightPassword})
	setVariables(t, "SLUICE_KAFKA", map[string]string{"": to.Addr()})
	passes(t, kafka.Connect(kafka.FromEnvironment("ARCHIVE_KAFKA")), kafka.Connect(), from.Addr(), to.Addr())
}

// TestJobsAreRefused: what is wrong with a way in is told at the start.
func TestJobsAreRefused(t *testing.T) {
	b := guarded(t)
	other, err := services.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	right := kafka.TLS(trusting(t, b.Authority()))
	elsewhere := trusting(t, b.Authority())
	elsewhere.ServerName = "kafka.example.com"
	at := func(listener string, opts ...kafka.ClusterOption) []kafka.ClusterOption {
		return append(opts, kafka.Brokers(b.AddrOf(listener)))
	}
	options := []struct {
		name string
		opts []kafka.ClusterOption
		says []string
	}{
		{"another authority", at("TLS", kafka.TLS(trusting(t, other))), []string{b.AddrOf("TLS"), "SLUICE_KAFKA_CA"}},
		{"the system's authorities", at("TLS", kafka.TLS(nil)), []string{"SLUICE_KAFKA_CA"}},
		{"another name", at("TLS", kafka.TLS(elsewhere)), []string{"kafka.example.com", "the broker's certificate is for other names"}},
		{"no TLS", at("TLS"), []string{"wants TLS"}},
		{"TLS to none", at("SASL", right), []string{"has no TLS"}},
		{"no certificate of its own", at("MUTUAL", right), []string{"SLUICE_KAFKA_CERT"}},
		{"another authority's certificate", at("MUTUAL", kafka.TLS(trusting(t, b.Authority(), issued(t, other.Issue)))), []string{"SLUICE_KAFKA_CERT"}},
		{"a certificate that has run out", at("MUTUAL", kafka.TLS(trusting(t, b.Authority(), issued(t, b.Authority().IssueOutdated)))), []string{"SLUICE_KAFKA_CERT"}},
		{"no login", at("SASL"), []string{"SLUICE_KAFKA_SASL"}},
		{"login where none is wanted", at("TLS", right, kafka.Plain("alice", rightPassword)), []string{"wants no SASL"}},
		{"another mechanism", at("SCRAM", kafka.Plain("alice", rightPassword)), []string{"another mechanism"}},
		{"PLAIN, wrong password", at("SASL", kafka.Plain("alice", wrongPassword)), []string{"password is wrong"}},
		{"PLAIN over TLS, wrong password", at("BOTH", right, kafka.Plain("alice", wrongPassword)), []string{"password is wrong"}},
		{"SCRAM-SHA-256, wrong password", at("BOTH", right, kafka.ScramSHA256("alice", wrongPassword)), []string{"password is wrong"}},
		{"SCRAM-SHA-512, wrong password", at("SASL", kafka.ScramSHA512("alice", wrongPassword)), []string{"password is wrong"}},
		{"another user", at("BOTH", right, kafka.ScramSHA512("carol", rightPassword)), []string{"password is wrong"}},
		{"a token that has run out", at("BOTH", right, bearer(-time.Hour)), []string{"token"}},
	}
	t.Run("options", func(t *testing.T) {
		for _, c := range options {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				refused(t, func() *kafka.Cluster { return kafka.Connect(c.opts...) }, c.says...)
			})
		}
	})
	ca := keep(t, b.Authority().PEM())
	for name, c := range map[string]struct {
		variables map[string]string
		says      string
	}{
		"another authority": {map[string]string{"": b.AddrOf("TLS"), "_TLS": "true", "_CA": keep(t, other.PEM())}, "SLUICE_KAFKA_CA"},
		"another name":      {map[string]string{"": forward(t, b.AddrOf("TLS")), "_TLS": "true", "_CA": ca}, "the broker's certificate is for other names"},
		"wrong password": {map[string]string{"": b.AddrOf("BOTH"), "_TLS": "true", "_CA": ca, "_SASL": "SCRAM-SHA-512", "_USER": "alice",
			"_PASSWORD": wrongPassword}, "password is wrong"},
		"wrong password in a file": {map[string]string{"": b.AddrOf("SASL"), "_SASL": "PLAIN", "_USER": "alice",
			"_PASSWORD": rightPassword, "_PASSWORD_FILE": keep(t, []byte(wrongPassword))}, "password is wrong"},
	} {
		t.Run("environment/"+name, func(t *testing.T) {
			setVariables(t, "SLUICE_KAFKA", c.variables)
			refused(t, func() *kafka.Cluster { return kafka.Connect() }, c.says)
		})
	}
}

// forward makes an address of this machine that the certificates of the tests are
// not for.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("a certificate for another address is not tried: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				other, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer other.Close()
				go func() { _, _ = io.Copy(other, from) }()
				_, _ = io.Copy(from, other)
			}()
		}
	}()
	return l.Addr().String()
}

// TestStopWhileConnecting: a stop while nothing answers is a stop, and no error.
func TestStopWhileConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cluster := kafka.Connect(kafka.Brokers(silent.Addr().String()))
	input := keep(t, []byte(`{"User":"ann","Cents":5}`))
	source, sink := sluice.NewJob("source"), sluice.NewJob("sink")
	source.From("orders", kafka.Topic("orders", codec.JSON[order](), kafka.On(cluster))).To("out", file.Append[order](filepath.Join(t.TempDir(), "out")))
	sink.From("orders", file.JSONLines[order](input)).To("out", kafka.Append("orders", codec.JSON[order](), kafka.On(cluster)))
	for _, job := range []*sluice.Job{source, sink} {
		began := time.Now()
		if err := run(t, job, store.NewMemory(), &journal{}, func() bool { return time.Since(began) > 300*time.Millisecond }); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	}
}
