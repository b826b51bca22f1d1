package cli

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := newTable(text("state"), number("rows"), text("schema"))
	table.row("spend", "1,234", "string → long")
	table.row("größe", "5", "")
	var out strings.Builder
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	want := "STATE   ROWS  SCHEMA\nspend  1,234  string → long\ngröße      5\n"
	if out.String() != want {
		t.Errorf("found\n%swant\n%s", out.String(), want)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
	if got := cut("größer", 4); got != "grö…" {
		t.Errorf("cut gives %s", got)
	}
}

func TestColours(t *testing.T) {
	if got := (styles{true}).bad("error:"); got != "\x1b[31merror:\x1b[0m" {
		t.Errorf("found %q", got)
	}
	if got := stylesFor(new(strings.Builder)).bad("error:"); got != "error:" {
		t.Errorf("without a terminal: %q", got)
	}
}

// The last line of a screen stays below what is written.
func TestScreen(t *testing.T) {
	var out strings.Builder
	s := &screen{w: &out}
	s.Write([]byte("one\n"))
	s.show("at 1")
	s.Write([]byte("two\n"))
	s.show("at 2")
	s.show("")
	s.Write([]byte("three\n"))
	want := "one\n" + clearLine + "at 1" + clearLine + "two\nat 1" + clearLine + "at 2" + clearLine + "three\n"
	if out.String() != want {
		t.Errorf("found %q, want %q", out.String(), want)
	}
}
