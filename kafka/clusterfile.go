package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// FromFile takes from a file of settings what nothing else says: a Java properties
// file, as Kafka's own clients and tools read it. What a job takes of it is
//
//	bootstrap.servers                     the brokers, as host:port,host:port
//	client.id                             the client id
//	security.protocol                     PLAINTEXT (the default), SSL, SASL_PLAINTEXT or SASL_SSL
//	sasl.mechanism                        PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
//	sasl.jaas.config                      user and password, as the login module of these has them
//	ssl.truststore.type, .location        PEM, and a file of authorities, instead of the system's
//	ssl.truststore.certificates           the authorities themselves
//	ssl.keystore.type, .location          PEM, and a file of the client's own key and certificates
//	ssl.keystore.key, .certificate.chain  the same themselves
//
// and client.dns.lookup and ssl.endpoint.identification.algorithm, if they say what
// is done in any case (use_all_dns_ips, https). Any other setting is an error, which
// names its line: a job would not do what it says. So is a store or a key with a
// password.
//
// The program's other options come first, in whatever order they are given, then the
// environment's variables, then the file. If the file or the program names brokers,
// nothing is taken from the variables unless [FromEnvironment] says so, since they
// may be another cluster's.
func FromFile(path string) ClusterOption { return func(c *Cluster) { c.file = path } }

// The settings of a file.
const (
	setBrokers      = "bootstrap.servers"
	setClientID     = "client.id"
	setProtocol     = "security.protocol"
	setMechanism    = "sasl.mechanism"
	setLogin        = "sasl.jaas.config"
	setTrustType    = "ssl.truststore.type"
	setTrustFile    = "ssl.truststore.location"
	setTrust        = "ssl.truststore.certificates"
	setKeyType      = "ssl.keystore.type"
	setKeyFile      = "ssl.keystore.location"
	setKey          = "ssl.keystore.key"
	setCertificates = "ssl.keystore.certificate.chain"
	setLookup       = "client.dns.lookup"
	setNames        = "ssl.endpoint.identification.algorithm"
)

var clusterSettings = []string{
	setBrokers, setClientID, setProtocol, setMechanism, setLogin, setTrustType, setTrustFile, setTrust,
	setKeyType, setKeyFile, setKey, setCertificates, setLookup, setNames,
}

// fixedSettings are those that are done in one way, whatever a file says.
var fixedSettings = map[string]string{setLookup: "use_all_dns_ips", setNames: "https"}

// passwordSettings are for stores of another kind, and for keys that are encrypted.
var passwordSettings = []string{"ssl.truststore.password", "ssl.keystore.password", "ssl.key.password"}

// largestFile bounds a file of settings, and those that it names, in bytes.
const largestFile = 1 << 20

// clusterFile is a file of settings that is being read.
type clusterFile struct {
	path string
	set  map[string]property
}

// readClusterFile reads a file of settings.
func readClusterFile(path string) (c Cluster, err error) {
	data, err := readBounded(path)
	if err != nil {
		return c, fmt.Errorf("the file of settings: %w", err)
	}
	all, err := parseProperties(data)
	if err != nil {
		return c, fmt.Errorf("%s, %w", path, err)
	}
	f := clusterFile{path, map[string]property{}}
	for _, p := range all {
		if err := f.add(p); err != nil {
			return c, err
		}
	}
	c.brokers = splitBrokers(f.value(setBrokers))
	c.clientID = f.value(setClientID)
	return c, f.readSecurity(&c)
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, largestFile+1))
	if err == nil && len(data) > largestFile {
		err = fmt.Errorf("%s has more than %d bytes", path, largestFile)
	}
	return data, err
}

// value is what a setting is, empty if it isn't there.
func (f *clusterFile) value(key string) string { return f.set[key].value }

// fault is an error about a setting that is there.
func (f *clusterFile) fault(key, format string, arguments ...any) error {
	return fmt.Errorf("%s, line %d: %s: %w", f.path, f.set[key].line, key, fmt.Errorf(format, arguments...))
}

// add takes a setting, if it is one that a job can go by.
func (f *clusterFile) add(p property) error {
	p.value = strings.TrimSpace(p.value)
	before, twice := f.set[p.key]
	switch {
	case slices.Contains(passwordSettings, p.key):
		return fmt.Errorf("%s, line %d: %s: expected stores in PEM and a key without a password; convert them, and leave the line out", f.path, p.line, p.key)
	case !slices.Contains(clusterSettings, p.key):
		return fmt.Errorf("%s, line %d: %s that a job doesn't know: expected one of %s; leave it out", f.path, p.line, f.unknown(p.key), strings.Join(clusterSettings, ", "))
	case twice:
		return fmt.Errorf("%s, line %d: %s: it stands in line %d already; leave one of the two out", f.path, p.line, p.key, before.line)
	}
	f.set[p.key] = p
	if fixed, ok := fixedSettings[p.key]; ok && p.value != fixed {
		return f.fault(p.key, "expected %s, which is what is done in any case; leave it out", fixed)
	}
	return nil
}

// unknown names a setting that isn't known, if it is certainly one: a line of a key
// or of a login that was broken in two looks like a setting's name as well.
func (f *clusterFile) unknown(key string) string {
	for _, known := range clusterSettings {
		first, _, _ := strings.Cut(known, ".")
		if strings.HasPrefix(key, first+".") {
			return "setting " + key
		}
	}
	return "a setting"
}

// readSecurity reads how the cluster is entered.
func (f *clusterFile) readSecurity(c *Cluster) (err error) {
	encrypted, login := false, false
	switch protocol := f.value(setProtocol); protocol {
	case "", "PLAINTEXT":
	case "SSL":
		encrypted = true
	case "SASL_PLAINTEXT":
		login = true
	case "SASL_SSL":
		encrypted, login = true, true
	default:
		return f.fault(setProtocol, "expected PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
	}
	for _, key := range clusterSettings {
		if p, ok := f.set[key]; ok && (!encrypted && strings.HasPrefix(key, "ssl.") || !login && strings.HasPrefix(key, "sasl.")) {
			return fmt.Errorf("%s, line %d: %s means nothing where %s is %q: name the protocol that is meant", f.path, p.line, key, setProtocol, f.value(setProtocol))
		}
	}
	if encrypted {
		if c.tls, err = f.readTLS(); err != nil {
			return err
		}
	}
	if login {
		return f.readLogin(c)
	}
	return nil
}

func (f *clusterFile) readLogin(c *Cluster) error {
	mechanism := f.value(setMechanism)
	how := logins[mechanism]
	if how == nil {
		return fmt.Errorf("%s: %s: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; OAUTHBEARER is an option of the program, kafka.OAuthBearer", f.path, setMechanism)
	}
	if f.value(setLogin) == "" {
		return fmt.Errorf("%s: %s is missing: expected user and password for %s", f.path, setLogin, mechanism)
	}
	user, password, err := parseLogin(mechanism, f.value(setLogin))
	if err != nil {
		return f.fault(setLogin, "%w", err)
	}
	how(user, password)(c)
	return nil
}

func (f *clusterFile) readTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	trust, from, err := f.readPEM(setTrustType, setTrustFile, setTrust)
	if err != nil {
		return nil, err
	}
	if from != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(trust) {
			return nil, f.fault(from, "expected certificates in PEM, found none")
		}
	}
	chain, from, err := f.readPEM(setKeyType, setKeyFile, setCertificates)
	if err != nil {
		return nil, err
	}
	key := chain // a file has both
	if f.set[setKey].key != "" {
		if from == "" {
			return nil, f.fault(setKey, "%s is missing", setCertificates)
		}
		key = []byte(f.value(setKey))
	}
	if from == "" {
		return config, nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, f.fault(from, "expected a key without a password, and its certificates, in PEM: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// readPEM reads a store that stands in the file or in one that it names, and tells
// by which setting; empty if there is none.
func (f *clusterFile) readPEM(kind, file, content string) (data []byte, from string, err error) {
	_, named := f.set[file]
	_, there := f.set[content]
	switch {
	case !named && !there:
		return nil, "", nil
	case named && there:
		return nil, "", f.fault(file, "%s stands in line %d: expected one of the two", content, f.set[content].line)
	case f.value(kind) != "PEM" && (named || f.value(kind) != ""):
		return nil, "", fmt.Errorf("%s: %s is %q, expected PEM, since no other stores are read; convert the store, and set %s=PEM", f.path, kind, f.value(kind), kind)
	case there:
		return []byte(f.value(content)), content, nil
	}
	data, err = readBounded(f.value(file))
	if err != nil {
		return nil, "", f.fault(file, "%w", err)
	}
	return data, file, nil
}
