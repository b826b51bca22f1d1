package epoch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schedule says that a savepoint is made of the first epoch of each period, by the
// epoch's clock in UTC, and how many of them are kept.
type Schedule struct {
	// Label is what the periods are called: hourly, daily, weekly, or a duration
	// such as 10m. Names of savepoints begin with it.
	Label string
	// Every is the length of a period. Weeks begin on Monday; all else is counted
	// from the beginning of 1970.
	Every time.Duration
	// Keep is how many savepoints of the schedule there may be.
	Keep int
}

// What a schedule may be.
const (
	shortestPeriod = time.Second
	mostSavepoints = 1000
	mostSchedules  = 10
)

const day = 24 * time.Hour

// ParseSchedules reads schedules such as "hourly=24,daily=7,10m=6": the period and
// how many savepoints of it are kept. Empty text is none.
func ParseSchedules(text string) ([]Schedule, error) {
	if text == "" {
		return nil, nil
	}
	var all []Schedule
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseSchedule(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other Schedule) bool { return other.Every == s.Every }) {
			return nil, fmt.Errorf("%q: the period is there twice; name each once", part)
		}
		all = append(all, s)
	}
	if len(all) > mostSchedules {
		return nil, fmt.Errorf("%d schedules; at most %d", len(all), mostSchedules)
	}
	return all, nil
}

func parseSchedule(text string) (Schedule, error) {
	period, number, _ := strings.Cut(text, "=")
	keep, err := strconv.Atoi(number)
	if err != nil || keep < 1 || keep > mostSavepoints {
		return Schedule{}, fmt.Errorf("%q: a period and how many savepoints are kept, 1 to %d, as hourly=24", text, mostSavepoints)
	}
	switch period {
	case "hourly":
		return Schedule{period, time.Hour, keep}, nil
	case "daily":
		return Schedule{period, day, keep}, nil
	case "weekly":
		return Schedule{period, 7 * day, keep}, nil
	}
	every, err := time.ParseDuration(period)
	if err != nil || every < shortestPeriod || every%time.Second != 0 {
		return Schedule{}, fmt.Errorf("%q: hourly, daily, weekly, or a duration of whole seconds, as 10m=6", text)
	}
	return Schedule{shortest(every), every, keep}, nil
}

// shortest writes a duration without the parts that are zero, so that one duration
// has one label.
func shortest(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// String is the schedule as it is written.
func (s Schedule) String() string { return fmt.Sprintf("%s=%d", s.Label, s.Keep) }

// NameAt is the name of the savepoint of the period that a moment lies in, in
// microseconds since 1970 UTC. Names of one schedule sort as the periods do.
func (s Schedule) NameAt(micros int64) string {
	every, first := s.Every.Microseconds(), int64(0)
	if s.Label == "weekly" {
		first = (4 * day).Microseconds() // 1970 began on a Thursday
	}
	since := micros - first
	begin := time.UnixMicro(micros - ((since%every)+every)%every).UTC()
	form := "20060102T150405Z"
	switch s.Label {
	case "hourly":
		form = "20060102T15Z"
	case "daily", "weekly":
		form = "20060102"
	}
	return s.Label + "-" + begin.Format(form)
}

// Beyond are those of all savepoints that the schedule has made and keeps no more.
// What people have made, or other schedules, is none of its business.
func (s Schedule) Beyond(all []Savepoint) (beyond []Savepoint) {
	var own []Savepoint
	for _, p := range all {
		if p.Schedule == s.Label {
			own = append(own, p)
		}
	}
	slices.SortStableFunc(own, func(a, b Savepoint) int { return cmp.Compare(b.Name, a.Name) })
	names, last := 0, ""
	for _, p := range own {
		if p.Name != last {
			names, last = names+1, p.Name
		}
		if names > s.Keep {
			beyond = append(beyond, p)
		}
	}
	return beyond
}
