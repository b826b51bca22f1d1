package services

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/sluicestream/sluice/internal/cutproxy"
)

// unsecured is a token in the form that OAuthBearer takes.
func unsecured(subject string, until time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, time.Now().Unix(), until.Unix())
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
}

// metadata asks a broker for its topics. That it refuses is final; that it can't
// be reached is tried again a few times by the client.
func metadata(t *testing.T, addr string, options ...kgo.Opt) error {
	t.Helper()
	c := client(t, addr, append(options, kgo.RequestRetries(0))...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := kadm.NewClient(c).Metadata(ctx)
	return err
}

func TestSecurity(t *testing.T) {
	b := Kafka(t, KafkaOptions{
		Users: map[string]string{"alice": "right"},
		ACLs:  true,
		Listeners: []Listener{
			{Name: "TLS", Protocol: SSL},
			{Name: "MUTUAL", Protocol: SSL, ClientCertificates: true},
			{Name: "SASL", Protocol: SASLPlaintext},
			{Name: "BOTH", Protocol: SASLSSL},
		},
	})
	config := func(a *Authority, client ...*Certificate) *tls.Config {
		c, err := a.TLS(client...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	trusting := config(b.Authority())
	other, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}

	t.Run("TLS", func(t *testing.T) {
		if err := metadata(t, b.AddrOf("TLS"), kgo.DialTLSConfig(trusting)); err != nil {
			t.Errorf("the right authority: %v", err)
		}
		if err := metadata(t, b.AddrOf("TLS"), kgo.DialTLSConfig(config(other))); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("another authority: %v", err)
		}
		if err := metadata(t, b.AddrOf("TLS")); err == nil {
			t.Error("a client without TLS is accepted")
		}
	})
	t.Run("client certificates", func(t *testing.T) {
		issue := func(make func(string) (*Certificate, error)) *Certificate {
			c, err := make("carol")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		own := issue(b.Authority().Issue)
		if err := metadata(t, b.AddrOf("MUTUAL"), kgo.DialTLSConfig(config(b.Authority(), own))); err != nil {
			t.Errorf("its own: %v", err)
		}
		for what, with := range map[string]*tls.Config{
			"none":                     trusting,
			"another":                  config(b.Authority(), issue(other.Issue)),
			"its own that has run out": config(b.Authority(), issue(b.Authority().IssueOutdated)),
		} {
			if err := metadata(t, b.AddrOf("MUTUAL"), kgo.DialTLSConfig(with)); err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
	})
	mechanisms := map[string]func(password string) sasl.Mechanism{
		Plain: func(p string) sasl.Mechanism { return plain.Auth{User: "alice", Pass: p}.AsMechanism() },
		ScramSHA256: func(p string) sasl.Mechanism {
			return scram.Auth{User: "alice", Pass: p}.AsSha256Mechanism()
		},
		ScramSHA512: func(p string) sasl.Mechanism {
			return scram.Auth{User: "alice", Pass: p}.AsSha512Mechanism()
		},
		OAuthBearer: func(p string) sasl.Mechanism {
			until := time.Now().Add(time.Hour)
			if p != "right" {
				until = time.Now().Add(-time.Hour)
			}
			return oauth.Auth{Token: unsecured("alice", until)}.AsMechanism()
		},
	}
	for name, mechanism := range mechanisms {
		for listener, options := range map[string][]kgo.Opt{"SASL": nil, "BOTH": {kgo.DialTLSConfig(trusting)}} {
			t.Run(name+" at "+listener, func(t *testing.T) {
				if err := metadata(t, b.AddrOf(listener), append(options, kgo.SASL(mechanism("right")))...); err != nil {
					t.Errorf("the right password: %v", err)
				}
				err := metadata(t, b.AddrOf(listener), append(options, kgo.SASL(mechanism("wrong")))...)
				if !errors.Is(err, kerr.SaslAuthenticationFailed) {
					t.Errorf("the wrong password: %v", err)
				}
			})
		}
	}
	t.Run("ACLs", func(t *testing.T) {
		admin := client(t, b.Addr())
		topic := createTopic(t, admin, "acl")
		alice := client(t, b.AddrOf("SASL"), kgo.SASL(mechanisms[ScramSHA256]("right")))
		produce := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return alice.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
		}
		if err := produce(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("without an ACL: %v", err)
		}
		allow := kadm.NewACLs().Allow("User:alice").AllowHosts().Topics(topic).Operations(kadm.OpWrite, kadm.OpDescribe)
		created, err := kadm.NewClient(admin).CreateACLs(t.Context(), allow.ResourcePatternType(kadm.ACLPatternLiteral))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range created {
			if c.Err != nil {
				t.Fatal(c.Err)
			}
		}
		var produced error
		if !within(patience, func() bool { produced = produce(); return produced == nil }) {
			t.Errorf("with an ACL: %v", produced)
		}
	})
}

// TestAdvertisedProxy has a broker that sends its clients to a proxy.
func TestAdvertisedProxy(t *testing.T) {
	const produce = 0
	p := cutproxy.Start(t, cutproxy.Options{Protocol: cutproxy.Kafka, Record: true})
	b := Kafka(t, KafkaOptions{Listeners: []Listener{{Name: "PROXIED", Advertised: p.Addr()}}})
	p.Forward(b.AddrOf("PROXIED"))
	topic := createTopic(t, client(t, b.Addr()), "proxied")
	cut := make(chan cutproxy.Message, 1)
	p.SetFate(func(int) cutproxy.Fate {
		return cutproxy.Fate{When: func(m cutproxy.Message) (cutproxy.Act, int64) {
			if m.Way == cutproxy.ToClient && m.Key == produce {
				select {
				case cut <- m: // the first response alone
					return cutproxy.Cut, m.Size() - 1
				default:
				}
			}
			return cutproxy.Pass, 0
		}}
	})
	// The broker has the record, the client lacks the answer's last byte, asks again
	// with the same sequence number, and the record stands there once.
	write(t, client(t, p.Addr()), topic, 0, 3)
	if len(cut) != 1 {
		t.Fatal("nothing was cut")
	}
	if got := strings.Join(read(t, b.Addr(), topic, 3), " "); got != numbers(3) {
		t.Errorf("the topic holds %s", got)
	}
	connections := map[int]bool{}
	for _, m := range p.Messages() {
		if m.Key == produce && m.Way == cutproxy.ToServer {
			connections[m.Connection] = true
		}
	}
	if len(connections) != 2 {
		t.Errorf("produced over connections %v", connections)
	}
}

// TestDialThroughProxy reaches a broker through a proxy that it knows nothing of.
func TestDialThroughProxy(t *testing.T) {
	b := sharedBroker(t)
	p := cutproxy.Start(t, cutproxy.Options{Protocol: cutproxy.Kafka})
	var dial func(context.Context, string, string) (net.Conn, error) = p.Dial
	c := client(t, b.Addr(), kgo.Dialer(dial))
	topic := createTopic(t, c, "dialed")
	write(t, c, topic, 0, 2)
	p.CutAll()
	write(t, c, topic, 2, 2)
	if got := strings.Join(read(t, b.Addr(), topic, 4), " "); got != numbers(4) {
		t.Errorf("the topic holds %s", got)
	}
	if n := len(p.Connections()); n < 4 {
		t.Errorf("%d connections came by the proxy", n)
	}
}
