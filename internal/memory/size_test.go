package memory

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "17B": 17, "2KiB": 2048, "512MiB": 536870912, "3GiB": 3221225472, "1TiB": 1099511627776,
		"9223372036854775807": math.MaxInt64,
	} {
		if n, err := ParseSize(text); n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{
		"", "off", "0", "-1", "+1", "1.5GiB", "1KB", "1kib", "MiB", "1 MiB", "1BB", "1iB", "9007199254740992KiB", "9223372036854775808", "8388608TiB",
	} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, n)
		}
	}
}

func TestSizesAsText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", math.MaxInt64: "8388608.0 TiB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d is written as %s, want %s", n, got, want)
		}
	}
}
