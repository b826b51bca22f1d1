package kafka

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// FromEnvironment takes from the environment what the program's other options leave
// open, by variables that begin with the given prefix. The default cluster's is
// "SLUICE_KAFKA":
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
//	SLUICE_KAFKA_CONFIG     a file of settings, for what no variable says; see [FromFile]
//
// A second cluster is then, say, Connect(FromEnvironment("ARCHIVE_KAFKA")).
func FromEnvironment(prefix string) ClusterOption { return func(c *Cluster) { c.prefix = prefix } }

// defaultPrefix begins the variables of the default cluster.
const defaultPrefix = "SLUICE_KAFKA"

// settled is the cluster with what the environment and a file say where the program
// says nothing. The default variables are those of the cluster that nothing else
// names.
func (c *Cluster) settled() (*Cluster, error) {
	if c.whole {
		return c, nil
	}
	out := *c
	out.whole = true
	var file Cluster
	var err error
	if c.file != "" {
		if file, err = readClusterFile(c.file); err != nil {
			return nil, err
		}
	}
	if out.prefix == "" && len(c.brokers) == 0 && len(file.brokers) == 0 {
		out.prefix = defaultPrefix
	}
	if out.prefix != "" {
		found, err := readEnvironment(out.prefix)
		if err != nil {
			return nil, err
		}
		out.fill(&found)
		if c.file == "" && found.file != "" {
			if file, err = readClusterFile(found.file); err != nil {
				return nil, fmt.Errorf("%s_CONFIG: %w", out.prefix, err)
			}
		}
	}
	out.fill(&file)
	return &out, nil
}

// fill takes from another what isn't said yet.
func (c *Cluster) fill(from *Cluster) {
	if len(c.brokers) == 0 {
		c.brokers = from.brokers
	}
	c.clientID = cmp.Or(c.clientID, from.clientID)
	if c.tls == nil && !c.open {
		c.tls, c.open = from.tls, from.open
	}
	if c.sasl == nil {
		c.sasl, c.login = from.sasl, from.login
	}
}

// splitBrokers parts addresses with commas between.
func splitBrokers(text string) (brokers []string) {
	for broker := range strings.SplitSeq(text, ",") {
		if broker = strings.TrimSpace(broker); broker != "" {
			brokers = append(brokers, broker)
		}
	}
	return brokers
}

func readEnvironment(prefix string) (c Cluster, err error) {
	get := func(name string) string { return os.Getenv(prefix + name) }
	c.brokers = splitBrokers(get(""))
	c.clientID, c.file, c.open = get("_CLIENT_ID"), get("_CONFIG"), get("_TLS") == "false"
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

// logins are the mechanisms that need no more than a user and a password.
var logins = map[string]func(user, password string) ClusterOption{
	"PLAIN": Plain, "SCRAM-SHA-256": ScramSHA256, "SCRAM-SHA-512": ScramSHA512,
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
	how := logins[mechanism]
	switch {
	case mechanism == "" && user == "" && password == "":
		return nil
	case mechanism == "" && user == "":
		return fmt.Errorf("%s_PASSWORD is set, and neither %s_SASL nor _USER: set all three, or none and a file's", prefix, prefix)
	case how == nil:
		return fmt.Errorf("%s_SASL is %q, expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; OAUTHBEARER is an option of the program", prefix, mechanism)
	case user == "":
		return fmt.Errorf("%s_SASL is %s and %s_USER is empty", prefix, mechanism, prefix)
	}
	how(user, password)(c)
	return nil
}
