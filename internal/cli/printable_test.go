package cli

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		"grüße \"a\" \\n":    "grüße \"a\" \\n",
		"a\nb\tc":            `a\nb\tc`,
		"\x1b[2J":            `\x1b[2J`,
		"\xff\x00":           `\xff\x00`,
		"\u202efdp":          `\u202efdp`,
		"\ufffd is no error": "\ufffd is no error",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// FuzzPrintable: whatever the text, one line of it is printed, and a text that
// can be printed is left alone.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[31mb\r\n\xff'\"")
	f.Fuzz(func(t *testing.T, text string) {
		got := printable(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", text, got)
		}
		if again := printable(got); again != got {
			t.Errorf("%q is shown as %q, and that as %q", text, got, again)
		}
	})
}
