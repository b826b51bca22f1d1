package window_test

import (
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/window"
)

// Records of a day, 10 ms apart, as they come in order.
func benchmarkFinder(b *testing.B, d *window.Definition) {
	finder := window.Begin(d).Finder()
	var spans []window.Span
	at := int64(1_770_000_000_000_000)
	for b.Loop() {
		spans, _ = finder.Append(spans[:0], at)
		at += 10_000
	}
	if len(spans) == 0 {
		b.Fatal("no window was found")
	}
}

func BenchmarkOne(b *testing.B) {
	for name, d := range map[string]*window.Definition{
		"tumbling": must(b)(window.Tumbling(time.Minute, 0)),
		"calendar": must(b)(window.Calendar(1, window.Day, "America/New_York", 0)),
		"session":  must(b)(window.Session(time.Minute)),
	} {
		b.Run(name, func(b *testing.B) {
			at, sum := int64(1_770_000_000_000_000), int64(0)
			for b.Loop() {
				span, _ := d.One(at)
				at, sum = at+10_000, sum+span.Start
			}
			if sum == 0 {
				b.Fatal("no window was found")
			}
		})
	}
}

func BenchmarkFinder(b *testing.B) {
	b.Run("tumbling", func(b *testing.B) { benchmarkFinder(b, must(b)(window.Tumbling(time.Minute, 0))) })
	b.Run("calendar", func(b *testing.B) {
		benchmarkFinder(b, must(b)(window.Calendar(1, window.Day, "America/New_York", 0)))
	})
	b.Run("hopping of 6", func(b *testing.B) { benchmarkFinder(b, must(b)(window.Hopping(time.Minute, 10*time.Second, 0))) })
	b.Run("sliding", func(b *testing.B) { benchmarkFinder(b, must(b)(window.Sliding(time.Minute))) })
}
