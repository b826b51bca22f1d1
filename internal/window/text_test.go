package window

import (
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	must := func(d *Definition, err error) *Definition {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	tumbling := must(Tumbling(10*time.Second, 0))
	hour := must(Tumbling(time.Hour, 0))
	for want, d := range map[string]*Definition{
		"tumbling 10s":                    tumbling,
		"tumbling 10s, by the clock":      tumbling.On(ProcessingTime),
		"tumbling 1h":                     hour,
		"tumbling 1h30m":                  must(Tumbling(90*time.Minute, 0)),
		"tumbling 1h0m1s, offset 20m":     must(Tumbling(time.Hour+time.Second, 20*time.Minute)),
		"tumbling 1.5ms":                  must(Tumbling(1500*time.Microsecond, 0)),
		"hopping 1m every 10s, offset 1s": must(Hopping(time.Minute, 10*time.Second, time.Second)),
		"sliding 5s":                      must(Sliding(5 * time.Second)),
		"session with a gap of 30s":       must(Session(30 * time.Second)),
		"1 day in Europe/Berlin":          must(Calendar(1, Day, "Europe/Berlin", 0)),
		"2 weeks in UTC, offset 4h":       must(Calendar(2, Week, "UTC", 4*time.Hour)),
		"custom of_mine":                  {Kind: CustomKind, Name: "of_mine", Clock: EventTime},
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
		if again := must(Among(d.Parameters())); again.String() != want {
			t.Errorf("%q once it was read, expected %q", again, want)
		}
	}
	s, err := Begin(tumbling).Then(hour, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.String(), "tumbling 10s until 2026-11-01T00:00:00Z, then tumbling 1h"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got, want := s.Drop(1).String(), "tumbling 1h"; got != want {
		t.Errorf("%q once the first is over, expected %q", got, want)
	}
}

// Parameters of a part that are none of its windows' are left out.
func TestAmong(t *testing.T) {
	d, err := Among(map[string]string{"window": "session", "gap": "1m0s", "clock": "event", "panes": "shared", "allowed lateness": "1s"})
	if err != nil || d.String() != "session with a gap of 1m" {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Among(map[string]string{"window": "session", "clock": "event"}); err == nil {
		t.Error("a session without a gap was read")
	}
}
