package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/connector"
)

// need is a request that brokers must know, from a version of it on.
type need struct {
	request kmsg.Key
	version int16
	purpose string // what it is for
	kafka   release
}

// release is the first version of Kafka that has something.
type release struct{ major, minor int }

func (r release) String() string { return fmt.Sprintf("%d.%d", r.major, r.minor) }

func (r release) before(o release) bool {
	return r.major < o.major || r.major == o.major && r.minor < o.minor
}

// What sources need, and beside it those that have a group, and those that begin
// where a group has read to.
var (
	sourceNeeds = []need{
		{kmsg.ListOffsets, 2, "to find the end of what is committed", release{0, 11}},
		{kmsg.Fetch, 4, "to read what is committed", release{0, 11}},
	}
	groupNeeds = []need{
		{kmsg.DescribeGroups, 0, "to see a group's members", release{0, 9}},
		{kmsg.OffsetFetch, 2, "to read all offsets of a group", release{0, 11}},
		{kmsg.OffsetCommit, 2, "to tell a group its offsets", release{0, 9}},
	}
	takeOverNeeds = []need{
		{kmsg.OffsetFetch, 7, "to read a group's offsets that no open transaction is about to move", release{2, 5}},
	}
)

// What sinks need, and beside it those that promise that nothing comes late: these
// look for transactions that were left open.
var (
	sinkNeeds = []need{
		{kmsg.Produce, 3, "to write in transactions", release{0, 11}},
		{kmsg.ListOffsets, 2, "to find the end of what is committed", release{0, 11}},
		{kmsg.Fetch, 4, "to read what is committed", release{0, 11}},
		{kmsg.InitProducerID, 0, "to shut out a producer before", release{0, 11}},
		{kmsg.AddPartitionsToTxn, 0, "to write in transactions", release{0, 11}},
		{kmsg.EndTxn, 0, "to end transactions", release{0, 11}},
		{kmsg.TxnOffsetCommit, 0, "to tell a group its offsets in a transaction", release{0, 11}},
	}
	surelyNeeds = []need{
		{kmsg.DescribeProducers, 0, "to see transactions that were left open", release{2, 8}},
	}
)

// answer is what a broker has said at first: whose it is, and what it can do.
type answer struct {
	brokers  []string // the addresses, of which one is its
	cluster  string   // the cluster's id
	versions *kmsg.ApiVersionsResponse
}

// askVersions asks a broker what it can do.
func askVersions(ctx context.Context, b *kgo.Broker) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "sluice", "1"
	got, err := b.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := got.(*kmsg.ApiVersionsResponse)
	return resp, kerr.ErrorForCode(resp.ErrorCode)
}

// newest is the newest version of a request that the broker knows, -1 for none.
func (a *answer) newest(request kmsg.Key) int16 {
	for _, k := range a.versions.ApiKeys {
		if k.ApiKey == int16(request) {
			return k.MaxVersion
		}
	}
	return -1
}

// has tells whether the broker has all of these.
func (a *answer) has(needs ...[]need) error {
	lacking := &OldBrokersError{Brokers: a.brokers}
	var least release
	for _, some := range needs {
		for _, n := range some {
			found := a.newest(n.request)
			if found >= n.version {
				continue
			}
			what := fmt.Sprintf("%s version %d %s", n.request.Name(), n.version, n.purpose)
			if found >= 0 {
				what += fmt.Sprintf(" (version %d is there)", found)
			}
			lacking.Lacks = append(lacking.Lacks, what)
			if least.before(n.kafka) {
				least = n.kafka
			}
		}
	}
	if len(lacking.Lacks) == 0 {
		return nil
	}
	lacking.Least = least.String()
	return lacking
}

// OldBrokersError says that brokers can't do what a source or a sink needs, since
// they are too old, or are no brokers of Kafka's own and lack it. It matches
// [connector.ErrUnavailable]: no record is to blame.
type OldBrokersError struct {
	// Brokers are the addresses, of which one was asked.
	Brokers []string
	// Lacks are the requests that it doesn't know, with what they are for.
	Lacks []string
	// Least is the first version of Kafka that has them all.
	Least string
}

// Error implements error.
func (e *OldBrokersError) Error() string {
	return fmt.Sprintf("the brokers at %s can't do what is needed: expected Kafka %s or later, found one without %s; use newer brokers, or the address of another cluster",
		strings.Join(e.Brokers, ","), e.Least, strings.Join(e.Lacks, ", "))
}

// Unwrap returns what it comes to.
func (e *OldBrokersError) Unwrap() error { return connector.ErrUnavailable }
