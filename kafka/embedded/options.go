package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Options say how a broker is.
type Options struct {
	// Folder is where everything is kept. It must be empty or a broker's. Defaults
	// to none: everything is in memory, and gone after Close.
	Folder string
	// Addr is the host and port to listen at, which clients are told as well; with
	// several brokers, the others have the ports that follow. Port 0 takes free
	// ones. Defaults to "127.0.0.1:0".
	Addr string
	// Brokers is how many there are, at most 16. Defaults to 1.
	Brokers int
	// Topics are made unless they are there. Defaults to none.
	Topics []Topic
	// Settings are the brokers', such as log.retention.ms; those that nobody knows
	// do nothing. Defaults to none.
	Settings map[string]string
	// TLS is used on all connections. Defaults to none.
	TLS *tls.Config
	// Users may connect, and nobody else. Those of a folder stay as they were
	// made. Defaults to letting everybody in.
	Users []User
	// Sync writes through to the disk before a record is acknowledged. Defaults to
	// leaving that to the system, as Kafka does.
	Sync bool
}

// Topic is a topic to be made.
type Topic struct {
	Name string
	// Partitions defaults to 1.
	Partitions int
	// Settings are the topic's, such as cleanup.policy. Defaults to none.
	Settings map[string]string
}

// User may connect to a broker.
type User struct {
	Mechanism      string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	Name, Password string
}

const (
	// maxBrokers is more than anybody tries out.
	maxBrokers = 16
	// maxPartitions bounds a topic: each partition has files.
	maxPartitions = 10_000
)

// settle fills in the defaults, and returns the host and the brokers' ports.
func (o *Options) settle() (host string, ports []int, err error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	if o.Brokers < 0 || o.Brokers > maxBrokers {
		return "", nil, fmt.Errorf("%d brokers; give 1 to %d", o.Brokers, maxBrokers)
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return "", nil, fmt.Errorf("address %q: %w; give host:port", o.Addr, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", nil, fmt.Errorf("address %q names no host; clients are sent to it, so give one that they can reach", o.Addr)
	}
	first, err := strconv.ParseUint(port, 10, 16)
	if err != nil || int(first)+o.Brokers-1 > 65535 {
		return "", nil, fmt.Errorf("address %q: expected a port up to %d for %d brokers; give another", o.Addr, 65535-o.Brokers+1, o.Brokers)
	}
	for i := range o.Brokers {
		next := 0
		if first != 0 {
			next = int(first) + i
		}
		ports = append(ports, next)
	}
	for i := range o.Topics {
		if err := o.Topics[i].settle(); err != nil {
			return "", nil, err
		}
	}
	for _, u := range o.Users {
		if u.Name == "" || u.Password == "" {
			return "", nil, errors.New("a user has no name or no password; give both")
		}
		if _, err := u.mechanism(); err != nil {
			return "", nil, err
		}
	}
	return host, ports, nil
}

func (t *Topic) settle() error {
	if t.Partitions == 0 {
		t.Partitions = 1
	}
	if t.Partitions < 0 || t.Partitions > maxPartitions {
		return fmt.Errorf("topic %s: %d partitions; give 1 to %d", t.Name, t.Partitions, maxPartitions)
	}
	return nil
}

// topicName is a name that Kafka allows, of 249 characters at most.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// topicSettings are the settings of a topic that do something here.
var topicSettings = []string{
	"cleanup.policy", "compression.type", "delete.retention.ms", "max.message.bytes", "message.timestamp.type",
	"min.insync.replicas", "retention.bytes", "retention.ms", "segment.bytes", "segment.ms",
}

// check refuses what the cluster itself would take.
func (t *Topic) check() error {
	if !topicName.MatchString(t.Name) || t.Name == "." || t.Name == ".." {
		return fmt.Errorf("topic %q can't be made; use up to 249 letters, digits, dots, dashes and underscores", t.Name)
	}
	for name := range t.Settings {
		if !slices.Contains(topicSettings, name) {
			return fmt.Errorf("topic %s: the setting %s does nothing here; use %s", t.Name, name, strings.Join(topicSettings, ", "))
		}
	}
	return nil
}
