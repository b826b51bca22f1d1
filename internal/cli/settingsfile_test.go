package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseSetting(t *testing.T) {
	known := []string{"epoch", "log-level", "store"}
	for line, want := range map[string][2]string{
		"":                               {},
		"   \t":                          {},
		"# epoch = 1s":                   {},
		"epoch=1s":                       {"epoch", "1s"},
		"  epoch\t=  1s  ":               {"epoch", "1s"},
		"epoch = 1s # one second":        {"epoch", "1s"},
		"store = a#b":                    {"store", "a#b"},
		"store = a b = c":                {"store", "a b = c"},
		`store = ""`:                     {"store", ""},
		`store = " a # b\t" # a comment`: {"store", " a # b\t"},
		`store = "a\"b"`:                 {"store", `a"b`},
		"store = Zürich":                 {"store", "Zürich"},
	} {
		name, value, err := parseSetting(line, known)
		if err != nil || [2]string{name, value} != want {
			t.Errorf("%q: %q, %q, %v; want %q", line, name, value, err, want)
		}
	}
	for line, says := range map[string]string{
		"epoch":             "the line is no setting: use name = value, as in epoch = 2s",
		"epoch =":           `epoch: it has no value; "" stands for an empty one`,
		"epoch = # nothing": `epoch: it has no value; "" stands for an empty one`,
		"= 1s":              "there is no setting \"\"; `run --help` lists them",
		"Epoch = 1s":        `there is no setting "Epoch"; did you mean epoch?`,
		"loglevel = debug":  `there is no setting "loglevel"; did you mean log-level?`,
		"nothing = 1":       "there is no setting \"nothing\"; `run --help` lists them",
		`store = "a`:        `store: the value "a is not quoted as in "a \"b\" c"`,
		`store = "a" b`:     `store: "b" stands behind the value's quotes; write a value on its own`,
		`store = "\xff"`:    `store: the value "\xff" is no text`,
		"store = a\x00b":    "the line is no text: it holds bytes that are not UTF-8, or control characters; write it anew",
		"# \xff":            "the line is no text: it holds bytes that are not UTF-8, or control characters; write it anew",
		"[section]":         "the line is no setting: use name = value, as in epoch = 2s",
		"\ufeffepoch = 1s":  `there is no setting "\ufeffepoch"; did you mean epoch?`,
	} {
		if _, _, err := parseSetting(line, known); err == nil || err.Error() != says {
			t.Errorf("%q: %v\nwant %s", line, err, says)
		}
	}
}

func TestSettingsOfAFile(t *testing.T) {
	got, err := parseSettings("f", []byte("epoch = 1s\r\n# c\n\ndrop = a\ndrop = b"), []string{"epoch", "drop"})
	if err != nil || len(got) != 2 || got["epoch"][0] != (setting{"1s", 1, "f:1"}) ||
		!slices.Equal(got["drop"], []setting{{"a", 4, "f:4"}, {"b", 5, "f:5"}}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"epoch", "epoch", 0}, {"epock", "epoch", 1}, {"eopch", "epoch", 2}, {"kitten", "sitting", 3},
		{"kitten", "kit", 3}, {"abcd", "efgh", 4}, {"a", "aaaaaaaaaa", 4}, {"abcdefgh", "hgfedcba", 4},
	} {
		if got := distance(test.a, test.b, 3); got != test.want {
			t.Errorf("%s, %s: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// FuzzSettings: whatever the file holds, there are settings of known names, or
// there is an error of one line that names the file's line.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"epoch = 1s\n", "# c\r\n\r\nstore = \"a\\x41\"#\n", "store = a # b", "drop=a\ndrop=b", "x", "\xff", `store = "`} {
		f.Add([]byte(seed))
	}
	known := []string{"drop", "epoch", "store"}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := parseSettings("f", data, known)
		if err != nil {
			if says := err.Error(); !strings.HasPrefix(says, "f:") || strings.ContainsAny(says, "\n\r") || len(says) > 600 {
				t.Errorf("the error is %q", says)
			}
			return
		}
		lines := strings.Count(string(data), "\n") + 1
		for name, given := range settings {
			for _, s := range given {
				if !slices.Contains(known, name) || s.line < 1 || s.line > lines || !utf8.ValidString(s.value) {
					t.Errorf("%s = %q, line %d of %d", name, s.value, s.line, lines)
				}
			}
		}
	})
}
