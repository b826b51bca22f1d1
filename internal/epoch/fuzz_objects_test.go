package epoch

import (
	"math"
	"strings"
	"testing"
)

func FuzzHeartbeat(f *testing.F) {
	fuzzObject(f, Heartbeat{
		Format: 1, JobID: "a", Branch: "main", Task: "0.0", Owner: "0a", Writer: Writer{Host: "h", PID: 7}, Build: Build{Version: "v"},
		Beat: math.MaxUint64, Time: -1, Lease: 10_000_000, Epoch: AllEpochs, Position: 3, Released: true, Role: "running", RecordsPerSecond: 9,
		Sources: map[string]map[string]Reach{"in": {"a.jsonl": {Next: 1, End: 2, Start: 1}}}, Pending: map[string]int64{"out": 1 << 62},
	})
}

func FuzzRequest(f *testing.F) {
	fuzzObject(f, Request{Format: 1, JobID: "a", N: math.MaxUint64, Kind: DrainRequest, By: "ann\n", Time: math.MinInt64})
}

func FuzzJobFile(f *testing.F) {
	fuzzObject(f, JobFile{Format: 1, Job: "../job", JobID: "a", TransactionPrefix: "job/", Time: 1})
}

// FuzzCheckName: a name that is allowed is one element of a path, and stays one
// in every object that is named after it.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"spend", "..", "a/b", `a\b`, "a\x00b", "\u202e", "a\u00a0", "é", "\xff", strings.Repeat("x", maxName+1), "0-1-2", "a.json"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName("branch", name) != nil {
			return
		}
		for _, c := range []struct {
			path string
			want Name
		}{
			{BranchPath(name), Name{Kind: BranchObject, Branch: name}},
			{ManifestPath(name, name, 7), Name{Kind: ManifestObject, Branch: name, Task: name, Epoch: 7}},
			{DataPath(name, name, 7, "0a", 1, name), Name{Kind: DataObject, Branch: name, Task: name, Epoch: 7, Owner: "0a", Seq: 1, Given: name}},
			{SavepointPath(name, "0a"), Name{Kind: SavepointObject, Given: name, Label: "0a"}},
			{PinPath(name), Name{Kind: PinObject, Label: name}},
		} {
			if got, ok := ParsePath(c.path); !ok || got != c.want {
				t.Errorf("%q is read as %+v, %t; want %+v", c.path, got, ok, c.want)
			}
		}
	})
}
