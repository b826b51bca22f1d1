package runner

import (
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
)

// What a group has not read of sinks that have ended.
func TestUnread(t *testing.T) {
	span := func(ends map[string]int64) epoch.DroppedSink { return epoch.DroppedSink{Span: &epoch.Span{Ends: ends}} }
	pending, givenUp := span(map[string]int64{"a/0": 10}), span(map[string]int64{"a/0": 10})
	pending.Pending, givenUp.Pending, givenUp.GivenUp = 2, 2, true
	both := map[string]epoch.DroppedSink{"a": span(map[string]int64{"a/0": 10, "a/1": 20}), "b": span(map[string]int64{"b/0": 5}), "table": {}}
	for name, c := range map[string]struct {
		ends      map[string]epoch.DroppedSink
		committed map[string]int64
		want      string
	}{
		"all":                      {both, map[string]int64{"a/0": 10, "a/1": 25, "b/0": 5}, ""},
		"one partition behind":     {both, map[string]int64{"a/0": 10, "a/1": 19, "b/0": 5}, "partition a/1: the group is at offset 19, the last row is before 20"},
		"one partition not at all": {both, map[string]int64{"a/1": 20, "b/0": 5}, "partition a/0: the group is at offset 0, the last row is before 10"},
		"one sink is not its own":  {both, map[string]int64{"b/0": 6}, ""},
		"none is":                  {both, map[string]int64{"other/0": 6}, "the group has committed no offset of them"},
		"no rows":                  {map[string]epoch.DroppedSink{"a": span(nil)}, nil, ""},
		"no offsets":               {map[string]epoch.DroppedSink{"table": {}}, nil, ""},
		"not all delivered":        {map[string]epoch.DroppedSink{"a": pending}, map[string]int64{"a/0": 10}, "sink a has not got all that it is owed yet"},
		"given up":                 {map[string]epoch.DroppedSink{"a": givenUp}, map[string]int64{"a/0": 10}, ""},
	} {
		committed := map[string]connector.Offset{}
		for partition, at := range c.committed {
			committed[partition] = connector.Offset{Next: at}
		}
		if got := unread(c.ends, committed); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
