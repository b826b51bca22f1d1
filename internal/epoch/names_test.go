package epoch

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPathsRoundTrip(t *testing.T) {
	for path, want := range map[string]Name{
		JobPath:             {Kind: JobObject},
		VersionPath("0af1"): {Kind: VersionObject, Label: "0af1"},
		FunctionsPath("0af1", "00112233445566778899"): {Kind: FunctionsObject, Given: "0af1", Label: "0011223344556677"},
		LayoutPath(12):                      {Kind: LayoutObject, Number: 12},
		BranchPath("main"):                  {Kind: BranchObject, Branch: "main"},
		LivePath(3):                         {Kind: LiveObject, Number: 3},
		ControlPath(9):                      {Kind: ControlObject, Number: 9},
		PinPath("v2-0a1b-1"):                {Kind: PinObject, Label: "v2-0a1b-1"},
		ManifestPath("main", "0.0", 1841):   {Kind: ManifestObject, Branch: "main", Task: "0.0", Epoch: 1841},
		FloorPath("main", "0.0", 7):         {Kind: FloorObject, Branch: "main", Task: "0.0", Epoch: 7},
		FloorPath("main", "0.0", AllEpochs): {Kind: FloorObject, Branch: "main", Task: "0.0", Epoch: AllEpochs},
		HeartbeatPath("main", "0.0"):        {Kind: HeartbeatObject, Branch: "main", Task: "0.0"},
		DataPath("main", "0.0", 5, "0123", 17, "per-minute.v2"): {Kind: DataObject, Branch: "main", Task: "0.0", Epoch: 5, Owner: "0123", Seq: 17, Given: "per-minute.v2"},
		SavepointPath("before-x", "9f"):                         {Kind: SavepointObject, Given: "before-x", Label: "9f"},
		DrainedPath(4, "0.0", "by-user"):                        {Kind: DrainedObject, Number: 4, Task: "0.0", Given: "by-user"},
	} {
		got, ok := ParsePath(path)
		if !ok || got != want {
			t.Errorf("%s reads as %+v, %v; want %+v", path, got, ok, want)
		}
	}
}

func TestPathsAreAsDocumented(t *testing.T) {
	for got, want := range map[string]string{
		ManifestPath("main", "0.0", 1841):              "branches/main/0.0/00000000000000001841.json",
		FloorPath("main", "0.0", AllEpochs):            "branches/main/0.0/floor/99999999999999999999.json",
		DataPath("main", "0.0", 2, "ab12", 3, "spend"): "branches/main/0.0/data/00000000000000000002-ab12-3-spend.avro",
		LivePath(0): "live/0.json",
		ManifestPath("main", "0.0", math.MaxUint64-1): "branches/main/0.0/18446744073709551614.json",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, path := range []string{
		"", "/", "job", "live/", "live/.json", "live/01.json", "live/+1.json", "live/x.json", "live/1/2.json", "live/18446744073709551616.json",
		"branches", "branches//branch.json", "branches/main", "branches/main//00000000000000000001.json", "branches/main/0.0/1.json",
		"branches/main/0.0/0000000000000000000x.json", "branches/main/0.0/99999999999999999999.json", "branches/main/0.0/18446744073709551616.json",
		"branches/main/0.0/floor/1.json", "branches/main/0.0/data/00000000000000000001-ab-1.avro", "branches/main/0.0/data/1-ab-1-x.avro",
		"branches/main/0.0/data/00000000000000000001-ab-01-x.avro", "branches/main/0.0/data/00000000000000000001-ab-1-x.json",
		"branches/main/0.0/else/1.json", "savepoints/x.json", "functions/0af1.json", "functions/0af1-.json", "functions/-00.json", "functions/0af1-00112233445566778.json", "drained/1-0.0.json", "drained/x-0.0-s.json", "unknown/1.json",
	} {
		if got, ok := ParsePath(path); ok {
			t.Errorf("%q reads as %+v", path, got)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "spend by user", "0.0", "v2-9f", "größe", "a..b", strings.Repeat("x", 80)} {
		if err := CheckName("state", name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", ".a", "a/b", `a\b`, " a", "a ", "a\x00", "a\n", "a\u200bb", "\xff", strings.Repeat("x", 81)} {
		if err := CheckName("state", name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// TestNamesSortAsEpochs is what probing by listing behind a name rests on.
func TestNamesSortAsEpochs(t *testing.T) {
	epochs := []Epoch{0, 1, 9, 10, 99, 1 << 32, 1 << 62, math.MaxUint64 - 1, AllEpochs}
	var names []string
	for _, e := range epochs {
		names = append(names, FloorPath("b", "0.0", e))
	}
	if !slices.IsSorted(names) {
		t.Errorf("not in order: %q", names)
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("branches/main/0.0/data/00000000000000000001-ab-1-x.avro")
	f.Add("live/0.json")
	f.Add("branches/main/0.0/floor/99999999999999999999.json")
	f.Fuzz(func(t *testing.T, path string) {
		n, ok := ParsePath(path)
		if !ok {
			return
		}
		var again string
		switch n.Kind {
		case JobObject:
			again = JobPath
		case VersionObject:
			again = VersionPath(n.Label)
		case FunctionsObject:
			again = FunctionsPath(n.Given, n.Label)
		case LayoutObject:
			if n.Number > math.MaxInt {
				return
			}
			again = LayoutPath(int(n.Number))
		case BranchObject:
			again = BranchPath(n.Branch)
		case ManifestObject:
			again = ManifestPath(n.Branch, n.Task, n.Epoch)
		case FloorObject:
			again = FloorPath(n.Branch, n.Task, n.Epoch)
		case HeartbeatObject:
			again = HeartbeatPath(n.Branch, n.Task)
		case DataObject:
			again = DataPath(n.Branch, n.Task, n.Epoch, n.Owner, n.Seq, n.Given)
		case LiveObject:
			again = LivePath(Generation(n.Number))
		case ControlObject:
			again = ControlPath(n.Number)
		case PinObject:
			again = PinPath(n.Label)
		case SavepointObject:
			again = SavepointPath(n.Given, n.Label)
		case DrainedObject:
			again = DrainedPath(Generation(n.Number), n.Task, n.Given)
		}
		if again != path {
			t.Errorf("%q reads as %+v, which is named %q", path, n, again)
		}
	})
}
