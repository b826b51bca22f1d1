package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestFlagsFromTheEnvironment(t *testing.T) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	level := flags.String("log-level", "info", "")
	shards := flags.Int("shards", 2, "")
	drop := flags.StringArray("drop", nil, "")
	t.Setenv("SLUICE_LOG_LEVEL", "debug")
	t.Setenv("SLUICE_SHARDS", "8")
	t.Setenv("SLUICE_DROP", "a,b.C")
	if err := flags.Parse([]string{"--shards", "3"}); err != nil {
		t.Fatal(err)
	}
	if err := settleFlags(flags, nil, nil); err != nil {
		t.Fatal(err)
	}
	if *level != "debug" || *shards != 3 || !slices.Equal(*drop, []string{"a", "b.C"}) {
		t.Errorf("found %s, %d, %q", *level, *shards, *drop)
	}
}

type coded int

func (c coded) Error() string { return "coded" }
func (c coded) ExitCode() int { return int(c) }

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{usagef("a mistake"), 2},
		{fmt.Errorf("wrapped: %w", coded(13)), 13},
		{coded(-1), 1}, // a process that was killed
		{coded(0), 1},
		{coded(99), 1},
	} {
		if code := exitCode(test.err); code != test.code {
			t.Errorf("%v: code %d, want %d", test.err, code, test.code)
		}
	}
}

func TestSettingsInTheirOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.conf")
	write(t, file, "shards = 5\nworkers = 6\nepoch = 7s\ndrop = a\ndrop = b # and more\ngap = \"c d\"\nlimit = 3\n")
	known := []string{"shards", "workers", "epoch", "drop", "gap", "limit"} // limit is another command's
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.String("config", defaultConfig, "")
	shards, workers := flags.Int("shards", 1, ""), flags.Int("workers", 1, "")
	epoch, grace := flags.Duration("epoch", time.Second, ""), flags.Duration("grace", time.Minute, "")
	drop, gap := flags.StringArray("drop", nil, ""), flags.StringArray("gap", []string{"x"}, "")
	t.Setenv("SLUICE_SHARDS", "4")
	t.Setenv("SLUICE_WORKERS", "3")
	t.Setenv("SLUICE_CONFIG", file)
	if err := flags.Parse([]string{"--shards=2"}); err != nil {
		t.Fatal(err)
	}
	if err := settleFlags(flags, known, nil); err != nil {
		t.Fatal(err)
	}
	if *shards != 2 || *workers != 3 || *epoch != 7*time.Second || *grace != time.Minute || !slices.Equal(*drop, []string{"a", "b"}) || !slices.Equal(*gap, []string{"c d"}) {
		t.Errorf("found %d, %d, %v, %v, %q, %q", *shards, *workers, *epoch, *grace, *drop, *gap)
	}
	for name, want := range map[string]oneSetting{
		"shards":  {"shards", "2", nil, "flag"},
		"workers": {"workers", "3", nil, "SLUICE_WORKERS"},
		"epoch":   {"epoch", "7s", nil, file + ":3"},
		"drop":    {"drop", "", []string{"a", "b"}, file + ":4"},
		"grace":   {"grace", "1m0s", nil, "default"},
	} {
		if got := settingOf(flags.Lookup(name)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestOnlySomeSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.conf")
	write(t, file, "store = there\nepoch = 7s\n")
	flags := pflag.NewFlagSet("read", pflag.ContinueOnError)
	flags.String("config", file, "")
	store, epoch := flags.String("store", "here", ""), flags.Int("epoch", -1, "") // another epoch
	t.Setenv("SLUICE_EPOCH", "9s")
	if err := settleFlags(flags, []string{"store", "epoch"}, []string{"store"}); err != nil || *store != "there" || *epoch != -1 {
		t.Errorf("%v, store %s, epoch %d", err, *store, *epoch)
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	for _, test := range []struct{ name, content, says string }{
		{"time", "\nepoch = soon\n", `FILE:2: epoch = soon: time: invalid duration "soon"; use a time such as 500ms, 30s or 10m`},
		{"number", "shards = 1.5", `FILE:1: shards = 1.5: strconv.ParseInt: parsing "1.5": invalid syntax; use a whole number`},
		{"twice", "shards = 1\n\nshards = 1", "FILE:3: shards is set again, after line 1; keep one of the two"},
		{"unknown", "shard = 1", `FILE:1: there is no setting "shard"; did you mean shards?`},
		{"size", strings.Repeat("# more\n", maxConfig/7+1), `the file of settings "FILE" can't be read: it has more than 65536 bytes; name another with --config`},
	} {
		file := filepath.Join(t.TempDir(), "job.conf")
		write(t, file, test.content)
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		flags.String("config", file, "")
		flags.Int("shards", 1, "")
		flags.Duration("epoch", time.Second, "")
		err := settleFlags(flags, []string{"shards", "epoch"}, nil)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		if says := strings.ReplaceAll(err.Error(), file, "FILE"); says != test.says || exitCode(err) != exitUsage {
			t.Errorf("%s: code %d: %s\nwant %s", test.name, exitCode(err), says, test.says)
		}
	}
}

func TestFilesOfSettingsThatAreNotThere(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		name, flag, variable string
		ok                   bool
	}{
		{"the default", "", "", true},
		{"a flag's", "none.conf", "", false},
		{"the environment's", "", "none.conf", false},
		{"a folder", ".", "", false},
		{"the flag goes before", "there.conf", "none.conf", true},
	} {
		write(t, "there.conf", "")
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		flags.String("config", defaultConfig, "")
		var args []string
		if test.flag != "" {
			args = []string{"--config", test.flag}
		}
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if t.Setenv("SLUICE_CONFIG", test.variable); test.variable == "" {
			os.Unsetenv("SLUICE_CONFIG")
		}
		if err := settleFlags(flags, nil, nil); (err == nil) != test.ok || !test.ok && exitCode(err) != exitUsage {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
