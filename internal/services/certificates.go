package services

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// Authority makes certificates that only it vouches for.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is a certificate with its key, both as PEM.
type Certificate struct {
	Chain []byte // the certificate
	Key   []byte // PKCS #8
}

// validity is how long certificates hold.
const validity = 24 * time.Hour

// NewAuthority makes an authority with a key of its own.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateFor("an authority for tests")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate, key}, nil
}

// Issue makes a certificate in a name, for a client and for a server at the
// loopback address and localhost.
func (a *Authority) Issue(name string) (*Certificate, error) {
	template := certificateFor(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.ParseIP(loopback)}
	return a.sign(template)
}

// IssueOutdated makes a certificate like Issue's whose time is over.
func (a *Authority) IssueOutdated(name string) (*Certificate, error) {
	template := certificateFor(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.ParseIP(loopback)}
	template.NotBefore, template.NotAfter = template.NotBefore.Add(-2*validity), template.NotBefore.Add(-validity)
	return a.sign(template)
}

func (a *Authority) sign(template *x509.Certificate) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &Certificate{encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", secret)}, nil
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte { return encodePEM("CERTIFICATE", a.certificate.Raw) }

// TLS is how a client talks to a server with a certificate of the authority. A
// client certificate is shown where one is given.
func (a *Authority) TLS(client ...*Certificate) (*tls.Config, error) {
	trusted := x509.NewCertPool()
	trusted.AddCert(a.certificate)
	config := &tls.Config{RootCAs: trusted, ServerName: loopback}
	for _, c := range client {
		pair, err := tls.X509KeyPair(c.Chain, c.Key)
		if err != nil {
			return nil, fmt.Errorf("read the client's certificate: %w", err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return config, nil
}

// Keystore is the key and the certificate, as Kafka reads them from one file.
func (c *Certificate) Keystore() []byte { return slices.Concat(c.Key, c.Chain) }

func certificateFor(name string) *x509.Certificate {
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		number = big.NewInt(1)
	}
	start := time.Now().Add(-time.Hour) // clocks differ
	return &x509.Certificate{
		SerialNumber:          number,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             start,
		NotAfter:              start.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
