package connectortest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// flawed names the flaw of the fakes in a process that TestFlaws starts.
const flawed = "SLUICE_CONNECTORTEST_FLAW"

func flaw() string { return os.Getenv(flawed) }

// TestFlaws breaks the fakes, each time as one case has to find. A case that fails
// ends a test, so that each runs in a process of its own.
func TestFlaws(t *testing.T) {
	for _, path := range []string{
		"TestFakeSink/stream/another's target",
		"TestFakeSink/stream/another job's name",
		"TestFakeSink/stream/damaged record",
		"TestFakeSink/stream/lost records",
		"TestFakeSink/stream/part limits",
		"TestFakeSink/stream/refused row",
		"TestFakeSink/stream/tries once",
		"TestFakeSink/stream/a newer build's rows",
		"TestFakeSink/table/a newer build's rows",
		"TestFakeSink/table/wire of a delete",
		"TestFakeSink/stream/two owners",
		"TestFakeSink/stream/ready",
		"TestFakeSink/stream/group offsets",
		"TestFakeSink/stream/replace",
		"TestFakeSink/stream/crash in deliver",
		"TestFakeSink/table/broken call",
		"TestFakeSource/begun",
		"TestFakeSource/found beginning",
		"TestFakeSource/group",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split(path, "/")
			name := parts[len(parts)-1]
			for i, p := range parts {
				parts[i] = "^" + strings.ReplaceAll(p, " ", "_") + "$"
			}
			for _, broken := range []bool{false, true} {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout=1m", "-test.run="+strings.Join(parts, "/"))
				cmd.Env = os.Environ()
				if broken {
					cmd.Env = append(cmd.Env, flawed+"="+name)
				}
				out, err := cmd.CombinedOutput()
				text := string(out)
				tested := strings.ReplaceAll(path, " ", "_") + " ("
				switch {
				case !broken && (err != nil || !strings.Contains(text, "--- PASS: "+tested)):
					t.Fatalf("the fake without a flaw: %v\n%s", err, text)
				case broken && (err == nil || !strings.Contains(text, "--- FAIL: "+tested) || !strings.Contains(text, "why this matters: ")):
					t.Fatalf("the flaw isn't found: %v\n%s", err, text)
				}
			}
		})
	}
}
