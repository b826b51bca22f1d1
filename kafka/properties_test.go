package kafka

import (
	"slices"
	"strings"
	"testing"
)

// TestProperties reads what java.util.Properties reads, the same way.
func TestProperties(t *testing.T) {
	for _, c := range []struct {
		text string
		want []property
	}{
		{"", nil},
		{"\n \t\f\n# a=b\n  ! c=d \\\n", nil},
		{"a=b", []property{{"a", "b", 1}}},
		{"\r\n a = b \r\n\rc:d\re", []property{{"a", "b ", 2}, {"c", "d", 4}, {"e", "", 5}}},
		{"a b\nc\t:\td\ne  f=g", []property{{"a", "b", 1}, {"c", "d", 2}, {"e", "f=g", 3}}},
		{"a==b\na=:b\na = = b", []property{{"a", "=b", 1}, {"a", ":b", 2}, {"a", "= b", 3}}},
		{"a=b\\\n   # c\nd=e", []property{{"a", "b# c", 1}, {"d", "e", 3}}},
		{"a=b\\\\\nc=d", []property{{"a", `b\`, 1}, {"c", "d", 2}}},
		{"a=b\\\\\\\nc=d", []property{{"a", `b\c=d`, 1}}},
		{"a\\\n =b", []property{{"a", "b", 1}}},
		{"a=b\\", []property{{"a", "b", 1}}},
		{`a\=b\:c\ d=e`, []property{{"a=b:c d", "e", 1}}},
		{`a=\t\n\r\f\q\\\"\u0041\u00e4`, []property{{"a", "\t\n\r\fq\\\"Aä", 1}}},
		{"# ümläut\na=b", []property{{"a", "b", 2}}},
		{"=b\n:c", []property{{"", "b", 1}, {"", "c", 2}}},
	} {
		got, err := parseProperties([]byte(c.text))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %+v, %v, expected %+v", c.text, got, err, c.want)
		}
	}
	for text, says := range map[string]string{
		"a=b\nc=s3crét":  "line 2: a character that isn't ASCII",
		"ä=b":            "line 1: a character that isn't ASCII",
		`a=s3cret\u12`:   `line 1: \u without`,
		`a=s3cret\u12g4`: `line 1: \u without`,
	} {
		_, err := parseProperties([]byte(text))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%q: %v, expected %q", text, err, says)
		}
	}
}

// FuzzProperties: whatever stands there is read or refused, and what was written with
// escapes comes back.
func FuzzProperties(f *testing.F) {
	f.Add("a", "b c")
	f.Add(" a=:", `\"`+"\t\n")
	f.Add("#", "\\")
	f.Fuzz(func(t *testing.T, key, value string) {
		if _, err := parseProperties([]byte(key + value)); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("an error of several lines: %v", err)
		}
		var text strings.Builder
		for _, part := range []string{key, value} {
			for _, r := range part {
				if r >= 1<<16 || r == '\ufffd' {
					t.Skip("not one unit of UTF-16, or no UTF-8")
				}
				text.WriteString(`\u` + string("0123456789abcdef"[r>>12]) + string("0123456789abcdef"[r>>8&15]) + string("0123456789abcdef"[r>>4&15]) + string("0123456789abcdef"[r&15]))
			}
			text.WriteString("=")
		}
		got, err := parseProperties([]byte(strings.TrimSuffix(text.String(), "=")))
		if err != nil || len(got) != 1 || got[0] != (property{key, value, 1}) {
			t.Fatalf("%q became %+v: %v", text.String(), got, err)
		}
	})
}
