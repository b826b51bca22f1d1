package services

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Protocol is how a listener of a broker talks.
type Protocol string

// The protocols of listeners.
const (
	Plaintext     Protocol = "PLAINTEXT"
	SSL           Protocol = "SSL"
	SASLPlaintext Protocol = "SASL_PLAINTEXT"
	SASLSSL       Protocol = "SASL_SSL"
)

// The mechanisms that a SASL listener can have.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER" // takes any unsecured JWS that names a subject and has not run out
)

// Listener is one more address of a broker, besides the plain one that each has.
type Listener struct {
	Name       string   // capital letters, unlike the others' names
	Protocol   Protocol // Defaults to Plaintext
	Mechanisms []string // of SASL: Plain and so on. Defaults to all four
	// Advertised is the address that clients are sent to, such as a proxy's.
	// Defaults to the listener's own.
	Advertised string
	// ClientCertificates has the listener refuse clients without a certificate of
	// the broker's authority. Such a client is the user that the certificate names.
	ClientCertificates bool
}

func (l Listener) encrypted() bool { return l.Protocol == SSL || l.Protocol == SASLSSL }

func (l Listener) authenticates() bool {
	return l.Protocol == SASLPlaintext || l.Protocol == SASLSSL
}

// properties are the listener's own settings.
func (l Listener) properties(o *KafkaOptions, keystore, truststore string) map[string]string {
	all := map[string]string{}
	prefix := "listener.name." + strings.ToLower(l.Name) + "."
	if l.encrypted() {
		all[prefix+"ssl.keystore.type"] = "PEM"
		all[prefix+"ssl.keystore.location"] = keystore
		all[prefix+"ssl.truststore.type"] = "PEM"
		all[prefix+"ssl.truststore.location"] = truststore
		if l.ClientCertificates {
			all[prefix+"ssl.client.auth"] = "required"
		}
	}
	if !l.authenticates() {
		return all
	}
	mechanisms := l.mechanisms()
	all[prefix+"sasl.enabled.mechanisms"] = strings.Join(mechanisms, ",")
	for _, m := range mechanisms {
		own := prefix + strings.ToLower(m) + "."
		all[own+"sasl.jaas.config"] = loginModule(m, o.Users)
		if m == OAuthBearer {
			all[own+"sasl.server.callback.handler.class"] = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
		}
	}
	return all
}

func (l Listener) mechanisms() []string {
	if len(l.Mechanisms) > 0 {
		return l.Mechanisms
	}
	return []string{Plain, ScramSHA256, ScramSHA512, OAuthBearer}
}

// loginModule is what a mechanism is configured with. SCRAM has its users in the
// broker's metadata, which they are put into when its folder is made.
func loginModule(mechanism string, users map[string]string) string {
	switch mechanism {
	case Plain:
		module := "org.apache.kafka.common.security.plain.PlainLoginModule required"
		for _, name := range slices.Sorted(maps.Keys(users)) {
			module += fmt.Sprintf(" user_%s=%q", name, users[name])
		}
		return module + ";"
	case OAuthBearer:
		return `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`
	default:
		return "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	}
}

// scramUsers are the arguments that put users into a broker's new folder.
func scramUsers(users map[string]string) (arguments []string) {
	for _, name := range slices.Sorted(maps.Keys(users)) {
		for _, m := range []string{ScramSHA256, ScramSHA512} {
			arguments = append(arguments, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, name, users[name]))
		}
	}
	return arguments
}
