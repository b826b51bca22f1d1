package window_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func must(t failer) func(d *window.Definition, err error) *window.Definition {
	return func(d *window.Definition, err error) *window.Definition {
		t.Helper()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return d
	}
}

func all(t failer, d *window.Definition, at int64) []window.Span {
	t.Helper()
	got, ok := d.Append(nil, at)
	if !ok {
		t.Fatalf("%v refuses %d: %v", d.Parameters(), at, d.Refusal(at))
	}
	return got
}

// at reads an instant as RFC 3339 has it.
func at(t failer, text string) int64 {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return parsed.UnixMicro()
}

func spanOf(t failer, start, end string) window.Span {
	t.Helper()
	return window.Span{Start: at(t, start), End: at(t, end)}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// small draws tumbling or hopping windows of few microseconds.
func small(t *rapid.T, label string) *window.Definition {
	size := rapid.Int64Range(1, 30).Draw(t, label+" size")
	slide := size
	if rapid.Bool().Draw(t, label+" hops") {
		slide = rapid.Int64Range(1, size).Draw(t, label+" slide")
	}
	offset := rapid.Int64Range(-slide+1, slide-1).Draw(t, label+" offset")
	if slide == size {
		return must(t)(window.Tumbling(micros(size), micros(offset)))
	}
	return must(t)(window.Hopping(micros(size), micros(slide), micros(offset)))
}

// listed are all windows of a tumbling or hopping definition that begin in a range,
// each start tried by itself.
func listed(d *window.Definition, from, to int64) (spans []window.Span) {
	for start := from; start < to; start++ {
		if (start-d.Offset)%d.Slide == 0 {
			spans = append(spans, window.Span{Start: start, End: start + d.Size})
		}
	}
	return spans
}

// holding are those that hold a time.
func holding(spans []window.Span, t int64) (held []window.Span) {
	for _, s := range spans {
		if s.Start <= t && t < s.End {
			held = append(held, s)
		}
	}
	return held
}

func wantSpans(t failer, what string, got, want []window.Span) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// constructors that every test of errors goes through.
func refused(t *testing.T, want string) func(d *window.Definition, err error) {
	return func(d *window.Definition, err error) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%v (%v), want the error %s", d, err, want)
		}
	}
}
