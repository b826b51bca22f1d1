package cli

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestProgress(t *testing.T) {
	p := newProgress(at(0), map[string]string{"orders": unitBytes, "clicks": unitRecords})
	expect := func(seconds float64, want string) {
		t.Helper()
		if got := p.line(at(seconds)); got != want {
			t.Errorf("after %v s: %q, want %q", seconds, got, want)
		}
	}
	expect(0, "waiting for records")

	// Where it began to read isn't known, so that no time can be told yet.
	p.add(at(1), Committed{Epoch: 4, Records: 1000, Partitions: []Partition{
		{"orders", "a", 1000, 21000}, {"orders", "b", 0, 1000},
	}})
	expect(1, "epoch 4 · 1,000 records · 1,000/s · lag 20.5 KiB")

	// 2,000 bytes in 2 s: 19,000 that are left take 19 s.
	p.add(at(2), Committed{Epoch: 5, Records: 500, DeadLetters: 2, Partitions: []Partition{
		{"orders", "a", 3000, 21000}, {"orders", "b", 0, 1000},
	}})
	expect(2, "epoch 5 · 1,500 records · 750/s · lag 18.6 KiB · about 19s left · 2 dead letters")

	// Nothing goes on: the rate sinks, and the newest mark is one to reckon from.
	expect(4, "epoch 5 · 1,500 records · 375/s · lag 18.6 KiB · about 38s left · 2 dead letters")
	expect(30, "epoch 5 · 1,500 records · 0/s · lag 18.6 KiB · 2 dead letters")

	// The slower source decides.
	p.add(at(31), Committed{Epoch: 6, Partitions: []Partition{
		{"orders", "a", 21000, 21000}, {"clicks", "0", 10, 30},
	}})
	p.add(at(32), Committed{Epoch: 7, Records: 10, Partitions: []Partition{
		{"orders", "a", 21000, 21000}, {"clicks", "0", 20, 30},
	}})
	if lag := p.lag(); lag != "10 records" {
		t.Errorf("lag %s, want 10 records", lag)
	}

	p.add(at(33), Committed{Epoch: 8, Records: 10, Partitions: []Partition{
		{"orders", "a", 21000, 21000}, {"clicks", "0", 31, 30}, // the end is known late
	}})
	if lag := p.lag(); lag != "none" {
		t.Errorf("lag %s, want none", lag)
	}
	if _, ok := p.left(at(33)); ok {
		t.Error("a time is told although nothing is left")
	}
}

func TestRateIsOverTheLastWhile(t *testing.T) {
	p := newProgress(at(0), nil)
	for i := 1; i <= 100; i++ {
		records := int64(10)
		if i > 50 {
			records = 1000
		}
		p.add(at(float64(i)), Committed{Records: records})
	}
	if rate := p.rate(at(100)); rate != 1000 {
		t.Errorf("rate %v, want 1000", rate)
	}
	if len(p.marks) > 12 {
		t.Errorf("%d marks are kept", len(p.marks))
	}
}
