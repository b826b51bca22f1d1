package embedded_test

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka/embedded"
)

func TestTLSAndUsers(t *testing.T) {
	authority, err := services.NewAuthority()
	must(t, err)
	other, err := services.NewAuthority()
	must(t, err)
	certificate, err := authority.Issue("broker")
	must(t, err)
	pair, err := tls.X509KeyPair(certificate.Chain, certificate.Key)
	must(t, err)
	mechanisms := map[string]func(password string) sasl.Mechanism{
		"PLAIN":         func(p string) sasl.Mechanism { return plain.Auth{User: "ann", Pass: p}.AsMechanism() },
		"SCRAM-SHA-256": func(p string) sasl.Mechanism { return scram.Auth{User: "ann", Pass: p}.AsSha256Mechanism() },
		"SCRAM-SHA-512": func(p string) sasl.Mechanism { return scram.Auth{User: "ann", Pass: p}.AsSha512Mechanism() },
	}
	for name, mechanism := range mechanisms {
		t.Run(name, func(t *testing.T) {
			b := start(t, embedded.Options{
				TLS:    &tls.Config{Certificates: []tls.Certificate{pair}},
				Users:  []embedded.User{{Mechanism: name, Name: "ann", Password: "right"}},
				Topics: []embedded.Topic{{Name: "x"}},
			})
			if n, err := b.Fill(bounded(t), "x", records("1", "2")); n != 2 || err != nil {
				t.Errorf("its own client fills %d, %v", n, err)
			}
			ask := func(a *services.Authority, options ...kgo.Opt) error {
				config, err := a.TLS()
				must(t, err)
				c := client(t, b, append(options, kgo.DialTLSConfig(config), kgo.RequestRetries(0))...)
				topics, err := kadm.NewClient(c).ListTopics(bounded(t))
				if err == nil && !topics.Has("x") {
					t.Errorf("it lists %v", topics.Names())
				}
				return err
			}
			if err := ask(authority, kgo.SASL(mechanism("right"))); err != nil {
				t.Errorf("the right password: %v", err)
			}
			if err := ask(authority, kgo.SASL(mechanism("wrong"))); !errors.Is(err, io.EOF) { // no answer, unlike the real one's
				t.Errorf("the wrong password: %v", err)
			}
			if err := ask(authority); err == nil {
				t.Error("without a user it answers")
			}
			if err := ask(other, kgo.SASL(mechanism("right"))); err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("another authority: %v", err)
			}
		})
	}
}
