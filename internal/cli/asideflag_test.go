package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestSetAsideFlag sees what the flag takes from a command line, the environment and
// a file, and that its help tells its default once.
func TestSetAsideFlag(t *testing.T) {
	flags := func() (*pflag.FlagSet, *map[string]string) {
		var files map[string]string
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		addSetAside(f, &files, "as `STATE=FILE`")
		return f, &files
	}
	f, files := flags()
	if help := f.FlagUsages(); !strings.Contains(help, "--set-aside STATE=FILE ") || strings.Count(help, "(default") != 1 || !strings.Contains(help, "(default none)") {
		t.Errorf("help says %q, want one default, none", help)
	}
	if err := f.Parse([]string{"--set-aside", "spend=a,b=c.jsonl", "--set-aside=shops=d", "--set-aside", "shops=d"}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"spend": "a,b=c.jsonl", "shops": "d"}; !maps.Equal(*files, want) {
		t.Errorf("found %v, want %v", *files, want)
	}
	if s := settingOf(f.Lookup("set-aside")); strings.Join(s.Values, "|") != "shops=d|spend=a,b=c.jsonl" {
		t.Errorf("the setting is %+v", s)
	}
	for _, wrong := range []string{"", "spend", "=a", "spend=", "shops=e"} {
		if err := f.Parse([]string{"--set-aside", wrong}); err == nil {
			t.Errorf("--set-aside %q was taken", wrong)
		}
	}
	f, files = flags()
	t.Setenv("SLUICE_SET_ASIDE", "spend=a,shops=b")
	if err := settleFlags(f, nil, nil); err != nil || !maps.Equal(*files, map[string]string{"spend": "a", "shops": "b"}) {
		t.Errorf("from the environment: %v, %v", *files, err)
	}
	f, files = flags()
	if err := fromFile(f.Lookup("set-aside"), []setting{{"spend=a", 1, "f:1"}, {"shops=b", 2, "f:2"}}); err != nil || !maps.Equal(*files, map[string]string{"spend": "a", "shops": "b"}) {
		t.Errorf("from a file: %v, %v", *files, err)
	}
}
