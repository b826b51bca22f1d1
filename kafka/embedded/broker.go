package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Broker is a running broker, or several of one cluster. Its methods may be
// called from several goroutines.
type Broker struct {
	options Options
	cluster *kfake.Cluster
	addrs   []string
	folder  *folder // nil without one
	faults  *faults
	killed  bool
	decided *decisions // nil without a folder

	closing sync.Once
	closed  error
}

// Start starts a broker, and returns when it takes requests. Its errors tell of
// options that can't be, of a port or a folder that is in use, and of a folder
// that holds something else or can't be read.
func Start(o Options) (*Broker, error) {
	b, err := start(o)
	if err != nil {
		return nil, fmt.Errorf("embedded Kafka: %w", err)
	}
	return b, nil
}

func start(o Options) (*Broker, error) {
	o.Topics = slices.Clone(o.Topics)
	host, ports, err := o.settle()
	if err != nil {
		return nil, err
	}
	b := &Broker{options: o, faults: new(faults)}
	options := []kfake.Opt{
		kfake.Ports(ports...),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return net.Listen(network, net.JoinHostPort(host, port))
		}),
		kfake.WithLogger(b.faults),
		kfake.ClusterID("embedded"),
		kfake.DefaultNumPartitions(1),
		kfake.BrokerConfigs(o.Settings),
	}
	if o.TLS != nil {
		options = append(options, kfake.TLS(o.TLS))
	}
	if len(o.Users) > 0 {
		options = append(options, kfake.EnableSASL())
		for _, u := range o.Users {
			options = append(options, kfake.User(u.Mechanism, u.Name, u.Password))
		}
	}
	if o.Sync {
		options = append(options, kfake.SyncWrites())
	}
	if o.Folder != "" {
		if b.folder, b.killed, err = openFolder(o.Folder); err != nil {
			return nil, err
		}
		options = append(options, kfake.DataDir(b.folder.data()))
	}
	if b.killed {
		if err := b.recoverFolder(); err != nil {
			b.folder.leave()
			return nil, fmt.Errorf("%sopen transactions of the last run can't be ended: %w; remove it if what it holds is not needed", b.place(), err)
		}
	}
	if b.cluster, err = kfake.NewCluster(options...); err != nil {
		b.folder.leave()
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("address %s: %w; give another, or port 0 for a free one", o.Addr, err)
		}
		return nil, fmt.Errorf("%s%w; name another folder, or remove this one if what it holds is not needed", b.place(), err)
	}
	b.addrs = b.cluster.ListenAddrs()
	if b.folder != nil {
		if b.decided, err = noteDecisions(b.folder.decisions(), o.Sync, b.cluster); err != nil {
			b.Close()
			return nil, fmt.Errorf("%s%w; look for room on the disk and for rights", b.place(), err)
		}
	}
	for _, t := range o.Topics {
		if err := b.CreateTopic(t); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// place names the folder, where there is one.
func (b *Broker) place() string {
	if b.folder == nil {
		return ""
	}
	return "folder " + b.options.Folder + ": "
}

// Addr is the address of the first broker, which knows the others.
func (b *Broker) Addr() string { return b.addrs[0] }

// Addrs are the addresses of all brokers, whose ids count from 0.
func (b *Broker) Addrs() []string { return slices.Clone(b.addrs) }

// Recovered tells whether the folder's last broker was killed, rather than
// closed: transactions that were open are aborted then.
func (b *Broker) Recovered() bool { return b.killed }

// CreateTopic makes a topic; one that is there stays as it is. Its error tells of
// a name or a setting that can't be, and of a topic that has another number of
// partitions.
func (b *Broker) CreateTopic(t Topic) error {
	if err := t.settle(); err != nil {
		return err
	}
	if found := b.cluster.TopicInfo(t.Name); found != nil {
		if n := len(b.cluster.PartitionInfos(t.Name)); n != t.Partitions {
			return fmt.Errorf("topic %s has %d partitions, expected %d; name another topic, or give %d", t.Name, n, t.Partitions, n)
		}
		return nil
	}
	if err := t.check(); err != nil {
		return err
	}
	if err := b.cluster.CreateTopic(t.Name, int32(t.Partitions), t.Settings); err != nil {
		return fmt.Errorf("topic %q can't be made: %w; use a name that differs from the others' in more than dots and underscores", t.Name, err)
	}
	return nil
}

// Records is the number of a topic's offsets in use, from each partition's start
// to its end; markers of transactions count. It is 0 where there is no topic.
func (b *Broker) Records(topic string) (n int64) {
	for _, p := range b.cluster.PartitionInfos(topic) {
		n += p.HighWatermark - p.LogStartOffset
	}
	return n
}

// MoveLeader has another broker lead a partition, which raises its leader epoch.
// Moving it to the one that leads it raises the epoch alone.
func (b *Broker) MoveLeader(topic string, partition, broker int32) error {
	if err := b.cluster.MoveTopicPartition(topic, partition, broker); err != nil {
		return fmt.Errorf("move topic %s, partition %d to broker %d: %w; name those that are there", topic, partition, broker, err)
	}
	return nil
}

// Compact compacts all topics whose cleanup.policy says so, and removes what
// retention lets go.
func (b *Broker) Compact() { b.cluster.Compact() }

// Wait waits until the context ends, and closes the broker.
func (b *Broker) Wait(ctx context.Context) error {
	<-ctx.Done()
	return b.Close()
}

// Close ends the broker, and keeps everything if there is a folder. Its error
// tells what could not be kept. A second call does nothing more.
func (b *Broker) Close() error {
	b.closing.Do(func() {
		b.faults.forget() // those of requests were told to the clients
		b.cluster.Close()
		b.decided.close()
		if b.folder == nil {
			return
		}
		if lost := b.faults.all(); len(lost) > 0 {
			b.folder.leave()
			b.closed = fmt.Errorf("embedded Kafka: folder %s: not all could be kept: %s; look for room on the disk and for rights", b.options.Folder, strings.Join(lost, "; "))
			return
		}
		b.closed = b.folder.close()
	})
	return b.closed
}

// faults are what the cluster complains about, which it has no other way to tell.
type faults struct {
	mu   sync.Mutex
	list []string
}

// maxFaults bounds what is remembered; the first ones tell most.
const maxFaults = 8

// Logf notes an error of the cluster.
func (f *faults) Logf(level kfake.LogLevel, format string, arguments ...any) {
	if level != kfake.LogLevelError {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) < maxFaults {
		f.list = append(f.list, fmt.Sprintf(format, arguments...))
	}
}

func (f *faults) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

func (f *faults) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

// errInUse is the error of a folder whose broker runs.
var errInUse = errors.New("another broker runs in it; stop that one, or name another folder")
