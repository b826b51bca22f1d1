package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sluicestream/sluice/env"
)

// Variable is the environment variable that has the registry's URLs, with commas
// between them, where no option gives any.
const Variable = "SLUICE_REGISTRY"

// The defaults of options.
const (
	defaultTimeout  = 10 * time.Second
	defaultPatience = 30 * time.Second
)

// Option is a setting of [New].
type Option func(*settings)

type settings struct {
	urls              []string
	user, password    string
	token             string
	tls               *tls.Config
	timeout, patience time.Duration
	clock             env.Clock
}

// URLs are where the registry answers; of several, the next is asked where one
// can't be reached. A user and a password in one are used as [BasicAuth] does.
// Defaults to the environment variable SLUICE_REGISTRY.
func URLs(urls ...string) Option { return func(s *settings) { s.urls = urls } }

// BasicAuth sends a user's name and password.
func BasicAuth(user, password string) Option {
	return func(s *settings) { s.user, s.password = user, password }
}

// Bearer sends a token.
func Bearer(token string) Option { return func(s *settings) { s.token = token } }

// TLS configures connections to https URLs. Defaults to the system's
// certificates.
func TLS(c *tls.Config) Option { return func(s *settings) { s.tls = c } }

// Timeout bounds one request. Defaults to 10 seconds.
func Timeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// Patience is how long a registry that does not answer is asked again, after
// pauses that grow from a tenth of a second to 5 seconds. Defaults to 30 seconds;
// with 0 it is asked once. It ends earlier where who asks has a shorter bound, as
// a record has that waits for its schema.
func Patience(d time.Duration) Option { return func(s *settings) { s.patience = d } }

// Environment sets the clock by which pauses are made. Defaults to the system's.
func Environment(e *env.Env) Option { return func(s *settings) { s.clock = e.Clock } }

// New returns a registry. It does not connect yet. The error says which option is
// no use.
func New(opts ...Option) (*Registry, error) {
	s := settings{timeout: defaultTimeout, patience: defaultPatience, clock: env.Real().Clock}
	for _, o := range opts {
		o(&s)
	}
	if s.urls == nil {
		s.urls = strings.FieldsFunc(os.Getenv(Variable), func(r rune) bool { return r == ',' })
	}
	if err := s.checkURLs(); err != nil {
		return nil, err
	}
	switch {
	case s.password != "" && s.token != "":
		return nil, errors.New("schema registry: expected a password or a token, found both: leave out one")
	case s.timeout <= 0:
		return nil, fmt.Errorf("schema registry: expected a timeout above 0, found %v", s.timeout)
	case s.patience < 0:
		return nil, fmt.Errorf("schema registry: expected a patience of 0 or more, found %v", s.patience)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if s.tls != nil {
		transport.TLSClientConfig = s.tls.Clone()
	}
	client := []sr.ClientOpt{
		sr.URLs(s.urls...),
		sr.UserAgent("sluice"),
		sr.HTTPClient(&http.Client{Timeout: s.timeout, Transport: limited{transport}}),
	}
	if s.user != "" || s.password != "" {
		client = append(client, sr.BasicAuth(s.user, s.password))
	}
	if s.token != "" {
		client = append(client, sr.BearerToken(s.token))
	}
	c, err := sr.NewClient(client...)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &Registry{
		client: c, transport: transport, name: strings.Join(s.urls, ","), clock: s.clock, patience: s.patience,
		secrets: secretsOf(s.user, s.password, s.token), unknown: map[uint32]time.Time{},
	}, nil
}

// checkURLs checks the URLs, and takes user and password out of them.
func (s *settings) checkURLs() error {
	if len(s.urls) == 0 {
		return errors.New("schema registry: no URL: registry.URLs or the environment variable " + Variable + " says where it is")
	}
	clean := make([]string, len(s.urls))
	for i, given := range s.urls {
		given = strings.TrimSpace(given)
		if !strings.Contains(given, "://") {
			given = "http://" + given
		}
		u, err := url.Parse(given)
		// The text itself isn't told: there may be a password in it.
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("schema registry: URL %d of %d is none: expected such as https://host:8081, without a query", i+1, len(s.urls))
		}
		if u.User != nil {
			s.user = u.User.Username()
			s.password, _ = u.User.Password()
			u.User = nil
		}
		clean[i] = strings.TrimSuffix(u.String(), "/")
	}
	s.urls = clean
	return nil
}
