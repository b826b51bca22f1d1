package connectortest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocs holds the tables of docs/connectors.md to the suite's cases.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, cases := range map[string][]testCase{
		"### Cases for sources\n": sourceSuite[int64]{}.cases(),
		"### Cases for sinks\n":   sinkSuite{}.cases(),
	} {
		_, section, ok := strings.Cut(string(page), heading)
		if !ok {
			t.Fatalf("no heading %q", heading)
		}
		section, _, _ = strings.Cut(section, "\n##")
		var rows []string
		for line := range strings.Lines(section) {
			if strings.HasPrefix(line, "|") {
				rows = append(rows, strings.TrimSpace(line))
			}
		}
		want := []string{"| case | why |", "|---|---|"}
		for _, c := range cases {
			want = append(want, "| "+c.name+" | "+c.reason+" |")
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%shas\n%s\nexpected\n%s", heading, strings.Join(rows, "\n"), strings.Join(want, "\n"))
		}
	}
}
