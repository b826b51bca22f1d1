package kafka

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
)

// write makes a file.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnvironment(t *testing.T) {
	secret := write(t, "password", "from-a-file\n")
	junk := write(t, "ca.pem", "no certificate")
	for _, c := range []struct {
		name string
		env  map[string]string
		make func() *Cluster
		want string // of String; else of the error, behind "!"
	}{
		{"nothing", nil, func() *Cluster { return Connect() }, "!SLUICE_KAFKA=host:port"},
		{"brokers", map[string]string{"SLUICE_KAFKA": "a:1, b:2,"}, func() *Cluster { return Connect() }, "kafka a:1,b:2"},
		{"all", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "true", "SLUICE_KAFKA_SASL": "SCRAM-SHA-512", "SLUICE_KAFKA_USER": "ann", "SLUICE_KAFKA_PASSWORD": "s3cret"},
			func() *Cluster { return Connect() }, "kafka a:1, TLS, SCRAM-SHA-512 as ann"},
		{"named brokers take nothing from there", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "maybe"},
			func() *Cluster { return Connect(Brokers("c:3"), Plain("bob", "s3cret")) }, "kafka c:3, PLAIN as bob"},
		{"another prefix", map[string]string{"ARCHIVE": "d:4", "ARCHIVE_SASL": "PLAIN", "ARCHIVE_USER": "ann", "ARCHIVE_PASSWORD_FILE": secret},
			func() *Cluster { return Connect(FromEnvironment("ARCHIVE")) }, "kafka d:4, PLAIN as ann"},
		{"odd TLS", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "yes"}, func() *Cluster { return Connect() }, `!SLUICE_KAFKA_TLS is "yes", expected true or false`},
		{"authority without TLS", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_CA": junk}, func() *Cluster { return Connect() }, "!set SLUICE_KAFKA_TLS=true"},
		{"junk", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "true", "SLUICE_KAFKA_CA": junk}, func() *Cluster { return Connect() }, "!holds no certificate"},
		{"half a pair", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_TLS": "true", "SLUICE_KAFKA_CERT": junk}, func() *Cluster { return Connect() }, "!SLUICE_KAFKA_CERT and _KEY"},
		{"odd mechanism", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_SASL": "KERBEROS", "SLUICE_KAFKA_USER": "ann"}, func() *Cluster { return Connect() }, `!SLUICE_KAFKA_SASL is "KERBEROS"`},
		{"user alone", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_USER": "ann"}, func() *Cluster { return Connect() }, "!SLUICE_KAFKA_SASL"},
		{"no user", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_SASL": "PLAIN"}, func() *Cluster { return Connect() }, "!SLUICE_KAFKA_USER is empty"},
		{"no file", map[string]string{"SLUICE_KAFKA": "a:1", "SLUICE_KAFKA_PASSWORD_FILE": secret + "x"}, func() *Cluster { return Connect() }, "!SLUICE_KAFKA_PASSWORD_FILE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			made := c.make()
			client, brokers, err := made.newClient("spend")
			if err == nil {
				client.Close()
			}
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v, expected %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			known, err := made.settled()
			if err != nil || known.String() != c.want || len(brokers) == 0 {
				t.Fatalf("%v to %q: %v, expected %s", known, brokers, err, c.want)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				if s := fmt.Sprintf(verb, made) + fmt.Sprintf(verb, known); strings.Contains(s, "s3cret") || strings.Contains(s, "from-a-file") {
					t.Errorf("%s prints %s", verb, s)
				}
			}
		})
	}
}

// TestTLSFromFiles: the real broker is reached with what stands in files and the
// environment alone.
func TestTLSFromFiles(t *testing.T) {
	b, topic := guarded(t), services.Unique("orders")
	newTopic(t, writer(t, []string{b.Addr()}), topic, 1)
	for name, value := range map[string]string{
		"": b.AddrOf("BOTH"), "_TLS": "true", "_CA": write(t, "ca.pem", string(b.Authority().PEM())), "_SASL": "SCRAM-SHA-512",
		"_USER": "alice", "_PASSWORD_FILE": write(t, "password", rightPassword+"\n"),
	} {
		t.Setenv("SLUICE_KAFKA"+name, value)
	}
	openSource(t, Topic(topic, codec.String()), opening(io.Discard))
}
