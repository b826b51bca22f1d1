package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/env"
)

// enoughCuts is how often a broker may close a connection at once before that is
// taken for a setting that is wrong, not for a broker that is starting.
const enoughCuts = 5

// reach finds a broker that answers, for a bounded time. It asks the addresses
// themselves, one by one, so that the error is what happened there; what can't pass
// by itself, such as a wrong password, ends it at once.
func reach(ctx context.Context, world *env.Env, client *kgo.Client, brokers []string) (*answer, error) {
	within, cancel := env.Within(ctx, world.Clock, reachWithin)
	defer cancel()
	var last error
	for try, cuts := 0, 0; ; try++ {
		for _, broker := range client.SeedBrokers() {
			found, err := greet(within, broker)
			if err == nil {
				found.brokers = brokers
				return found, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if within.Err() == nil {
				last = err
			}
			if isCut(err) {
				cuts++
			}
			if isHopeless(err) || cuts >= enoughCuts {
				return nil, &UnreachableError{Brokers: brokers, Hint: hint(err), Cause: err}
			}
		}
		if err := env.Pause(within, world.Clock, pauseAfter(try)); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			last = cmp.Or(last, context.Cause(within))
			return nil, &UnreachableError{Brokers: brokers, Hint: hint(last), Cause: last}
		}
	}
}

// greet asks a broker for what there is to know of it at first.
func greet(ctx context.Context, broker *kgo.Broker) (*answer, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	got, err := broker.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := got.(*kmsg.MetadataResponse)
	found := &answer{}
	if resp.ClusterID != nil {
		found.cluster = *resp.ClusterID
	}
	found.versions, err = askVersions(ctx, broker)
	return found, err
}

// isHopeless tells whether an error of a connection can't pass by itself.
func isHopeless(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	alert := isAlert(err)
	broker, refused := errors.AsType[*kerr.Error](err)
	return verification || header || alert || isNoKafka(err) || refused && !broker.Retriable
}

// isNoKafka tells whether what came back is no answer of Kafka's protocol, such as
// the alert of a listener that wants TLS. The client library has no type for that.
func isNoKafka(err error) bool {
	return err != nil && strings.Contains(err.Error(), "invalid large response size")
}

// isCut tells whether the connection was closed instead of an answer.
func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// isAlert tells whether the other side refused an encrypted connection. The standard
// library has no type for that.
func isAlert(err error) bool {
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}

// hint is what to look at after an error of a connection; empty if nothing tells.
func hint(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	alert := isAlert(err)
	switch {
	case err == nil:
		return ""
	case unknown:
		return "name the authority of the broker's certificate, with kafka.TLS or SLUICE_KAFKA_CA"
	case name:
		return "the broker's certificate is for other names: use one of these as the address, or give the broker one for its own"
	case verification:
		return "the broker's certificate isn't valid: renew it, or see that the clocks are right"
	case header:
		return "the address doesn't speak TLS: use the encrypted listener's, or leave kafka.TLS and SLUICE_KAFKA_TLS out"
	case alert:
		return "the broker refused the encrypted connection: give it a certificate of the client, by kafka.TLS or SLUICE_KAFKA_CERT and _KEY"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the user or the password is wrong; mend SLUICE_KAFKA_USER and _PASSWORD, the file of settings, or what the program gives"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the listener has another mechanism of SASL: use one of the broker's sasl.enabled.mechanisms"
	case errors.Is(err, kerr.IllegalSaslState):
		return "the listener wants no SASL: leave it out, or use the right listener's address"
	case isNoKafka(err):
		return "the answer isn't Kafka's, as that of a listener that wants TLS: set SLUICE_KAFKA_TLS, or use the right listener's address"
	case isCut(err):
		return "the broker closes the connection at once, as a listener does that wants TLS or SASL of a client without, or has no TLS for a client with: mend SLUICE_KAFKA_TLS or SLUICE_KAFKA_SASL, or use the right listener's address"
	}
	return ""
}
