package codec_test

import (
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/sluicestream/sluice/codec"
)

// TestHostileJSON: whatever the text, the error is one short line, and decoding
// takes memory in proportion to the text.
func TestHostileJSON(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for name, c := range map[string]struct{ text, says string }{
		"deep":              {`{"other":` + deep + strings.Repeat("]", len(deep)) + `}`, "depth"},
		"deep and open":     {`{"other":` + deep, "depth"},
		"deep objects":      {strings.Repeat(`{"a":`, 100_000), "depth"},
		"deep enough":       {`{"other":` + deep[:9_000] + `!`, "…"},
		"a long name":       {`{"` + strings.Repeat("n", 1_000_000) + `":!}`, "not JSON"},
		"a name with lines": {`{"a\n\u001b[2J":!}`, `"a\n\x1b[2J"`},
		"a long number":     {`{"ID":` + strings.Repeat("9", 1_000_000) + `}`, "ID"},
		"a long exponent":   {`{"ID":1e999999999}`, "ID"},
		"a long string":     {`{"ID":"` + strings.Repeat("x", 1_000_000) + `"}`, "ID"},
		"a long time":       {`{"At":"` + strings.Repeat("2", 1_000_000) + `"}`, "At"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode(t, codec.JSON[order](), c.text)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("expected an error that says %q, found %.300v", c.says, err)
			}
			if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the error has %d bytes: %.300q", len(text), text)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+100*uint64(len(c.text)) {
				t.Errorf("%d bytes were allocated for a text of %d", took, len(c.text))
			}
		})
	}
}
