package kafka

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// TestOldBrokersAreRefused: sources and sinks are opened on brokers of a release that
// have what is needed, and refused on the ones before, by what these lack.
func TestOldBrokersAreRefused(t *testing.T) {
	const source, noGroup, takeOver, sink, oldSink = "source", "source without a group", "source that takes over", "sink", "sink of old brokers"
	for _, c := range []struct {
		release *kversion.Versions
		what    string
		lacks   []string // what begins each; none: it is opened
		least   string
	}{
		{kversion.V0_10_2(), noGroup, []string{"ListOffsets version 2", "Fetch version 4"}, "0.11"},
		{kversion.V0_10_2(), source, []string{"ListOffsets version 2", "Fetch version 4", "OffsetFetch version 2"}, "0.11"},
		{kversion.V0_11_0(), source, nil, ""},
		{kversion.V2_4_0(), takeOver, []string{"OffsetFetch version 7"}, "2.5"},
		{kversion.V2_5_0(), takeOver, nil, ""},
		{kversion.V0_10_2(), oldSink, []string{"Produce version 3", "ListOffsets version 2", "Fetch version 4", "InitProducerID", "AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit"}, "0.11"},
		{kversion.V0_11_0(), oldSink, nil, ""},
		{kversion.V2_7_0(), sink, []string{"DescribeProducers version 0"}, "2.8"},
	} {
		t.Run(c.what+" on "+c.release.VersionGuess(), func(t *testing.T) {
			cluster := fake(t, kfake.MaxVersions(c.release), kfake.SeedTopics(1, "orders"))
			on := On(Connect(Brokers(cluster.ListenAddrs()...)))
			o := opening(io.Discard)
			var err error
			switch c.what {
			case sink, oldSink:
				opts := []SinkOption{on}
				if c.what == oldSink {
					opts = append(opts, AllowOldBrokers())
				}
				var target connector.Target
				target, err = Append("orders", codec.String(), opts...).Open(t.Context(), o, connector.RecordKey{JobID: o.JobID, Task: "0.0", Sink: "out"})
				if err == nil {
					target.Close()
				}
			default:
				opts := []SourceOption{on}
				if c.what == noGroup {
					opts = append(opts, NoGroup())
				}
				if c.what == takeOver {
					opts = append(opts, Begin(Offsets(nil).Otherwise(FromGroup("old"))))
				}
				var r connector.Reader
				r, err = Topic("orders", codec.String(), opts...).Open(t.Context(), o)
				if err == nil {
					r.Close()
				}
			}
			if c.lacks == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			old, ok := errors.AsType[*OldBrokersError](err)
			if !ok || old.Least != c.least || !slices.Equal(old.Brokers, cluster.ListenAddrs()) || !errors.Is(err, connector.ErrUnavailable) {
				t.Fatalf("%v, expected brokers from %s on", err, c.least)
			}
			if !slices.EqualFunc(old.Lacks, c.lacks, strings.HasPrefix) {
				t.Errorf("it lacks %q, expected %q", old.Lacks, c.lacks)
			}
		})
	}
}

// TestVersionsAreAskedForOnce for each opening, beside what the client library asks
// on each connection by itself.
func TestVersionsAreAskedForOnce(t *testing.T) {
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	asked := 0
	cluster.ControlKey(int16(kmsg.ApiVersions), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if r.(*kmsg.ApiVersionsRequest).ClientSoftwareName == "sluice" {
			asked++
		}
		return nil, nil, false
	})
	o := opening(io.Discard)
	target, err := Append("orders", codec.String(), On(Connect(Brokers(cluster.ListenAddrs()...)))).
		Open(t.Context(), o, connector.RecordKey{JobID: o.JobID, Task: "0.0", Sink: "out"})
	if err != nil {
		t.Fatal(err)
	}
	target.Close()
	if asked != 1 {
		t.Errorf("a sink has asked %d times for what brokers can do, expected once", asked)
	}
}
