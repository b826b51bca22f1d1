package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// TestInstantsInJSON reads instants as texts and as numbers, and refuses what is neither.
func TestInstantsInJSON(t *testing.T) {
	for text, want := range map[string]schema.Instant{
		`"1970-01-01T00:00:01.5Z"`:             1_500_000,
		`"1969-12-31T23:59:59.999999Z"`:        -1,
		`"1969-12-31T23:59:59.9999999Z"`:       -1, // the microsecond that it falls in
		`"2026-03-29T03:00:00+02:00"`:          1_774_746_000_000_000,
		`-60001000`:                            -60_001_000,
		`null`:                                 42,
		`"` + schema.Instant(7).String() + `"`: 7,
	} {
		got := schema.Instant(42)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %d (%v), expected %d", text, got, err, want)
		}
	}
	for _, text := range []string{`"yesterday"`, `1.5`, `true`, `{}`, `""`, `"2026-03-29"`} {
		if got := schema.Instant(42); json.Unmarshal([]byte(text), &got) == nil {
			t.Errorf("%s is read as %d", text, got)
		}
	}
}
