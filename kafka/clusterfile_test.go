package kafka

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
)

// plainLogin is a login as a file has it.
func plainLogin(user, password string) string {
	return fmt.Sprintf("sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=%q password=%q;\n", user, password)
}

// TestClusterFile: what stands in a file is used where nothing else says it.
func TestClusterFile(t *testing.T) {
	whole := "bootstrap.servers=f:1,\\\n  f:2\nclient.id=of-the-file\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n" + plainLogin("fay", "s3cret") +
		"client.dns.lookup=use_all_dns_ips\nssl.endpoint.identification.algorithm=https\n"
	login := "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=x.ScramLoginModule required username='fay' password='s3cret';\n"
	for _, c := range []struct {
		name string
		file string
		env  map[string]string
		make func(path string) *Cluster
		want string // of String, and the client id; else of the error, behind "!"
	}{
		{"all of it", whole, nil, func(p string) *Cluster { return Connect(FromFile(p)) }, "kafka f:1,f:2, TLS, PLAIN as fay of-the-file"},
		{"named by the environment", whole, map[string]string{"SLUICE_KAFKA_CONFIG": "FILE"}, func(string) *Cluster { return Connect() }, "kafka f:1,f:2, TLS, PLAIN as fay of-the-file"},
		{"of another cluster", whole, map[string]string{"ARCHIVE_CONFIG": "FILE", "SLUICE_KAFKA": "a:1"}, func(string) *Cluster { return Connect(FromEnvironment("ARCHIVE")) }, "kafka f:1,f:2, TLS, PLAIN as fay of-the-file"},
		{"variables come first", whole, map[string]string{"SLUICE_KAFKA_CONFIG": "FILE", "SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_SASL": "SCRAM-SHA-512", "SLUICE_KAFKA_USER": "eve", "SLUICE_KAFKA_PASSWORD": "s3cret2", "SLUICE_KAFKA_CLIENT_ID": "of-the-environment"},
			func(string) *Cluster { return Connect() }, "kafka a:1, TLS, SCRAM-SHA-512 as eve of-the-environment"},
		{"no TLS by a variable", whole, map[string]string{"SLUICE_KAFKA_CONFIG": "FILE", "SLUICE_KAFKA_TLS": "false"}, func(string) *Cluster { return Connect() }, "kafka f:1,f:2, PLAIN as fay of-the-file"},
		{"options come first", whole, map[string]string{"SLUICE_KAFKA_CONFIG": "FILE", "SLUICE_KAFKA_CLIENT_ID": "of-the-environment"},
			func(string) *Cluster { return Connect(ScramSHA256("olga", "s3cret"), ClientID("of-the-program")) }, "kafka f:1,f:2, TLS, SCRAM-SHA-256 as olga of-the-program"},
		{"in any order", whole, nil, func(p string) *Cluster { return Connect(ClientID("of-the-program"), FromFile(p), Brokers("o:1")) }, "kafka o:1, TLS, PLAIN as fay of-the-program"},
		{"options before a prefix", whole, map[string]string{"ARCHIVE": "a:1", "ARCHIVE_CONFIG": "FILE"}, func(string) *Cluster { return Connect(Brokers("o:1"), FromEnvironment("ARCHIVE")) }, "kafka o:1, TLS, PLAIN as fay of-the-file"},
		{"a named file that names brokers is another cluster's", whole, map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "maybe"}, func(p string) *Cluster { return Connect(FromFile(p)) }, "kafka f:1,f:2, TLS, PLAIN as fay of-the-file"},
		{"one that names none is the environment's", login, map[string]string{"SLUICE_KAFKA": "a:1"}, func(p string) *Cluster { return Connect(FromFile(p)) }, "kafka a:1, SCRAM-SHA-256 as fay sluice-spend"},
		{"named brokers leave the environment's file", "nonsense=1\n", map[string]string{"SLUICE_KAFKA_CONFIG": "FILE"}, func(string) *Cluster { return Connect(Brokers("o:1")) }, "kafka o:1 sluice-spend"},
		{"the program's file goes before the environment's", login, map[string]string{"SLUICE_KAFKA_CONFIG": "/nowhere", "SLUICE_KAFKA": "a:1"}, func(p string) *Cluster { return Connect(FromFile(p)) }, "kafka a:1, SCRAM-SHA-256 as fay sluice-spend"},
		{"no brokers anywhere", login, nil, func(p string) *Cluster { return Connect(FromFile(p)) }, "!set SLUICE_KAFKA=host:port, or bootstrap.servers"},
		{"no brokers of a prefix", "", map[string]string{"SLUICE_KAFKA": "a:1"}, func(string) *Cluster { return Connect(FromEnvironment("ARCHIVE")) }, "!set ARCHIVE=host:port"},
		{"no file", "", map[string]string{"SLUICE_KAFKA_CONFIG": "/nowhere/client.properties"}, func(string) *Cluster { return Connect() }, "!SLUICE_KAFKA_CONFIG: the file of settings: open /nowhere/client.properties"},
		{"a password alone", whole, map[string]string{"SLUICE_KAFKA_CONFIG": "FILE", "SLUICE_KAFKA_PASSWORD": "s3cret"}, func(string) *Cluster { return Connect() }, "!SLUICE_KAFKA_PASSWORD is set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "client.properties", c.file)
			for name, value := range c.env {
				t.Setenv(name, strings.Replace(value, "FILE", path, 1))
			}
			made := c.make(path)
			known, err := made.settled()
			if err == nil {
				client, _, failed := made.newClient("spend")
				if err = failed; err == nil {
					client.Close()
				}
			}
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
					t.Fatalf("%v, expected %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			id := known.clientID
			if id == "" {
				id = "sluice-spend"
			}
			if got := known.String() + " " + id; got != c.want {
				t.Errorf("%s, expected %s", got, c.want)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				if s := fmt.Sprintf(verb, made) + fmt.Sprintf(verb, known); strings.Contains(s, "s3cret") {
					t.Errorf("%s prints %s", verb, s)
				}
			}
		})
	}
}

// TestClusterFileRefuses: the error names file, line and setting, and no secret.
func TestClusterFileRefuses(t *testing.T) {
	const secret = "s3cret"
	junk := write(t, "junk.pem", "no certificate "+secret)
	for _, c := range []struct{ name, text, says string }{
		{"unknown", "\nacks=" + secret, "line 2: a setting that a job doesn't know"},
		{"mistyped", "sasl.mechansim=" + secret, "line 1: setting sasl.mechansim that a job doesn't know: expected one of bootstrap.servers, "},
		{"a broken line", "ssl.keystore.key=-----BEGIN PRIVATE KEY-----\n" + secret + "\n", "line 2: a setting that"},
		{"twice", "client.id=a\nclient.id=" + secret, "line 2: client.id: it stands in line 1 already"},
		{"an odd protocol", "security.protocol=" + secret, "line 1: security.protocol: expected PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"},
		{"a login without its protocol", "sasl.mechanism=PLAIN\n" + plainLogin("ann", secret), `line 1: sasl.mechanism means nothing where security.protocol is ""`},
		{"authorities without TLS", "security.protocol=SASL_PLAINTEXT\nssl.truststore.location=x", `line 2: ssl.truststore.location means nothing where security.protocol is "SASL_PLAINTEXT"`},
		{"no mechanism", "security.protocol=SASL_SSL\n" + plainLogin("ann", secret), "sasl.mechanism: expected PLAIN, "},
		{"no login", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"},
		{"an odd login", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=PlainLoginModule " + secret, "line 3: sasl.jaas.config: expected CLASS required"},
		{"another store", "security.protocol=SSL\nssl.truststore.location=" + junk, `ssl.truststore.type is "", expected PEM`},
		{"a store's password", "security.protocol=SSL\nssl.truststore.password=" + secret, "line 2: ssl.truststore.password: expected stores in PEM"},
		{"no certificate", "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=" + junk, "line 3: ssl.truststore.location: expected certificates in PEM, found none"},
		{"two stores", "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=" + junk + "\nssl.truststore.certificates=" + secret, "line 3: ssl.truststore.location: ssl.truststore.certificates stands in line 4"},
		{"no file of authorities", "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=" + junk + "2", "line 3: ssl.truststore.location: open "},
		{"no key", "security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location=" + junk, "line 3: ssl.keystore.location: expected a key without a password"},
		{"a key alone", "security.protocol=SSL\nssl.keystore.key=" + secret, "line 2: ssl.keystore.key: ssl.keystore.certificate.chain is missing"},
		{"names that aren't checked", "ssl.endpoint.identification.algorithm=", "line 1: ssl.endpoint.identification.algorithm: expected https"},
		{"not ASCII", "client.id=" + secret + "é", "line 1: a character that isn't ASCII"},
		{"too large", strings.Repeat("#", 1<<20+1), "more than 1048576 bytes"},
	} {
		path := write(t, "client.properties", c.text)
		_, _, err := Connect(FromFile(path), Brokers("a:1")).newClient("spend")
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), filepath.Base(path)) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, expected %s", c.name, err, c.says)
		}
	}
}

// TestClusterFileReachesTheRealBroker by PEM stores, in files and inside of the file,
// and by logins.
func TestClusterFileReachesTheRealBroker(t *testing.T) {
	t.Parallel()
	b, topic := guarded(t), services.Unique("orders")
	newTopic(t, writer(t, []string{b.Addr()}), topic, 1)
	own, err := b.Authority().Issue("alice")
	if err != nil {
		t.Fatal(err)
	}
	authority, keyPEM, certificate := string(b.Authority().PEM()), string(own.Key), string(own.Chain)
	inline := func(pem string) string { return strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\\n\\\n  ") + "\n" }
	scram := "sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n  username=\"alice\" \\\n  password=\"" + rightPassword + "\";\n"
	for name, text := range map[string]string{
		"TLS and SCRAM": "bootstrap.servers=" + b.AddrOf("BOTH") + "\nsecurity.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location=" + write(t, "ca.pem", authority) + "\n" + scram,
		"PLAIN":         "bootstrap.servers=" + b.AddrOf("SASL") + "\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n" + plainLogin("alice", rightPassword),
		"a certificate in files": "bootstrap.servers=" + b.AddrOf("MUTUAL") + "\nsecurity.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=" + write(t, "ca.pem", authority) +
			"\nssl.keystore.type=PEM\nssl.keystore.location=" + write(t, "own.pem", keyPEM+certificate) + "\n",
		"a certificate inside": "bootstrap.servers=" + b.AddrOf("MUTUAL") + "\nsecurity.protocol=SSL\nssl.truststore.certificates=" + inline(authority) +
			"ssl.keystore.key=" + inline(keyPEM) + "ssl.keystore.certificate.chain=" + inline(certificate),
	} {
		t.Run(name, func(t *testing.T) {
			c := Connect(FromFile(write(t, "client.properties", text)))
			openSource(t, Topic(topic, codec.String(), On(c)), opening(io.Discard))
		})
	}
}
