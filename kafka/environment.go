package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// FromEnvironment returns what [Connect] takes from the environment where nothing
// else is said, by variables that begin with the given prefix. The default
// cluster's is "SLUICE_KAFKA":
//
//	SLUICE_KAFKA            the brokers, as host:port,host:port
//	SLUICE_KAFKA_TLS        "true" encrypts the connections
//	SLUICE_KAFKA_CA         a file of authorities (PEM), instead of the system's
//	SLUICE_KAFKA_CERT, _KEY files of the client's own certificate and key (PEM)
//	SLUICE_KAFKA_SASL       PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
//	SLUICE_KAFKA_USER       the user's name
//	SLUICE_KAFKA_PASSWORD   the password, or in
//	SLUICE_KAFKA_PASSWORD_FILE a file that holds it
//	SLUICE_KAFKA_CLIENT_ID  the client id
//
// A second cluster is then, say, Connect(FromEnvironment("ARCHIVE_KAFKA")).
func FromEnvironment(prefix string) ClusterOption {
	return func(c *Cluster) {
		found, err := readEnvironment(prefix)
		if err != nil {
			c.faults = append(c.faults, err.Error())
			return
		}
		found.more, found.faults = c.more, c.faults
		*c = found
	}
}

// defaultPrefix begins the variables of the default cluster.
const defaultPrefix = "SLUICE_KAFKA"

// withEnvironment is the cluster, with the default variables where it names no
// broker.
func (c *Cluster) withEnvironment() (*Cluster, error) {
	if len(c.brokers) > 0 || len(c.faults) > 0 {
		return c, nil
	}
	found, err := readEnvironment(defaultPrefix)
	if err != nil {
		return nil, err
	}
	out := *c
	out.brokers = found.brokers
	if out.clientID == "" {
		out.clientID = found.clientID
	}
	if out.tls == nil {
		out.tls = found.tls
	}
	if out.sasl == nil {
		out.sasl, out.login = found.sasl, found.login
	}
	return &out, nil
}

func readEnvironment(prefix string) (c Cluster, err error) {
	get := func(name string) string { return os.Getenv(prefix + name) }
	for broker := range strings.SplitSeq(get(""), ",") {
		if broker = strings.TrimSpace(broker); broker != "" {
			c.brokers = append(c.brokers, broker)
		}
	}
	c.clientID = get("_CLIENT_ID")
	if c.tls, err = readTLS(prefix, get); err != nil {
		return c, err
	}
	return c, c.readSASL(prefix, get)
}

func readTLS(prefix string, get func(string) string) (*tls.Config, error) {
	ca, cert, key := get("_CA"), get("_CERT"), get("_KEY")
	switch on := get("_TLS"); on {
	case "", "false":
		if ca != "" || cert != "" || key != "" {
			return nil, fmt.Errorf("%s_CA, _CERT and _KEY are for encrypted connections: set %s_TLS=true", prefix, prefix)
		}
		return nil, nil
	case "true":
	default:
		return nil, fmt.Errorf("%s_TLS is %q, expected true or false", prefix, on)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s_CA: %w", prefix, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s_CA: %s holds no certificate in PEM", prefix, ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s_CERT and _KEY: %w", prefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (c *Cluster) readSASL(prefix string, get func(string) string) error {
	mechanism, user, password := get("_SASL"), get("_USER"), get("_PASSWORD")
	if file := get("_PASSWORD_FILE"); file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s_PASSWORD_FILE: %w", prefix, err)
		}
		password = strings.TrimRight(string(content), "\r\n")
	}
	how := map[string]func(user, password string) ClusterOption{
		"PLAIN": Plain, "SCRAM-SHA-256": ScramSHA256, "SCRAM-SHA-512": ScramSHA512,
	}[mechanism]
	switch {
	case mechanism == "" && user == "":
		return nil
	case how == nil:
		return fmt.Errorf("%s_SASL is %q, expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; OAUTHBEARER is an option of the program", prefix, mechanism)
	case user == "":
		return fmt.Errorf("%s_SASL is %s and %s_USER is empty", prefix, mechanism, prefix)
	}
	how(user, password)(c)
	return nil
}
