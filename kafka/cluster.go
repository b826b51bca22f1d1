package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Cluster says how a Kafka cluster is reached. Make one with [Connect]; nothing
// is connected before a job runs. A job may use several.
type Cluster struct {
	brokers  []string
	clientID string
	tls      *tls.Config
	open     bool // said to be without TLS
	sasl     []sasl.Mechanism
	login    string // how and as whom, for people
	more     []kgo.Opt

	prefix string // of the environment's variables that tell the rest; empty: the default ones may
	file   string // of settings that tell the rest
	whole  bool   // these were read
}

// ClusterOption is a setting of a [Cluster].
type ClusterOption func(*Cluster)

// Connect returns the cluster that the options describe. What they leave open comes
// from the environment, if they name no broker or ask for it by [FromEnvironment],
// and then from a file, if there is one; see [FromFile].
func Connect(opts ...ClusterOption) *Cluster {
	c := &Cluster{}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Brokers are the addresses, as host:port, at which the cluster is looked for; it
// tells the others itself.
func Brokers(addresses ...string) ClusterOption {
	return func(c *Cluster) { c.brokers = slices.Clone(addresses) }
}

// ClientID is the name by which brokers' logs and quotas know the job. Defaults
// to "sluice-" and the job's name.
func ClientID(id string) ClusterOption { return func(c *Cluster) { c.clientID = id } }

// TLS encrypts the connections. A nil config means the system's authorities and
// the brokers' own names.
func TLS(config *tls.Config) ClusterOption {
	return func(c *Cluster) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		c.tls = config.Clone()
	}
}

// Plain authenticates by SASL/PLAIN, which is to be used with [TLS] only.
func Plain(user, password string) ClusterOption {
	return withSASL("PLAIN as "+user, plain.Auth{User: user, Pass: password}.AsMechanism())
}

// ScramSHA256 authenticates by SASL/SCRAM-SHA-256.
func ScramSHA256(user, password string) ClusterOption {
	return withSASL("SCRAM-SHA-256 as "+user, scram.Auth{User: user, Pass: password}.AsSha256Mechanism())
}

// ScramSHA512 authenticates by SASL/SCRAM-SHA-512.
func ScramSHA512(user, password string) ClusterOption {
	return withSASL("SCRAM-SHA-512 as "+user, scram.Auth{User: user, Pass: password}.AsSha512Mechanism())
}

// OAuthBearer authenticates by SASL/OAUTHBEARER. The function is called for each
// connection, and returns a token that is valid then.
func OAuthBearer(token func(ctx context.Context) (string, error)) ClusterOption {
	return withSASL("OAUTHBEARER", oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
		t, err := token(ctx)
		return oauth.Auth{Token: t}, err
	}))
}

func withSASL(login string, m sasl.Mechanism) ClusterOption {
	return func(c *Cluster) { c.login, c.sasl = login, []sasl.Mechanism{m} }
}

// Client gives the client library further options, which come last: an escape
// hatch for what this package has no word for. Those that decide about offsets,
// transactions or acknowledgements are Sluice's own and must not be among them.
func Client(opts ...kgo.Opt) ClusterOption {
	return func(c *Cluster) { c.more = append(c.more, opts...) }
}

// noBrokers is what there is to say where nothing names a broker.
func (c *Cluster) noBrokers() error {
	return fmt.Errorf("no broker of Kafka is named: use kafka.Connect(kafka.Brokers(\"host:port\")), or set %s=host:port, or %s in a file of settings", c.prefix, setBrokers)
}

// String tells where the cluster is and how it is entered, without any secret.
func (c *Cluster) String() string {
	where := strings.Join(c.brokers, ",")
	if where == "" && c.file != "" {
		where = "of file " + c.file
	} else if where == "" {
		where = "of " + cmp.Or(c.prefix, defaultPrefix) + " in the environment"
	}
	if c.tls != nil {
		where += ", TLS"
	}
	if c.login != "" {
		where += ", " + c.login
	}
	return "kafka " + where
}

// GoString is String: no verb prints secrets.
func (c *Cluster) GoString() string { return c.String() }

// newClient makes a client for a job, with options of the caller's own, and tells
// the addresses that it begins with. Nothing is connected yet.
func (c *Cluster) newClient(job string, own ...kgo.Opt) (*kgo.Client, []string, error) {
	c, err := c.settled()
	if err != nil {
		return nil, nil, fmt.Errorf("kafka: %w", err)
	}
	opts, err := c.options(job)
	if err != nil {
		return nil, nil, err
	}
	client, err := kgo.NewClient(slices.Concat(opts, own, c.more)...)
	if err != nil {
		return nil, nil, fmt.Errorf("kafka: %w", err)
	}
	return client, c.brokers, nil
}

// options are the client library's, for the job of the given name, once the cluster
// is settled.
func (c *Cluster) options(job string) ([]kgo.Opt, error) {
	if len(c.brokers) == 0 {
		return nil, c.noBrokers()
	}
	id := c.clientID
	if id == "" {
		id = "sluice-" + job
	}
	opts := []kgo.Opt{kgo.SeedBrokers(c.brokers...), kgo.ClientID(id)}
	if c.tls != nil {
		opts = append(opts, kgo.DialTLSConfig(c.tls))
	}
	if len(c.sasl) > 0 {
		opts = append(opts, kgo.SASL(c.sasl...))
	}
	return opts, nil
}
